//! Writes groups of batches with one sync each (group commit), segment after segment. A log has one appender.
//!
//! ```text
//!  group ─→ marks, time, header ─→ aligned buffer ─→ writes ─→ one sync ─→ durable, acknowledged
//!                    segment full: write the head of the spare segment, sync, rename it,
//!                    sync the folder; then prepare another spare
//! ```

use std::sync::Arc;

use quarrier_core::region::AlignedBuffer;

use super::batch::{CLOSED, HEADER_BYTES, Sealed};
use super::disk::{Access, Disk, DiskFile};
use super::error::{Error, Result, is_full};
use super::options::Options;
use super::output::Output;
use super::segment::{self, Before, HEAD_BYTES, Head};
use super::steps::{Horizon, Last};

/// The name of the spare segment until it gets its own.
const READY: &str = "next.qlog";
/// Bytes reserved in each segment for a note at its end.
const RESERVED_BYTES: u64 = 4096;

/// Marks reach this value only by a damaged or forged header.
const MARK_MAX: u64 = 1 << 63;

/// The end of a log, for the writer that resumes there.
pub(super) struct End {
    pub(super) last: Option<Last>,
    pub(super) next_mark: u64,
    pub(super) time_us: i64,
}

/// Writes a log on the thread of its caller.
pub(super) struct Appender {
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    buffer: AlignedBuffer,
    /// The segment being written; None if the next batch needs a new one.
    current: Option<Current>,
    /// The end of the previous segment, for the head of the next one.
    before: Option<Before>,
    ready: Option<Box<dyn DiskFile>>,
    next_mark: u64,
    time_us: i64,
    stopped: Option<String>,
}

struct Current {
    file: Box<dyn DiskFile>,
    name: String,
    head: Head,
    /// The start of the next group: everything before it is durable.
    end: u64,
}

impl Current {
    fn limit(&self) -> u64 {
        self.head.segment_bytes.saturating_sub(RESERVED_BYTES)
    }
}

impl Appender {
    /// Resumes where the log ends: makes everything durable that recovery found there, and records that.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Stopped`]. A full disk is not an error yet.
    pub(super) fn resume(disk: Arc<dyn Disk>, options: &Options, end: End) -> Result<Self> {
        let options = options.rounded();
        let mut appender = Appender {
            disk,
            segment_bytes: options.segment_bytes,
            buffer: AlignedBuffer::new(options.write_bytes),
            current: None,
            before: end.last.as_ref().and_then(|last| last.before),
            ready: None,
            next_mark: end.next_mark,
            time_us: end.time_us,
            stopped: None,
        };
        if end.next_mark > MARK_MAX {
            return Err(Error::Invalid { reason: "the log has used all marks" });
        }
        if let Some(last) = end.last {
            appender.reopen(&last)?;
        }
        match appender.append(&mut [Sealed::note(0)]).1 {
            Ok(()) | Err(Error::Full { .. }) => {}
            Err(error) => return Err(error),
        }
        appender.prepare();
        Ok(appender)
    }

    /// Reopens the last segment for appending, if only zeros follow its batches.
    fn reopen(&mut self, last: &Last) -> Result<()> {
        let path = self.disk.path(&last.name);
        let fail = |what, error| Error::io(&path, what, error);
        let file = self.disk.open(&last.name, Access::Write);
        let file = file.map_err(|error| fail("open it for writing", error))?;
        // Sync even a segment that the writer leaves: data that recovery has read must not disappear again.
        file.sync().map_err(|error| fail("sync it", error))?;
        self.disk.sync_folder().map_err(|error| fail("sync its folder", error))?;
        let (Some(head), Some(before)) = (last.head, last.before) else { return Ok(()) };
        self.before = self.before_next(&head, before.end);
        // The head states the block size to which groups are padded.
        let is_usable = last.is_clean
            && head.segment_bytes <= Options::SEGMENT_BYTES_MAX
            && u64::from(head.block_bytes) == file.block_bytes();
        if !is_usable {
            return Ok(());
        }
        let length = file.length().map_err(|error| fail("read its length", error))?;
        if length < head.segment_bytes {
            match file.allocate(head.segment_bytes).and_then(|()| file.sync()) {
                // The next segment may find space.
                Err(error) if is_full(&error) => return Ok(()),
                done => done.map_err(|error| fail("make room in it", error))?,
            }
        }
        let end = before.end.next_multiple_of(file.block_bytes());
        self.current = Some(Current { file, name: last.name.clone(), head, end });
        Ok(())
    }

    /// Returns the maximum bytes of a batch in a segment.
    pub(super) fn batch_bytes_max(&self) -> u64 {
        self.segment_bytes - HEAD_BYTES - RESERVED_BYTES
    }

    /// Returns the end of the durable log.
    pub(super) fn horizon(&self) -> Option<Horizon> {
        let current = self.current.as_ref()?;
        let head = &current.head;
        Some(Horizon { segment: head.first_mark, salt: head.salt, end: current.end })
    }

    pub(super) fn next_mark(&self) -> u64 {
        self.next_mark
    }

    /// Returns the reason why the log has stopped, if it has.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Returns whether a spare segment is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Appends batches in order and makes them durable. Returns the number of batches, from the first on,
    /// that succeeded; the others failed with the error.
    pub(super) fn append(&mut self, group: &mut [Sealed]) -> (usize, Result<()>) {
        let mut done = 0;
        while done < group.len() {
            match self.append_some(&mut group[done..]) {
                Ok(count) => done += count,
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    /// Appends as many batches as fit the segment, at least one.
    fn append_some(&mut self, group: &mut [Sealed]) -> Result<usize> {
        if let Some(reason) = &self.stopped {
            return Err(Error::Stopped { reason: reason.clone() });
        }
        let count = match self.fitting(group) {
            0 => {
                self.next_segment()?;
                self.fitting(group)
            }
            count => count,
        };
        if count == 0 {
            let bytes = group.first().map_or(0, |sealed| sealed.header.extent());
            return Err(Error::TooLarge { bytes, bytes_max: self.batch_bytes_max() });
        }
        self.write_group(&mut group[..count])?;
        Ok(count)
    }

    fn fitting(&self, group: &[Sealed]) -> usize {
        let Some(current) = &self.current else { return 0 };
        let ends = group.iter().scan(current.end, |end, sealed| {
            *end += sealed.header.extent();
            Some(*end)
        });
        ends.take_while(|end| *end <= current.limit()).count()
    }

    fn write_group(&mut self, group: &mut [Sealed]) -> Result<()> {
        let Some(current) = &mut self.current else {
            return Err(Error::Closed);
        };
        let start = current.end;
        self.time_us = self.time_us.max(self.disk.now_us());
        let (mut place, mut mark) = (start, self.next_mark);
        let mut output = Output::new(current.file.as_ref(), &mut self.buffer, start);
        let mut write = || {
            for sealed in group.iter_mut() {
                let header = &mut sealed.header;
                header.salt = current.head.salt;
                header.mark = mark;
                header.time_us = self.time_us;
                header.synced = ((place - start) / HEADER_BYTES) as u32;
                sealed.place = (current.head.first_mark, place);
                output.put(&header.to_bytes(place))?;
                output.put(&sealed.extension)?;
                output.put(&sealed.payload)?;
                output.pad(HEADER_BYTES)?;
                place += header.extent();
                mark = header.next_mark();
            }
            output.pad(current.file.block_bytes())?;
            output.flush()
        };
        if let Err(error) = write() {
            return Err(self.failed_write(&error));
        }
        if let Err(error) = current.file.sync() {
            let path = self.disk.path(&current.name);
            return Err(self.stop(format!("{path}: cannot sync it: {error}")));
        }
        current.end = place.next_multiple_of(current.file.block_bytes());
        self.next_mark = mark;
        Ok(())
    }

    /// Handles a group whose write failed, so that no reader finds a part of it later. The writer leaves the
    /// segment, since a part of the group may be after its end. It wipes the place where the group was to
    /// begin, until the head of the next segment records the end.
    fn failed_write(&mut self, error: &std::io::Error) -> Error {
        let Some(current) = self.current.take() else { return Error::Closed };
        let path = self.disk.path(&current.name);
        if !is_full(error) {
            return self.stop(format!("{path}: cannot write at byte {}: {error}", current.end));
        }
        self.before = self.before_next(&current.head, current.end);
        let mut output = Output::new(current.file.as_ref(), &mut self.buffer, current.end);
        let wiped = output
            .put(&[0; HEADER_BYTES as usize])
            .and_then(|()| output.pad(current.file.block_bytes()))
            .and_then(|()| output.flush())
            .and_then(|()| current.file.sync());
        match wiped {
            Ok(()) => Error::Full { path, error: Arc::new(std::io::Error::from(error.kind())) },
            Err(error) => {
                self.stop(format!("{path}: cannot wipe the bytes of a write that failed: {error}"))
            }
        }
    }

    /// Returns the end for the head of the next segment. That segment replaces one without messages, since
    /// both have the same first mark.
    fn before_next(&self, head: &Head, end: u64) -> Option<Before> {
        let is_replaced = head.first_mark == self.next_mark;
        if is_replaced { head.before } else { Some(Before { salt: head.salt, end }) }
    }

    /// Stops the log: it refuses further writes.
    fn stop(&mut self, reason: String) -> Error {
        self.stopped = Some(reason.clone());
        Error::Stopped { reason }
    }

    /// Switches to the spare segment.
    fn next_segment(&mut self) -> Result<()> {
        let file = match self.ready.take() {
            Some(file) => file,
            None => self.make_ready()?,
        };
        let current = self.current.as_ref();
        let before = current.map_or(self.before, |old| self.before_next(&old.head, old.end));
        let salt = self.disk.random().map_err(|error| {
            Error::io(self.disk.path(""), "get a random number from the system", error)
        })?;
        let head = Head {
            block_bytes: file.block_bytes() as u32,
            salt: salt.max(1),
            first_mark: self.next_mark,
            made_us: self.disk.now_us(),
            segment_bytes: self.segment_bytes,
            before,
        };
        let name = segment::name(self.next_mark);
        let path = self.disk.path(&name);
        let mut output = Output::new(file.as_ref(), &mut self.buffer, 0);
        let written =
            output.put(&head.to_bytes()).and_then(|()| output.flush()).and_then(|()| file.sync());
        if let Err(error) = written {
            // Making the next spare frees its space or overwrites its bytes.
            return Err(match is_full(&error) {
                true => Error::Full { path, error: Arc::new(error) },
                false => self.stop(format!("{path}: cannot write its head: {error}")),
            });
        }
        let named = self.disk.rename(READY, &name).and_then(|()| self.disk.sync_folder());
        if let Err(error) = named {
            return Err(self.stop(format!("{path}: cannot give a segment its name: {error}")));
        }
        if let Some(old) = self.current.replace(Current { file, name, head, end: HEAD_BYTES }) {
            // Bytes after its end no longer belong to the log. Failing to free their space does no harm.
            let _ = old.file.truncate(old.end);
        }
        self.before = None;
        Ok(())
    }

    /// Prepares a spare segment if there is none, so that a full disk is detected before it matters.
    pub(super) fn prepare(&mut self) {
        if self.ready.is_none() && self.stopped.is_none() {
            // If it still fails when the segment is needed, that call reports the error.
            self.ready = self.make_ready().ok();
        }
    }

    fn make_ready(&mut self) -> Result<Box<dyn DiskFile>> {
        let path = self.disk.path(READY);
        let made = self.disk.create(READY, self.segment_bytes);
        let synced = made.and_then(|file| file.sync().map(|()| file));
        synced.map_err(|error| match is_full(&error) {
            true => Error::Full { path, error: Arc::new(error) },
            false => Error::io(path, "make a segment", error),
        })
    }

    /// Records the end of the log, and frees the space that it did not need.
    ///
    /// # Errors
    /// As for [`Appender::append`]. The log stays intact even then.
    pub(super) fn close(&mut self) -> Result<()> {
        if self.stopped.is_none() && self.current.is_some() {
            let mut notes = [Sealed::note(CLOSED)];
            // The note may use the reserved space. Without a note, damage to the last group would look like a
            // crash.
            let is_room = |current: &Current| {
                current.end + notes[0].header.extent() <= current.head.segment_bytes
            };
            let is_noted = self.current.as_ref().is_some_and(is_room);
            if is_noted {
                self.write_group(&mut notes)?;
            }
            if let Some(current) = self.current.as_ref().filter(|_| is_noted) {
                let _ = current.file.truncate(current.end);
            }
        }
        if self.ready.take().is_some() {
            let _ = self.disk.remove(READY);
        }
        self.stopped.get_or_insert_with(|| "it was closed".to_string());
        Ok(())
    }
}
