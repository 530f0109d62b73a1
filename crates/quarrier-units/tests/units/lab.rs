//! A folder with a source and a folder for objects, and a plain search of the source.

use std::io;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::search::{Planning, copy_match};
use quarrier::{Environment, Machine, Named, OpenOptions, Opener, Search, Sources};
use quarrier_core::pipeline::Chunk;
use quarrier_search::Finding;
use quarrier_units::{Joined, Results, Row, SourceUnits, UnitSearch};

/// An owned row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedRow {
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) pattern: u32,
    pub(crate) found: Vec<u8>,
}

impl OwnedRow {
    pub(crate) fn of(row: &Row<'_>) -> Self {
        let Row { offset, length, pattern, found } = *row;
        OwnedRow { offset, length, pattern, found: found.to_vec() }
    }
}

/// Rows, then the error that ended them.
pub(crate) type Answer = (Vec<OwnedRow>, Option<String>);

pub(crate) struct Lab {
    folder: tempfile::TempDir,
    pub(crate) machine: Machine,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) opener: Opener,
    /// Where to keep objects instead of a folder.
    pub(crate) bucket: Option<Results>,
}

impl Lab {
    pub(crate) fn with(bytes: &[u8]) -> Self {
        let stop = Arc::default();
        let opener = Opener::new(OpenOptions::default(), &Environment::default(), &stop);
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab { folder, machine: Machine::unknown(), stop, opener, bucket: None };
        lab.put(bytes);
        lab
    }

    pub(crate) fn put(&self, bytes: &[u8]) {
        std::fs::write(self.source_path(), bytes).unwrap();
    }

    pub(crate) fn source_path(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    pub(crate) fn results(&self) -> Results {
        if let Some(bucket) = &self.bucket {
            return bucket.clone();
        }
        Results::at(self.folder.path().join("found").as_os_str(), &self.opener).unwrap()
    }

    fn named(&self) -> Named {
        Sources::of([self.source_path()]).as_slice()[0].clone()
    }

    pub(crate) fn units(&self, unit_bytes: u64) -> SourceUnits {
        self.units_in(&(0..u64::MAX), unit_bytes)
    }

    pub(crate) fn units_in(&self, range: &Range<u64>, unit_bytes: u64) -> SourceUnits {
        SourceUnits::open(&self.named(), &self.opener, range, unit_bytes).unwrap()
    }

    pub(crate) fn search_units<'s>(&'s self, search: &'s Search) -> UnitSearch<'s> {
        UnitSearch::new(search, &self.machine, &self.stop).keep(self.results())
    }

    /// Runs one plain search.
    pub(crate) fn plain(&self, search: &Search) -> Answer {
        let mut opened = self.opener.open(&self.named()).unwrap();
        let mut running = search.start(&self.machine, None, &self.stop).unwrap();
        let (mut rows, mut copy) = (Vec::new(), Vec::new());
        let mut take = |chunk: &Chunk<'_>, findings: &[Finding]| {
            for finding in findings {
                copy_match(chunk, finding, &mut copy);
                let Finding { offset, pattern, length } = *finding;
                rows.push(OwnedRow { offset, length, pattern, found: copy.clone() });
            }
            ControlFlow::Continue(())
        };
        let searched = running.search(opened.place(), &self.stop, &mut take);
        (rows, searched.err().map(|error| error.to_string()))
    }

    /// The rows of a join, and its counts of units.
    pub(crate) fn joined(&self, search: &Search, unit_bytes: u64) -> (Answer, Joined) {
        let mut source = self.units(unit_bytes);
        let mut rows = Vec::new();
        let joined = self.search_units(search).join(&mut source, &mut |row| {
            rows.push(OwnedRow::of(row));
            Ok(())
        });
        let error = joined.as_ref().err().map(ToString::to_string);
        ((rows, error), joined.unwrap_or_default())
    }
}

/// The plan of a search in tests: one thread, with chunks of this size.
pub(crate) fn planning(buffer_bytes: usize) -> Planning {
    Planning { workers: 1, buffer_bytes, ..Planning::default() }
}

/// Discards rows.
pub(crate) fn forget(_: &Row<'_>) -> io::Result<()> {
    Ok(())
}
