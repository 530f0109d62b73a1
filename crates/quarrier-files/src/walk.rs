//! State shared by all readers during a listing: the receiver of entries, damage, and the remaining
//! step budget.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::name;

use crate::entry::{Entry, Kind, Run, State};
use crate::error::{Error, Result};
use crate::part::Part;

/// Maximum length of a path to descend into: folders may be nested in a cycle.
const PATH_BYTES_MAX: usize = 32 << 10;
/// Maximum number of damage messages; further ones are only counted.
const DAMAGES_MAX: usize = 100;
/// The step budget of a small source.
const STEPS_LEAST: u64 = 1 << 20;
/// The maximum step budget.
const STEPS_MOST: u64 = 1 << 34;

/// Messages about damage, and the total count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damages {
    /// The first messages.
    pub lines: Vec<String>,
    /// The total count.
    pub count: u64,
}

impl Damages {
    fn add(&mut self, line: String) {
        self.count += 1;
        if self.lines.len() < DAMAGES_MAX {
            self.lines.push(line);
        }
    }

    /// Adds the damage of a part.
    pub(crate) fn extend(&mut self, part: Damages) {
        let counted = part.count - part.lines.len() as u64;
        part.lines.into_iter().for_each(|line| self.add(line));
        self.count += counted;
    }

    /// All messages, with a final line for the damage that was only counted.
    pub fn describe(&self) -> Vec<String> {
        let more = self.count.saturating_sub(self.lines.len() as u64);
        let more = (more > 0).then(|| format!("{more} more places are damaged"));
        self.lines.iter().cloned().chain(more).collect()
    }
}

/// How far a listing looks for entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Only the entries that the file system has.
    Allocated,
    /// Deleted ones, too, of which the structures of the file system still have traces.
    Deleted,
    /// Those in the free clusters of FAT and exFAT, too: entries of folders to which no entry leads. Takes
    /// the time to read all free clusters, or the first 4 KiB of each from 64 KiB on.
    FreeClusters,
}

/// A listing in progress.
pub(crate) struct Walk<'w> {
    /// Receives entries.
    pub(crate) take: &'w mut dyn FnMut(Entry) -> io::Result<()>,
    /// Whether deleted entries are requested.
    pub(crate) deleted: bool,
    /// Whether entries in free clusters are requested.
    pub(crate) free_clusters: bool,
    pub(crate) damages: &'w mut Damages,
    pub(crate) stop: &'w AtomicBool,
    /// The range of the volume in the source.
    span: Range<u64>,
    steps: u64,
    spent: u64,
}

impl<'w> Walk<'w> {
    pub(crate) fn new(
        take: &'w mut dyn FnMut(Entry) -> io::Result<()>,
        reach: Reach,
        damages: &'w mut Damages,
        stop: &'w AtomicBool,
        span: Range<u64>,
    ) -> Self {
        let (deleted, free_clusters) = (reach >= Reach::Deleted, reach >= Reach::FreeClusters);
        Walk { take, deleted, free_clusters, damages, stop, span, steps: 0, spent: 0 }
    }

    /// The settings of the walk, for walks of parts of the volume on other threads.
    pub(crate) fn plain(&self) -> Plain<'w> {
        let reach = if self.deleted { Reach::Deleted } else { Reach::Allocated };
        Plain { reach, stop: self.stop, span: self.span.clone() }
    }

    /// Counts the steps of a part.
    pub(crate) fn count(&mut self, part: &Part<'_>, tally: Tally) -> Result<()> {
        self.spent = self.spent.saturating_add(tally.spent);
        self.steps = self.steps.saturating_add(tally.steps.saturating_sub(1));
        if tally.steps > 0 { self.step(part) } else { Ok(()) }
    }

    /// Emits an entry. If its bytes would lie outside of the volume, they are marked as lost.
    pub(crate) fn emit(&mut self, mut entry: Entry) -> Result<()> {
        let is_inside = |run: &Run| {
            run.place.is_none_or(|place| {
                let end = place.checked_add(run.length);
                place >= self.span.start && end.is_some_and(|end| end <= self.span.end)
            })
        };
        if !entry.content.runs.iter().all(is_inside) {
            let beyond = "its bytes would lie beyond the end of the volume";
            entry.content.lost = entry.content.lost.or(Some(beyond));
        }
        if entry.kind == Kind::Folder
            && entry.state == State::Allocated
            && let Some(why) = entry.content.lost
        {
            self.damages.add(format!("{}: {why}", entry.path));
        }
        (self.take)(entry).map_err(Error::Taken)
    }

    /// Counts a step: an entry, a link of a chain, a run. A valid volume needs at most one step for
    /// every eight bytes; more indicates a cycle.
    pub(crate) fn step(&mut self, part: &Part<'_>) -> Result<()> {
        self.steps += 1;
        if self.steps & 0xFFFF == 0 {
            self.check_stop()?;
        }
        match self.steps > (part.length() / 8).clamp(STEPS_LEAST, STEPS_MOST) {
            true => Err(part.too_much("a file system with cyclic structures")),
            false => Ok(()),
        }
    }

    /// Returns an error if the walk was stopped.
    ///
    /// # Errors
    /// `Interrupted`.
    pub(crate) fn check_stop(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Taken(io::ErrorKind::Interrupted.into())),
            false => Ok(()),
        }
    }

    /// Counts a step on deleted entries, many of which may claim the same clusters; returns whether any
    /// budget is left.
    pub(crate) fn spend(&mut self, part: &Part<'_>) -> bool {
        self.spent += 1;
        self.spent <= (part.length() / 8).clamp(STEPS_LEAST, STEPS_MOST)
    }

    /// Continues after an error that concerns only one folder or file.
    pub(crate) fn tolerate(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Err(error @ (Error::Source(_) | Error::FileSystem { .. })) => {
                self.damages.add(error.to_string());
                Ok(())
            }
            result => result,
        }
    }

    pub(crate) fn damaged(&mut self, part: &Part<'_>, at: u64, what: &str) {
        self.damages.add(part.refused(at, what).to_string());
    }
}

/// The settings of a walk.
pub(crate) struct Plain<'w> {
    reach: Reach,
    stop: &'w AtomicBool,
    span: Range<u64>,
}

/// What a walk has counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    steps: u64,
    spent: u64,
}

impl Plain<'_> {
    /// Lists a part of the volume with a walk of its own, which passes the entries to `send`, at most
    /// `entries_max` at a time, until that returns false. Returns the damage and the outcome of `list`.
    pub(crate) fn apart(
        &self,
        entries_max: usize,
        send: &mut dyn FnMut(Vec<Entry>) -> bool,
        list: &mut dyn FnMut(&mut Walk<'_>) -> Result<()>,
    ) -> (Tally, Damages, Result<()>) {
        let (mut entries, mut damages) = (Vec::new(), Damages::default());
        let mut take = |entry| {
            entries.push(entry);
            if entries.len() < entries_max || send(std::mem::take(&mut entries)) {
                return Ok(());
            }
            Err(io::ErrorKind::BrokenPipe.into())
        };
        let span = self.span.clone();
        let mut walk = Walk::new(&mut take, self.reach, &mut damages, self.stop, span);
        let ended = list(&mut walk);
        let tally = Tally { steps: walk.steps, spent: walk.spent };
        if !entries.is_empty() {
            // If nobody wants them, nobody wants the outcome.
            send(entries);
        }
        (tally, damages, ended)
    }
}

/// Runs `work` with its own walk, for reads outside of a listing: no entry is emitted.
pub(crate) fn alone<R>(
    part: &Part<'_>,
    work: impl FnOnce(&mut Walk<'_>) -> Result<R>,
) -> Result<R> {
    let (stop, mut damages) = (AtomicBool::new(false), Damages::default());
    let mut take = |_: Entry| Ok(());
    work(&mut Walk::new(&mut take, Reach::Allocated, &mut damages, &stop, part.span()))
}

/// The path of `name` in the folder `parent`; `None` if it would be too long.
pub(crate) fn joined(parent: &str, name: &str) -> Option<String> {
    let mut path = String::with_capacity(parent.len() + name.len() + 1);
    path.push_str(parent);
    path.push('/');
    push_name(&mut path, name);
    (path.len() <= PATH_BYTES_MAX).then_some(path)
}

/// As [`joined`], for a name in bytes; bytes that are not UTF-8 become `\xNN`.
pub(crate) fn joined_bytes(parent: &str, name: &[u8]) -> Option<String> {
    match str::from_utf8(name) {
        Ok(name) => joined(parent, name),
        Err(_) => joined(parent, &name::of_bytes(name)),
    }
}

/// Appends a name to a path. Characters that paths cannot contain become `\xNN`.
pub(crate) fn push_name(path: &mut String, name: &str) {
    if !name.as_bytes().iter().any(|&byte| matches!(byte, b'/' | 0)) {
        path.push_str(name);
        return;
    }
    for c in name.chars() {
        match c {
            '/' => path.push_str("\\x2f"),
            '\0' => path.push_str("\\x00"),
            c => path.push(c),
        }
    }
}

/// A name from UTF-16; unpaired surrogates become U+FFFD.
pub(crate) fn name_of_units(units: impl IntoIterator<Item = u16>) -> String {
    let decoded = char::decode_utf16(units);
    decoded.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// A name from the bytes of little-endian UTF-16; unpaired surrogates become U+FFFD.
pub(crate) fn name_of_utf16(bytes: &[u8]) -> String {
    let is_ascii = |pair: &[u8]| pair[1] == 0 && pair[0].is_ascii();
    if !bytes.chunks_exact(2).all(is_ascii) {
        return name_of_units(units(bytes));
    }
    let mut name = String::with_capacity(bytes.len() / 2);
    name.extend(bytes.chunks_exact(2).map(|pair| char::from(pair[0])));
    name
}

/// Little-endian UTF-16 units.
pub(crate) fn units(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}
