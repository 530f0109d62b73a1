//! Steps from batch to batch through all segments of a log.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Header;
use super::disk::{Access, Disk, DiskFile};
use super::entry::{Cut, Damage};
use super::error::{Error, Result};
use super::segment::{self, Before, HEAD_BYTES, Head};
use super::walk::{Ending, Step, Walk};
use super::window::Window;

/// Number of marks to skip after damage that lost an unknown number of messages, so that their marks are not
/// assigned again.
const UNKNOWN_MARKS: u64 = 1 << 32;

/// The smallest possible block of a segment whose head is lost.
const BLOCK_BYTES_MIN: u64 = 512;

/// An item found, in the order of the log.
#[derive(Debug)]
pub(super) enum LogItem {
    Batch { header: Header, place: u64, stored: Vec<u8> },
    Damage(Damage),
    Cut(Cut),
}

/// The end of the durable part of a log that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Horizon {
    /// The segment, by its first mark and its salt, since a segment without messages may be replaced.
    pub(super) segment: u64,
    pub(super) salt: u64,
    pub(super) end: u64,
}

/// The last segment, for a writer that resumes there.
#[derive(Debug, Clone)]
pub(super) struct Last {
    pub(super) name: String,
    pub(super) head: Option<Head>,
    /// The end of the log in it; None if even its salt is unknown.
    pub(super) before: Option<Before>,
    /// Whether only zeros follow that end.
    pub(super) is_clean: bool,
}

/// A position in the log.
pub(super) struct Steps {
    disk: Arc<dyn Disk>,
    segments: Arc<Vec<(u64, String)>>,
    /// The segment after the current one.
    next: usize,
    walk: Option<Walk>,
    /// The head of the next segment, if it was read.
    next_head: Option<Head>,
    expected: u64,
    horizon: Option<Horizon>,
    waiting: VecDeque<LogItem>,
    last: Option<Last>,
    is_end_unknown: bool,
    is_first: bool,
}

/// Returns the segments in a folder, sorted by mark.
pub(super) fn segments(disk: &dyn Disk) -> Result<Vec<(u64, String)>> {
    let names = disk.names().map_err(|error| Error::io(disk.path(""), "list the folder", error))?;
    let marked = names.into_iter().filter_map(|name| Some((segment::mark_of(&name)?, name)));
    let mut segments: Vec<(u64, String)> = marked.collect();
    segments.sort_unstable();
    Ok(segments)
}

/// The fields that identify a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sealing {
    /// The mark of its first message.
    pub(crate) first_mark: u64,
    pub(crate) salt: u64,
}

/// Returns the sealings of all segments, from their heads alone. None if a head is damaged, or if a segment
/// does not begin where the previous one ends, or is too short.
pub(crate) fn sealings(disk: &dyn Disk) -> Result<Option<Vec<Sealing>>> {
    let mut sealings: Vec<Sealing> = Vec::new();
    let mut length_before = 0;
    for (mark, name) in segments(disk)? {
        let path = disk.path(&name);
        let file = disk.open(&name, Access::Read);
        let file: Arc<dyn DiskFile> =
            file.map_err(|error| Error::io(&path, "open it", error))?.into();
        let length = file.length().map_err(|error| Error::io(&path, "read its length", error))?;
        let (Some(head), true, _) = read_head(&file, HEAD_BYTES) else { return Ok(None) };
        let goes_on = sealings.last().is_none_or(|last| {
            let is_there = |before: Before| before.salt == last.salt && before.end <= length_before;
            head.before.is_some_and(is_there)
        });
        if head.first_mark != mark || !goes_on {
            return Ok(None);
        }
        sealings.push(Sealing { first_mark: mark, salt: head.salt });
        length_before = length;
    }
    Ok(Some(sealings))
}

impl Steps {
    /// Starts at the segment that has the message with mark `from`, or at the first one that exists.
    pub(super) fn new(disk: Arc<dyn Disk>, from: u64, horizon: Option<Horizon>) -> Result<Self> {
        let mut segments = segments(disk.as_ref())?;
        if let Some(horizon) = horizon {
            segments.retain(|(mark, _)| *mark <= horizon.segment);
        }
        let first = segments.partition_point(|(mark, _)| *mark <= from).saturating_sub(1);
        segments.drain(..first);
        let mut steps = Steps {
            disk,
            segments: Arc::default(),
            next: 0,
            walk: None,
            next_head: None,
            expected: 1,
            horizon,
            waiting: VecDeque::new(),
            last: None,
            is_end_unknown: false,
            is_first: true,
        };
        // Drop misnamed files from the end, so that the last segment is treated as such.
        while let Some((mark, name)) = segments.last()
            && steps.head_of(name)?.is_some_and(|head| head.first_mark != *mark)
        {
            steps.report_misnamed(steps.disk.path(name), 0);
            segments.pop();
        }
        steps.segments = Arc::new(segments);
        Ok(steps)
    }

    /// Returns the first mark of the first segment; None if there is no segment.
    pub(super) fn oldest_mark(&self) -> Option<u64> {
        self.segments.first().map(|(mark, _)| *mark)
    }

    /// Returns another walk from here on, which does not move this one.
    pub(super) fn ahead(&self) -> Self {
        Steps {
            disk: Arc::clone(&self.disk),
            segments: Arc::clone(&self.segments),
            walk: self.walk.as_ref().map(Walk::ahead),
            waiting: VecDeque::new(),
            last: None,
            ..*self
        }
    }

    /// Returns the mark of the next message.
    pub(super) fn expected(&self) -> u64 {
        self.walk.as_ref().map_or(self.expected, Walk::expected)
    }

    /// Returns the segment of the last step, by its first mark.
    pub(super) fn segment(&self) -> u64 {
        let last = self.next.checked_sub(1).and_then(|at| self.segments.get(at));
        last.map_or(0, |(mark, _)| *mark)
    }

    /// Returns the mark that a writer may assign next.
    pub(super) fn next_mark(&self) -> u64 {
        let skipped = if self.is_end_unknown { UNKNOWN_MARKS } else { 0 };
        self.expected().saturating_add(skipped)
    }

    /// Returns the last segment, once everything was read.
    pub(super) fn last(&self) -> Option<&Last> {
        self.last.as_ref()
    }

    /// Returns the next item; None at the end.
    pub(super) fn step(&mut self) -> Result<Option<LogItem>> {
        loop {
            if let Some(found) = self.waiting.pop_front() {
                return Ok(Some(found));
            }
            let Some(walk) = &mut self.walk else {
                if self.next >= self.segments.len() {
                    return Ok(None);
                }
                self.open()?;
                continue;
            };
            match walk.step() {
                Step::Batch { header, place, stored } => {
                    return Ok(Some(LogItem::Batch { header, place, stored }));
                }
                Step::Damage { bytes, first_mark, end_mark } => {
                    return Ok(Some(self.damage(bytes, first_mark, end_mark)));
                }
                Step::Cut { bytes } => return Ok(Some(self.cut(bytes))),
                Step::End if self.horizon.is_some() && self.next >= self.segments.len() => {
                    // More may arrive.
                    return Ok(None);
                }
                Step::End => self.leave(),
            }
        }
    }

    /// Follows the log to a new horizon.
    pub(super) fn extend(&mut self, horizon: Horizon) -> Result<()> {
        let Some(old) = self.horizon.filter(|old| *old != horizon) else { return Ok(()) };
        self.horizon = Some(horizon);
        if old.segment == horizon.segment && old.salt != horizon.salt {
            self.walk = None;
            self.next = self.next.saturating_sub(1);
        }
        if old.segment != horizon.segment || self.segments.is_empty() {
            let known = self.segments.last().map_or(0, |(mark, _)| *mark);
            let mut later = segments(self.disk.as_ref())?;
            later.retain(|(mark, _)| *mark > known && *mark <= horizon.segment);
            Arc::make_mut(&mut self.segments).extend(later);
        }
        let next = self.segments.get(self.next).map(|(_, name)| name.clone());
        let end = match next {
            // The current segment is complete, and the next one records its end.
            Some(name) => {
                self.head_of(&name)?.and_then(|head| head.before).map(|before| before.end)
            }
            None => Some(horizon.end),
        };
        if let (Some(walk), Some(end)) = (&mut self.walk, end) {
            walk.extend(end, end);
        }
        Ok(())
    }

    fn path(&self) -> String {
        let name = self.next.checked_sub(1).and_then(|at| self.segments.get(at));
        self.disk.path(name.map_or("", |(_, name)| name))
    }

    fn damage(
        &mut self,
        bytes: std::ops::Range<u64>,
        first_mark: u64,
        end_mark: Option<u64>,
    ) -> LogItem {
        // The first mark of the next segment bounds the lost messages.
        let following = self.segments.get(self.next).map(|(mark, _)| *mark);
        let next_mark = self.next_head.map(|head| head.first_mark).or(following);
        let known = end_mark;
        let end_mark = end_mark.or(next_mark).filter(|end| *end >= first_mark);
        match end_mark {
            Some(end) if known.is_none() => self.expected = self.expected.max(end),
            Some(_) => {}
            None => {
                self.is_end_unknown = true;
                if let Some(last) = &mut self.last {
                    last.is_clean = false;
                }
            }
        }
        LogItem::Damage(Damage { path: self.path(), bytes, first_mark, end_mark })
    }

    fn cut(&mut self, bytes: std::ops::Range<u64>) -> LogItem {
        if let Some(last) = &mut self.last {
            last.is_clean = false;
            // A crash cannot damage a head, so more than a torn write may be lost.
            self.is_end_unknown |= last.head.is_none();
        }
        LogItem::Cut(Cut { path: self.path(), bytes, next_mark: self.expected() })
    }

    /// Leaves a segment at its end.
    fn leave(&mut self) {
        let Some(walk) = self.walk.take() else { return };
        let at = walk.at();
        if let Some(last) = &mut self.last {
            last.before = last.before.map(|before| Before { end: before.end.max(at), ..before });
        }
        if self.next >= self.segments.len() {
            self.expected = walk.expected();
            return;
        }
        // Do not report a damage twice.
        self.expected = self.expected.max(walk.expected());
        if let Some(next) = self.next_head.filter(|next| next.first_mark > self.expected) {
            let first_mark = std::mem::replace(&mut self.expected, next.first_mark);
            let end_mark = Some(next.first_mark);
            let damage = Damage { path: self.path(), bytes: at..at, first_mark, end_mark };
            self.waiting.push_back(LogItem::Damage(damage));
        }
    }

    /// Opens the next segment.
    fn open(&mut self) -> Result<()> {
        let Some((named_mark, name)) = self.segments.get(self.next).cloned() else { return Ok(()) };
        self.next += 1;
        let path = self.disk.path(&name);
        let file = self.disk.open(&name, Access::Read);
        let file: Arc<dyn DiskFile> =
            file.map_err(|error| Error::io(&path, "open it", error))?.into();
        let length = file.length().map_err(|error| Error::io(&path, "read its length", error))?;
        let (head, is_whole, first) = read_head(&file, length);
        let following = self.segments.get(self.next).cloned();
        let is_last = following.is_none();
        self.next_head = match following {
            Some((mark, name)) => self.head_of(&name)?.filter(|head| head.first_mark == mark),
            None => None,
        };
        let before = self.next_head.and_then(|next| next.before);
        // The first batch has a fixed place, so its header also determines the salt.
        let salt = head.map(|head| head.salt).or(first).or(before.map(|before| before.salt));
        if head.is_some_and(|head| head.first_mark != named_mark) {
            self.report_misnamed(path, length);
            return Ok(());
        }
        let first_mark = named_mark;
        if self.is_first || first_mark > self.expected {
            self.skip_to(first_mark, &path);
        }
        self.last = Some(Last {
            name,
            head,
            before: salt.map(|salt| Before { salt, end: HEAD_BYTES }),
            is_clean: head.is_some(),
        });
        if !is_whole {
            self.report_damaged_head(salt.is_some(), length, first_mark);
        }
        let Some(salt) = salt else { return Ok(()) };
        let sealed = before.filter(|before| before.salt == salt).map(|before| before.end);
        let (limit, ending) = match (self.horizon.filter(|_| is_last), sealed, head) {
            (Some(horizon), ..) => (horizon.end, Ending::Sealed),
            (None, Some(end), _) => (end, Ending::Sealed),
            (None, None, Some(head)) if is_last => {
                (length, Ending::Open { made_bytes: head.segment_bytes })
            }
            (None, None, None) if is_last => (length, Ending::Open { made_bytes: length }),
            _ => (length, Ending::Sealed),
        };
        let block_bytes = head.map_or(BLOCK_BYTES_MIN, |head| u64::from(head.block_bytes));
        let marks = (salt, block_bytes);
        self.walk = Some(Walk::new(file, length, marks, (limit, ending), self.expected));
        Ok(())
    }

    /// Continues at a mark. Reports the messages in between as missing, except before the first segment.
    fn skip_to(&mut self, first_mark: u64, path: &str) {
        if !std::mem::replace(&mut self.is_first, false) {
            let damage = Damage {
                path: path.to_string(),
                bytes: 0..0,
                first_mark: self.expected,
                end_mark: Some(first_mark),
            };
            self.waiting.push_back(LogItem::Damage(damage));
        }
        self.expected = first_mark;
    }

    /// Reports a damaged head, of which one copy or none is intact.
    fn report_damaged_head(&mut self, has_salt: bool, length: u64, first_mark: u64) {
        let path = self.path();
        let damage = if has_salt {
            Damage { path, bytes: 0..HEAD_BYTES, first_mark, end_mark: Some(first_mark) }
        } else {
            let end_mark = self.next_head.map(|next| next.first_mark);
            match end_mark {
                Some(mark) => self.expected = mark.max(self.expected),
                None => self.is_end_unknown = true,
            }
            Damage { path, bytes: 0..length.max(HEAD_BYTES), first_mark, end_mark }
        };
        self.waiting.push_back(LogItem::Damage(damage));
    }

    /// Reports a file with the name of another segment, and skips it.
    fn report_misnamed(&mut self, path: String, length: u64) {
        let mark = self.expected;
        let damage = Damage { path, bytes: 0..length, first_mark: mark, end_mark: Some(mark) };
        self.waiting.push_back(LogItem::Damage(damage));
    }

    fn head_of(&self, name: &str) -> Result<Option<Head>> {
        head_of(self.disk.as_ref(), name)
    }
}

/// Reads the head of a segment; None if both copies are damaged.
pub(super) fn head_of(disk: &dyn Disk, name: &str) -> Result<Option<Head>> {
    let path = disk.path(name);
    let file = disk.open(name, Access::Read);
    let file: Arc<dyn DiskFile> = file.map_err(|error| Error::io(&path, "open it", error))?.into();
    Ok(read_head(&file, HEAD_BYTES).0)
}

/// Reads a segment's head, whether both copies are intact, and the salt of its first batch if neither is.
pub(super) fn read_head(
    file: &Arc<dyn DiskFile>,
    length: u64,
) -> (Option<Head>, bool, Option<u64>) {
    let mut window = Window::new(Arc::clone(file), length, 2 * HEAD_BYTES);
    match Head::from_bytes(window.page(0)) {
        Some((head, is_whole)) => (Some(head), is_whole, None),
        None => {
            let first = Header::of_any_segment(window.page(HEAD_BYTES), HEAD_BYTES);
            (None, false, first.map(|header| header.salt).filter(|salt| *salt != 0))
        }
    }
}
