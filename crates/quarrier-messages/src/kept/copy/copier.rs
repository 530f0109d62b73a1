//! Copies the log of an open data folder, step by step.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quarrier_core::sync::lock;

use super::metadata::{METADATA_BYTES_MAX, Tables, publishers_to_bytes};
use super::name::{self, Name};
use super::plan::{Plan, plan};
use super::{CopyError, CopyStore, IDENTITY, OBJECTS_MAX, PART_BYTES_MAX, SEGMENT_BYTES_MAX, read};
use crate::log::disk::{Access, Disk};
use crate::log::{Durable, Error, Growth, Publishers, SegmentExtent, extents_from, payload_sum};

/// Parts up to this length are merged, so that a log that grows slowly has few parts.
const MERGED_BYTES_MAX: u64 = 8 << 20;
/// Maximum length of an identity.
const IDENTITY_BYTES_MAX: u64 = 256;

type Result<T> = std::result::Result<T, CopyError>;

/// How far a copy is behind its log.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CopyLag {
    /// All messages up to this mark are copied.
    pub copied_mark: u64,
    /// The mark of the last durable message.
    pub last_mark: u64,
    /// Bytes of the log that are not copied; None if segments cannot be read.
    pub bytes: Option<u64>,
    /// Time since the copy was complete; zero if it is.
    pub time: Duration,
    /// Bytes of the log that this process has copied, again where it merged parts.
    pub bytes_copied: u64,
}

/// What a copier has done, for other threads.
struct Progress {
    logs: Arc<dyn Disk>,
    growth: Growth,
    state: Mutex<Done>,
}

struct Done {
    at: At,
    /// The end of the log when the copy was complete last.
    complete: Option<Durable>,
    copied_mark: u64,
    /// When it was last known that nothing was missing.
    since: Instant,
    bytes_copied: u64,
}

/// The place in the log up to which it is copied: the segment by its first mark, and the bytes of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct At {
    segment: u64,
    end: u64,
}

/// Shows how far a copier is behind.
#[derive(Clone)]
pub struct CopyProgress(Arc<Progress>);

impl CopyProgress {
    /// Returns how far the copy is behind. Reads the heads of segments that are not copied.
    pub fn lag(&self) -> CopyLag {
        let Progress { logs, growth, state } = &*self.0;
        let durable = growth.durable();
        let (at, complete, copied_mark, since, bytes_copied) = {
            let done = lock(state);
            (done.at, done.complete, done.copied_mark, done.since, done.bytes_copied)
        };
        let last_mark = durable.map_or(0, |it| it.next_mark.saturating_sub(1));
        let is_complete = durable.is_none() || durable == complete;
        let behind = |durable: Durable| {
            let extents = extents_from(logs.as_ref(), at.segment, durable).ok()?;
            let here =
                extents.first().filter(|it| it.first_mark == at.segment).map_or(0, |_| at.end);
            Some(extents.iter().map(|it| it.end).sum::<u64>().saturating_sub(here))
        };
        let bytes = if is_complete { Some(0) } else { durable.and_then(behind) };
        let time = if is_complete { Duration::ZERO } else { since.elapsed() };
        CopyLag { copied_mark: copied_mark.min(last_mark), last_mark, bytes, time, bytes_copied }
    }
}

impl std::fmt::Debug for CopyProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyProgress").field("lag", &self.lag()).finish()
    }
}

/// Copies the log of a data folder to a place, while it grows. It does not keep the log open, and the log never
/// waits for it.
pub struct LogCopier {
    store: Arc<dyn CopyStore>,
    disk: Arc<dyn Disk>,
    progress: Arc<Progress>,
    /// The objects that exist; None before they were listed.
    known: Option<Known>,
}

struct Known {
    objects: BTreeSet<Name>,
    tables: Option<Tables>,
    /// The greatest number of an object with tables or publishers.
    number: u64,
}

impl Known {
    /// Returns the mark before which the copy needs no segments.
    fn removed(&self) -> u64 {
        self.tables.as_ref().map_or(0, |tables| tables.retained.removed)
    }

    fn parts(&self, first: u64) -> Vec<Name> {
        let is_of = |it: &&Name| matches!(it, Name::Part { first: of, .. } if *of == first);
        self.objects.iter().filter(is_of).copied().collect()
    }
}

impl LogCopier {
    pub(in crate::kept) fn new(
        (disk, logs): (Arc<dyn Disk>, Arc<dyn Disk>),
        growth: Growth,
        store: Arc<dyn CopyStore>,
    ) -> Self {
        let done = Done {
            at: At::default(),
            complete: None,
            copied_mark: 0,
            since: Instant::now(),
            bytes_copied: 0,
        };
        let progress = Arc::new(Progress { logs, growth, state: Mutex::new(done) });
        LogCopier { store, disk, progress, known: None }
    }

    /// Returns a handle that shows how far this copier is behind.
    pub fn progress(&self) -> CopyProgress {
        CopyProgress(Arc::clone(&self.progress))
    }

    /// Copies everything that is durable now. After an error, the next call continues.
    ///
    /// # Errors
    /// [`CopyError::Final`] if the place has the copy of another log, or of a later state of this one;
    /// [`CopyError::Again`] if the store or the disk fails.
    pub fn step(&mut self) -> Result<()> {
        let Some(durable) = self.progress.growth.durable() else { return Ok(()) };
        if self.known.is_none() {
            let known = self.begin(durable)?;
            self.known = Some(known);
        }
        // Taken before the end of the log, so that the copy has the batches of these publications.
        let removed = self.known.as_ref().map_or(0, Known::removed);
        let is_past = |it: &Name| matches!(it, Name::Segment { next, .. } if *next <= removed);
        let is_due = self.known.as_ref().is_some_and(|known| known.objects.iter().any(is_past));
        let publishers = is_due.then(|| self.progress.growth.publishers());
        let (now, durable) = (Instant::now(), self.progress.growth.durable().unwrap_or(durable));
        // The end of the log comes first, so that the tables are those of its messages.
        self.put_tables()?;
        if lock(&self.progress.state).complete != Some(durable) {
            self.put_log(durable)?;
        }
        {
            let mut done = lock(&self.progress.state);
            (done.complete, done.since) = (Some(durable), now);
            done.copied_mark = durable.next_mark.saturating_sub(1);
        }
        let are_put = match publishers {
            Some(publishers) => self.put_publishers(&publishers, durable)?,
            None => false,
        };
        self.clean(are_put, removed)
    }

    fn failed(&self, name: &str, what: &str, error: &io::Error) -> CopyError {
        CopyError::Again(format!("{}{name}: cannot {what}: {error}", self.store.name()))
    }

    fn refused(&self, why: &str) -> CopyError {
        let place = self.store.name();
        CopyError::Final(format!(
            "{place}: {why}; copy to another folder, or restore from it first"
        ))
    }

    /// Claims the place for this log, lists its objects, and compares them with the log.
    fn begin(&self, durable: Durable) -> Result<Known> {
        let own = self.identity()?;
        let claimed = self.store.put_new(IDENTITY, own.clone());
        if !claimed.map_err(|error| self.failed(IDENTITY, "write it", &error))? {
            let theirs = read(self.store.as_ref(), IDENTITY, IDENTITY_BYTES_MAX);
            let theirs = theirs.map_err(|error| self.failed(IDENTITY, "read it", &error))?;
            if theirs.is_none_or(|theirs| theirs != own) {
                return Err(self.refused("has the copy of another log"));
            }
        }
        let objects = list(self.store.as_ref())
            .map_err(|error| self.failed("", "list its objects", &error))?;
        let mut known = Known { objects, tables: None, number: 0 };
        for name in &known.objects {
            if let Name::Tables { number, .. } | Name::Publishers { number, .. } = name {
                known.number = known.number.max(*number);
            }
        }
        known.tables = newest_tables(self.store.as_ref(), &known.objects)?;
        let plan = plan(&known.objects, known.removed())
            .map_err(|reason| self.refused(&format!("is damaged ({reason})")))?;
        self.compare(&plan, durable)?;
        let at = match (&plan.tail, plan.next_mark()) {
            (Some(tail), _) => At { segment: tail.first, end: tail.end() },
            (None, next) => At { segment: next.unwrap_or(0), end: 0 },
        };
        let mut done = lock(&self.progress.state);
        done.at = at;
        done.copied_mark = plan.next_mark().map_or(0, |next| next - 1);
        Ok(known)
    }

    /// Refuses a place whose objects are not a prefix of this log: a folder that was copied or set back has the
    /// identity of another one.
    fn compare(&self, plan: &Plan, durable: Durable) -> Result<()> {
        let logs = self.progress.logs.as_ref();
        let diverged =
            || self.refused("has the copy of another log, or of a later state of this one");
        let newest = plan.segments.last();
        let from = newest.map_or(0, |it| it.first);
        let extents = extents_from(logs, from, durable)?;
        if plan.next_mark().is_some_and(|next| next > durable.next_mark) {
            return Err(diverged());
        }
        let of = |first: u64| extents.iter().find(|it| it.first_mark == first);
        // A segment of the copy begins within one of the log.
        let is_split = |first: u64| {
            of(first).is_none() && extents.first().is_some_and(|it| it.first_mark < first)
        };
        let tail_first = plan.tail.as_ref().map(|tail| tail.first);
        if newest.map(|it| it.first).into_iter().chain(tail_first).any(is_split) {
            return Err(diverged());
        }
        if let Some(newest) = newest
            && let Some(extent) = of(newest.first)
        {
            let bytes = self.bytes(extent, 0..extent.end)?;
            let is_same = extent.next_mark == Some(newest.next)
                && extent.salt == newest.salt
                && payload_sum([bytes.as_slice()]) == newest.name.sum();
            if !is_same {
                return Err(diverged());
            }
        }
        let Some(tail) = &plan.tail else { return Ok(()) };
        if tail.first > durable.next_mark {
            return Err(diverged());
        }
        // A segment without messages may have been replaced by another one.
        let Some(extent) = of(tail.first).filter(|it| it.salt == tail.salt) else { return Ok(()) };
        if extent.end < tail.end() {
            return Err(diverged());
        }
        for part in &tail.parts {
            let bytes = self.bytes(extent, part.start..part.end)?;
            if payload_sum([bytes.as_slice()]) != part.name.sum() {
                return Err(diverged());
            }
        }
        Ok(())
    }

    /// Returns the identity of the log, which it gets when it is copied first. A restored log gets another one, since
    /// the first log may still exist.
    fn identity(&self) -> Result<Vec<u8>> {
        let path = self.disk.path(IDENTITY);
        let fail = |what, error| Error::io(&path, what, error);
        match self.disk.open(IDENTITY, Access::Read) {
            Ok(file) => {
                let mut bytes = [0; IDENTITY_BYTES_MAX as usize];
                let count = file.read_at(0, &mut bytes).map_err(|error| fail("read it", error))?;
                return Ok(bytes[..count].to_vec());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail("open it", error).into()),
        }
        let random = || self.disk.random().map_err(|error| fail("choose a random number", error));
        let text = format!("quarrier log {:016x}{:016x}\n", random()?, random()?);
        let new = format!("{IDENTITY}.new");
        let write = || {
            let file = self.disk.create(&new, text.len() as u64)?;
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                let count = file.write_at((text.len() - rest.len()) as u64, rest)?;
                rest = &rest[count..];
            }
            file.sync()?;
            self.disk.rename(&new, IDENTITY)?;
            self.disk.sync_folder()
        };
        write().map_err(|error| fail("write it", error))?;
        Ok(text.into_bytes())
    }

    /// Reads bytes of a segment.
    fn bytes(&self, extent: &SegmentExtent, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        let (logs, name) = (&self.progress.logs, extent.name());
        let fail = |what, error| Error::io(logs.path(&name), what, error);
        let file = logs.open(&name, Access::Read).map_err(|error| fail("open it", error))?;
        let length = range.end.saturating_sub(range.start);
        if length > SEGMENT_BYTES_MAX {
            let what = format!(
                "it has {length} bytes, and copies have segments of at most {SEGMENT_BYTES_MAX}; \
                 lower --segment"
            );
            return Err(fail("copy it", io::Error::new(io::ErrorKind::InvalidInput, what)).into());
        }
        let mut bytes = vec![0; length as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(range.start + filled as u64, &mut bytes[filled..]) {
                Ok(0) => return Err(fail("read it", io::ErrorKind::UnexpectedEof.into()).into()),
                Ok(count) => filled += count,
                Err(error) => return Err(fail("read it", error).into()),
            }
        }
        Ok(bytes)
    }

    /// Writes an object whose name is unique for its bytes, so that one that exists is the same.
    fn put(&mut self, name: Name, bytes: Vec<u8>) -> Result<()> {
        let text = name.to_string();
        let put = self.store.put_new(&text, bytes);
        put.map_err(|error| self.failed(&text, "write it", &error))?;
        if let Some(known) = &mut self.known {
            known.objects.insert(name);
        }
        Ok(())
    }

    fn remove(&mut self, name: Name) -> Result<()> {
        let text = name.to_string();
        let removed = self.store.remove(&text);
        removed.map_err(|error| self.failed(&text, "remove it", &error))?;
        if let Some(known) = &mut self.known {
            known.objects.remove(&name);
        }
        Ok(())
    }

    fn next_number(&mut self) -> u64 {
        let Some(known) = &mut self.known else { return 1 };
        known.number += 1;
        known.number
    }

    /// Copies the tables if they have changed.
    fn put_tables(&mut self) -> Result<()> {
        let tables = Tables::read(self.disk.as_ref())?;
        if self.known.as_ref().is_some_and(|known| known.tables.as_ref() == Some(&tables)) {
            return Ok(());
        }
        let bytes = tables.to_bytes();
        let name = Name::Tables { number: self.next_number(), sum: payload_sum([&*bytes]) };
        self.put(name, bytes)?;
        if let Some(known) = &mut self.known {
            known.tables = Some(tables);
        }
        Ok(())
    }

    /// Copies the log up to its durable end.
    fn put_log(&mut self, durable: Durable) -> Result<()> {
        let at = lock(&self.progress.state).at;
        let extents = extents_from(self.progress.logs.as_ref(), at.segment, durable)?;
        let Some(oldest) = extents.first() else { return Ok(()) };
        if oldest.first_mark < at.segment {
            return Err(self.refused("has the copy of a later state of this log"));
        }
        let removed = self.known.as_ref().map_or(0, Known::removed);
        if oldest.first_mark > at.segment.max(removed).max(1) {
            // Retention was faster; or segments are lost, and the log has no copy from here on.
            return Err(CopyError::Again(format!(
                "{}: the messages before it are missing",
                self.progress.logs.path(&oldest.name())
            )));
        }
        for extent in &extents {
            match extent.next_mark {
                Some(next) => self.put_segment(extent, next)?,
                None => self.put_tail(extent)?,
            }
        }
        Ok(())
    }

    /// Copies a complete segment, which replaces its parts.
    fn put_segment(&mut self, extent: &SegmentExtent, next: u64) -> Result<()> {
        let bytes = self.bytes(extent, 0..extent.end)?;
        let (first, salt, sum) = (extent.first_mark, extent.salt, payload_sum([&*bytes]));
        let count = bytes.len() as u64;
        self.put(Name::Segment { first, next, salt, sum }, bytes)?;
        self.advance(At { segment: next, end: 0 }, count);
        let mut done = lock(&self.progress.state);
        done.copied_mark = done.copied_mark.max(next - 1);
        Ok(())
    }

    /// Copies the new bytes of the last segment.
    fn put_tail(&mut self, extent: &SegmentExtent) -> Result<()> {
        let (first, salt) = (extent.first_mark, extent.salt);
        let parts = self.known.as_ref().map(|known| known.parts(first)).unwrap_or_default();
        let is_other = |it: &&Name| matches!(it, Name::Part { salt: other, .. } if *other != salt);
        // The parts of a segment without messages, which this one replaces. The last part first, so that the others
        // remain a prefix.
        for other in parts.iter().rev().filter(is_other) {
            self.remove(*other)?;
        }
        let mut parts: Vec<Name> = parts.into_iter().filter(|it| !is_other(&it)).collect();
        let end_of = |it: &Name| if let Name::Part { end, .. } = it { *end } else { 0 };
        let mut at = parts.iter().map(end_of).max().unwrap_or(0);
        while at < extent.end {
            let end = extent.end.min(at + PART_BYTES_MAX);
            let mut start = at;
            let mut merged = Vec::new();
            // Each byte is sent again only when its part at least doubles.
            while let Some(Name::Part { start: before, end: its_end, .. }) = parts.last()
                && *its_end == start
                && its_end - before <= end - start
                && end - before <= MERGED_BYTES_MAX
            {
                start = *before;
                merged.extend(parts.pop());
            }
            let bytes = self.bytes(extent, start..end)?;
            let name = Name::Part { first, salt, start, end, sum: payload_sum([&*bytes]) };
            self.put(name, bytes)?;
            self.advance(At { segment: first, end }, end - start);
            for old in merged {
                self.remove(old)?;
            }
            parts.push(name);
            at = end;
        }
        Ok(())
    }

    fn advance(&self, at: At, bytes: u64) {
        let mut done = lock(&self.progress.state);
        done.at = at;
        done.bytes_copied += bytes;
    }

    /// Copies the last publication of each publisher, before segments that may have them are removed. Returns false
    /// if one is beyond the end of the copy: the next step tries again.
    fn put_publishers(&mut self, publishers: &Publishers, durable: Durable) -> Result<bool> {
        if publishers.noted().any(|(_, mark)| mark >= durable.next_mark) {
            return Ok(false);
        }
        let bytes = publishers_to_bytes(publishers);
        let name = Name::Publishers { number: self.next_number(), sum: payload_sum([&*bytes]) };
        self.put(name, bytes).map(|()| true)
    }

    /// Removes objects that others replace, and the segments before the mark `removed`.
    fn clean(&mut self, removes_segments: bool, removed: u64) -> Result<()> {
        let at = lock(&self.progress.state).at;
        let Some(known) = &self.known else { return Ok(()) };
        let newest = |is_of: fn(&Name) -> bool| known.objects.iter().rev().find(|it| is_of(it));
        let tables = newest(|it| matches!(it, Name::Tables { .. }));
        let publishers = newest(|it| matches!(it, Name::Publishers { .. }));
        let is_old = |it: &&Name| match it {
            Name::Segment { next, .. } => removes_segments && *next <= removed,
            Name::Part { first, .. } => *first < at.segment,
            Name::Tables { .. } => Some(*it) != tables,
            Name::Publishers { .. } => Some(*it) != publishers,
        };
        // The oldest segment first, so that the others remain a suffix.
        let old: Vec<Name> = known.objects.iter().filter(is_old).copied().collect();
        old.into_iter().try_for_each(|name| self.remove(name))
    }
}

/// Lists the objects of a place. Ignores names that are none of a copy's.
pub(super) fn list(store: &dyn CopyStore) -> io::Result<BTreeSet<Name>> {
    let mut objects = BTreeSet::new();
    for folder in [name::SEGMENTS, name::PARTS, name::TABLES, name::PUBLISHERS] {
        let mut count = 0;
        store.list(folder, &mut |text| {
            objects.extend(Name::of(folder, text));
            count += 1;
            count < OBJECTS_MAX
        })?;
        if count >= OBJECTS_MAX {
            return Err(io::Error::other(format!("{folder} has too many objects")));
        }
    }
    Ok(objects)
}

/// Reads the newest tables; None if none were copied.
///
/// # Errors
/// As for [`checked`].
pub(super) fn newest_tables(
    store: &dyn CopyStore,
    objects: &BTreeSet<Name>,
) -> Result<Option<Tables>> {
    let is_of = |it: &&Name| matches!(it, Name::Tables { .. });
    let Some(name) = objects.iter().rev().find(is_of) else { return Ok(None) };
    let bytes = checked(store, *name, METADATA_BYTES_MAX)?;
    Tables::of_bytes(&bytes).map(Some).ok_or_else(|| damaged(store, name, "is damaged"))
}

/// Reads an object and verifies its checksum.
///
/// # Errors
/// [`CopyError::Final`] if its bytes are wrong, [`CopyError::Again`] if it cannot be read.
pub(super) fn checked(store: &dyn CopyStore, name: Name, bytes_max: u64) -> Result<Vec<u8>> {
    let again = |what: &str| CopyError::Again(format!("{}{name}: {what}", store.name()));
    let bytes = match read(store, &name.to_string(), bytes_max) {
        Ok(bytes) => bytes.ok_or_else(|| again("does not exist any longer"))?,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(damaged(store, &name, &error.to_string()));
        }
        Err(error) => return Err(again(&format!("cannot be read: {error}"))),
    };
    match payload_sum([&*bytes]) == name.sum() {
        true => Ok(bytes),
        false => Err(damaged(store, &name, "is damaged: its bytes do not match its checksum")),
    }
}

/// The error for an object with wrong bytes.
pub(super) fn damaged(store: &dyn CopyStore, name: &Name, what: &str) -> CopyError {
    CopyError::Final(format!("{}{name}: {what}", store.name()))
}
