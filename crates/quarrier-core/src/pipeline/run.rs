//! Runs a pipeline: starts readers and workers, waits for them, and returns the account of the run.

use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::feed::{Cutter, Feed, Permit, QueueFeed, ReadFeed, Step, WindowFeed};
use super::pieces::{Part, Pieces};
use super::plan::Memory;
use super::stream::StreamFeed;
use super::timeline::{Recorder, Stage, Timeline};
use super::turnstile::{Done, End, Note, Turnstile};
use super::{Access, Emitter, Kernel, Need, Pipeline, Plan, Sink};
use crate::error::{Error, Result};
use crate::ranges::push_merged;
use crate::region::{AlignedBuffer, BufferPool};
use crate::source::Source;
use crate::sync::{into_inner, lock};
use crate::threads;

/// The account of a run: its plan, amounts, times and unreadable ranges.
#[derive(Debug)]
#[non_exhaustive]
pub struct Run {
    /// The plan that the run followed.
    pub plan: Plan,
    /// Bytes that the kernel worked on.
    pub bytes: u64,
    /// Bytes of holes that were skipped as zeros.
    pub hole_bytes: u64,
    /// Time from start to end.
    pub elapsed: Duration,
    /// When each thread was busy.
    pub timeline: Timeline,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Whether the sink or the stop flag ended the run early.
    pub stopped: bool,
    /// The offset before which the sink has received everything.
    pub position: u64,
}

impl Run {
    /// Creates an account for completed work that ran without a pipeline but according to `plan`.
    pub fn of(plan: Plan, bytes: u64, elapsed: Duration, timeline: Timeline) -> Self {
        Run {
            plan,
            bytes,
            hole_bytes: 0,
            elapsed,
            timeline,
            unreadable: Vec::new(),
            stopped: false,
            position: bytes,
        }
    }
}

impl Pipeline<'_> {
    /// Runs `kernel` over the source and gives its results to `sink` in order.
    ///
    /// # Errors
    /// [`Error::BadPlan`] before anything is read; [`Error::Shrank`] or [`Error::Io`] if the source
    /// fails as a whole, after the sink has received all results before the failure.
    ///
    /// # Panics
    /// If kernel or sink panics, after all threads have ended.
    pub fn run<K: Kernel>(&self, kernel: &K, sink: &mut dyn Sink<K::Output>) -> Result<Run> {
        let need = kernel.need();
        let plan = self.plan(need)?;
        let (parts, lost) = self.worth_reading(need)?;
        let first = parts.first().map(|part| &part.owned).or(lost.first());
        let start = first.map_or(0, |range| range.start);
        let epoch = Instant::now();
        let timeline = Mutex::new(Timeline::default());
        // Declared before the values that borrow from them, so dropped after them.
        let capacity = plan.capacity_bytes(need, self.source.length());
        let (permits, buffers) = pools(&plan, capacity, self.memory);
        let turnstile = Turnstile::new(sink, start, Some(self.source));
        let crew =
            Crew { source: Some(self.source), kernel, stop: self.stop, epoch, timeline: &timeline };
        let pieces = Pieces::new(self.source, parts, need, plan.buffer_bytes);
        let cutter = Cutter::new(match plan.access {
            Access::Window => pieces.along_windows(),
            Access::Read | Access::Queue | Access::Uring => pieces,
        });
        let hole_bytes = match plan.access {
            Access::Window => {
                let copied = Pieces::copied_bytes_max(plan.buffer_bytes, need);
                let copied = Plan { buffer_bytes: copied, ..plan.clone() };
                let feed = WindowFeed {
                    source: self.source,
                    cutter,
                    permits: &permits,
                    piece_bytes: capacity,
                    copy_bytes: copied.capacity_bytes(need, self.source.length()),
                    promise: self.promise,
                };
                crew.work(&feed, &turnstile, plan.workers);
                feed.cutter.skipped_bytes()
            }
            Access::Read => {
                let feed = ReadFeed { source: self.source, cutter, buffers: &buffers };
                crew.work(&feed, &turnstile, plan.workers);
                feed.cutter.skipped_bytes()
            }
            Access::Queue | Access::Uring => {
                let count = plan.buffers + plan.readers;
                let feed = QueueFeed::new(self.source, cutter, &buffers, count);
                if crew.work_queue(&feed, &turnstile, &plan) {
                    feed.cutter().skipped_bytes()
                } else {
                    // The system refused every reader, so nothing was read yet: workers read for
                    // themselves.
                    let cutter = feed.into_cutter();
                    let feed = ReadFeed { source: self.source, cutter, buffers: &buffers };
                    crew.work(&feed, &turnstile, plan.workers);
                    feed.cutter.skipped_bytes()
                }
            }
        };
        let run = finish(plan, turnstile.into_end(), hole_bytes, epoch, timeline, self.stop)?;
        Ok(lost.into_iter().fold(run, Run::without))
    }

    /// Splits the run into the parts worth reading and the ranges known to be unreadable. There is
    /// at least one part, except in a run over no range at all.
    fn worth_reading(&self, need: Need) -> Result<(Vec<Part>, Vec<Range<u64>>)> {
        let length = self.source.length();
        let split = |range| {
            let (seen, lost) = apart(range, self.source, need);
            let owned = self.owned_within(&seen);
            (Part { seen, owned }, self.owned_within(&lost))
        };
        let Some(ranges) = self.ranges else {
            let range = self.range.start..self.range.end.min(length);
            if range.start > range.end {
                return Err(Error::BadPlan(format!(
                    "{}: the range begins at byte {} but the source has {length} bytes",
                    self.source.name(),
                    range.start,
                )));
            }
            let (part, lost) = split(range);
            return Ok((vec![part], vec![lost]));
        };
        let mut at = 0;
        let mut all = (Vec::with_capacity(ranges.len()), Vec::new());
        for range in ranges {
            if range.start < at || range.start > range.end {
                let name = self.source.name();
                let reason = format!("{name}: ranges are not in order at byte {}", range.start);
                return Err(Error::BadPlan(reason));
            }
            at = range.end;
            let (part, lost) = split(range.start.min(length)..range.end.min(length));
            all.0.push(part);
            all.1.push(lost);
        }
        all.0.retain(|part| !part.owned.is_empty());
        all.1.retain(|range| !range.is_empty());
        Ok(all)
    }
}

/// Runs `kernel` over a stream of unknown length, such as standard input.
///
/// `workers`, `buffers` and `buffer_bytes` of 0 are planned.
///
/// # Errors
/// [`Error::Io`] if the stream fails, after the sink has received all results before the failure.
pub(super) fn run_stream<K: Kernel>(
    name: &str,
    reader: &mut (dyn Read + Send),
    settings: &Pipeline<'_>,
    kernel: &K,
    sink: &mut dyn Sink<K::Output>,
) -> Result<Run> {
    let need = kernel.need();
    let mut plan = settings.clone().access(Access::Read).plan(need)?;
    if settings.buffer_bytes.is_none() {
        plan.buffer_bytes = 1 << 20;
    }
    plan.reason = "a stream can only be read sequentially";
    let epoch = Instant::now();
    let timeline = Mutex::new(Timeline::default());
    let capacity = plan.capacity_bytes(need, u64::MAX);
    let (_, buffers) = pools(&plan, capacity, settings.memory);
    let turnstile = Turnstile::new(sink, 0, None);
    let crew = Crew { source: None, kernel, stop: settings.stop, epoch, timeline: &timeline };
    let feed = StreamFeed::new(name, reader, need, plan.buffer_bytes, settings.stop, &buffers);
    crew.work(&feed, &turnstile, plan.workers);
    finish(plan, turnstile.into_end(), 0, epoch, timeline, settings.stop)
}

/// Makes permits for windows, or buffers of `capacity` bytes, whichever the plan uses.
fn pools(
    plan: &Plan,
    capacity: usize,
    memory: Option<Memory<'_>>,
) -> (BufferPool<Permit>, BufferPool) {
    let count = plan.buffers.max(1);
    if plan.access == Access::Window {
        let permits = (0..count).map(|_| Permit::default()).collect();
        return (BufferPool::new(permits), BufferPool::new(Vec::new()));
    }
    let lent = memory.and_then(|memory| (0..count).map(|_| memory(capacity)).collect());
    let buffers = lent.unwrap_or_else(|| AlignedBuffer::side_by_side(count, capacity));
    (BufferPool::new(Vec::new()), BufferPool::new(buffers))
}

/// Bytes to try past the end of the readable bytes, although they should be unreadable.
const LOST_TRIED_BYTES: u64 = 1 << 20;

/// Splits `range` into the part worth reading and the rest, which is known to be unreadable. The
/// first part is long enough that the last readable bytes have their full context.
fn apart(range: Range<u64>, source: &dyn Source, need: Need) -> (Range<u64>, Range<u64>) {
    let sight = need.before_bytes as u64 + need.after_bytes as u64 + LOST_TRIED_BYTES;
    let tried = source.readable_end().saturating_add(sight).clamp(range.start, range.end);
    (range.start..tried, tried..range.end)
}

impl Run {
    /// Adds the range `lost`, which follows the part that was read and was never tried, to the
    /// unreadable ranges.
    fn without(mut self, lost: Range<u64>) -> Self {
        if self.stopped || lost.is_empty() {
            return self;
        }
        self.position = lost.end;
        push_merged(&mut self.unreadable, lost);
        self
    }
}

fn finish(
    plan: Plan,
    end: End,
    hole_bytes: u64,
    epoch: Instant,
    timeline: Mutex<Timeline>,
    stop: Option<&AtomicBool>,
) -> Result<Run> {
    let is_stopped = stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    // A source that gave up because the run was stopped has not failed.
    if let Some(error) = end.error.filter(|error| !(is_stopped && is_given_up(error))) {
        return Err(error);
    }
    Ok(Run {
        plan,
        bytes: end.bytes,
        hole_bytes,
        elapsed: epoch.elapsed(),
        timeline: into_inner(timeline),
        unreadable: end.unreadable,
        stopped: end.stopped_by_sink || is_stopped,
        position: end.position,
    })
}

fn is_given_up(error: &Error) -> bool {
    matches!(error, Error::Io { error, .. } if error.kind() == std::io::ErrorKind::ConnectionAborted)
}

/// State that all threads of a run share.
struct Crew<'c, K> {
    /// Needed to read a torn window again; a stream has none.
    source: Option<&'c dyn Source>,
    kernel: &'c K,
    stop: Option<&'c AtomicBool>,
    epoch: Instant,
    timeline: &'c Mutex<Timeline>,
}

impl<K: Kernel> Crew<'_, K> {
    /// Runs `workers` workers, one of them on this thread, and returns when all are done.
    fn work<'a>(
        &self,
        feed: &dyn Feed<'a>,
        turnstile: &Turnstile<'a, '_, K::Output>,
        workers: usize,
    ) {
        threads::team(0..workers.max(1), |number| {
            let _guard = CloseOnPanic { feed, turnstile };
            self.recorded(self.kernel.worker_name(number), &|recorder| {
                self.worker(number, feed, turnstile, recorder);
            });
        });
    }

    /// As [`work`](Self::work), with readers on their own threads. Does nothing and returns false
    /// if the system refuses a thread for every reader.
    fn work_queue<'a>(
        &self,
        feed: &QueueFeed<'a>,
        turnstile: &Turnstile<'a, '_, K::Output>,
        plan: &Plan,
    ) -> bool {
        // All senders exist before the first reader runs, so the queue ends when the last one is
        // dropped.
        let senders: Vec<_> = (0..plan.readers.max(1)).filter_map(|_| feed.sender()).collect();
        feed.seal();
        std::thread::scope(|scope| {
            let mut readers = 0;
            for sender in senders {
                let read = move || {
                    let _guard = CloseOnPanic { feed, turnstile };
                    self.recorded(format!("reader {}", readers + 1), &|recorder| {
                        #[cfg(target_os = "linux")]
                        if plan.access == Access::Uring
                            && super::uring::read(feed, &sender, recorder)
                        {
                            return;
                        }
                        feed.read(&sender, recorder);
                    });
                };
                if threads::in_scope(scope, "", read).is_err() {
                    break;
                }
                readers += 1;
            }
            if readers > 0 {
                self.work(feed, turnstile, plan.workers);
            }
            readers > 0
        })
    }

    fn recorded(&self, name: String, task: &dyn Fn(&mut Recorder)) {
        let mut recorder = Recorder::new(name, self.epoch);
        task(&mut recorder);
        lock(self.timeline).add(recorder);
    }

    fn is_stopped(&self, turnstile: &Turnstile<'_, '_, K::Output>) -> bool {
        turnstile.is_closed() || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Runs a worker: takes a chunk, runs the kernel on it, submits the results, and repeats.
    fn worker<'a>(
        &self,
        number: usize,
        feed: &dyn Feed<'a>,
        turnstile: &Turnstile<'a, '_, K::Output>,
        recorder: &mut Recorder,
    ) {
        while !self.is_stopped(turnstile) {
            let Some(step) = feed.next(recorder) else { return };
            let (index, done) = match step {
                Step::Failed(index, error) => (index, Done::Failed(error)),
                Step::Chunk(filled) => {
                    let index = filled.piece.index;
                    let start = Instant::now();
                    let bytes = filled.piece.own.end - filled.piece.own.start;
                    let (done, notes) = self.work_on(number, index, filled, turnstile);
                    if notes.is_empty() {
                        recorder.busy(Stage::Work, start, bytes);
                    }
                    for Note { stage, start, end, bytes } in notes {
                        recorder.busy_until(stage, start, end, bytes);
                    }
                    (index, done)
                }
            };
            turnstile.submit(index, done, recorder);
        }
        feed.close();
    }

    fn work_on<'a>(
        &self,
        number: usize,
        index: u64,
        filled: super::feed::Filled<'a>,
        turnstile: &Turnstile<'a, '_, K::Output>,
    ) -> (Done<'a, K::Output>, Vec<Note>) {
        let work = |filled: &super::feed::Filled<'a>| {
            Emitter::run(turnstile, index, number, |emit| self.kernel.work(&filled.chunk(), emit))
        };
        let emitted = work(&filled);
        let Some(source) = self.source.filter(|&source| filled.is_torn(source)) else {
            return (Done::Worked(filled, emitted.output), emitted.notes);
        };
        // The file changed under the window. Reading it gives the error; if the read succeeds after
        // all, the kernel runs again on the bytes read.
        if emitted.is_flushed {
            return (Done::Failed(filled.why_torn(source)), Vec::new());
        }
        match filled.read_again(source) {
            Err(error) => (Done::Failed(error), Vec::new()),
            Ok(filled) => {
                let emitted = work(&filled);
                (Done::Worked(filled, emitted.output), emitted.notes)
            }
        }
    }
}

/// Wakes everybody when a thread panics, so that the scope can end and pass the panic on.
struct CloseOnPanic<'g, 'a, 's, O: Default + Send> {
    feed: &'g dyn Feed<'a>,
    turnstile: &'g Turnstile<'a, 's, O>,
}

impl<O: Default + Send> Drop for CloseOnPanic<'_, '_, '_, O> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.feed.close();
            self.turnstile.close();
        }
    }
}

/// A stream runs with the same settings as a source, but it has no holes to skip.
impl Pipeline<'_> {
    /// Runs `kernel` over a stream of unknown length, such as standard input, with this pipeline's
    /// workers, buffers, buffer size and stop flag.
    ///
    /// # Errors
    /// [`Error::Io`] if the stream fails, after the sink has received all results before the
    /// failure.
    pub fn run_stream<K: Kernel>(
        &self,
        name: &str,
        reader: &mut (dyn Read + Send),
        kernel: &K,
        sink: &mut dyn Sink<K::Output>,
    ) -> Result<Run> {
        run_stream(name, reader, self, kernel, sink)
    }

    /// Returns the plan for `kernel`, for callers that want to see it before the run.
    pub fn plan_for<K: Kernel>(&self, kernel: &K) -> Result<Plan> {
        let need: Need = kernel.need();
        self.plan(need)
    }
}
