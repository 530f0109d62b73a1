//! The feed of a stream, such as standard input, which has no length and no offsets.

use std::io::{ErrorKind, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Need;
use super::feed::{Feed, Step, filled};
use super::pieces::Piece;
use super::timeline::{Recorder, Stage};
use crate::error::Error;
use crate::region::BufferPool;
use crate::sync::lock;

/// How long bytes may wait in a buffer for more, if a stream delivers them slowly.
const HELD_MAX: Duration = Duration::from_millis(100);

/// One worker reads at a time; it copies the tail of each buffer to the head of the next one.
pub(super) struct StreamFeed<'a> {
    name: String,
    before_bytes: u64,
    after_bytes: u64,
    own_bytes: u64,
    state: Mutex<StreamState<'a>>,
    stop: Option<&'a AtomicBool>,
    buffers: &'a BufferPool,
}

struct StreamState<'a> {
    reader: &'a mut (dyn Read + Send),
    /// Bytes that later positions still need; the first one is at `carry_offset`.
    carry: Vec<u8>,
    carry_offset: u64,
    /// The first position that no chunk owns yet.
    own_start: u64,
    index: u64,
    flow: Flow,
}

/// Whether more bytes may follow.
enum Flow {
    Open,
    Ended,
    /// Holds the error until all earlier chunks are handed out.
    Failed(Option<Error>),
}

impl<'a> StreamFeed<'a> {
    pub(super) fn new(
        name: &str,
        reader: &'a mut (dyn Read + Send),
        need: Need,
        own_bytes: usize,
        stop: Option<&'a AtomicBool>,
        buffers: &'a BufferPool,
    ) -> Self {
        StreamFeed {
            name: name.to_string(),
            before_bytes: need.before_bytes as u64,
            after_bytes: need.after_bytes as u64,
            own_bytes: own_bytes.max(1) as u64,
            state: Mutex::new(StreamState {
                reader,
                carry: Vec::with_capacity(need.before_bytes + need.after_bytes + 1),
                carry_offset: 0,
                own_start: 0,
                index: 0,
                flow: Flow::Open,
            }),
            stop,
            buffers,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Fills `buffer` with the carried bytes and new ones. `None` if they do not suffice for
    /// another position, or if the run is to stop. If the reader returns [`ErrorKind::WouldBlock`],
    /// no bytes are available now, and the bytes read until then are passed on at once; so are
    /// those of a stream that delivers a few bytes at a time and takes long to fill the buffer.
    fn fill(&self, state: &mut StreamState<'a>, buffer: &mut [u8]) -> Option<Piece> {
        let offset = state.carry_offset;
        let mut filled = state.carry.len();
        buffer[..filled].copy_from_slice(&state.carry);
        let own_end_max = state.own_start + self.own_bytes;
        // Read one byte more than the chunk shows, to learn whether the stream ends there.
        let wanted = (own_end_max + self.after_bytes + 1 - offset) as usize;
        let first = state.own_start + self.after_bytes;
        let can_go = |filled: usize| offset + filled as u64 > first;
        let (mut is_pause, mut since) = (false, None);
        while filled < wanted && !is_pause && matches!(state.flow, Flow::Open) {
            if self.is_stopped() {
                return None;
            }
            match state.reader.read(&mut buffer[filled..wanted]) {
                Ok(0) => state.flow = Flow::Ended,
                Ok(bytes) => {
                    filled += bytes;
                    let since = *since.get_or_insert_with(Instant::now);
                    is_pause = can_go(filled) && since.elapsed() > HELD_MAX;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => is_pause = can_go(filled),
                Err(error) => {
                    let what = format!("read at byte {}", offset + filled as u64);
                    state.flow = Flow::Failed(Some(Error::io(&self.name, what, error)));
                }
            }
        }
        let end = offset + filled as u64;
        let has_ended = matches!(state.flow, Flow::Ended);
        let seen_end = if has_ended { end } else { end.saturating_sub(self.after_bytes) };
        let own = state.own_start..seen_end.min(own_end_max);
        if own.is_empty() {
            return None;
        }
        let keep_from = own.end.saturating_sub(self.before_bytes).max(offset);
        state.carry.clear();
        state.carry.extend_from_slice(&buffer[(keep_from - offset) as usize..filled]);
        state.carry_offset = keep_from;
        state.own_start = own.end;
        let index = state.index;
        state.index += 1;
        let read = offset..end.min(own.end + self.after_bytes);
        Some(Piece {
            index,
            own,
            at_start: offset == 0,
            at_end: has_ended && read.end == end,
            at_pause: is_pause,
            read,
            is_hole: false,
        })
    }
}

impl<'a> Feed<'a> for StreamFeed<'a> {
    fn next(&self, recorder: &mut Recorder) -> Option<Step<'a>> {
        let asked = Instant::now();
        let mut buffer = self.buffers.lend()?;
        let mut state = lock(&self.state);
        recorder.waited(Stage::Read, asked);
        let start = Instant::now();
        if let Some(piece) = self.fill(&mut state, &mut buffer) {
            recorder.busy(Stage::Read, start, piece.own.end - piece.own.start);
            return Some(filled(piece, buffer, Vec::new()));
        }
        match &mut state.flow {
            Flow::Failed(error) => error.take().map(|error| Step::Failed(state.index, error)),
            Flow::Open | Flow::Ended => None,
        }
    }

    fn close(&self) {
        self.buffers.close();
    }
}
