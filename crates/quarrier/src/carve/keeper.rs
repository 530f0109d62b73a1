//! Takes files from the carver, hands them to the target, and reports rows to the watch.

use std::io;
use std::sync::{Mutex, MutexGuard};

use quarrier_carve::embedded::is_archive;
use quarrier_carve::folder::{Row, Skipped, UnpackSettings};
use quarrier_carve::{Carved, Keep, Status, Stride, View};
use quarrier_core::sync::lock;

use super::Watch;
use super::annotation::Annotation;
use super::target::Target;

/// Receives carved files and, if requested, the members inside them.
pub(super) struct Keeper<'k> {
    pub(super) target: &'k Target,
    pub(super) inside: Option<UnpackSettings>,
    pub(super) statuses: Option<&'k [Status]>,
    pub(super) watch: &'k dyn Watch,
    pub(super) kept: Mutex<RunOutcome>,
    /// Decides which files to leave out.
    pub(super) skipping: Option<&'k Annotation>,
    /// The subfolder of the files, if paths in rows start at the folder above it.
    pub(super) part: Option<&'k str>,
}

/// The outcome of a run so far.
#[derive(Default)]
pub(super) struct RunOutcome {
    /// Files found since the last report to the watcher.
    pending: Vec<Row>,
    /// The number of files.
    pub(super) files: u64,
    /// Members of archives that were skipped.
    pub(super) skipped: Option<Skipped>,
}

impl Keeper<'_> {
    /// Reports files to the watcher, in the order of the source.
    pub(super) fn flush(&self, done_until: Option<u64>) -> io::Result<()> {
        let mut rows = std::mem::take(&mut self.lock().pending);
        rows.sort_by(in_order);
        if let Some(part) = self.part {
            rows.iter_mut().for_each(|row| row.path = format!("{part}/{}", row.path));
        }
        self.watch.files(rows, done_until)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RunOutcome> {
        lock(&self.kept)
    }

    /// Whether a file is known, and known files are to be skipped.
    fn is_known(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<bool> {
        let Some(annotation) = self.skipping else { return Ok(false) };
        let mut bytes = |take: &mut dyn FnMut(&[u8])| {
            view.each(0..carved.length(), |piece| take(piece));
        };
        annotation.is_known(&mut bytes)
    }

    fn is_wanted(&self, carved: &Carved) -> bool {
        self.statuses.is_none_or(|statuses| statuses.contains(&carved.status))
            && self.inside.as_ref().is_none_or(|inside| inside.wants(&carved.kind))
    }
}

/// Orders rows by offset; an archive comes before its members.
pub(super) fn in_order(a: &Row, b: &Row) -> std::cmp::Ordering {
    let key = |row: &Row| (row.offset, row.number());
    key(a).cmp(&key(b)).then_with(|| a.kind.cmp(&b.kind))
}

impl Keep for Keeper<'_> {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        let mut rows = Vec::new();
        if self.is_wanted(carved) && !self.is_known(carved, view)? {
            rows.push(self.target.take(carved, view)?);
        }
        let mut done = Ok(None);
        if let Some(inside) = &self.inside
            && carved.is_ended
            && is_archive(&carved.kind)
        {
            view.look_at(&carved.extents, u64::MAX);
            let source = self.target.source_name();
            let mut write = |mut row: Row, bytes: &[u8]| {
                let is_known = |one: &Annotation| one.is_known(&mut |take| take(bytes));
                if self.skipping.map_or(Ok(false), is_known)? {
                    row.known = Some(true);
                    return Ok(row);
                }
                self.target.take_inside(row, bytes)
            };
            done = inside.take(source, carved, view, &mut write, &mut rows);
            if self.skipping.is_some() {
                rows.retain(|row| row.known != Some(true));
            }
        }
        let mut kept = self.lock();
        kept.files += rows.len() as u64;
        kept.pending.append(&mut rows);
        if let Some(skipped) = done? {
            Skipped::add(&mut kept.skipped, skipped);
        }
        Ok(())
    }

    fn stride(&self, stride: &Stride<'_>) -> io::Result<()> {
        self.target.note(stride)?;
        self.flush(Some(stride.range.end))
    }
}
