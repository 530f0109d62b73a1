//! Feeds, from which workers get chunks: one for each way in which bytes reach memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::Chunk;
use super::pieces::{Piece, Pieces};
use super::retry;
use super::timeline::{Recorder, Stage};
use crate::error::{Error, Result};
use crate::region::{AlignedBuffer, AsData, BufferPool, Lease, Region, Shown};
use crate::source::Source;
use crate::sync::lock;

/// A piece with its bytes in memory.
pub(super) struct Filled<'a> {
    pub(super) piece: Piece,
    held: Held<'a>,
    unreadable: Vec<Range<u64>>,
}

/// Keeps the bytes alive; dropping it returns the buffer or permit.
enum Held<'a> {
    Window(Shown<'a>, Lease<'a, Permit>),
    Buffer(Lease<'a, AlignedBuffer>),
    /// The zeros of holes, which all holes of a run share.
    Zeros(Arc<AlignedBuffer>, #[expect(dead_code, reason = "held for its drop")] Bound<'a>),
    /// Bytes that no window can show, in the permit's buffer.
    Copied(Lease<'a, Permit>),
}

/// Bounds the number of chunks in flight that need no buffer.
enum Bound<'a> {
    Buffer(#[expect(dead_code, reason = "held for its drop")] Lease<'a, AlignedBuffer>),
    Permit(#[expect(dead_code, reason = "held for its drop")] Lease<'a, Permit>),
}

/// The permission to hold a window, and a buffer for bytes that no window can show. Pieces reuse the
/// buffer: allocating one costs more than filling it, because its pages are cleared first.
#[derive(Default)]
pub(super) struct Permit(Option<AlignedBuffer>);

impl Permit {
    /// The bytes of the last piece that was copied.
    fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Reads a piece into the buffer, which is allocated, with `capacity` bytes, by the first piece.
    fn fill(
        &mut self,
        source: &dyn Source,
        piece: &Piece,
        capacity: usize,
        unreadable: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        let bytes = (piece.read.end - piece.read.start) as usize;
        let buffer = match &mut self.0 {
            Some(buffer) if buffer.len() >= bytes => buffer,
            // A window that the system refused is longer than pieces that have none.
            held => held.insert(AlignedBuffer::new(bytes.max(capacity))),
        };
        retry::fill(source, piece.read.start, &mut buffer[..bytes], unreadable)
    }
}

impl<'a> Filled<'a> {
    /// Returns the piece in the form that workers and sinks get.
    pub(super) fn chunk(&self) -> Chunk<'_> {
        let piece = &self.piece;
        let bytes = (piece.read.end - piece.read.start) as usize;
        let data = match &self.held {
            Held::Window(shown, _) => shown.bytes(),
            Held::Buffer(buffer) => buffer,
            Held::Zeros(zeros, _) => zeros,
            Held::Copied(permit) => permit.bytes(),
        };
        Chunk {
            index: piece.index,
            offset: piece.read.start,
            data: &data[..bytes],
            own: (piece.own.start - piece.read.start) as usize
                ..(piece.own.end - piece.read.start) as usize,
            at_start: piece.at_start,
            at_end: piece.at_end,
            at_pause: piece.at_pause,
            is_hole: piece.is_hole,
            unreadable: &self.unreadable,
        }
    }

    /// Returns whether bytes have disappeared from a window since it was made and may have been seen as
    /// zeros. Missing pages tear the window. Bytes that disappear within the file's last page do not, so the
    /// chunk's last byte is read.
    pub(super) fn is_torn(&self, source: &dyn Source) -> bool {
        let Held::Window(shown @ Shown::Changing(Region::Window(_), _), _) = &self.held else {
            return false;
        };
        let last = self.piece.read.end - 1;
        shown.is_torn() || matches!(source.read_at(last, &mut [0]), Ok(0))
    }

    /// Reads the piece again with `read_at`, whose error states the cause.
    pub(super) fn read_again(self, source: &dyn Source) -> Result<Filled<'a>> {
        let Filled { piece, held, .. } = self;
        let Held::Window(_, mut permit) = held else {
            // Only windows are torn.
            return Ok(Filled { held, piece, unreadable: self.unreadable });
        };
        let mut unreadable = Vec::new();
        permit.fill(source, &piece, 0, &mut unreadable)?;
        Ok(Filled { piece, held: Held::Copied(permit), unreadable })
    }

    /// Returns the reason why bytes of a window disappeared after others may have seen them as
    /// zeros.
    pub(super) fn why_torn(self, source: &dyn Source) -> Error {
        let offset = self.piece.read.start;
        match self.read_again(source) {
            Err(error) => error,
            Ok(_) => Error::NotReadable {
                source_name: source.name().to_string(),
                reason: format!("changed while it was read, near byte {offset}; search it again"),
            },
        }
    }
}

/// The next item for a worker.
pub(super) enum Step<'a> {
    Chunk(Filled<'a>),
    Failed(u64, Error),
}

impl Step<'_> {
    fn index(&self) -> u64 {
        match self {
            Step::Chunk(filled) => filled.piece.index,
            Step::Failed(index, _) => *index,
        }
    }

    pub(super) fn is_failed(&self) -> bool {
        matches!(self, Step::Failed(..))
    }
}

/// Hands out chunks in order; any worker may call it.
pub(super) trait Feed<'a>: Sync {
    /// Returns the next chunk, or `None` at the end.
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>>;

    /// Ends the run early: waiting threads get `None`.
    fn close(&self);
}

/// The shared cutter. It yields nothing more after an error or the end.
pub(super) struct Cutter<'a> {
    pieces: Mutex<(Pieces<'a>, bool)>,
    /// The zeros for holes; allocated at the first hole.
    zeros: OnceLock<Arc<AlignedBuffer>>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(pieces: Pieces<'a>) -> Self {
        Cutter { pieces: Mutex::new((pieces, false)), zeros: OnceLock::new() }
    }

    /// Returns `bytes` zeros; the same buffer each time.
    fn zeros(&self, bytes: usize) -> Arc<AlignedBuffer> {
        Arc::clone(self.zeros.get_or_init(|| Arc::new(AlignedBuffer::new(bytes))))
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

/// Shows pages of the source in place, without a copy.
pub(super) struct WindowFeed<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) cutter: Cutter<'a>,
    pub(super) permits: &'a BufferPool<Permit>,
    /// The size of the longest piece.
    pub(super) piece_bytes: usize,
    /// The size of buffers for pieces that no window can show.
    pub(super) copy_bytes: usize,
    /// Without it, bytes that others may change are read into buffers.
    pub(super) promise: Option<AsData>,
}

impl<'a> Feed<'a> for WindowFeed<'a> {
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>> {
        let asked = Instant::now();
        let mut permit = self.permits.lend()?;
        recorder.waited(Stage::Read, asked);
        let start = Instant::now();
        let piece = match self.cutter.next()? {
            Ok(piece) => piece,
            Err((index, error)) => return Some(Step::Failed(index, error)),
        };
        let bytes = piece.own.end - piece.own.start;
        let mut unreadable = Vec::new();
        let held = if piece.is_hole {
            Held::Zeros(self.cutter.zeros(self.piece_bytes), Bound::Permit(permit))
        } else {
            let region = self.source.window(piece.read.clone());
            match region.and_then(|region| region.ok()?.shown(self.promise)) {
                Some(shown) => Held::Window(shown, permit),
                // A range that cannot be shown (across two parts of a split image) is read.
                None => {
                    let read = permit.fill(self.source, &piece, self.copy_bytes, &mut unreadable);
                    if let Err(error) = read {
                        self.cutter.close();
                        return Some(Step::Failed(piece.index, error));
                    }
                    Held::Copied(permit)
                }
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

/// Workers read on their own, into buffers that stay in their caches.
pub(super) struct ReadFeed<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) cutter: Cutter<'a>,
    pub(super) buffers: &'a BufferPool,
}

impl<'a> Feed<'a> for ReadFeed<'a> {
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>> {
        let asked = Instant::now();
        // Take the buffer before the piece: see the module's comment.
        let buffer = self.buffers.lend()?;
        recorder.waited(Stage::Read, asked);
        let start = Instant::now();
        let step = match self.cutter.next()? {
            Ok(piece) => fill_piece(self.source, &self.cutter, piece, buffer),
            Err((index, error)) => Step::Failed(index, error),
        };
        match &step {
            Step::Chunk(filled) => {
                recorder.busy(Stage::Read, start, filled.piece.own.end - filled.piece.own.start);
            }
            // Later chunks are not needed.
            Step::Failed(..) => self.cutter.close(),
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
    cutter: &Cutter<'a>,
    piece: Piece,
    mut buffer: Lease<'a, AlignedBuffer>,
) -> Step<'a> {
    let bytes = (piece.read.end - piece.read.start) as usize;
    let mut unreadable = Vec::new();
    if piece.is_hole {
        // All buffers have the same length.
        let held = Held::Zeros(cutter.zeros(buffer.len()), Bound::Buffer(buffer));
        return Step::Chunk(Filled { piece, held, unreadable });
    }
    let target = &mut buffer[..bytes];
    if let Err(error) = retry::fill(source, piece.read.start, target, &mut unreadable) {
        return Step::Failed(piece.index, error);
    }
    Step::Chunk(Filled { piece, held: Held::Buffer(buffer), unreadable })
}

/// Dedicated readers fill buffers, and workers take them in the order of the source: a thread that
/// waits for an earlier chunk can rely on a worker having it.
pub(super) struct QueueFeed<'a> {
    source: &'a dyn Source,
    cutter: Cutter<'a>,
    buffers: &'a BufferPool,
    sender: Mutex<Option<SyncSender<Step<'a>>>>,
    arrivals: Mutex<Arrivals<'a>>,
}

/// Buffers that readers have sent, in the order of completion.
struct Arrivals<'a> {
    receiver: Receiver<Step<'a>>,
    /// Chunks that arrived before their turn.
    early: BTreeMap<u64, Step<'a>>,
    next: u64,
}

impl<'a> QueueFeed<'a> {
    /// Makes a feed; `count` is the number of buffers and readers together.
    pub(super) fn new(
        source: &'a dyn Source,
        cutter: Cutter<'a>,
        buffers: &'a BufferPool,
        count: usize,
    ) -> Self {
        // Enough for every buffer and every read's error, so sending never blocks: readers end with their
        // first error, io_uring with those of the reads in flight.
        let (sender, receiver) = sync_channel(count + 64);
        let arrivals = Arrivals { receiver, early: BTreeMap::new(), next: 0 };
        QueueFeed {
            source,
            cutter,
            buffers,
            sender: Mutex::new(Some(sender)),
            arrivals: Mutex::new(arrivals),
        }
    }

    pub(super) fn cutter(&self) -> &Cutter<'a> {
        &self.cutter
    }

    /// Returns the source's cutter, if nothing was read.
    pub(super) fn into_cutter(self) -> Cutter<'a> {
        self.cutter
    }

    /// Returns a sender. Each reader takes one before [`seal`](Self::seal).
    pub(super) fn sender(&self) -> Option<SyncSender<Step<'a>>> {
        lock(&self.sender).clone()
    }

    /// Called when all readers have their senders: the queue ends when they are dropped.
    pub(super) fn seal(&self) {
        *lock(&self.sender) = None;
    }

    /// Runs a reader: buffer, piece, read, send.
    pub(super) fn read(&self, sender: &SyncSender<Step<'a>>, recorder: &mut Recorder) {
        loop {
            let asked = Instant::now();
            let Some(buffer) = self.buffers.lend() else { return };
            recorder.waited(Stage::Read, asked);
            let start = Instant::now();
            let step = match self.cutter.next() {
                None => return,
                Some(Ok(piece)) => fill_piece(self.source, &self.cutter, piece, buffer),
                Some(Err((index, error))) => Step::Failed(index, error),
            };
            if let Step::Chunk(filled) = &step {
                recorder.busy(Stage::Read, start, filled.piece.own.end - filled.piece.own.start);
            }
            let is_last = step.is_failed();
            if is_last {
                self.cutter.close();
            }
            if sender.send(step).is_err() || is_last {
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

/// Wraps a buffer that a reader outside this file has filled.
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
        let mut arrivals = lock(&self.arrivals);
        let Arrivals { receiver, early, next } = &mut *arrivals;
        while !early.contains_key(next) {
            let Ok(step) = receiver.recv() else { break };
            early.insert(step.index(), step);
        }
        let step = early.remove(next);
        *next += 1;
        recorder.waited(Stage::Work, asked);
        step
    }

    fn close(&self) {
        self.buffers.close();
        self.cutter.close();
    }
}
