//! Runs statements and sends their rows, and watches the clock, the client and cancellation.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::answers::{Prepared, Stop};
use crate::board::Ending;
use crate::copy::{self, BINARY_BEGIN};
use crate::failure::{Failure, Result, state};
use crate::protocol::{Column, MessageBuffer};
use crate::rows::{Batch, FormKey, View};
use crate::sql::{CopyFormat, CopyOptions};
use crate::value::Value;

use super::state::{Activity, Begins, Columns, Cursor, Session};
use super::wire::Wire;

/// Bytes of pending output at which it is sent.
const WAITING_BYTES: usize = 64 << 10;
/// Maximum number of changes in flight.
const ON_THEIR_WAY_MAX: usize = 256;
/// Number of rows to convert at once.
const ROWS_AT_ONCE: usize = 1_024;

/// The form in which rows are sent.
pub(super) enum Form<'a> {
    /// As rows of a result; whether columns are in binary: no entry, one for all, or one each.
    Rows(&'a [bool]),
    /// As data of a COPY. Clients expect the head of a binary COPY in one message with the first
    /// row; the flag is set once that row was written.
    Copy(&'a CopyOptions, &'a AtomicBool),
    /// Rows are not sent.
    Nothing,
}

/// The result of a request for rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) rows: u64,
    pub(super) is_over: bool,
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits for `work`, but fails when the statement is to end.
pub(super) async fn until<T>(
    wire: &mut Wire,
    activity: &Activity,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let running = &activity.begun.running;
    tokio::pin!(work);
    let why = tokio::select! {
        biased;
        () = activity.begun.stop().wait() => return Err(running.ended()),
        done = &mut work => return done,
        () = at(activity.deadline) => Ending::TooLong,
        () = wire.left() => Ending::Left,
    };
    running.end(why);
    Err(running.ended())
}

/// Sends pending output, until the statement is to end.
async fn send(wire: &mut Wire, activity: &Activity) -> Result<()> {
    let running = &activity.begun.running;
    while !wire.out.waiting().is_empty() {
        let why = tokio::select! {
            biased;
            () = activity.begun.stop().wait() => return Err(running.ended()),
            sent = wire.send_some() => match sent {
                Ok(()) => continue,
                Err(_) => Ending::Left,
            },
            () = at(activity.deadline) => Ending::TooLong,
            () = sleep(activity.send_time) => {
                running.end(Ending::Left);
                return Err(Failure::fatal(state::IDLE, "the client does not read its data"));
            }
        };
        running.end(why);
        return Err(running.ended());
    }
    Ok(())
}

/// Sends rows, at most `rows_max`.
pub(super) async fn send_rows(
    wire: &mut Wire,
    activity: &Activity,
    cursor: &mut Cursor,
    rows_max: u64,
    form: &Form<'_>,
) -> Result<Sent> {
    let mut rows = 0;
    // If only the current rows are requested, stop once no more are available.
    let waits_until = cursor.patience.filter(|_| cursor.is_live).map(|time| Instant::now() + time);
    while rows < rows_max {
        if cursor.batch.is_none() {
            let waits_until = match rows {
                0 => waits_until,
                _ => waits_until.map(|_| Instant::now()),
            };
            match next(wire, activity, cursor, waits_until).await? {
                Next::There => {}
                Next::Later => return Ok(Sent { rows, is_over: false }),
                Next::Never => return Ok(Sent { rows, is_over: true }),
            }
        }
        let Some(batch) = cursor.batch.take() else { continue };
        let wanted = usize::try_from(rows_max - rows).unwrap_or(usize::MAX);
        let count = batch.num_rows().min(ROWS_AT_ONCE).min(wanted);
        if count < batch.num_rows() {
            cursor.batch = Some(batch.slice(count, batch.num_rows() - count).into());
            written(&batch.slice(0, count), form, &mut wire.out)?;
        } else {
            write_all(&batch, form, &mut wire.out)?;
        }
        activity.begun.sent(count as u64);
        rows += count as u64;
        if wire.out.waiting().len() >= WAITING_BYTES {
            send(wire, activity).await?;
        }
    }
    Ok(Sent { rows, is_over: false })
}

/// The next rows of a cursor.
enum Next {
    There,
    /// None yet, and the time to wait is over.
    Later,
    Never,
}

/// Fetches the next rows; sends pending output while there are none.
async fn next(
    wire: &mut Wire,
    activity: &Activity,
    cursor: &mut Cursor,
    waits_until: Option<Instant>,
) -> Result<Next> {
    if cursor.is_over {
        return Ok(Next::Never);
    }
    if activity.begun.stop().is_set() {
        return Err(activity.begun.running.ended());
    }
    let batch = match cursor.batches.next().now_or_never() {
        Some(batch) => batch,
        None if waits_until.is_some_and(|until| until <= Instant::now()) => return Ok(Next::Later),
        None => {
            send(wire, activity).await?;
            let batches = &mut cursor.batches;
            let coming = async {
                match waits_until {
                    Some(until) => Ok(timeout_at(until, batches.next()).await.ok()),
                    None => Ok(Some(batches.next().await)),
                }
            };
            match until(wire, activity, coming).await? {
                Some(batch) => batch,
                None => return Ok(Next::Later),
            }
        }
    };
    match batch {
        Some(Ok(batch)) => {
            cursor.batch = (batch.num_rows() > 0).then_some(batch);
            Ok(Next::There)
        }
        Some(Err(failure)) => {
            cursor.is_over = true;
            Err(failure)
        }
        None => {
            cursor.is_over = true;
            Ok(Next::Never)
        }
    }
}

/// Writes all rows of a batch; those that go to several clients are encoded once.
fn write_all(batch: &Batch, form: &Form<'_>, out: &mut MessageBuffer) -> Result<()> {
    let key = match form {
        _ if !batch.is_shared() => None,
        Form::Rows(formats) => Some(FormKey::Rows(formats.to_vec())),
        // The first row of a binary COPY has the head.
        Form::Copy(options, _) => (options.format != CopyFormat::Binary)
            .then(|| FormKey::Copy(CopyOptions::clone(options))),
        Form::Nothing => None,
    };
    let Some(key) = key else { return written(batch, form, out) };
    let encode = |rows: &RecordBatch| {
        let mut encoded = MessageBuffer::default();
        written(rows, form, &mut encoded)?;
        Ok(encoded.waiting().to_vec())
    };
    match batch.encoded(key, encode) {
        Ok(bytes) => {
            out.raw(&bytes);
            Ok(())
        }
        // Send the rows before the one that cannot be written.
        Err(_) => written(batch, form, out),
    }
}

fn written(batch: &RecordBatch, form: &Form<'_>, out: &mut MessageBuffer) -> Result<()> {
    let columns = batch.columns().iter().map(View::of).collect::<Result<Vec<_>>>()?;
    let mut scratch = Vec::new();
    let mut done = Ok(());
    for row in 0..batch.num_rows() {
        match form {
            Form::Rows(formats) => out.message(b'D', |out| {
                out.extend((columns.len() as u16).to_be_bytes());
                for (place, column) in columns.iter().enumerate() {
                    if done.is_ok() {
                        done = column.sized(row, is_binary(formats, place), out);
                    }
                }
            }),
            Form::Copy(options, has_begun) => out.message(b'd', |out| {
                if options.format == CopyFormat::Binary && !has_begun.swap(true, Ordering::Relaxed)
                {
                    out.extend(BINARY_BEGIN);
                }
                done = copy::row(&columns, row, options, &mut scratch, out);
            }),
            Form::Nothing => return Ok(()),
        }
        if done.is_err() {
            // The client must not get half a row, nor anything after it.
            out.take_back();
            return done;
        }
    }
    Ok(())
}

/// Whether a column is in binary.
pub(super) fn is_binary(formats: &[bool], place: usize) -> bool {
    match formats {
        [] => false,
        [all] => *all,
        each => each.get(place).copied().unwrap_or(false),
    }
}

/// Describes the columns of the rows that follow.
pub(super) fn describe_columns(columns: &Columns, formats: &[bool], out: &mut MessageBuffer) {
    out.row_description(columns.iter().enumerate().map(|(place, (name, kind))| Column {
        name,
        kind: *kind,
        is_binary: is_binary(formats, place),
    }));
}

impl Session {
    /// Parses a statement with the engine.
    pub(super) async fn prepared(
        &mut self,
        activity: &Activity,
        text: &str,
        declared: &[u32],
        describes: bool,
    ) -> Result<Prepared> {
        let answers = std::sync::Arc::clone(&self.shared.answers);
        let preparing = answers.prepare(&self.asker, text, declared, describes);
        until(&mut self.wire, activity, preparing).await
    }

    /// Starts a statement.
    pub(super) async fn begun(
        &mut self,
        activity: &Activity,
        prepared: &Prepared,
        values: Vec<Value>,
        stop: &Stop,
    ) -> Result<Begins> {
        if !prepared.changes {
            // The statement must see earlier changes.
            self.settle().await?;
        }
        let answers = std::sync::Arc::clone(&self.shared.answers);
        let running = answers.run(&self.asker, prepared, values, stop);
        let reply = until(&mut self.wire, activity, running).await?;
        self.has_changed |= prepared.changes;
        match Begins::of(reply, stop) {
            Begins::Sent(rows, durable) => {
                self.on_their_way.push_back(durable);
                if self.on_their_way.len() >= ON_THEIR_WAY_MAX {
                    self.settle().await?;
                }
                Ok(Begins::Done(rows))
            }
            begins => Ok(begins),
        }
    }

    /// Waits until all changes are on the disk. Earlier completions count only then, so a sequence
    /// or pipeline of statements takes one wait, as does a transaction.
    pub(super) async fn settle(&mut self) -> Result<()> {
        let mut done = Ok(());
        while let Some(durable) = self.on_their_way.pop_front() {
            let one = durable.await;
            done = done.and(one);
        }
        done
    }
}

/// Returns the completion tag of a statement.
pub(super) fn tag(tag: &str, rows: Option<u64>) -> String {
    match rows {
        Some(rows) => format!("{tag} {rows}"),
        None => tag.to_string(),
    }
}
