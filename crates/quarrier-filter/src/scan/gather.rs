//! Collects matching rows: counts them, keeps them, or keeps the first ones of an order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering as Memory};

use quarrier_core::sync::lock;
use quarrier_messages::Table;

use super::rank::{self, Rank};
use crate::{Answer, Fault, Order, Query, Select};

/// Number of rows to keep beyond the requested ones, before all columns of the order determine the
/// best.
const SLACK_ROWS: usize = 1024;

/// The requested result for matching rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Goal {
    /// Their number.
    Count,
    /// The first of them, in the order of the table.
    Rows {
        /// The maximum number; `None` for all.
        most: Option<u64>,
    },
    /// The first of them in an order.
    Best {
        /// The columns to sort by, the most significant first; at least one.
        order: Vec<Order>,
        /// The maximum number; `None` for all.
        most: Option<u64>,
    },
}

impl Goal {
    pub(crate) fn of(query: &Query) -> Goal {
        let most = query.limit.map(|limit| limit.saturating_add(query.offset));
        match &query.select {
            Select::Count { .. } => Goal::Count,
            Select::Rows(_) if query.order.is_empty() => Goal::Rows { most },
            Select::Rows(_) => Goal::Best { order: query.order.clone(), most },
        }
    }

    /// Returns the leading column of an order, if only the first rows are wanted.
    pub(crate) fn leading(&self) -> Option<Order> {
        match self {
            Goal::Best { order, most: Some(_) } => order.first().copied(),
            _ => None,
        }
    }

    fn most(&self) -> u64 {
        match self {
            Goal::Count | Goal::Rows { most: None } | Goal::Best { most: None, .. } => u64::MAX,
            Goal::Rows { most: Some(most) } | Goal::Best { most: Some(most), .. } => *most,
        }
    }
}

/// The state of one query that all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) goal: Goal,
    /// The first segment from which on no rows are needed.
    enough: AtomicUsize,
    /// The rows of finished segments.
    prefix: Mutex<Prefix>,
    /// The [`Rank::key`] beyond which no rows are needed.
    threshold: AtomicI64,
    /// The first row known to have a fault.
    fault_row: AtomicU64,
    fault: Mutex<Option<(u64, Fault)>>,
}

/// Counts of matching rows; segments finish in any order.
#[derive(Debug, Default)]
struct Prefix {
    /// All segments before this one are finished.
    next: usize,
    /// The number of rows in them.
    rows: u64,
    /// Later segments that are finished, with their numbers of rows.
    beyond: BTreeMap<usize, u64>,
}

impl Shared {
    pub(crate) fn new(goal: Goal) -> Shared {
        let nothing = goal.most() == 0;
        Shared {
            goal,
            enough: AtomicUsize::new(if nothing { 0 } else { usize::MAX }),
            prefix: Mutex::default(),
            threshold: AtomicI64::new(i64::MAX),
            fault_row: AtomicU64::new(u64::MAX),
            fault: Mutex::new(None),
        }
    }

    /// Whether rows of this segment may still be needed; `start` is its first row.
    pub(crate) fn wants(&self, segment: usize, start: u64) -> bool {
        segment < self.enough.load(Memory::Relaxed) && start < self.fault_row.load(Memory::Relaxed)
    }

    /// Returns the greatest key of the leading column that may still be wanted, if one is known.
    pub(crate) fn threshold(&self) -> Option<i64> {
        let key = self.threshold.load(Memory::Relaxed);
        (key != i64::MAX).then_some(key)
    }

    /// Records that `row` has no value.
    pub(crate) fn fail(&self, row: u64, fault: Fault) {
        let mut first = lock(&self.fault);
        if first.as_ref().is_none_or(|(known, _)| row < *known) {
            *first = Some((row, fault));
            self.fault_row.store(row, Memory::Relaxed);
        }
    }

    pub(crate) fn fault(&self) -> Option<(u64, Fault)> {
        lock(&self.fault).clone()
    }

    /// Records that a segment is finished, with this number of rows.
    pub(crate) fn finished(&self, segment: usize, found: u64) {
        let Goal::Rows { most: Some(most) } = self.goal else { return };
        let mut prefix = lock(&self.prefix);
        prefix.beyond.insert(segment, found);
        loop {
            let next = prefix.next;
            let Some(rows) = prefix.beyond.remove(&next) else { break };
            prefix.next += 1;
            prefix.rows += rows;
            if prefix.rows >= most {
                self.enough.fetch_min(prefix.next, Memory::Relaxed);
            }
        }
    }
}

/// The rows that one worker found for one query.
#[derive(Debug, Default)]
pub(crate) struct WorkerResult {
    pub(crate) count: u64,
    /// The rows of each segment, in the order in which segments were scanned.
    rows: Vec<(usize, Vec<u32>)>,
    /// The best rows so far, with the worst of them on top.
    best: BinaryHeap<Entry>,
    /// Blocks whose rows were tested.
    pub(crate) blocks_tested: u64,
    /// Blocks whose rows were not tested.
    pub(crate) blocks_skipped: u64,
}

/// A row that is among the best so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    rank: Rank,
    /// The row's index in the table.
    row: u64,
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.rank, self.row).cmp(&(other.rank, other.row))
    }
}

impl WorkerResult {
    /// Takes rows of a segment, in ascending order.
    pub(crate) fn take(
        &mut self,
        shared: &Shared,
        (table, segment): (&Table, usize),
        rows: impl Iterator<Item = usize>,
    ) {
        match &shared.goal {
            Goal::Count => self.count += rows.count() as u64,
            Goal::Rows { most } => {
                if self.rows.last().is_none_or(|(last, _)| *last != segment) {
                    self.rows.push((segment, Vec::new()));
                }
                if let Some((_, kept)) = self.rows.last_mut() {
                    let most =
                        most.map_or(usize::MAX, |most| most.try_into().unwrap_or(usize::MAX));
                    let room = most.saturating_sub(kept.len());
                    kept.extend(rows.take(room).map(|row| row as u32));
                }
            }
            Goal::Best { order, most } => {
                let start = table.segment_start(segment);
                for row in rows {
                    let rank = rank::of(table, order[0], segment, row);
                    let entry = Entry { rank, row: start + row as u64 };
                    self.better(shared, table, (order, *most), entry);
                }
            }
        }
    }

    /// Returns how many rows of `segment` were taken.
    pub(crate) fn rows_of(&self, segment: usize) -> u64 {
        let last = self.rows.last().filter(|(last, _)| *last == segment);
        last.map_or(0, |(_, rows)| rows.len() as u64)
    }

    fn better(
        &mut self,
        shared: &Shared,
        table: &Table,
        (order, most): (&[Order], Option<u64>),
        entry: Entry,
    ) {
        let most = usize::try_from(most.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let whole = rank::is_whole(table, order);
        // Keep rows with equal first columns up to a bound, and sort them at the end.
        let bound = if whole { most } else { most.saturating_mul(2).saturating_add(SLACK_ROWS) };
        if self.best.len() >= most && self.best.peek().is_some_and(|worst| entry.rank > worst.rank)
        {
            return;
        }
        self.best.push(entry);
        if self.best.len() > bound {
            if whole {
                self.best.pop();
            } else {
                let mut entries = std::mem::take(&mut self.best).into_sorted_vec();
                sort_alike(table, order, &mut entries);
                entries.truncate(most);
                self.best = entries.into();
            }
        }
        if self.best.len() >= most {
            self.tighten(shared);
        }
    }

    fn tighten(&self, shared: &Shared) {
        if let Some(key) = self.best.peek().and_then(|worst| worst.rank.threshold()) {
            shared.threshold.fetch_min(key, Memory::Relaxed);
        }
    }
}

/// The rows that match one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matches {
    /// The number of rows.
    Count(u64),
    /// The first rows of an order, by their index in the table.
    Best(Vec<u64>),
    /// All rows, in the order of the table: segments with the indexes of their rows, both
    /// ascending.
    Lying(Vec<(usize, Vec<u32>)>),
}

impl Matches {
    /// Merges the results of workers, and drops the first `offset` rows.
    pub(crate) fn of(
        table: &Table,
        shared: &Shared,
        found: Vec<WorkerResult>,
        offset: u64,
    ) -> Matches {
        let wanted = usize::try_from(shared.goal.most()).unwrap_or(usize::MAX);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        match &shared.goal {
            Goal::Count => Matches::Count(found.iter().map(|found| found.count).sum()),
            Goal::Rows { .. } => {
                let mut segments: Vec<_> = found.into_iter().flat_map(|found| found.rows).collect();
                segments.sort_unstable_by_key(|(segment, _)| *segment);
                cut(&mut segments, offset, wanted);
                Matches::Lying(segments)
            }
            Goal::Best { order, .. } => {
                let mut entries: Vec<_> = found.into_iter().flat_map(|found| found.best).collect();
                entries.sort_unstable();
                if !rank::is_whole(table, order) {
                    sort_alike(table, order, &mut entries);
                }
                let rows = entries.into_iter().map(|entry| entry.row);
                Matches::Best(rows.take(wanted).skip(offset).collect())
            }
        }
    }

    /// Converts to indexes in `table`.
    #[must_use]
    pub fn answer(self, table: &Table) -> Answer {
        let rows = match self {
            Matches::Count(count) => return Answer { count, rows: Vec::new() },
            Matches::Best(rows) => rows,
            Matches::Lying(segments) => {
                let mut all = Vec::with_capacity(segments.iter().map(|(_, rows)| rows.len()).sum());
                for (segment, rows) in segments {
                    let start = table.segment_start(segment);
                    all.extend(rows.into_iter().map(|row| start + u64::from(row)));
                }
                all
            }
        };
        Answer { count: rows.len() as u64, rows }
    }
}

/// Keeps the first `wanted` rows after dropping the first `offset`.
fn cut(segments: &mut Vec<(usize, Vec<u32>)>, offset: usize, wanted: usize) {
    let mut before = 0;
    for (_, rows) in &mut *segments {
        let count = rows.len();
        rows.truncate(wanted.saturating_sub(before));
        rows.drain(..offset.saturating_sub(before).min(rows.len()));
        before += count;
    }
    segments.retain(|(_, rows)| !rows.is_empty());
}

/// Sorts rows of equal rank by all columns of the order.
fn sort_alike(table: &Table, order: &[Order], entries: &mut [Entry]) {
    for alike in entries.chunk_by_mut(|a, b| a.rank == b.rank) {
        alike.sort_by(|a, b| rank::compared(table, order, a.row, b.row).then(a.row.cmp(&b.row)));
    }
}
