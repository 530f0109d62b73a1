//! SUBSCRIBE: sends rows as they arrive.
//!
//! ```text
//!  rows of one table ─→ quarrier::Subscription: each row once, with the mark of its message
//!  anything else ─→ again (WITH (every = …)): runs the query again, and sends differences
//! ```
//!
//! Both wait for the pulse, a single thread that waits for every commit. Before it notifies them, it finds
//! the new rows once for all equal subscriptions. Nothing is queued for a client: one that reads slowly polls
//! less often, and finds the messages it missed in the log.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchReader, StringArray, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use futures::stream;
use quarrier::DataFolder;
use quarrier::kept::{Changed, ConditionTable, Matched, Ready, Subscribe, Subscription};
use quarrier_core::sync::StopOnDrop;
use quarrier_messages::build::Cell;
use quarrier_messages::{Kind, Value};
use quarrier_wire::{
    Batch, Failure, Prepared, Reply, Result, Rows, SubscribeText, kind, state, subscribe_text,
};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::again::{self, RepeatedQuery};
use super::failure::of_folder;
use super::parameters;
use super::pulse::{Beats, Pulse, Scouted};
use crate::Engine;

/// A prepared subscription.
pub(super) struct Subscribed {
    text: SubscribeText,
    columns: SchemaRef,
}

/// Number of columns before those of the conditions and the query: mark and change.
const LEADING: usize = 2;

/// How a row changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Snapshot,
    Insert,
    Delete,
    /// A condition has no value for the row.
    Fault,
    Progress,
}

impl Change {
    fn sign(self) -> &'static str {
        match self {
            Change::Snapshot => "=",
            Change::Insert => "+",
            Change::Delete => "-",
            Change::Fault => "!",
            Change::Progress => ">",
        }
    }
}

fn no_folder() -> Failure {
    let failure = Failure::new(
        state::READ_ONLY,
        "without a data folder, there are no tables to subscribe to",
    );
    failure.hint("start the server with --data FOLDER")
}

fn defect() -> Failure {
    Failure::new(state::INTERNAL, "internal error in the subscription")
}

/// Checks a subscription, and determines its columns, on the runtime of statements.
pub(super) async fn prepare(engine: &Arc<Engine>, text: &str) -> Result<Prepared> {
    let asked = subscribe_text(text)?.ok_or_else(defect)?;
    let Some(kept) = engine.kept() else { return Err(no_folder()) };
    if parameters::count(text)? > 0 {
        return Err(Failure::new(state::UNSUPPORTED, "a subscription has no parameters"));
    }
    let mut fields = vec![
        Field::new("mark", DataType::Int64, false),
        Field::new("change", DataType::Utf8, false),
    ];
    let shown = match asked.every {
        Some(_) if asked.matching.is_some() => {
            let said = "a repeated query has no MATCHING; leave out one of the two";
            return Err(Failure::new(state::UNSUPPORTED, said));
        }
        Some(_) if asked.after.is_some() || asked.since.is_some() => {
            let said = "a repeated query starts now; leave out AS OF and SINCE";
            return Err(Failure::new(state::UNSUPPORTED, said));
        }
        Some(_) => again::columns(engine, &asked.query).await?,
        None => {
            let first = started(kept, &asked, &Handle::current()).await?;
            if let Some(kind) = first.matched_id() {
                let kind = if kind == Kind::Integer { DataType::Int64 } else { DataType::Utf8 };
                fields.push(Field::new("condition_id", kind, true));
            }
            first.shown().batches().schema()
        }
    };
    fields.extend(shown.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)));
    let columns = Arc::new(Schema::new(fields));
    let inner = Arc::new(Subscribed { text: asked, columns: Arc::clone(&columns) });
    let tag = "SUBSCRIBE".to_string();
    Ok(Prepared { parameters: Vec::new(), columns: Some(columns), tag, changes: false, inner })
}

async fn started(
    kept: &Arc<DataFolder>,
    asked: &SubscribeText,
    runtime: &Handle,
) -> Result<Subscription> {
    let kept = Arc::clone(kept);
    let since = asked.since.as_deref().map(microseconds).transpose()?;
    let subscribe = Subscribe::new(&asked.query)
        .snapshot(asked.has_snapshot)
        .after(asked.after)
        .since(since)
        .until(asked.until)
        .matching(asked.matching.clone().map(|it| ConditionTable {
            table: it.table,
            id: it.id,
            condition: it.condition,
        }));
    let start = move || subscribe.start(&kept, &AtomicBool::new(false));
    let started = runtime.spawn_blocking(start).await.map_err(|_| defect())?;
    started.map_err(|error| refused(&error))
}

/// Parses a time to microseconds since 1970.
fn microseconds(text: &str) -> Result<i64> {
    match Cell::of_time(text) {
        Some(Cell::Timestamp(nanoseconds)) => Ok(nanoseconds.div_euclid(1_000)),
        Some(Cell::Date(days)) => Ok(i64::from(days) * 86_400_000_000),
        _ => {
            let said = format!("SINCE: '{text}' is not a time; write it as '2026-01-31 10:00:00'");
            Err(Failure::new(state::DATE, said))
        }
    }
}

/// Returns the error that refuses a subscription, with what to try.
fn refused(error: &quarrier::Error) -> Failure {
    use quarrier_messages::{Error as Messages, log::Error as Log};
    match error {
        quarrier::Error::Condition { .. } => {
            let failure = Failure::new(state::SYNTAX, error.to_string());
            failure.hint("WITH (every = '1s') subscribes to any query")
        }
        quarrier::Error::Request(said) => {
            let failure = Failure::new(state::UNSUPPORTED, said.clone());
            failure.hint("WITH (every = '1s') subscribes to any query")
        }
        quarrier::Error::Messages(Messages::Log(Log::Gone { .. })) => {
            Failure::new("55000", error.to_string())
        }
        quarrier::Error::Messages(Messages::Store { .. }) => {
            Failure::new(state::NO_TABLE, error.to_string())
        }
        _ => of_folder(error),
    }
}

/// Begins to send rows.
pub(super) async fn run(
    engine: &Arc<Engine>,
    runtime: &Handle,
    pulse: &Pulse,
    subscribed: &Subscribed,
) -> Result<Reply> {
    let Some(kept) = engine.kept() else { return Err(no_folder()) };
    let beats = pulse.beats(kept)?;
    let mut scouted = None;
    let source = match subscribed.text.every {
        Some(every) => {
            let again = RepeatedQuery::new(engine, &subscribed.text, every);
            Source::Again(Box::new(again))
        }
        None => {
            let subscription = started(kept, &subscribed.text, runtime).await?;
            let scout = || subscription.scout();
            scouted = pulse.scouted((&subscribed.text.query, &subscribed.columns), scout);
            Source::Each(Some(Box::new(subscription)))
        }
    };
    let running = RunningSubscription {
        source,
        beats,
        _scouted: scouted,
        runtime: runtime.clone(),
        columns: Arc::clone(&subscribed.columns),
        stop: StopOnDrop::default(),
        progress: subscribed.text.progress,
        due: None,
        progress_mark: None,
        is_over: false,
    };
    let batches = stream::unfold(Some(running), |running| async {
        let mut running = running?;
        match running.next().await {
            Ok(Some(batch)) => Some((Ok(batch), Some(running))),
            Ok(None) => None,
            Err(failure) => Some((Err(failure), None)),
        }
    });
    let schema = Arc::clone(&subscribed.columns);
    Ok(Reply::Rows(Rows { schema, batches: batches.boxed(), is_live: true }))
}

/// The source of rows; `None` while a thread is using it.
enum Source {
    Each(Option<Box<Subscription>>),
    Again(Box<RepeatedQuery>),
}

/// A running subscription.
struct RunningSubscription {
    source: Source,
    beats: Beats,
    /// Dropping the last one of equal subscriptions ends their scout.
    _scouted: Option<Arc<Scouted>>,
    runtime: Handle,
    columns: SchemaRef,
    /// Dropping it stops the work of the subscription.
    stop: StopOnDrop,
    progress: std::time::Duration,
    /// When to send the next progress row.
    due: Option<Instant>,
    /// The mark of the last progress row.
    progress_mark: Option<u64>,
    is_over: bool,
}

impl RunningSubscription {
    /// Returns the next rows; None at the end.
    async fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.is_over {
                return Ok(None);
            }
            // Must precede the search for rows, so that a later commit wakes the next round.
            self.beats.hear();
            if let Some(batch) = self.found().await? {
                return Ok(Some(batch));
            }
            let (mark, is_done) = self.reached();
            let now = Instant::now();
            let is_due = self.due.is_none_or(|due| due <= now);
            if is_done || is_due || self.progress_mark.is_none() {
                (self.is_over, self.progress_mark) = (is_done, Some(mark));
                self.due = now.checked_add(self.progress);
                let progress = batch(&self.columns, Change::Progress, &[mark], None);
                return progress.map(|rows| Some(rows.into()));
            }
            let due = self.due.unwrap_or(now);
            match &self.source {
                Source::Each(_) => tokio::select! {
                    beats = self.beats.next() => beats?,
                    () = sleep_until(due) => {}
                },
                // Wait until the query may run again.
                Source::Again(again) => {
                    let next = again.due();
                    sleep_until(next.min(due)).await;
                }
            }
        }
    }

    /// Returns the mark up to which all rows were sent, and whether the subscription is complete.
    fn reached(&self) -> (u64, bool) {
        match &self.source {
            Source::Each(Some(subscription)) => (subscription.mark(), subscription.is_over()),
            Source::Each(None) => (0, true),
            Source::Again(again) => (again.mark(), again.is_over()),
        }
    }

    async fn found(&mut self) -> Result<Option<Batch>> {
        match &mut self.source {
            Source::Each(held) => {
                let mut subscription = held.take().ok_or_else(defect)?;
                // Another thread takes longer to wake than this takes.
                let ready = match subscription.ready() {
                    Ready::Rows(changed) => Some(shared(&self.columns, &changed).map(Some)),
                    Ready::Nothing => Some(Ok(None)),
                    Ready::Unknown => None,
                };
                if let Some(ready) = ready {
                    *held = Some(subscription);
                    return ready;
                }
                let stop = self.stop.flag();
                let find = move || {
                    let found = subscription.next(&stop);
                    (subscription, found)
                };
                let (subscription, found) =
                    self.runtime.spawn_blocking(find).await.map_err(|_| defect())?;
                *held = Some(subscription);
                match found.map_err(|error| refused(&error))? {
                    Some(changed) => shared(&self.columns, &changed).map(Some),
                    None => Ok(None),
                }
            }
            Source::Again(again) => match again.next(self.beats.mark(), &self.runtime).await? {
                Some((change, mark, rows)) => {
                    let marks = vec![mark; rows.num_rows()];
                    let rows = batch(&self.columns, change, &marks, Some(rows.columns()))?;
                    Ok(Some(rows.into()))
                }
                None => Ok(None),
            },
        }
    }
}

/// The rows of a result, as subscriptions with these columns send them.
struct SharedRows {
    columns: SchemaRef,
    rows: Batch,
}

/// Returns the rows of a result to send; equal subscriptions share them.
pub(super) fn shared(columns: &SchemaRef, changed: &Changed) -> Result<Batch> {
    let make = |changed: &Changed| -> Result<SharedRows> {
        let rows = Batch::shared(of_changed(columns, changed)?);
        Ok(SharedRows { columns: Arc::clone(columns), rows })
    };
    let shared = changed.derive(make)?;
    match Arc::ptr_eq(&shared.columns, columns) || shared.columns == *columns {
        true => Ok(shared.rows.clone()),
        // The columns were described at another time, when their types were others.
        false => of_changed(columns, changed).map(Batch::from),
    }
}

fn of_changed(columns: &SchemaRef, changed: &Changed) -> Result<RecordBatch> {
    let has_fault =
        |row: usize| changed.matched.get(row).is_some_and(|matched| matched.fault.is_some());
    let change = |row: usize| match changed.are_gone.get(row) {
        Some(true) => Change::Delete,
        _ if has_fault(row) => Change::Fault,
        _ if changed.is_snapshot => Change::Snapshot,
        _ => Change::Insert,
    };
    let ids = ids(columns, &changed.matched)?;
    let mut parts: Vec<Vec<ArrayRef>> = Vec::new();
    for batch in changed.rows.batches() {
        parts.push(batch.map_err(|_| defect())?.columns().to_vec());
    }
    let mut joined = match &parts[..] {
        [one] => one.clone(),
        parts => {
            let width = parts.first().map_or(0, Vec::len);
            let column = |at: usize| {
                let parts: Vec<_> = parts.iter().map(|part| part[at].as_ref()).collect();
                datafusion::arrow::compute::concat(&parts).map_err(|_| defect())
            };
            (0..width).map(column).collect::<Result<_>>()?
        }
    };
    if let Some(ids) = ids {
        joined.insert(0, ids);
    }
    batch_of(columns, change, &changed.marks, Some(&joined))
}

/// Returns the ids of the conditions as a column; `None` without conditions.
fn ids(columns: &SchemaRef, matched: &[Matched]) -> Result<Option<ArrayRef>> {
    if matched.is_empty() {
        return Ok(None);
    }
    let field = columns.fields().get(LEADING).ok_or_else(defect)?;
    Ok(Some(match field.data_type() {
        DataType::Int64 => Arc::new(Int64Array::from_iter(matched.iter().map(|it| match it.id {
            Value::Integer(id) => Some(id),
            _ => None,
        }))),
        _ => Arc::new(StringArray::from_iter(matched.iter().map(|it| match &it.id {
            Value::Text(id) => Some(&**id),
            _ => None,
        }))),
    }))
}

/// Makes a batch in which all rows have the same kind of change.
fn batch(
    columns: &SchemaRef,
    change: Change,
    marks: &[u64],
    shown: Option<&[ArrayRef]>,
) -> Result<RecordBatch> {
    batch_of(columns, |_| change, marks, shown)
}

fn batch_of(
    described: &SchemaRef,
    change: impl Fn(usize) -> Change,
    marks: &[u64],
    shown: Option<&[ArrayRef]>,
) -> Result<RecordBatch> {
    let count = marks.len();
    let signs = StringArray::from_iter_values((0..count).map(|row| change(row).sign()));
    let marks = Int64Array::from_iter_values(marks.iter().map(|mark| *mark as i64));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(marks), Arc::new(signs)];
    let fields = &described.fields()[columns.len()..];
    match shown {
        Some(shown) => columns.extend(shown.iter().cloned()),
        None => {
            columns.extend(fields.iter().map(|field| new_null_array(field.data_type(), count)));
        }
    }
    let fields = described.fields().iter().zip(&columns).map(|(field, column)| {
        let kinds = (kind::of(field.data_type()), kind::of(column.data_type()));
        let field = field.as_ref().clone().with_data_type(column.data_type().clone());
        (kinds.0 == kinds.1).then_some(field)
    });
    let fields: Option<Vec<Field>> = fields.collect();
    let changed = || {
        let said = "a message changed the type of a column; subscribe again";
        Failure::new(state::UNSUPPORTED, said)
    };
    let schema = Schema::new(fields.ok_or_else(changed)?);
    RecordBatch::try_new(Arc::new(schema), columns).map_err(|_| changed())
}
