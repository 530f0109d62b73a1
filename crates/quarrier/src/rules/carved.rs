//! The carved files of a source, as scopes.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use quarrier_carve::Status;
use quarrier_carve::folder::Row;
use quarrier_core::sync::{into_inner, lock};
use quarrier_files::{Content, Entry, Extent, Kind, Run, State, Times};

use super::files::{FILES_MAX, File, RUNS_MAX};
use super::outcome::WatchRules;
use crate::carve::{Begin, Watch, describe_skimmed};
use crate::{Carve, Machine, Place, Result};

/// The carved files of a source.
#[derive(Debug, Default)]
pub(super) struct CarvedFiles {
    /// The files in the order of the source.
    pub(super) files: Vec<File>,
    /// Ranges that were examined less closely, a line each.
    pub(super) notices: Vec<String>,
    /// The number of files left out because there are too many.
    pub(super) left_out: u64,
    /// Ranges that could not be read.
    pub(super) unreadable: Vec<Range<u64>>,
}

/// Carves a source. Leaves out files of `others`, and a file that is the whole source: they are scopes
/// already.
///
/// # Errors
/// Those of [`Carve::start`] and [`Carving::run`](crate::carve::Carving::run).
pub(super) fn carve(
    place: Place<'_>,
    machine: &Machine,
    workers: usize,
    others: &[&[File]],
    stop: &AtomicBool,
    watch: &mut dyn WatchRules,
) -> Result<CarvedFiles> {
    let length = place.source().map_or(0, |source| source.length());
    let statuses = vec![Status::Valid, Status::Partial];
    let request = Carve::new().digests(false).statuses(Some(statuses)).workers(workers);
    let Begin::Carving(carving) = request.start(place, machine, stop)? else {
        // Only a folder can be finished already, and there is none here.
        return Ok(CarvedFiles::default());
    };
    watch.begin(carving.range());
    let collect = Collect { kept: Mutex::default(), watch: Mutex::new(watch) };
    let carved = carving.run(&collect)?;
    let CollectedFiles { mut files, left_out, .. } = into_inner(collect.kept);
    let known = FileIndex::of(others);
    files.retain(|file| !known.has(&file.entry) && !is_all(&file.entry, length));
    files.sort_by(|a, b| key(a).cmp(&key(b)));
    let skimmed = describe_skimmed(&carved.summary.skimmed);
    Ok(CarvedFiles {
        files,
        notices: skimmed.into_iter().map(|(_, line)| line).collect(),
        left_out,
        unreadable: carved.summary.unreadable,
    })
}

/// The sort key of carved files.
fn key(file: &File) -> (Option<u64>, u64, &str) {
    (first_place(&file.entry), file.entry.size, &file.path)
}

fn first_place(entry: &Entry) -> Option<u64> {
    entry.content.runs.first().and_then(|run| run.place)
}

/// Whether a file is the whole source of `length` bytes.
fn is_all(entry: &Entry, length: u64) -> bool {
    entry.extents() == [Extent { offset: 0, length }]
}

/// Collects carved files from several threads.
struct Collect<'c> {
    kept: Mutex<CollectedFiles>,
    watch: Mutex<&'c mut dyn WatchRules>,
}

#[derive(Default)]
struct CollectedFiles {
    files: Vec<File>,
    runs: usize,
    left_out: u64,
}

impl Watch for Collect<'_> {
    fn files(&self, rows: Vec<Row>, done_until: Option<u64>) -> io::Result<()> {
        let mut kept = lock(&self.kept);
        for row in rows {
            if kept.files.len() >= FILES_MAX || kept.runs + row.extents.len() > RUNS_MAX {
                kept.left_out += 1;
                continue;
            }
            kept.runs += row.extents.len();
            kept.files.push(file(row));
        }
        drop(kept);
        if let Some(offset) = done_until {
            lock(&self.watch).advance(offset);
        }
        Ok(())
    }
}

fn file(row: Row) -> File {
    let run =
        |extent: &quarrier_carve::Extent| Run { place: Some(extent.offset), length: extent.length };
    let content = Content { runs: row.extents.iter().map(run).collect(), ..Content::default() };
    let entry = Entry {
        path: row.path.clone(),
        inode: 0,
        kind: Kind::File,
        state: State::Deleted,
        size: row.length,
        times: Times::default(),
        access: Default::default(),
        content,
    };
    File { path: row.path, entry }
}

/// An index of files by their first byte and length.
struct FileIndex<'k> {
    by_start: HashMap<(Option<u64>, u64), Vec<&'k Entry>>,
}

impl<'k> FileIndex<'k> {
    fn of(files: &[&'k [File]]) -> Self {
        let mut by_start: HashMap<_, Vec<&Entry>> = HashMap::new();
        for file in files.iter().flat_map(|files| files.iter()) {
            let entry = &file.entry;
            by_start.entry((first_place(entry), entry.size)).or_default().push(entry);
        }
        FileIndex { by_start }
    }

    /// Whether a file in the index has exactly these bytes.
    fn has(&self, entry: &Entry) -> bool {
        let all = self.by_start.get(&(first_place(entry), entry.size));
        all.is_some_and(|all| all.iter().any(|other| other.extents() == entry.extents()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::tests::file;
    use super::*;

    #[test]
    fn files_that_others_have_already_are_known() {
        let others =
            [file(1500, &[(Some(0), 512), (Some(4096), 1024)]), file(10, &[(Some(8192), 512)])];
        let known = FileIndex::of(&[&others[..1], &others[1..]]);
        let has = |size, runs: &[(Option<u64>, u64)]| known.has(&file(size, runs).entry);
        assert!(has(1500, &[(Some(0), 512), (Some(4096), 988)]));
        assert!(!has(1500, &[(Some(0), 1500)]));
        assert!(!has(1499, &[(Some(0), 512), (Some(4096), 987)]));
        assert!(has(10, &[(Some(8192), 10)]));
        let whole = file(20, &[(Some(0), 12), (Some(12), 8)]).entry;
        assert!(is_all(&whole, 20) && !is_all(&whole, 21));
    }
}
