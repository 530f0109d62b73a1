//! Presents messages of the log as a source, for any reader of message files.

use std::collections::VecDeque;
use std::io;
use std::mem::discriminant;
use std::sync::{Arc, Mutex};

use quarrier_core::source::Source;
use quarrier_core::sync::lock;

use super::blocks::picked;
use super::encoding::format_of;
use super::files::{Files, Messages};
use super::index::Extent;
use crate::Format;
use crate::log::Place;

/// Maximum number of batches to keep for the next read.
const HELD_MAX: usize = 64;
const HELD_BYTES_MAX: usize = 96 << 20;

/// Messages of a table in one format, concatenated like a file; CSV messages have one header before them.
/// Cheap to clone.
#[derive(Clone)]
pub struct Run(Arc<Inner>);

struct Inner {
    name: String,
    format: Format,
    files: Arc<Files>,
    spans: Vec<Span>,
    length: u64,
    /// The most recently read batches, by their numbers.
    held: Mutex<VecDeque<(usize, Arc<Messages>)>>,
}

/// A batch as a part of the source.
#[derive(Debug, Clone)]
struct Span {
    /// Its offset in the source.
    start: u64,
    place: Place,
    /// Bytes to skip at its start.
    skipped: u64,
    /// The messages to include; None means all.
    alive: Option<Arc<Alive>>,
}

/// The messages of a batch that are live rows of their table, which has a key.
#[derive(Debug)]
pub(super) struct Alive {
    /// A bit for each message.
    bits: Vec<u64>,
    header: Arc<[u8]>,
    /// The bytes of the batch that remain, including its header.
    bytes: u64,
}

impl Alive {
    /// Selects the messages with these numbers in the batch.
    ///
    /// # Errors
    /// An error if the batch cannot be read.
    pub(super) fn of(
        files: &Files,
        extent: &Extent,
        numbers: impl Iterator<Item = u64>,
    ) -> io::Result<Alive> {
        let mut bits = vec![0; (extent.marks.end - extent.marks.start).div_ceil(64) as usize];
        for number in numbers {
            if let Some(word) = bits.get_mut((number / 64) as usize) {
                *word |= 1 << (number % 64);
            }
        }
        let mut alive = Alive { bits, header: Arc::clone(&extent.header), bytes: 0 };
        let messages = files.messages(&extent.place)?;
        if let Some(format) = format_of(extent.encoding, &extent.header) {
            alive.bytes = alive.picked(&format, messages.bytes()).len() as u64;
        }
        files.recycle(messages);
        Ok(alive)
    }

    fn picked(&self, format: &Format, messages: &[u8]) -> Vec<u8> {
        let is_wanted = |number: usize| {
            self.bits.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
        };
        picked((format, &self.header), messages, is_wanted)
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { name, length, .. } = &*self.0;
        f.debug_struct("Run").field("name", name).field("length", length).finish()
    }
}

/// Runs are equal if they have the same messages of the same snapshot.
impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Run {}

impl Run {
    /// Makes a run of batches that one reader can read; None if no format has their encoding.
    pub(super) fn of(name: &str, files: &Arc<Files>, extents: &[Extent]) -> Option<Run> {
        let all = extents.iter().map(|extent| (extent, None));
        Run::of_alive(name, files, &all.collect::<Vec<_>>())
    }

    /// Like `of`, with only some messages of each batch.
    pub(super) fn of_alive(
        name: &str,
        files: &Arc<Files>,
        extents: &[(&Extent, Option<Arc<Alive>>)],
    ) -> Option<Run> {
        let (first, _) = extents.first()?;
        let format = format_of(first.encoding, &first.header)?;
        let mut length = 0;
        let mut span = |(at, (extent, alive)): (usize, &(&Extent, Option<Arc<Alive>>))| {
            // Only the first batch contributes its header.
            let skipped = if at == 0 { 0 } else { extent.header.len() as u64 };
            let start = length;
            let all = u64::from(extent.place.bytes_unpacked);
            let bytes = alive.as_ref().map_or(all, |alive| alive.bytes);
            length += bytes.saturating_sub(skipped);
            Span { start, place: extent.place, skipped, alive: alive.clone() }
        };
        let spans = extents.iter().enumerate().map(&mut span).collect();
        let (name, files, held) = (name.to_string(), Arc::clone(files), Mutex::default());
        Some(Run(Arc::new(Inner { name, format, files, spans, length, held })))
    }

    /// Returns whether both can be loaded together, as one.
    pub(super) fn goes_with(&self, next: &Run) -> bool {
        match (self.format(), next.format()) {
            (Format::Csv(one), Format::Csv(other)) => one == other,
            (one, other) => discriminant(one) == discriminant(other),
        }
    }

    /// Returns the format of its messages.
    pub fn format(&self) -> &Format {
        &self.0.format
    }
}

impl Inner {
    /// Returns the messages of a batch. A worker reads them piece by piece, so recent ones are kept.
    fn messages(&self, number: usize, span: &Span) -> io::Result<Arc<Messages>> {
        let known = |held: &VecDeque<(usize, Arc<Messages>)>| {
            let found = held.iter().rev().find(|(known, _)| *known == number);
            found.map(|(_, messages)| Arc::clone(messages))
        };
        if let Some(messages) = known(&lock(&self.held)) {
            return Ok(messages);
        }
        let mut messages = self.files.messages(&span.place)?;
        if let Some(alive) = &span.alive {
            let picked = alive.picked(&self.format, messages.bytes());
            self.files.recycle(std::mem::replace(&mut messages, Messages::Unpacked(picked)));
        }
        let messages = Arc::new(messages);
        let mut held = lock(&self.held);
        held.push_back((number, Arc::clone(&messages)));
        let mut bytes: usize = held.iter().map(|(_, messages)| messages.bytes().len()).sum();
        while held.len() > HELD_MAX || bytes > HELD_BYTES_MAX && held.len() > 1 {
            let Some((_, first)) = held.pop_front() else { break };
            bytes -= first.bytes().len();
            if let Some(first) = Arc::into_inner(first) {
                self.files.recycle(first);
            }
        }
        Ok(messages)
    }
}

impl Source for Run {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn length(&self) -> u64 {
        self.0.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let inner = &*self.0;
        if offset >= inner.length || buffer.is_empty() {
            return Ok(0);
        }
        let number = inner.spans.partition_point(|span| span.start <= offset).saturating_sub(1);
        let Some(span) = inner.spans.get(number) else { return Ok(0) };
        let skipped = offset - span.start + span.skipped;
        let messages = inner.messages(number, span)?;
        let rest = usize::try_from(skipped).ok().and_then(|from| messages.bytes().get(from..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}
