//! Feeds: where workers get chunks from. One for each way that bytes reach memory.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::pieces::{Piece, Pieces};
use super::retry;
use super::timeline::{Recorder, Stage};
use super::{Chunk, Need};
use crate::error::{Error, Result};
use crate::region::{AlignedBuffer, BufferPool, Lease, Region};
use crate::source::Source;

/// A piece with its bytes in memory.
pub(super) struct Filled<'a> {
    pub(super) piece: Piece,
    held: Held<'a>,
    unreadable: Vec<Range<u64>>,
}

/// What keeps the bytes alive; dropping it gives buffer or permit back.
enum Held<'a> {
    Window(Region<'a>, #[expect(dead_code, reason = "held for its drop")] Lease<'a, ()>),
    Buffer(Lease<'a, AlignedBuffer>),
    Own(AlignedBuffer),
}

impl<'a> Filled<'a> {
    /// The piece as workers and sinks see it.
    pub(super) fn chunk(&self) -> Chunk<'_> {
        let piece = &self.piece;
        let bytes = (piece.read.end - piece.read.start) as usize;
        let data = match &self.held {
            Held::Window(region, _) => region.bytes(),
            Held::Buffer(buffer) => buffer,
            Held::Own(buffer) => buffer,
        };
        Chunk {
            index: piece.index,
            offset: piece.read.start,
            data: &data[..bytes],
            own: (piece.own.start - piece.read.start) as usize
                ..(piece.own.end - piece.read.start) as usize,
            at_start: piece.at_start,
            at_end: piece.at_end,
            unreadable: &self.unreadable,
        }
    }

    pub(super) fn is_torn(&self) -> bool {
        matches!(&self.held, Held::Window(region, _) if region.is_torn())
    }

    /// Reads the piece again, by `read_at`, which says what is wrong with it.
    pub(super) fn read_again(self, source: &dyn Source) -> Result<Filled<'a>> {
        let mut unreadable = Vec::new();
        let buffer = read_piece(source, &self.piece, &mut unreadable)?;
        Ok(Filled { piece: self.piece, held: Held::Own(buffer), unreadable })
    }
}

fn read_piece(
    source: &dyn Source,
    piece: &Piece,
    unreadable: &mut Vec<Range<u64>>,
) -> Result<AlignedBuffer> {
    let bytes = (piece.read.end - piece.read.start) as usize;
    let mut buffer = AlignedBuffer::new(bytes);
    retry::fill(source, piece.read.start, &mut buffer, unreadable)?;
    Ok(buffer)
}

/// The next thing a worker gets.
pub(super) enum Step<'a> {
    Chunk(Filled<'a>),
    Failed(u64, Error),
}

/// Hands out chunks in order; any worker may ask.
pub(super) trait Feed<'a>: Sync {
    /// The next chunk, or `None` when there is none.
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>>;

    /// Ends the run early: whoever waits goes away with nothing.
    fn close(&self);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shared cutter, which after an error or the end yields nothing more.
pub(super) struct Cutter<'a> {
    pieces: Mutex<(Pieces<'a>, bool)>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(pieces: Pieces<'a>) -> Self {
        Cutter { pieces: Mutex::new((pieces, false)) }
    }

    pub(super) fn next(&self) -> Option<std::result::Result<Piece, (u64, Error)>> {
        let mut guard = lock(&self.pieces);
        let (pieces, ended) = &mut *guard;
        if *ended {
            return None;
        }
        let index = pieces.next_index();
        match pieces.next() {
            Ok(Some(piece)) => Some(Ok(piece)),
            Ok(None) => {
                *ended = true;
                None
            }
            Err(error) => {
                *ended = true;
                Some(Err((index, error)))
            }
        }
    }

    pub(super) fn close(&self) {
        lock(&self.pieces).1 = true;
    }

    pub(super) fn skipped_bytes(&self) -> u64 {
        lock(&self.pieces).0.skipped_bytes()
    }
}

/// Shows pages of the source where they lie; nothing is copied.
pub(super) struct WindowFeed<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) cutter: Cutter<'a>,
    pub(super) permits: &'a BufferPool<()>,
}

impl<'a> Feed<'a> for WindowFeed<'a> {
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>> {
        let asked = Instant::now();
        let permit = self.permits.lend()?;
        recorder.waited(Stage::Read, asked);
        let start = Instant::now();
        let piece = match self.cutter.next()? {
            Ok(piece) => piece,
            Err((index, error)) => return Some(Step::Failed(index, error)),
        };
        let bytes = piece.own.end - piece.own.start;
        let mut unreadable = Vec::new();
        let held = if piece.is_hole {
            Held::Own(AlignedBuffer::new((piece.read.end - piece.read.start) as usize))
        } else {
            match self.source.window(piece.read.clone()) {
                Some(Ok(region)) => Held::Window(region, permit),
                // A range that cannot be shown (across two parts of a split image) is read.
                Some(Err(_)) | None => match read_piece(self.source, &piece, &mut unreadable) {
                    Ok(buffer) => Held::Own(buffer),
                    Err(error) => return Some(Step::Failed(piece.index, error)),
                },
            }
        };
        recorder.busy(Stage::Read, start, bytes);
        Some(Step::Chunk(Filled { piece, held, unreadable }))
    }

    fn close(&self) {
        self.permits.close();
        self.cutter.close();
    }
}

/// Workers read for themselves, into buffers that stay in their caches.
pub(super) struct ReadFeed<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) cutter: Cutter<'a>,
    pub(super) buffers: &'a BufferPool,
}

impl<'a> Feed<'a> for ReadFeed<'a> {
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>> {
        let asked = Instant::now();
        // The buffer first, then the piece: see the module's comment.
        let buffer = self.buffers.lend()?;
        recorder.waited(Stage::Read, asked);
        let start = Instant::now();
        let step = match self.cutter.next()? {
            Ok(piece) => fill_piece(self.source, piece, buffer),
            Err((index, error)) => Step::Failed(index, error),
        };
        if let Step::Chunk(filled) = &step {
            recorder.busy(Stage::Read, start, filled.piece.own.end - filled.piece.own.start);
        }
        Some(step)
    }

    fn close(&self) {
        self.buffers.close();
        self.cutter.close();
    }
}

fn fill_piece<'a>(
    source: &'a dyn Source,
    piece: Piece,
    mut buffer: Lease<'a, AlignedBuffer>,
) -> Step<'a> {
    let bytes = (piece.read.end - piece.read.start) as usize;
    let mut unreadable = Vec::new();
    let target = &mut buffer[..bytes];
    if piece.is_hole {
        target.fill(0);
    } else if let Err(error) = retry::fill(source, piece.read.start, target, &mut unreadable) {
        return Step::Failed(piece.index, error);
    }
    Step::Chunk(Filled { piece, held: Held::Buffer(buffer), unreadable })
}

/// Readers of their own fill buffers; workers take them in order of arrival.
pub(super) struct QueueFeed<'a> {
    source: &'a dyn Source,
    cutter: Cutter<'a>,
    buffers: &'a BufferPool,
    sender: Mutex<Option<SyncSender<Step<'a>>>>,
    receiver: Mutex<Receiver<Step<'a>>>,
}

impl<'a> QueueFeed<'a> {
    pub(super) fn new(source: &'a dyn Source, cutter: Cutter<'a>, buffers: &'a BufferPool, count: usize) -> Self {
        // Room for every buffer and every reader's error, so that sending never waits.
        let (sender, receiver) = sync_channel(count + 64);
        QueueFeed {
            source,
            cutter,
            buffers,
            sender: Mutex::new(Some(sender)),
            receiver: Mutex::new(receiver),
        }
    }

    pub(super) fn cutter(&self) -> &Cutter<'a> {
        &self.cutter
    }

    /// A reader's way to send. To be taken once by each before [`seal`](Self::seal).
    pub(super) fn sender(&self) -> Option<SyncSender<Step<'a>>> {
        lock(&self.sender).clone()
    }

    /// Called when all readers have their sender: the queue ends when they are gone.
    pub(super) fn seal(&self) {
        *lock(&self.sender) = None;
    }

    /// One reader's life: buffer, piece, read, send.
    pub(super) fn read(&self, sender: &SyncSender<Step<'a>>, recorder: &mut Recorder) {
        loop {
            let asked = Instant::now();
            let Some(buffer) = self.buffers.lend() else { return };
            recorder.waited(Stage::Read, asked);
            let start = Instant::now();
            let step = match self.cutter.next() {
                None => return,
                Some(Ok(piece)) => fill_piece(self.source, piece, buffer),
                Some(Err((index, error))) => Step::Failed(index, error),
            };
            if let Step::Chunk(filled) = &step {
                recorder.busy(Stage::Read, start, filled.piece.own.end - filled.piece.own.start);
            }
            if sender.send(step).is_err() {
                return;
            }
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn buffers(&self) -> &'a BufferPool {
        self.buffers
    }

    #[cfg(target_os = "linux")]
    pub(super) fn source(&self) -> &'a dyn Source {
        self.source
    }
}

/// A buffer that a reader outside this file has filled.
#[cfg(target_os = "linux")]
pub(super) fn filled<'a>(
    piece: Piece,
    buffer: Lease<'a, AlignedBuffer>,
    unreadable: Vec<Range<u64>>,
) -> Step<'a> {
    Step::Chunk(Filled { piece, held: Held::Buffer(buffer), unreadable })
}

impl<'a> Feed<'a> for QueueFeed<'a> {
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>> {
        let asked = Instant::now();
        let step = lock(&self.receiver).recv().ok();
        recorder.waited(Stage::Work, asked);
        step
    }

    fn close(&self) {
        self.buffers.close();
        self.cutter.close();
    }
}

/// A stream without length or offsets: one reads at a time, the tail of each buffer is
/// carried over as the head of the next.
pub(super) struct StreamFeed<'a> {
    name: String,
    need: Need,
    state: Mutex<StreamState<'a>>,
    buffers: &'a BufferPool,
}

struct StreamState<'a> {
    reader: &'a mut (dyn Read + Send),
    /// Bytes seen that later positions still need; its first byte lies at `carry_offset`.
    carry: Vec<u8>,
    carry_offset: u64,
    /// First position that no chunk owns yet.
    own_start: u64,
    index: u64,
    ended: bool,
}

impl<'a> StreamFeed<'a> {
    pub(super) fn new(
        name: &str,
        reader: &'a mut (dyn Read + Send),
        need: Need,
        buffers: &'a BufferPool,
    ) -> Self {
        let carry = Vec::with_capacity(need.before_bytes + need.after_bytes);
        StreamFeed {
            name: name.to_string(),
            need,
            state: Mutex::new(StreamState {
                reader,
                carry,
                carry_offset: 0,
                own_start: 0,
                index: 0,
                ended: false,
            }),
            buffers,
        }
    }

    /// Fills `buffer` with what was carried over and new bytes.
    fn fill(&self, state: &mut StreamState<'a>, buffer: &mut [u8]) -> Result<Option<Piece>> {
        let offset = state.carry_offset;
        let mut filled = state.carry.len();
        buffer[..filled].copy_from_slice(&state.carry);
        while filled < buffer.len() && !state.ended {
            match state.reader.read(&mut buffer[filled..]) {
                Ok(0) => state.ended = true,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let what = format!("read at byte {}", offset + filled as u64);
                    return Err(Error::io(&self.name, what, error));
                }
            }
        }
        let end = offset + filled as u64;
        let own_end =
            if state.ended { end } else { end - self.need.after_bytes as u64 };
        let own = state.own_start..own_end;
        if own.is_empty() {
            return Ok(None);
        }
        let keep_from = own_end.saturating_sub(self.need.before_bytes as u64).max(offset);
        state.carry.clear();
        state.carry.extend_from_slice(&buffer[(keep_from - offset) as usize..filled]);
        state.carry_offset = keep_from;
        state.own_start = own_end;
        let index = state.index;
        state.index += 1;
        Ok(Some(Piece {
            index,
            own,
            read: offset..end,
            at_start: offset == 0,
            at_end: state.ended,
            is_hole: false,
        }))
    }
}

impl<'a> Feed<'a> for StreamFeed<'a> {
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>> {
        let asked = Instant::now();
        let mut buffer = self.buffers.lend()?;
        let mut state = lock(&self.state);
        recorder.waited(Stage::Read, asked);
        if state.ended {
            return None;
        }
        let start = Instant::now();
        let step = match self.fill(&mut state, &mut buffer) {
            Ok(Some(piece)) => {
                recorder.busy(Stage::Read, start, piece.own.end - piece.own.start);
                Step::Chunk(Filled { piece, held: Held::Buffer(buffer), unreadable: Vec::new() })
            }
            Ok(None) => return None,
            Err(error) => {
                state.ended = true;
                Step::Failed(state.index, error)
            }
        };
        Some(step)
    }

    fn close(&self) {
        self.buffers.close();
    }
}
