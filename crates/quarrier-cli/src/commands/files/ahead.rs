//! Formats rows on other threads while the file systems are read, and writes them in their order.
//!
//! ```text
//!  rows ──→ batch ──queue──→ formatters, each to its own memory ──in turn──→ output
//!             ↑──────────────────── reused ────────────────────┘
//! ```

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Scope, ScopedJoinHandle};

use quarrier::files::{Row, RowBatch};
use quarrier_core::sync::{lock, wait};
use quarrier_core::threads;

use super::sheet::Sheet;

/// Rows of a batch: enough that handing it over costs nothing, and few enough that it stays in caches.
const BATCH_ROWS: usize = 1024;

/// Makes a sheet that writes to the given memory.
pub(super) type NewSheet<'s> = dyn Fn(Memory) -> io::Result<Sheet> + Sync + 's;

/// Bytes in memory that a sheet writes, and that a formatter takes from it once they are flushed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// A sheet writes many short pieces, and a lock for each would cost more than formatting them.
    written: Vec<u8>,
    flushed: Arc<Mutex<Vec<u8>>>,
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut flushed = lock(&self.flushed);
        if flushed.is_empty() {
            std::mem::swap(&mut *flushed, &mut self.written);
        } else {
            flushed.append(&mut self.written);
        }
        Ok(())
    }
}

/// Hands rows to the formatters.
pub(super) struct Ahead<'scope> {
    batch: RowBatch,
    number: u64,
    queue: Option<SyncSender<(u64, RowBatch)>>,
    shared: Arc<Shared>,
    formatters: Vec<ScopedJoinHandle<'scope, ()>>,
}

/// State that all threads share.
struct Shared {
    turn: Mutex<Turn>,
    changed: Condvar,
    spare: Mutex<Vec<RowBatch>>,
}

/// Whose turn it is to write.
struct Turn {
    next: u64,
    out: Box<dyn Write + Send>,
    /// The error that ended the output.
    error: Option<io::Error>,
    is_over: bool,
}

impl<'scope> Ahead<'scope> {
    /// Starts up to `count` formatters, and writes `head` to `out`; `None`, and nothing is written, if the
    /// system refuses all threads.
    ///
    /// # Errors
    /// The error of `out`.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        count: usize,
        new_sheet: &'env NewSheet<'env>,
        out: Box<dyn Write + Send>,
        head: &[u8],
    ) -> io::Result<Option<Self>> {
        let turn = Turn { next: 0, out, error: None, is_over: false };
        let shared = Arc::new(Shared {
            turn: Mutex::new(turn),
            changed: Condvar::new(),
            spare: Mutex::default(),
        });
        let (queue, batches) = sync_channel(count);
        // Only formatters have the receiver, so that sending fails when all have ended.
        let batches = Arc::new(Mutex::new(batches));
        let mut formatters = Vec::new();
        for _ in 0..count {
            let (batches, shared) = (Arc::clone(&batches), Arc::clone(&shared));
            let work = move || format_batches(&batches, &shared, new_sheet);
            match threads::in_scope(scope, "format", work) {
                Ok(formatter) => formatters.push(formatter),
                Err(_) => break,
            }
        }
        if formatters.is_empty() {
            return Ok(None);
        }
        lock(&shared.turn).out.write_all(head)?;
        let (batch, number, queue) = (RowBatch::default(), 0, Some(queue));
        Ok(Some(Ahead { batch, number, queue, shared, formatters }))
    }

    /// Takes a row.
    ///
    /// # Errors
    /// The error with which the output of an earlier row failed.
    pub(super) fn row(&mut self, row: &Row) -> io::Result<()> {
        self.batch.push(row);
        if self.batch.len() < BATCH_ROWS { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> io::Result<()> {
        let spare = lock(&self.shared.spare).pop().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, spare);
        let sent =
            self.queue.as_ref().is_some_and(|queue| queue.send((self.number, batch)).is_ok());
        self.number += 1;
        match lock(&self.shared.turn).error.take() {
            Some(error) => Err(error),
            None if sent => Ok(()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Writes the remaining rows.
    ///
    /// # Errors
    /// The error of the output.
    ///
    /// # Panics
    /// If a formatter panicked.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let sent = if self.batch.is_empty() { Ok(()) } else { self.send() };
        self.queue = None;
        self.formatters.drain(..).for_each(threads::joined);
        sent?;
        let mut turn = lock(&self.shared.turn);
        turn.error.take().map_or_else(|| turn.out.flush(), Err)
    }
}

/// Formats batches until there are no more.
fn format_batches(
    batches: &Mutex<Receiver<(u64, RowBatch)>>,
    shared: &Shared,
    new_sheet: &NewSheet<'_>,
) {
    let _guard = EndOnPanic(shared);
    let memory = Arc::default();
    let mut sheet = None;
    loop {
        // Batches are taken in order, so the formatter of the next one to write never waits.
        let received = lock(batches).recv();
        let Ok((number, mut batch)) = received else { return };
        let formatted = formatted(&mut sheet, new_sheet, &memory, &batch);
        batch.clear();
        lock(&shared.spare).push(batch);
        let mut bytes = std::mem::take(&mut *lock(&memory));
        shared.write(number, formatted, &bytes);
        bytes.clear();
        *lock(&memory) = bytes;
    }
}

fn formatted(
    sheet: &mut Option<Sheet>,
    new_sheet: &NewSheet<'_>,
    memory: &Arc<Mutex<Vec<u8>>>,
    batch: &RowBatch,
) -> io::Result<()> {
    let sheet = match sheet {
        Some(sheet) => sheet,
        None => {
            let memory = Memory { flushed: Arc::clone(memory), ..Memory::default() };
            sheet.insert(new_sheet(memory)?)
        }
    };
    batch.rows().try_for_each(|row| sheet.row(&row, &[]))?;
    sheet.flush()
}

impl Shared {
    /// Waits until all earlier batches were written, and writes this one, unless the output has failed.
    fn write(&self, number: u64, formatted: io::Result<()>, bytes: &[u8]) {
        let mut turn = lock(&self.turn);
        while turn.next != number && !turn.is_over {
            turn = wait(&self.changed, turn);
        }
        if !turn.is_over
            && let Err(error) = formatted.and_then(|()| turn.out.write_all(bytes))
        {
            turn.error = Some(error);
            turn.is_over = true;
        }
        turn.next = number + 1;
        self.changed.notify_all();
    }
}

/// Wakes the others when a formatter panics.
struct EndOnPanic<'s>(&'s Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.turn).is_over = true;
            self.0.changed.notify_all();
        }
    }
}
