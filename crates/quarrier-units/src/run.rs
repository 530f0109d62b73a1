//! Runs units, and stores their rows.

use std::collections::HashSet;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier::search::{Part, Running, Watch, copy_match};
use quarrier::{Machine, Search};
use quarrier_core::hex;
use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, RegexSeam};

use crate::error::{Error, Result};
use crate::label::Labels;
use crate::object::{Identity, Meta, Object, ObjectWriter};
use crate::results::Results;
use crate::row::{Row, Take};
use crate::source::SourceUnits;
use crate::unit::{Unit, name_of};

/// The version of objects; a new version runs everything again.
const FORMAT: u32 = 1;

/// A search that is run unit by unit.
pub struct UnitSearch<'s> {
    search: &'s Search,
    machine: &'s Machine,
    stop: &'s AtomicBool,
    job: String,
    labels: Arc<Labels<'s>>,
    results: Option<Results>,
    /// Compiled when the first unit is run.
    running: Option<Running<'s>>,
    notices: Vec<String>,
    /// The names of units that must not be run.
    refused: HashSet<String>,
}

/// The result of a unit, besides its rows.
#[derive(Debug)]
pub struct UnitOutcome {
    /// The seams of the regexes: see [`RegexSeam`].
    pub seams: Vec<RegexSeam>,
    /// Ranges of the unit that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// The length of the unit in bytes.
    pub bytes: u64,
    /// The duration of the run.
    pub elapsed: Duration,
}

/// The origin of a unit's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It existed already.
    Before,
    /// The unit was run.
    Now,
    /// The unit was run, but its rows were not stored: parts of a remote source could not be read,
    /// which may succeed another time.
    NotKept,
}

impl<'s> UnitSearch<'s> {
    /// Creates a search whose units are run on this machine until `stop` becomes true. The search must
    /// not limit the number of findings.
    pub fn new(search: &'s Search, machine: &'s Machine, stop: &'s AtomicBool) -> Self {
        let digest = hex::encode(&search.digest());
        let version = env!("CARGO_PKG_VERSION");
        let job = name_of(format!("search {FORMAT} {version} {digest}").as_bytes());
        UnitSearch {
            search,
            machine,
            stop,
            job,
            labels: Arc::new(Labels::of(search.patterns())),
            results: None,
            running: None,
            notices: Vec::new(),
            refused: HashSet::new(),
        }
    }

    /// Stores the rows of units in a folder.
    #[must_use]
    pub fn keep(mut self, results: Results) -> Self {
        self.results = Some(results);
        self
    }

    /// The name of the search: a hash of its patterns, its options and the version of this program.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Whether a unit on its own has the same rows as in the whole. Regexes prevent that.
    #[must_use]
    pub fn is_exact_alone(&self) -> bool {
        !self.search.patterns().iter().any(quarrier_search::Pattern::is_regex)
    }

    /// The engines in use, joined by `+`; empty before a unit was run.
    #[must_use]
    pub fn engine_name(&self) -> String {
        self.running.as_ref().map_or_else(String::new, Running::engine_name)
    }

    /// Excludes a unit, whose search ends its process: a join does not run it, and counts its bytes as
    /// unreadable.
    pub fn refuse(&mut self, unit: &Unit) {
        self.refused.insert(unit.id());
    }

    /// Whether units were excluded.
    pub(crate) fn refuses_any(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Whether a unit was excluded.
    pub(crate) fn is_refused(&self, unit: &Unit) -> bool {
        self.refuses_any() && self.refused.contains(&unit.id())
    }

    /// Whether the object of a unit exists: see [`Results::has`]. It may be damaged.
    ///
    /// # Errors
    /// Those of [`Results::has`].
    pub fn has(&self, unit: &Unit) -> Result<bool> {
        self.results.as_ref().map_or(Ok(false), |results| results.has(&self.job, unit))
    }

    /// Takes the notices since the last call: damaged objects.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Runs a unit unless its object exists. Also returns the ranges that could not be read.
    ///
    /// # Errors
    /// If there is no folder for objects, or it cannot be written; those of [`Running::search`]; and
    /// [`Error::Changed`] if the source changed meanwhile.
    pub fn store(
        &mut self,
        source: &mut SourceUnits,
        unit: &Unit,
    ) -> Result<(Stored, Vec<Range<u64>>)> {
        match self.object(unit)? {
            Some(object) => Ok((Stored::Before, object.meta().unreadable())),
            None => self.write(source, unit),
        }
    }

    /// Runs a unit and passes its rows on. Unless [`is_exact_alone`](Self::is_exact_alone), the rows equal
    /// those of the whole only if the unit is the whole source.
    ///
    /// # Errors
    /// Those of [`store`](Self::store), except for folders.
    pub fn rows(
        &mut self,
        source: &mut SourceUnits,
        unit: &Unit,
        take: &mut Take<'_>,
    ) -> Result<UnitOutcome> {
        let ran = self.run(source, &Part::alone(unit.range.clone()), take)?;
        source.check_version()?;
        Ok(ran)
    }

    /// Opens the object of a unit. Removes it if it is damaged.
    pub(crate) fn object(&mut self, unit: &Unit) -> Result<Option<Object>> {
        let results = self.folder()?;
        let Some(source) = results.open(&self.job, unit)? else { return Ok(None) };
        let opened = Object::open(source, &self.identity(unit)).and_then(|object| {
            // Verify the whole object before passing on any row.
            object.rows(&self.labels, u64::MAX, &mut |_| Ok(()))?;
            Ok(object)
        });
        match opened {
            Ok(object) => Ok(Some(object)),
            Err(Error::Damaged { name, reason }) => {
                self.notices.push(format!("{name}: is damaged ({reason}); its unit is run again"));
                results.remove(&self.job, unit).map(|()| None)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a unit, and writes its object.
    pub(crate) fn write(
        &mut self,
        source: &mut SourceUnits,
        unit: &Unit,
    ) -> Result<(Stored, Vec<Range<u64>>)> {
        let labels = Arc::clone(&self.labels);
        let results = self.folder()?;
        let (pending, out) = results.create(&self.job, unit)?;
        let path = results.path(&self.job, unit);
        let failed = |error: io::Error| Error::Results { path: path.clone(), error };
        let mut writer = ObjectWriter::new(out, &unit.source, &labels).map_err(failed)?;
        let part = Part::alone(unit.range.clone());
        let ran =
            self.run(source, &part, &mut |row| writer.row(row)).map_err(|error| match error {
                Error::Search(quarrier::Error::Output(error)) => failed(error),
                error => error,
            })?;
        source.check_version()?;
        if source.is_remote() && !ran.unreadable.is_empty() {
            return Ok((Stored::NotKept, ran.unreadable));
        }
        let meta = Meta::new(&self.identity(unit), &ran.seams, &ran.unreadable);
        let written = writer.finish(meta).map_err(failed)?;
        pending.publish(&path, written)?;
        Ok((Stored::Now, ran.unreadable))
    }

    /// Searches a part of a source, and passes on the rows that start there.
    pub(crate) fn run(
        &mut self,
        source: &mut SourceUnits,
        part: &Part,
        take: &mut Take<'_>,
    ) -> Result<UnitOutcome> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.search.start(self.machine, Some(&source.opened().place()), self.stop)?,
        };
        let running = self.running.insert(running);
        let mut passing = Passing { take, copy: Vec::new(), error: None };
        let place = source.opened().place();
        let searched = running.search_part(place, part, self.stop, &mut passing);
        if let Some(error) = passing.error {
            return Err(quarrier::Error::Output(error).into());
        }
        let (searched, seams) = searched?;
        let (range, run) = (searched.range, searched.run);
        if self.stop.load(Ordering::Relaxed) && run.position < range.end {
            let (name, offset) = (source.name().to_string(), run.position);
            return Err(quarrier::Error::Stopped { name, offset }.into());
        }
        let within = |bad: &Range<u64>| bad.start.max(range.start)..bad.end.min(range.end);
        let unreadable = run.unreadable.iter().map(within).filter(|bad| !bad.is_empty()).collect();
        let bytes = range.end.saturating_sub(range.start);
        Ok(UnitOutcome { seams, unreadable, bytes, elapsed: run.elapsed })
    }

    /// The folder for objects, if there is one.
    pub(crate) fn results(&self) -> Option<&Results> {
        self.results.as_ref()
    }

    /// The labels that rows have for patterns.
    pub(crate) fn labels(&self) -> &Arc<Labels<'s>> {
        &self.labels
    }

    /// Whether the run was stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn folder(&self) -> Result<Results> {
        let missing = || Error::Request("there is no folder for the rows of units".to_string());
        self.results.clone().ok_or_else(missing)
    }

    fn identity(&self, unit: &Unit) -> Identity {
        let patterns = self.labels.len();
        Identity { job: self.job.clone(), unit: unit.clone(), patterns }
    }
}

/// Turns findings into rows.
struct Passing<'t, 'k> {
    take: &'t mut Take<'k>,
    copy: Vec<u8>,
    error: Option<io::Error>,
}

impl Watch for Passing<'_, '_> {
    fn take(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) -> ControlFlow<()> {
        for finding in findings {
            copy_match(chunk, finding, &mut self.copy);
            let Finding { offset, pattern, length } = *finding;
            if let Err(error) = (self.take)(&Row { offset, length, pattern, found: &self.copy }) {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
