//! Subscriptions: the matching rows of a table, then each new one.
//!
//! ```text
//!  Subscribe::start ─→ Subscription::next: rows up to the mark of the snapshot, with their marks
//!                                          rows of each batch that became durable since, and of
//!                                          a table with a key those that it replaced or removed
//!                                          None: nothing new; wait for a mark above Subscription::mark
//! ```
//!
//! A subscription reads at its own pace: nothing is queued for it, so a slow one delays nobody, and one that
//! falls behind reads the log from its mark.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_filter::{Answer, Query, Scan, Select, sql};
use quarrier_messages::kept::Changes;
use quarrier_messages::{Schema, Table};

use super::DataFolder;
use crate::{Error, Result};

/// Maximum number of rows to return at once.
const ROWS_AT_ONCE: usize = 8_192;

/// A request for `SELECT … FROM table [WHERE …]`, over the existing messages and each new one.
///
/// ```
/// use std::sync::Arc;
/// use quarrier::kept::{DataFolder, KeptLoad, Subscribe};
/// use quarrier_core::source::Memory;
///
/// # let folder = std::env::temp_dir().join(format!("quarrier-subscribe-{}", std::process::id()));
/// let kept = Arc::new(DataFolder::open(&folder)?);
/// let stop = Arc::default();
/// let load = KeptLoad::new("orders");
/// let orders = Memory::new("orders", &b"{\"qty\":7}\n{\"qty\":2}\n"[..]);
/// load.source(&kept, &orders, &stop, &mut ())?;
/// let subscribe = Subscribe::new("SELECT qty FROM orders WHERE qty > 5").snapshot(true);
/// let mut subscription = subscribe.start(&kept, &stop)?;
/// let now = subscription.next(&stop)?.expect("a row matches");
/// assert_eq!((now.is_snapshot, &now.marks[..]), (true, &[1][..]));
/// assert!(subscription.next(&stop)?.is_none());
/// let orders = Memory::new("orders", &b"{\"qty\":9}\n"[..]);
/// load.source(&kept, &orders, &stop, &mut ())?;
/// let new = subscription.next(&stop)?.expect("another row matches");
/// assert_eq!((new.is_snapshot, &new.marks[..]), (false, &[3][..]));
/// # drop((subscription, kept));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Subscribe {
    text: String,
    has_snapshot: bool,
    after: Option<u64>,
    since_us: Option<i64>,
    until: Option<u64>,
    workers: usize,
}

/// Rows of a subscription.
#[derive(Debug)]
#[non_exhaustive]
pub struct Changed {
    /// Whether the rows belong to the snapshot.
    pub is_snapshot: bool,
    /// The mark of each row, rising; for a row that is gone, the mark of the message that replaced or
    /// removed it.
    pub marks: Vec<u64>,
    /// Whether each row is gone; only in a table with a key. Such a row comes before its replacement, which
    /// has the same mark, in the same result.
    pub are_gone: Vec<bool>,
    /// The selected columns of the rows.
    pub rows: Table,
}

/// A running subscription.
#[derive(Debug)]
pub struct Subscription {
    kept: Arc<DataFolder>,
    text: String,
    table: String,
    query: Query,
    /// The table's schema.
    schema: Schema,
    /// The selected columns.
    shown: Table,
    /// Every row up to this mark was returned.
    mark: u64,
    /// Rows up to this mark belong to the snapshot.
    snapshot_mark: u64,
    until: u64,
    waiting: Option<Waiting>,
    workers: usize,
}

/// Rows that were found but not yet returned.
#[derive(Debug)]
struct Waiting {
    changes: Changes,
    rows: Vec<u64>,
    next: usize,
}

impl Subscribe {
    /// Creates a request from the text of a query.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Subscribe {
            text,
            has_snapshot: false,
            after: None,
            since_us: None,
            until: None,
            workers: 1,
        }
    }

    /// Sets whether the rows that match at the start come first.
    pub fn snapshot(mut self, has_snapshot: bool) -> Self {
        self.has_snapshot = has_snapshot;
        self
    }

    /// Sets the mark to begin after, which is also the mark of the snapshot; `None` for the last one.
    pub fn after(mut self, mark: Option<u64>) -> Self {
        self.after = mark;
        self
    }

    /// Sets the commit time to begin at, in microseconds since 1970, if no mark is given.
    pub fn since(mut self, time_us: Option<i64>) -> Self {
        self.since_us = time_us;
        self
    }

    /// Sets the last requested mark; `None` for an endless subscription.
    pub fn until(mut self, mark: Option<u64>) -> Self {
        self.until = mark;
        self
    }

    /// Sets the number of threads that find the rows of the snapshot; 0 means one per CPU. The default
    /// is 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Begins the subscription.
    ///
    /// # Errors
    /// [`Error::Condition`] if the text is not a query of one table; [`Error::Request`] for a query
    /// that needs more than single rows, or an unknown mark; [`Error::Messages`] as in
    /// [`DataFolder::table`], and if retention removed messages after the mark.
    pub fn start(&self, kept: &Arc<DataFolder>, stop: &AtomicBool) -> Result<Subscription> {
        let mut found = None;
        let find = |name: &str| {
            let whole = kept.named(name).and_then(|name| {
                let whole = kept.store().whole(&name, self.workers, stop)?;
                Ok((name, whole))
            });
            let table = whole.as_ref().ok().map(|(_, whole)| Arc::clone(whole.table()));
            found = Some(whole);
            table
        };
        let bound = sql::statement_over(&self.text, find);
        let (table, mut whole) = match found {
            Some(found) => found?,
            None => return Err(wrong(bound.err())),
        };
        let query = bound.map_err(|error| wrong(Some(error)))?;
        refuse_more_than_rows(&query)?;
        if let Some(after) = self.after.filter(|after| *after > whole.mark()) {
            return Err(Error::Request(format!(
                "there is no mark {after} yet; the last one is {}",
                whole.mark()
            )));
        }
        let mark = match (self.after, self.since_us) {
            (Some(after), _) => after,
            (None, Some(time_us)) => {
                // More messages may have arrived since.
                kept.store().mark_before(&table, time_us)?.min(whole.mark())
            }
            (None, None) => whole.mark(),
        };
        if self.has_snapshot
            && mark < whole.mark()
            && let Some(then) = kept.store().whole_at(&table, mark, (self.workers, stop))?
        {
            whole = then;
        }
        let schema = whole.table().schema().clone();
        let empty = Table::assemble_as(&schema, Vec::new(), 1);
        let shown = query.project(&empty, &Answer::default(), 1, stop).map_err(of_row)?;
        let mut subscription = Subscription {
            kept: Arc::clone(kept),
            text: self.text.clone(),
            table,
            query,
            schema,
            shown,
            mark: if self.has_snapshot { 0 } else { mark },
            snapshot_mark: if self.has_snapshot { mark } else { 0 },
            until: self.until.unwrap_or(u64::MAX),
            waiting: None,
            workers: self.workers,
        };
        if self.has_snapshot {
            subscription.waiting = Some(subscription.found(whole, stop)?);
        } else {
            // Retention may have removed the next messages: report that now rather than at the first
            // row.
            let range = (mark, mark);
            kept.store().changes(&subscription.table, range, &subscription.schema, stop)?;
        }
        Ok(subscription)
    }
}

impl Subscription {
    /// Returns the selected columns: a table without rows.
    pub fn shown(&self) -> &Table {
        &self.shown
    }

    /// Returns the mark of the last row returned: a subscription after it continues from here.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Returns whether every requested row was returned.
    pub fn is_over(&self) -> bool {
        self.waiting.is_none() && self.mark >= self.until
    }

    /// Returns whether all rows of the snapshot were returned, or none were requested.
    pub fn is_past_snapshot(&self) -> bool {
        self.mark >= self.snapshot_mark
    }

    /// Returns the next rows; `None` if there are none now. Only durable messages are visible.
    ///
    /// # Errors
    /// Those of [`Subscribe::start`]; and [`Error::Request`] if a value changed the type of a selected
    /// column. Rows returned before stay valid: a subscription after [`mark`](Self::mark) has the new
    /// columns.
    pub fn next(&mut self, stop: &AtomicBool) -> Result<Option<Changed>> {
        loop {
            if let Some(changed) = self.handed_out(stop)? {
                return Ok(Some(changed));
            }
            if self.is_over() {
                return Ok(None);
            }
            let range = (self.mark, self.until);
            let changes = self.kept.store().changes(&self.table, range, &self.schema, stop)?;
            if changes.table().rows() == 0 {
                if changes.mark() <= self.mark {
                    return Ok(None);
                }
                // Only keys without rows were removed, or only other tables have grown.
                self.mark = changes.mark();
                continue;
            }
            self.follow(changes.table().schema())?;
            self.waiting = Some(self.found(changes, stop)?);
        }
    }

    /// Adopts columns that have become wider, unless the selected ones have.
    fn follow(&mut self, schema: &Schema) -> Result<()> {
        if *schema == self.schema {
            return Ok(());
        }
        let table = Arc::new(Table::assemble_as(schema, Vec::new(), 1));
        let query = sql::statement_over(&self.text, |_| Some(table));
        let query = query.map_err(|error| wrong(Some(error)))?;
        let kinds = |query: &Query| match &query.select {
            Select::Rows(outputs) => outputs.iter().map(|output| output.kind).collect(),
            Select::Count { .. } => Vec::new(),
        };
        if kinds(&query) != kinds(&self.query) {
            return Err(Error::Request(format!(
                "a message changed the type of a column of {}; subscribe again after mark {}",
                self.table, self.mark
            )));
        }
        (self.query, self.schema) = (query, schema.clone());
        Ok(())
    }

    /// Finds the matching rows.
    fn found(&self, changes: Changes, stop: &AtomicBool) -> Result<Waiting> {
        let queries = std::slice::from_ref(&self.query);
        let scan = Scan::new(changes.table(), queries).workers(self.workers).cancel(stop);
        let answer = scan.run().pop().unwrap_or_else(|| Ok(Answer::default()));
        let mut rows = answer.map_err(of_row)?.rows;
        rows.retain(|row| {
            let mark = changes.mark_of(*row);
            mark > self.mark && mark <= self.until
        });
        Ok(Waiting { changes, rows, next: 0 })
    }

    /// Returns some of the rows found; `None` if all were returned.
    fn handed_out(&mut self, stop: &AtomicBool) -> Result<Option<Changed>> {
        let Some(waiting) = &mut self.waiting else { return Ok(None) };
        let Waiting { changes, rows, next } = waiting;
        let rest = &rows[*next..];
        let Some(first) = rest.first() else {
            self.mark = self.mark.max(changes.mark().min(self.until));
            self.waiting = None;
            return Ok(None);
        };
        let is_snapshot = changes.mark_of(*first) <= self.snapshot_mark;
        let is_alike = |row: &&u64| (changes.mark_of(**row) <= self.snapshot_mark) == is_snapshot;
        let mut count = rest.iter().take(ROWS_AT_ONCE).take_while(is_alike).count();
        let mark = |at: usize| rest.get(at).map(|row| changes.mark_of(*row));
        // Keep a row and its replacement together, or a client that resumes after its mark would miss one.
        while count > 0 && mark(count).is_some() && mark(count) == mark(count - 1) {
            count += 1;
        }
        let some = rest[..count].to_vec();
        let marks = some.iter().map(|row| changes.mark_of(*row)).collect();
        let are_gone = some.iter().map(|row| changes.is_gone(*row)).collect();
        *next += count;
        let answer = Answer { count: some.len() as u64, rows: some };
        let rows = self.query.project(changes.table(), &answer, 1, stop).map_err(of_row)?;
        Ok(Some(Changed { is_snapshot, marks, are_gone, rows }))
    }
}

/// Refuses queries that need more than single rows: a subscription returns rows in the order of the log, and
/// its last row is never known.
fn refuse_more_than_rows(query: &Query) -> Result<()> {
    let is_rows = matches!(query.select, Select::Rows(_));
    match is_rows && query.order.is_empty() && query.limit.is_none() && query.offset == 0 {
        true => Ok(()),
        false => Err(Error::Request(
            "a subscription never ends, so it has no COUNT, ORDER BY or LIMIT".to_string(),
        )),
    }
}

fn wrong(error: Option<quarrier_filter::Error>) -> Error {
    match error {
        Some(error) => Error::Condition { place: "subscription".to_string(), error },
        None => Error::Request("a subscription is to a table".to_string()),
    }
}

fn of_row(error: quarrier_filter::Error) -> Error {
    wrong(Some(error))
}
