//! Searches and carves on a cluster, and passes on the rows as one process finds them.

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
use super::spread::{self, HasObject, OwnFolder, Spread};
use crate::cluster::Cluster;
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
    /// Searches, and passes on the findings that start in `range`, in the order of the sources and of offsets.
    ///
    /// # Errors
    /// A message for the user.
    pub fn findings(
        &self,
        packed: &PackedSearch,
        range: &Range<u64>,
        stop: &AtomicBool,
        take: &mut dyn TakeFindings,
    ) -> Result<(), String> {
        let request = packed.request(Planning::default(), stop)?;
        let (folder, sources) = (OwnFolder::new()?, self.sources.listed(self.opener));
        let results = Results::temporary(folder.path().to_path_buf());
        let mut units = UnitSearch::new(&request, host::machine(), stop).keep(results.clone());
        let unit_bytes = spread::unit_bytes(&sources, self.opener, range, stop);
        let request = PackedRequest::Search(Box::new(packed.clone())).pack()?;
        let (job, has) = (units.job(), &|unit: &Unit| units.has(unit));
        self.run((job, request), (&sources, range, unit_bytes), (&results, has), stop)?;
        for named in sources.iter() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let source = SourceUnits::open(named, self.opener, range, unit_bytes);
            let mut source = source.map_err(|error| error.to_string())?;
            let name = source.name().to_string();
            let mut has_ended = false;
            let joined = units.join(&mut source, &mut |row| {
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
        let (whole, has) = (0..u64::MAX, &|unit: &Unit| units.has(unit));
        self.run((units.job(), to_send), (&sources, &whole, u64::MAX), (&results, has), stop)?;
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

    /// Lets the cluster run all units.
    fn run(
        &self,
        (job, request): (&str, Vec<u8>),
        (sources, range, unit_bytes): (&Sources, &Range<u64>, u64),
        (results, has): (&Results, &HasObject<'_>),
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let (cluster, at) = (self.cluster, self.at);
        let spread = Spread { cluster, at, job, request, to: None, results, has };
        let distributed = spread.run((sources, self.opener), (range, unit_bytes), stop)?;
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
