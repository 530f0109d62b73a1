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
//! falls behind reads the log from its mark. Subscriptions that read the same messages share them once parsed,
//! and equal ones also share the rows found.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_filter::{Answer, Query, Scan, Select, sql};
use quarrier_messages::kept::{Changes, ReadyChanges};
use quarrier_messages::{Kind, Schema, Table};

use super::DataFolder;
use super::found::{Changed, FoundRows};
use super::matching::{ConditionTable, Conditions, Matched};
use crate::{Error, Result};

/// Maximum number of rows to return at once, unless more have the same mark.
const ROWS_AT_ONCE: usize = 8_192;

/// Maximum number of changed rows in which to find all rows at once, for all equal subscriptions.
const SHARED_ROWS_MAX: u64 = 8 * ROWS_AT_ONCE as u64;

/// Number of rows to match with conditions between two checks of the flag.
const ROWS_BETWEEN_CHECKS: usize = 256;

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
    matching: Option<ConditionTable>,
    workers: usize,
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
    conditions: Option<Conditions>,
    waiting: Option<Waiting>,
    workers: usize,
}

/// Rows that need no work.
#[derive(Debug)]
pub enum Ready {
    /// Rows that an equal subscription found.
    Rows(Arc<Changed>),
    /// There are none now.
    Nothing,
    /// [`Subscription::next`] has to find out, or to report an error.
    Unknown,
}

/// Rows that were found but not yet returned.
#[derive(Debug)]
enum Waiting {
    /// Rows that equal subscriptions share, up to a mark, and the next piece of them.
    Shared {
        found: Arc<FoundRows>,
        next: usize,
        mark: u64,
    },
    Alone(WaitingRows),
}

#[derive(Debug)]
struct WaitingRows {
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
            matching: None,
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

    /// Sets the table of standing conditions: each row is returned once for every condition that is TRUE for
    /// it, with its id, and not at all if there is none. Rows of the snapshot meet the conditions as of its
    /// mark, and every later row, also one that is gone, those that stand before its mark. New and removed
    /// conditions have no effect on earlier rows. `None` for no conditions.
    pub fn matching(mut self, conditions: Option<ConditionTable>) -> Self {
        self.matching = conditions;
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
        let start = |names| Conditions::start(kept, names, mark, &schema, (self.workers, stop));
        let conditions = self.matching.as_ref().map(start).transpose()?;
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
            conditions,
            waiting: None,
            workers: self.workers,
        };
        if self.has_snapshot {
            subscription.meet(&whole, stop)?;
            let found = subscription.found_alone(whole, stop)?;
            subscription.waiting = Some(Waiting::Alone(found));
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

    /// Returns the type of the conditions' ids, [`Kind::Integer`] or [`Kind::Text`]; `None` without
    /// conditions.
    pub fn matched_id(&self) -> Option<Kind> {
        self.conditions.as_ref().map(Conditions::id_kind)
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
    pub fn next(&mut self, stop: &AtomicBool) -> Result<Option<Arc<Changed>>> {
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
                self.meet(&changes, stop)?;
                self.mark = changes.mark();
                continue;
            }
            self.follow(changes.table().schema())?;
            self.meet(&changes, stop)?;
            self.waiting = Some(self.found(changes, stop)?);
        }
    }

    /// Returns the next rows, like [`next`](Self::next), if an equal subscription found them: takes no time,
    /// and does not wait for other threads.
    pub fn ready(&mut self) -> Ready {
        loop {
            match &self.waiting {
                Some(Waiting::Alone(_)) => return Ready::Unknown,
                Some(Waiting::Shared { .. }) => {
                    if let Some(changed) = self.next_shared() {
                        return Ready::Rows(changed);
                    }
                }
                None => {}
            }
            if self.is_over() {
                return Ready::Nothing;
            }
            let changes = match self.changes_ready() {
                Some(ReadyChanges::Parsed(changes)) => changes,
                Some(ReadyChanges::Nothing(mark)) => {
                    self.mark = self.mark.max(mark);
                    return Ready::Nothing;
                }
                None => return Ready::Unknown,
            };
            if changes.table().rows() == 0 {
                // Only keys without rows were removed.
                self.mark = self.mark.max(changes.mark());
                continue;
            }
            let is_alike = *changes.table().schema() == self.schema && self.can_share(&changes);
            match FoundRows::known(&changes, (&*self.text, &self.query)).filter(|_| is_alike) {
                Some(found) => self.waiting = Some(self.shared(found, &changes)),
                None => return Ready::Unknown,
            }
        }
    }

    fn changes_ready(&self) -> Option<ReadyChanges> {
        let range = (self.mark, self.until);
        let store = self.conditions.is_none().then(|| self.kept.store())?;
        store.changes_ready(&self.table, range, &self.schema)
    }

    /// Returns a scout for this subscription and all equal ones; `None` with conditions, whose rows are not
    /// shared.
    pub fn scout(&self) -> Option<Scout> {
        if self.conditions.is_some() {
            return None;
        }
        Some(Scout(Subscription {
            kept: Arc::clone(&self.kept),
            text: self.text.clone(),
            table: self.table.clone(),
            query: self.query.clone(),
            schema: self.schema.clone(),
            shown: self.shown.clone(),
            mark: self.kept.last_mark()?,
            snapshot_mark: 0,
            until: u64::MAX,
            conditions: None,
            waiting: None,
            workers: 1,
        }))
    }

    /// Reads the conditions that stand before these changes, and between them.
    fn meet(&mut self, changes: &Changes, stop: &AtomicBool) -> Result<()> {
        let Some(conditions) = &mut self.conditions else { return Ok(()) };
        conditions.learn(&self.kept, changes.mark(), stop)?;
        match changes.table().rows() {
            0 => conditions.advance(changes.mark()),
            _ => conditions.rebind(changes.table().schema()),
        }
        Ok(())
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

    /// Finds the matching rows, or takes those that an equal subscription found.
    fn found(&self, changes: Changes, stop: &AtomicBool) -> Result<Waiting> {
        if !self.can_share(&changes) {
            return Ok(Waiting::Alone(self.found_alone(changes, stop)?));
        }
        let find = || {
            let mut found = self.found_alone(changes.clone(), stop)?;
            let mut pieces = Vec::new();
            loop {
                let picked = found.pick(self.snapshot_mark);
                if picked.rows.is_empty() {
                    return Ok(pieces);
                }
                pieces.push(self.projected(&changes, picked, stop)?);
            }
        };
        match FoundRows::of(&changes, (&self.text, &self.query), find)? {
            Some(found) => Ok(self.shared(found, &changes)),
            None => Ok(Waiting::Alone(self.found_alone(changes, stop)?)),
        }
    }

    /// Returns whether all equal subscriptions find the same rows in these changes: all of them are new, and
    /// requested.
    fn can_share(&self, changes: &Changes) -> bool {
        let rows = changes.table().rows();
        let seen = self.mark.max(self.snapshot_mark);
        self.conditions.is_none()
            && (1..=SHARED_ROWS_MAX).contains(&rows)
            && changes.mark_of(0) > seen
            && changes.mark_of(rows - 1) <= self.until
    }

    fn shared(&self, found: Arc<FoundRows>, changes: &Changes) -> Waiting {
        Waiting::Shared { found, next: 0, mark: changes.mark().min(self.until) }
    }

    /// Finds the matching rows that are new and requested.
    fn found_alone(&self, changes: Changes, stop: &AtomicBool) -> Result<WaitingRows> {
        let queries = std::slice::from_ref(&self.query);
        let scan = Scan::new(changes.table(), queries).workers(self.workers).cancel(stop);
        let answer = scan.run().pop().unwrap_or_else(|| Ok(Answer::default()));
        let mut rows = answer.map_err(of_row)?.rows;
        rows.retain(|row| {
            let mark = changes.mark_of(*row);
            mark > self.mark && mark <= self.until
        });
        Ok(WaitingRows { changes, rows, next: 0 })
    }

    /// Returns some of the rows found; `None` if all were returned.
    fn handed_out(&mut self, stop: &AtomicBool) -> Result<Option<Arc<Changed>>> {
        let waiting = match &mut self.waiting {
            None => return Ok(None),
            Some(Waiting::Shared { .. }) => return Ok(self.next_shared()),
            Some(Waiting::Alone(waiting)) => waiting,
        };
        let picked = match &mut self.conditions {
            None => waiting.pick(self.snapshot_mark),
            Some(conditions) => waiting.pick_matching(self.snapshot_mark, conditions, stop)?,
        };
        let changes = waiting.changes.clone();
        if picked.rows.is_empty() {
            self.end_waiting(changes.mark().min(self.until));
            return Ok(None);
        }
        self.projected(&changes, picked, stop).map(Arc::new).map(Some)
    }

    /// Returns the next piece of shared rows; `None` if all were returned.
    fn next_shared(&mut self) -> Option<Arc<Changed>> {
        let Some(Waiting::Shared { found, next, mark }) = &mut self.waiting else { return None };
        let piece = found.piece(*next);
        let mark = *mark;
        *next += 1;
        if piece.is_none() {
            self.end_waiting(mark);
        }
        piece
    }

    /// Every row up to this mark was returned.
    fn end_waiting(&mut self, mark: u64) {
        self.mark = self.mark.max(mark);
        self.waiting = None;
    }

    fn projected(&self, changes: &Changes, picked: Picked, stop: &AtomicBool) -> Result<Changed> {
        let Picked { is_snapshot, rows, matched } = picked;
        let answer = Answer { count: rows.len() as u64, rows };
        let shown = self.query.project(changes.table(), &answer, 1, stop).map_err(of_row)?;
        Ok(Changed::new((changes, &answer.rows), shown, is_snapshot, matched))
    }
}

/// Finds new rows for equal subscriptions, which then [have them ready](Subscription::ready).
#[derive(Debug)]
pub struct Scout(Subscription);

impl Scout {
    /// Finds the rows of all new messages, and passes them to `each`. Skips the messages if they have more
    /// bytes than `bytes_max`; subscriptions find those rows themselves.
    ///
    /// # Errors
    /// Those of [`Subscription::next`]. The scout is useless then.
    pub fn run(
        &mut self,
        bytes_max: u64,
        stop: &AtomicBool,
        mut each: impl FnMut(&Changed),
    ) -> Result<()> {
        let Scout(subscription) = self;
        let (store, mark) = (subscription.kept.store(), subscription.mark);
        if store.bytes_after(&subscription.table, mark)? > bytes_max
            && let Some(last) = subscription.kept.last_mark()
        {
            subscription.end_waiting(last);
        }
        while let Some(changed) = subscription.next(stop)? {
            each(&changed);
        }
        Ok(())
    }
}

/// Rows to return together.
#[derive(Debug, Default)]
struct Picked {
    is_snapshot: bool,
    rows: Vec<u64>,
    matched: Vec<Matched>,
}

impl WaitingRows {
    /// Picks the next rows, all of the snapshot or all later ones; none if all were picked.
    fn pick(&mut self, snapshot_mark: u64) -> Picked {
        let rest = &self.rows[self.next..];
        let mark = |at: usize| rest.get(at).map(|row| self.changes.mark_of(*row));
        let Some(first) = mark(0) else { return Picked::default() };
        let is_snapshot = first <= snapshot_mark;
        let is_alike = |row: &&u64| (self.changes.mark_of(**row) <= snapshot_mark) == is_snapshot;
        let mut count = rest.iter().take(ROWS_AT_ONCE).take_while(is_alike).count();
        // Keep a row and its replacement together, or a client that resumes after its mark would miss one.
        while count > 0 && mark(count).is_some() && mark(count) == mark(count - 1) {
            count += 1;
        }
        let rows = rest[..count].to_vec();
        self.next += count;
        Picked { is_snapshot, rows, matched: Vec::new() }
    }

    /// Picks rows as [`pick`](Self::pick) does, each once for every condition that it meets.
    fn pick_matching(
        &mut self,
        snapshot_mark: u64,
        conditions: &mut Conditions,
        stop: &AtomicBool,
    ) -> Result<Picked> {
        let mut picked = Picked::default();
        let mut last_mark = None;
        while let Some(&row) = self.rows.get(self.next) {
            let mark = self.changes.mark_of(row);
            let is_snapshot = mark <= snapshot_mark;
            let is_apart = is_snapshot != picked.is_snapshot && !picked.rows.is_empty();
            // Everything with one mark belongs together, as in `pick`.
            let is_full = picked.rows.len() >= ROWS_AT_ONCE && last_mark != Some(mark);
            if is_apart || is_full {
                break;
            }
            if self.next.is_multiple_of(ROWS_BETWEEN_CHECKS) && stop.load(Ordering::Relaxed) {
                return Err(of_row(quarrier_filter::Error::Cancelled));
            }
            if !is_snapshot {
                conditions.advance(mark);
            }
            let is_gone = self.changes.is_gone(row);
            conditions.find(self.changes.table(), row, is_gone, &mut picked.matched);
            picked.rows.resize(picked.matched.len(), row);
            picked.is_snapshot = is_snapshot;
            last_mark = Some(mark);
            self.next += 1;
        }
        Ok(picked)
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
