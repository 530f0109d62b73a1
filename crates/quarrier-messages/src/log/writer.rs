//! A log that is open for writing: many senders, one writer thread (group commit).
//!
//! ```text
//!  senders ─→ seal (checksum, compress) ─→ queue, bounded ─→ writer: takes all batches
//!     ↑                                                        one write, one sync
//!     └──────────────── acknowledged, in the order of marks ───────┘
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use quarrier_core::sync::lock;
use quarrier_core::threads;

use super::appender::Appender;
use super::batch::{ABANDONED, Batch, CONTINUES, MORE, Publication, Sealed};
use super::disk::{Disk, RealDisk};
use super::entry::Entry;
use super::error::{Error, Result};
use super::extent::Durable;
use super::follow::Follower;
use super::lock::FolderLock;
use super::options::Options;
use super::placed::Placed;
use super::publishers::Publishers;
use super::queue::{Item, Queue, Reply};
use super::reader::LOG_FOLDER;
use super::recent::Recent;
use super::recovered::{Recovered, recover};
use super::retain::{Removed, Retention, is_any_before, retain};

/// The result of a commit: the batch is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The marks of its messages; empty for a duplicate.
    pub marks: Range<u64>,
    /// The time of the commit, in microseconds since 1970.
    pub time_us: i64,
    /// Whether the publisher had sent it before. The log does not store it again.
    pub is_duplicate: bool,
}

/// Opens a log, with options.
#[derive(Debug, Clone, Default)]
pub struct Opener {
    options: Options,
    from: u64,
    publishers: Publishers,
    is_noting: bool,
}

impl Opener {
    /// Makes an opener with default sizes that reads from the oldest message on.
    pub fn new() -> Self {
        Opener::default()
    }

    /// Sets the sizes.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Reads the log only from the message with mark `from` on, because a checkpoint has all earlier messages
    /// and their publishers.
    #[must_use]
    pub fn from_checkpoint(mut self, from: u64, publishers: Publishers) -> Self {
        (self.from, self.publishers) = (from, publishers);
        self
    }

    /// Records the places of batches for [`Log::take_placed`].
    #[must_use]
    pub(crate) fn noting_places(mut self) -> Self {
        self.is_noting = true;
        self
    }

    /// Opens the log of the data folder `folder`, and creates it if it does not exist: takes the lock, reads
    /// every batch, passes it to `replay` in order, cuts off a torn end, and starts the writer's thread.
    /// [`Log::recovered`] reports damage, and leaves it unchanged.
    ///
    /// The batches passed to `replay` are durable only when this function has returned. It takes as long as
    /// reading the disk; memory is bounded by one batch.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process, or another `Log` of this one, writes to the folder;
    /// [`Error::Io`].
    pub fn open(self, folder: &Path, replay: impl FnMut(Entry)) -> Result<Log> {
        let logs = folder.join(LOG_FOLDER);
        let fail = |error| Error::io(logs.display().to_string(), "open or make the folder", error);
        let disk = RealDisk::open_or_create(&logs).map_err(fail)?;
        let folder_lock = FolderLock::take(folder)?;
        let mut log = self.open_on(Arc::new(disk), replay)?;
        log.folder_lock = Some(folder_lock);
        Ok(log)
    }

    /// Like [`Opener::open`], on any disk and without a lock.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open_on(mut self, disk: Arc<dyn Disk>, mut replay: impl FnMut(Entry)) -> Result<Log> {
        let (recovered, end) = recover(&disk, self.from, &mut self.publishers, &mut replay)?;
        let appender = Appender::resume(Arc::clone(&disk), &self.options, end)?;
        let batch_bytes_max = appender.batch_bytes_max();
        let shared = Arc::new(Shared {
            queue: Queue::new(self.options.queue_bytes),
            publishers: Mutex::new(self.publishers),
            placed: Mutex::new(Placed::new(self.is_noting)),
            recent: self.is_noting.then(Arc::default),
        });
        let queue = &shared.queue;
        queue.publish(appender.horizon(), appender.next_mark(), appender.is_ready());
        let writer = Writer::new(appender, Arc::clone(&shared));
        let thread = threads::alone("quarrier-log", move || writer.run())
            .map_err(|error| Error::io(disk.path(""), "start the writer's thread", error))?;
        let thread = Some(thread);
        Ok(Log { disk, shared, thread, recovered, batch_bytes_max, folder_lock: None })
    }
}

/// The state that a log, its writer and its followers share.
pub(super) struct Shared {
    pub(super) queue: Queue,
    publishers: Mutex<Publishers>,
    placed: Mutex<Placed>,
    /// The bytes of the latest batches, for callers that record places.
    recent: Option<Arc<Recent>>,
}

/// A durable log, open for writing. Its methods may be called from many threads. It has a writer thread,
/// which ends when the log is dropped or closed.
///
/// Acknowledged batches are on the disk. A group of batches costs one sync regardless of its size, so many
/// senders progress as fast as one.
///
/// ```
/// use quarrier_messages::log::{Batch, Encoding, Log};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let log = Log::open(folder.path())?;
/// let batch = Batch::new(1, Encoding::Json, 2, b"{\"a\":1}\n{\"a\":2}\n".to_vec())?;
/// let committed = log.append(batch)?; // on the disk now
/// assert_eq!(committed.marks, 1..3);
/// log.close()?;
/// # Ok(())
/// # }
/// ```
pub struct Log {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
    recovered: Recovered,
    batch_bytes_max: u64,
    folder_lock: Option<FolderLock>,
}

impl Log {
    /// Opens or creates the log of a data folder: [`Opener::open`] with default options.
    ///
    /// # Errors
    /// As for [`Opener::open`].
    pub fn open(folder: &Path) -> Result<Self> {
        Opener::new().open(folder, |_| {})
    }

    /// Returns the result of recovery.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Appends a batch and returns once it is on the disk, after one or two syncs.
    ///
    /// # Errors
    /// [`Error::Full`], after which the batch may be sent again; [`Error::Stopped`] after a write or sync has
    /// failed; [`Error::TooLarge`], [`Error::Closed`].
    pub fn append(&self, batch: Batch) -> Result<Committed> {
        self.send(batch)?.wait()
    }

    /// Enqueues a batch; blocks only while the queue is full.
    ///
    /// # Errors
    /// As for [`Log::append`], as far as they are already known.
    pub fn send(&self, batch: Batch) -> Result<Pending> {
        self.put(Sealed::of(batch, 0), None)
    }

    /// Like [`Log::send`], but returns None instead of blocking, if the queue is full or a chain is open.
    ///
    /// # Errors
    /// As for [`Log::send`].
    pub fn send_now(&self, batch: Batch) -> Result<Option<Pending>> {
        let sealed = self.fitting(Sealed::of(batch, 0))?;
        Ok(self.shared.queue.put_now(sealed)?.map(|reply| Pending { reply }))
    }

    /// Like [`Log::send`], for a batch whose checksum was computed elsewhere.
    pub(crate) fn send_sealed(&self, sealed: Sealed) -> Result<Pending> {
        self.put(sealed, None)
    }

    /// Begins a chain: the log contains all of its batches or none. All other senders wait until it ends, so
    /// its bytes should be in memory.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Closed`].
    pub fn begin(&self) -> Result<Chain<'_>> {
        let id = self.shared.queue.begin_chain()?;
        Ok(Chain { log: self, id, held: None, has_begun: false, is_over: false })
    }

    /// Returns the requested size of batches, or a smaller one such that two fit a segment.
    pub(crate) fn batch_bytes(&self, requested: u64) -> u64 {
        requested.clamp(1, (self.batch_bytes_max / 2).max(1))
    }

    fn put(&self, sealed: Sealed, chain: Option<u64>) -> Result<Pending> {
        Ok(Pending { reply: self.shared.queue.put(self.fitting(sealed)?, chain)? })
    }

    /// Refuses a batch that no segment holds.
    fn fitting(&self, sealed: Sealed) -> Result<Sealed> {
        let (bytes, bytes_max) = (sealed.header.extent(), self.batch_bytes_max);
        match bytes > bytes_max {
            true => Err(Error::TooLarge { bytes, bytes_max }),
            false => Ok(sealed),
        }
    }

    /// Reads the log from the message with mark `from` on, and then waits for new ones: only durable
    /// messages, and only complete chains.
    ///
    /// # Errors
    /// [`Error::Gone`] if retention has removed that message; [`Error::Io`].
    pub fn follow(&self, from: u64) -> Result<Follower> {
        Follower::new(Arc::clone(&self.disk), Arc::clone(&self.shared), from)
    }

    /// Returns the last publication of a publisher, after which it may resume.
    pub fn last_publication(&self, publisher: u64) -> Option<Publication> {
        lock(&self.shared.publishers).last(publisher)
    }

    /// Returns all publishers, for a checkpoint.
    pub fn publishers(&self) -> Publishers {
        lock(&self.shared.publishers).clone()
    }

    /// Returns the batches that became durable since the last call, in order and without their messages, if
    /// the log was opened to record them.
    pub(crate) fn take_placed(&self) -> Vec<Entry> {
        lock(&self.shared.placed).take()
    }

    /// Returns the bytes of the latest batches; empty unless the log was opened to record places.
    pub(crate) fn recent(&self) -> Arc<Recent> {
        self.shared.recent.clone().unwrap_or_default()
    }

    /// Returns the mark of the next message, after all acknowledged ones.
    pub fn next_mark(&self) -> u64 {
        self.shared.queue.next().0
    }

    /// Returns a handle for waiting for new messages.
    pub fn growth(&self) -> Growth {
        Growth { shared: Arc::clone(&self.shared) }
    }

    /// Returns whether a spare segment is ready. Without one, the disk is full, and writes fail once the last
    /// segment is full.
    pub fn is_room_ready(&self) -> bool {
        self.shared.queue.next().1
    }

    /// Returns why the log accepts no more writes; None while it does.
    pub fn stopped(&self) -> Option<Error> {
        self.shared.queue.ended()
    }

    /// The folder of the log.
    pub(super) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Removes whole segments that need not be kept. A durable checkpoint must have all messages with marks
    /// below `checkpoint`. A follower that still needs removed messages gets [`Error::Gone`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn retain(&self, retention: Retention, checkpoint: u64) -> Result<Removed> {
        retain(self.disk(), retention, checkpoint)
    }

    /// Returns whether retention could remove a segment that has only messages with marks below `mark`.
    pub(crate) fn is_any_before(&self, mark: u64) -> Result<bool> {
        is_any_before(self.disk(), mark)
    }

    /// Writes the batches in the queue, records the end, and frees the space that was not needed.
    ///
    /// # Errors
    /// As for [`Log::append`], if the end could not be recorded. The log stays intact even then.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.shared.queue.close();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(closed)) => closed,
            Some(Err(_)) => Err(Error::Stopped { reason: "the writer panicked".to_string() }),
            None => Ok(()),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // A caller that needs the result calls `close`; without a note of the end, nothing is lost.
        let _ = self.end();
    }
}

/// Waits for new messages. It does not keep the log open.
pub struct Growth {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Growth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Growth").finish_non_exhaustive()
    }
}

impl Growth {
    /// Waits until a message with a mark above `seen` is durable, or the time is up. Returns the mark of the
    /// last durable message; None if the log accepts no more and has none above `seen`.
    pub fn wait_beyond(&self, seen: u64, time: Duration) -> Option<u64> {
        let next = self.shared.queue.wait_beyond(seen.saturating_add(1), time)?;
        Some(next.saturating_sub(1))
    }

    /// Returns the end of the durable log; None before anything was written.
    pub(crate) fn durable(&self) -> Option<Durable> {
        let (horizon, next_mark) = self.shared.queue.end_of_log()?;
        Some(Durable { segment: horizon.segment, salt: horizon.salt, end: horizon.end, next_mark })
    }

    /// Returns the last publication of each publisher, with the mark of its first message.
    pub(crate) fn publishers(&self) -> Publishers {
        lock(&self.shared.publishers).clone()
    }
}

/// A batch on its way to the disk. A thread waits for it with [`wait`](Pending::wait); a task with `await`,
/// which blocks no thread.
#[must_use = "a batch that nobody waits for may not be on the disk"]
pub struct Pending {
    reply: Arc<Reply>,
}

impl Pending {
    /// Waits until the batch is on the disk.
    ///
    /// # Errors
    /// As for [`Log::append`].
    pub fn wait(self) -> Result<Committed> {
        self.reply.wait()
    }
}

impl Future for Pending {
    type Output = Result<Committed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Committed>> {
        self.reply.poll(context)
    }
}

/// A chain of batches: readers see none of them before the last is on the disk. If the chain is dropped
/// without [`Chain::commit`], none of them counts.
pub struct Chain<'l> {
    log: &'l Log,
    id: u64,
    /// The last batch so far, held back because its header records whether another follows.
    held: Option<Batch>,
    has_begun: bool,
    is_over: bool,
}

impl Chain<'_> {
    /// Appends a batch; waits while the queue is full.
    ///
    /// # Errors
    /// As for [`Log::send`]; [`Error::Invalid`] for a batch with a publication, which belongs to
    /// [`Chain::commit`].
    pub fn append(&mut self, batch: Batch) -> Result<()> {
        if batch.publication.is_some() {
            let reason = "a chain is published as a whole: pass the publication to commit";
            return Err(Error::Invalid { reason });
        }
        if let Some(held) = self.held.replace(batch) {
            // `commit` reports whether the whole chain reached the disk.
            drop(self.send(held, MORE)?);
        }
        Ok(())
    }

    /// Ends the chain. Returns the marks of its last batch once all of it is on the disk.
    ///
    /// # Errors
    /// As for [`Log::append`], and then none of the chain counts; [`Error::Invalid`] without a batch.
    pub fn commit(mut self, publication: Option<Publication>) -> Result<Committed> {
        let Some(mut last) = self.held.take() else {
            return Err(Error::Invalid { reason: "the chain has no batches" });
        };
        last.publication = publication;
        let pending = self.send(last, 0)?;
        self.is_over = true;
        self.log.shared.queue.end_chain();
        pending.wait()
    }

    fn send(&mut self, batch: Batch, flags: u16) -> Result<Pending> {
        let continues = if self.has_begun { CONTINUES } else { 0 };
        let pending = self.log.put(Sealed::of(batch, flags | continues), Some(self.id))?;
        self.has_begun = true;
        Ok(pending)
    }
}

impl Drop for Chain<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if self.has_begun {
            // If this fails, the next batch shows the same, since it does not continue the chain.
            let _ = self.log.put(Sealed::note(ABANDONED), Some(self.id)).map(drop);
        }
        self.log.shared.queue.end_chain();
    }
}

/// The decision about a batch.
enum Admission {
    Write,
    Refuse(Error),
    Duplicate,
    /// A duplicate of a batch in the same group.
    DuplicateOfGroup,
}

/// The writer's thread.
struct Writer {
    appender: Appender,
    shared: Arc<Shared>,
    /// A chain with a refused batch; the writer refuses its other batches as well.
    failed_chain: Option<(u64, Error)>,
    /// Whether the last batch of a chain is outstanding.
    is_chain_open: bool,
}

impl Writer {
    fn new(appender: Appender, shared: Arc<Shared>) -> Self {
        Writer { appender, shared, failed_chain: None, is_chain_open: false }
    }

    fn run(mut self) -> Result<()> {
        // Even if this thread panics, no sender waits forever.
        let _ends = EndOnDrop(Arc::clone(&self.shared));
        while let Some(items) = self.shared.queue.take() {
            self.commit(items);
        }
        self.appender.close()
    }

    /// Writes a group and answers its senders.
    fn commit(&mut self, mut items: Vec<Item>) {
        let admissions = self.admit(&items);
        let mut group: Vec<Sealed> = items
            .iter_mut()
            .zip(&admissions)
            .filter(|(_, admission)| matches!(admission, Admission::Write))
            .map(|(item, _)| {
                let hollow = Sealed::hollow(&item.sealed);
                std::mem::replace(&mut item.sealed, hollow)
            })
            .collect();
        let (done, result) = self.appender.append(&mut group);
        self.note(&mut group[..done]);
        if !self.is_chain_open {
            self.publish();
        }
        self.answer(&items, admissions, &group[..done], &result);
        self.shared.queue.give_back(&items);
        if let Some(reason) = self.appender.stopped() {
            self.shared.queue.end(&Error::Stopped { reason: reason.to_string() });
        }
        self.appender.prepare();
    }

    /// Decides about each item: duplicates and batches of a failed chain are not written.
    fn admit(&mut self, items: &[Item]) -> Vec<Admission> {
        let publishers = lock(&self.shared.publishers);
        let mut fresh: HashMap<u64, u64> = HashMap::new();
        let mut admit = |item: &Item| {
            if let Some((_, error)) =
                self.failed_chain.as_ref().filter(|(failed, _)| item.chain == Some(*failed))
            {
                return Admission::Refuse(error.clone());
            }
            let Some(publication) = item.sealed.publication else { return Admission::Write };
            if publishers.is_duplicate(&publication) {
                return Admission::Duplicate;
            }
            let last = fresh.get(&publication.publisher).copied();
            if last.is_some_and(|last| publication.sequence <= last) {
                return Admission::DuplicateOfGroup;
            }
            let last =
                last.or_else(|| publishers.last(publication.publisher).map(|it| it.sequence));
            let last = last.unwrap_or(0);
            if item.sealed.after.is_some_and(|after| after != last) {
                return Admission::Refuse(Error::Gap { last, sequence: publication.sequence });
            }
            fresh.insert(publication.publisher, publication.sequence);
            Admission::Write
        };
        items.iter().map(&mut admit).collect()
    }

    /// Answers the senders, in the order of marks.
    fn answer(
        &mut self,
        items: &[Item],
        admissions: Vec<Admission>,
        written: &[Sealed],
        result: &Result<()>,
    ) {
        let duplicate = Committed { marks: 0..0, time_us: 0, is_duplicate: true };
        let mut written = written.iter();
        for (item, admission) in items.iter().zip(admissions) {
            let answer = match admission {
                Admission::Refuse(error) => Err(error),
                Admission::Duplicate => Ok(duplicate.clone()),
                // If the group failed, the batch that this one repeats may have failed.
                Admission::DuplicateOfGroup => result.clone().map(|()| duplicate.clone()),
                Admission::Write => match written.next() {
                    Some(sealed) => Ok(Committed {
                        marks: sealed.header.mark..sealed.header.next_mark(),
                        time_us: sealed.header.time_us,
                        is_duplicate: false,
                    }),
                    None => Err(result.clone().err().unwrap_or(Error::Closed)),
                },
            };
            if let (Err(error), Some(chain)) = (&answer, item.chain) {
                self.failed_chain = Some((chain, error.clone()));
            }
            item.reply.give(answer);
        }
    }

    /// Records the batches that are now on the disk.
    fn note(&mut self, written: &mut [Sealed]) {
        if let Some(recent) = &self.shared.recent {
            written.iter_mut().for_each(|sealed| recent.put(sealed));
        }
        {
            let mut placed = lock(&self.shared.placed);
            written.iter().for_each(|sealed| placed.note(sealed));
        }
        let mut publishers = lock(&self.shared.publishers);
        for sealed in &*written {
            if let Some(publication) = sealed.publication {
                publishers.note(publication, sealed.header.mark);
            }
        }
        if let Some(last) = written.last() {
            self.is_chain_open = last.header.has(MORE);
        }
    }

    fn publish(&self) {
        let appender = &self.appender;
        let queue = &self.shared.queue;
        queue.publish(appender.horizon(), appender.next_mark(), appender.is_ready());
    }
}

/// Ends the queue when the writer's thread ends.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.queue.end(&Error::Closed);
    }
}
