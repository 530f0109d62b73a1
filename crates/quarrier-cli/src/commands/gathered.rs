//! Searches and carves on a cluster, and passes on the rows as one process finds them.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::search::Planning;
use quarrier::{Opener, Sources};
use quarrier_carve::folder::Row as CarvedFile;
use quarrier_units::{
    CarveUnits, Error, Joined, Remarks, Results, Row, SourceUnits, Unit, UnitSearch,
};

use super::packed::{PackedCarve, PackedRequest, PackedSearch};
use super::spread::{self, OwnFolder, Spread};
use crate::cluster::{Cluster, waves};
use crate::host;

/// A cluster, and what is searched or carved there.
pub struct Gather<'g> {
    /// The cluster.
    pub cluster: &'g dyn Cluster,
    /// The address of its scheduler.
    pub at: &'g str,
    /// The sources.
    pub sources: &'g Sources,
    /// Opens them in this process.
    pub opener: &'g Opener,
}

/// A search, and what is needed of its findings.
#[derive(Debug, Clone, Copy)]
pub struct SearchPart<'p> {
    /// The search.
    pub packed: &'p PackedSearch,
    /// Where findings start.
    pub range: &'p Range<u64>,
    /// Whether a limit may end the search early.
    pub is_limited: bool,
}

/// Takes the findings of a cluster; an error of `take_row` ends the work without one.
pub trait TakeFindings: Send {
    /// Takes the next finding, with the name of its source.
    fn take_row(&mut self, source: &str, row: &Row<'_>) -> io::Result<()>;

    /// Takes what is known of a source after its last finding.
    fn take_source(&mut self, source: &SourceUnits, joined: &Joined);
}

/// Takes the carved files of a cluster; an error of `take_file` ends the work without one.
pub trait TakeCarvedFiles {
    /// Takes the next file.
    fn take_file(&mut self, file: CarvedFile) -> io::Result<()>;

    /// Takes what is known of a source after its last file.
    fn take_source(&mut self, source: &SourceUnits, remarks: &Remarks);
}

impl Gather<'_> {
    /// Searches, and passes on the findings in the order of the sources and of offsets.
    ///
    /// # Errors
    /// A message for the user.
    pub fn findings(
        &self,
        SearchPart { packed, range, is_limited }: SearchPart<'_>,
        stop: &AtomicBool,
        take: &mut dyn TakeFindings,
    ) -> Result<(), String> {
        let request = packed.request(Planning::default(), stop)?;
        let (folder, sources) = (OwnFolder::new()?, self.sources.listed(self.opener));
        let results = Results::temporary(folder.path().to_path_buf());
        let mut units = UnitSearch::new(&request, host::machine(), stop).keep(results.clone());
        let unit_bytes = spread::unit_bytes(&sources, self.opener, range, stop);
        let request = PackedRequest::Search(Box::new(packed.clone())).pack()?;
        let all = spread::units_of((&sources, self.opener), (range, unit_bytes), stop)?;
        let numbers: HashMap<String, usize> =
            all.iter().enumerate().map(|(number, unit)| (unit.id(), number)).collect();
        let (mut left, job) = (waves(all.len(), is_limited), units.job().to_string());
        let mut done = 0;
        let mut prepare = |unit: &Unit| {
            while numbers.get(&unit.id()).is_some_and(|&number| number >= done) {
                let Some(wave) = left.next() else { break };
                let units = all[wave.clone()].to_vec();
                let ran = self.run((&job, request.clone()), units, &results, stop);
                ran.map_err(Error::Request)?;
                done = wave.end;
            }
            Ok(())
        };
        for named in sources.iter() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let source = SourceUnits::open(named, self.opener, range, unit_bytes);
            let mut source = source.map_err(|error| error.to_string())?;
            let name = source.name().to_string();
            let mut has_ended = false;
            let joined = units.join_after(&mut source, &mut prepare, &mut |row| {
                take.take_row(&name, row).inspect_err(|_| has_ended = true)
            });
            match joined {
                Ok(joined) => take.take_source(&source, &joined),
                Err(_) if has_ended => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Carves, and passes on the files in the order of the sources and of their reports. Writes no files.
    ///
    /// # Errors
    /// A message for the user.
    pub fn files(
        &self,
        packed: &PackedCarve,
        stop: &AtomicBool,
        take: &mut dyn TakeCarvedFiles,
    ) -> Result<(), String> {
        let message = |error: Error| error.to_string();
        let request = packed.request(0)?;
        let (folder, sources) = (OwnFolder::new()?, self.sources.listed(self.opener));
        let results = Results::temporary(folder.path().to_path_buf());
        let units = CarveUnits::new(&request, packed.is_single(), results.clone());
        let to_send = PackedRequest::Carve(Box::new(packed.clone())).pack()?;
        let whole = 0..u64::MAX;
        let all = spread::units_of((&sources, self.opener), (&whole, u64::MAX), stop)?;
        self.run((units.job(), to_send), all, &results, stop)?;
        for named in sources.iter() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let source = SourceUnits::open(named, self.opener, &whole, u64::MAX);
            let mut source = source.map_err(message)?;
            let mut has_ended = false;
            let mut take_file = |file| take.take_file(file).inspect_err(|_| has_ended = true);
            let remarks = match units.object(&source.unit(0), &mut |_| ()).map_err(message)? {
                Some(object) => {
                    let remarks = object.remarks().clone();
                    object.rows(&mut take_file).map(|()| remarks)
                }
                // Workers leave sources that they cannot carve to the client.
                None => {
                    let unit = source.unit(0);
                    let (of, how) = ((&mut source, &unit), (&() as &_, packed.hint()));
                    units.carve(&request, of, None, how, host::machine(), stop).and_then(|carved| {
                        let mut rows = carved.rows.into_iter();
                        rows.try_for_each(&mut take_file).map_err(quarrier::Error::Output)?;
                        Ok(carved.remarks)
                    })
                }
            };
            match remarks {
                Ok(remarks) => take.take_source(&source, &remarks),
                Err(_) if has_ended => break,
                Err(error) => return Err(message(error)),
            }
        }
        Ok(())
    }

    /// Lets the cluster run units, none of which has an object.
    fn run(
        &self,
        (job, request): (&str, Vec<u8>),
        units: Vec<Unit>,
        results: &Results,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (cluster, at) = (self.cluster, self.at);
        let spread = Spread { cluster, at, job, request, to: None, results, has: &|_| Ok(false) };
        let distributed = spread.run_units(units, stop)?;
        match distributed.refused.first() {
            // An answer without the rows of this unit would be wrong.
            Some(unit) => Err(format!(
                "{}: bytes {}..{} were not read: three workers of the cluster ended there",
                unit.source, unit.range.start, unit.range.end
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use std::sync::{Arc, Mutex};

    use quarrier::OpenOptions;
    use quarrier_core::sync::lock;

    use super::*;
    use crate::cluster::{Answer, ClusterJob, TakeAnswer};

    /// Leaves all units to the client, and notes how many each job has.
    #[derive(Default)]
    struct Idle(Mutex<Vec<usize>>);

    impl Cluster for Idle {
        fn run(
            &self,
            _at: &str,
            job: &ClusterJob<'_>,
            _stop: &AtomicBool,
            take: &mut TakeAnswer<'_>,
        ) -> Result<(), String> {
            lock(&self.0).push(job.units.len());
            (0..job.units.len()).try_for_each(|index| take(index, Answer::Left))
        }
    }

    /// Takes as many findings as are wanted.
    struct First {
        wanted: usize,
        found: Vec<(String, u64)>,
    }

    impl TakeFindings for First {
        fn take_row(&mut self, source: &str, row: &Row<'_>) -> io::Result<()> {
            let name = source.rsplit('/').next().unwrap_or_default();
            self.found.push((name.to_string(), row.offset));
            if self.found.len() == self.wanted {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        }

        fn take_source(&mut self, _: &SourceUnits, _: &Joined) {}
    }

    #[test]
    fn a_limit_runs_only_as_many_units_as_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..400 {
            std::fs::write(folder.path().join(format!("{number:03}")), "a needle").unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let sources = Sources::of([folder.path()]);
        let opener = Opener::new(OpenOptions::default(), host::environment(), &stop);
        let packed = PackedSearch::of_words(&[], ("", b"needle")).unwrap().unwrap();
        for (wanted, is_limited, expected) in [
            (1, true, vec![64]),
            (64, true, vec![64]),
            (65, true, vec![64, 256]),
            (321, true, vec![64, 256, 80]),
            (401, true, vec![64, 256, 80]),
            (1, false, vec![400]),
        ] {
            let (cluster, range) = (Idle::default(), 0..u64::MAX);
            let gather = Gather { cluster: &cluster, at: "", sources: &sources, opener: &opener };
            let mut first = First { wanted, found: Vec::new() };
            let part = SearchPart { packed: &packed, range: &range, is_limited };
            gather.findings(part, &stop, &mut first).unwrap();
            assert_eq!(*lock(&cluster.0), expected, "{wanted}");
            let count = wanted.min(400);
            let all: Vec<_> = (0..count).map(|number| (format!("{number:03}"), 2)).collect();
            assert_eq!(first.found, all, "{wanted}");
        }
    }
}
