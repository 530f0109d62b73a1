//! The one place that writes a log: groups of batches, one sync each, segment after segment.
//!
//! ```text
//!  group ─→ marks, time, header ─→ aligned buffer ─→ writes ─→ one sync ─→ durable, acknowledged
//!                    no room in the segment: head into the one that stands ready, sync, its name,
//!                    sync of the folder; then another one is made ready
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

/// The segment that stands ready, before it has its own name.
const READY: &str = "next.qlog";
/// Left free in each segment, for a note at its end.
const RESERVED_BYTES: u64 = 4096;

/// Nobody gets this far but by a damaged or made-up header.
const MARK_MAX: u64 = 1 << 63;

/// Where a log ends, for whoever goes on writing.
pub(super) struct End {
    pub(super) last: Option<Last>,
    pub(super) next_mark: u64,
    pub(super) time_us: i64,
}

/// The writer of a log, without a thread of its own.
pub(super) struct Appender {
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    buffer: AlignedBuffer,
    /// The segment that is written to; None where the next batch needs a new one.
    current: Option<Current>,
    /// For the head of the next segment.
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
    /// Where the next group begins: all before is durable.
    end: u64,
}

impl Current {
    fn limit(&self) -> u64 {
        self.head.segment_bytes.saturating_sub(RESERVED_BYTES)
    }
}

impl Appender {
    /// Goes on where the log ends: makes durable what was found there, and notes that.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Stopped`]; a full disk is none yet.
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
            return Err(Error::Invalid { reason: "the log has given out all marks" });
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

    /// Opens the last segment for more, if nothing but zeros comes after its batches.
    fn reopen(&mut self, last: &Last) -> Result<()> {
        let path = self.disk.path(&last.name);
        let fail = |what, error| Error::io(&path, what, error);
        let file = self.disk.open(&last.name, Access::Write);
        let file = file.map_err(|error| fail("open it for writing", error))?;
        // Also of a segment that is left: what was read from it must not go away again.
        file.sync().map_err(|error| fail("sync it", error))?;
        self.disk.sync_folder().map_err(|error| fail("sync its folder", error))?;
        let (Some(head), Some(before)) = (last.head, last.before) else { return Ok(()) };
        self.before = self.before_next(&head, before.end);
        // Groups are padded to the block that the head says.
        let is_usable = last.is_clean
            && head.segment_bytes <= Options::SEGMENT_BYTES_MAX
            && u64::from(head.block_bytes) == file.block_bytes();
        if !is_usable {
            return Ok(());
        }
        let length = file.length().map_err(|error| fail("read its length", error))?;
        if length < head.segment_bytes {
            match file.allocate(head.segment_bytes).and_then(|()| file.sync()) {
                // The next segment may find room.
                Err(error) if is_full(&error) => return Ok(()),
                done => done.map_err(|error| fail("make room in it", error))?,
            }
        }
        let end = before.end.next_multiple_of(file.block_bytes());
        self.current = Some(Current { file, name: last.name.clone(), head, end });
        Ok(())
    }

    /// The most bytes that a batch may take in a segment.
    pub(super) fn batch_bytes_max(&self) -> u64 {
        self.segment_bytes - HEAD_BYTES - RESERVED_BYTES
    }

    /// How far the log is durable.
    pub(super) fn horizon(&self) -> Option<Horizon> {
        let current = self.current.as_ref()?;
        let head = &current.head;
        Some(Horizon { segment: head.first_mark, salt: head.salt, end: current.end })
    }

    pub(super) fn next_mark(&self) -> u64 {
        self.next_mark
    }

    /// Why no more is written, if that is so.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Whether there is room for another segment.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Appends batches, in order, and makes them durable. The first ones are, as many as is said;
    /// the others were refused for the reason given.
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

    /// Appends as many as the segment has room for, at least one.
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

    /// A group could not be written: nothing of it may be found later. The segment is left, since
    /// some of it may lie behind its end; and where it was to begin is wiped, until the head of the
    /// next segment says so.
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
            Err(error) => self.stop(format!("{path}: cannot wipe what was not written: {error}")),
        }
    }

    /// What the next segment says of one that ends here. One without messages is replaced by it,
    /// since both have the same first mark.
    fn before_next(&self, head: &Head, end: u64) -> Option<Before> {
        let is_replaced = head.first_mark == self.next_mark;
        if is_replaced { head.before } else { Some(Before { salt: head.salt, end }) }
    }

    /// Takes no more writes.
    fn stop(&mut self, reason: String) -> Error {
        self.stopped = Some(reason.clone());
        Error::Stopped { reason }
    }

    /// Goes on to the segment that stands ready.
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
            // Its room is given back, or its bytes are replaced, when the next one is made.
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
            // What follows its end is no part of the log any more. Room that is not given back
            // harms nobody.
            let _ = old.file.truncate(old.end);
        }
        self.before = None;
        Ok(())
    }

    /// Makes another segment ready, if none is: so that a full disk is known before it matters.
    pub(super) fn prepare(&mut self) {
        if self.ready.is_none() && self.stopped.is_none() {
            // Told when it is needed, if it still fails then.
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

    /// Notes the end of the log, and gives back the room that it did not need.
    ///
    /// # Errors
    /// As [`Appender::append`]. The log is whole all the same.
    pub(super) fn close(&mut self) -> Result<()> {
        if self.stopped.is_none() && self.current.is_some() {
            let mut notes = [Sealed::note(CLOSED)];
            // The note may take the room that batches leave: without it, damage to the last group
            // would look like a crash.
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
