//! Shares parsed changes: the first reader of some messages parses them, and all others get the same table.
//!
//! ```text
//!  readers after mark 70 ─┐                  ┌─ step 71..75 ─ parsed once
//!  a reader after mark 73 ┴─→ Steps::claim ─→┤
//!  a reader far behind ─────────────────────→└─ a step of its own, kept only while there is room
//! ```
//!
//! A step consists of whole batches, and every reader skips what it has seen. So a reader may take any step
//! that contains its next message, and readers that begin at different marks soon take the same steps.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use quarrier_core::sync::lock;

use crate::kept::changes::Changes;
use crate::{Result, Schema};

/// Maximum number of steps of a table to keep: those of the latest commits, because readers are a few commits
/// apart.
const TABLE_STEPS_MAX: usize = 4;
/// Maximum number of steps of all tables, and of the bytes of their messages, unless one step has more.
const STEPS_MAX: usize = 64;
const BYTES_MAX: u64 = 8 << 20;

/// The latest steps.
#[derive(Default)]
pub(super) struct Steps {
    /// In the order of their creation.
    kept: Mutex<Vec<Arc<Step>>>,
}

/// What the messages of a step depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepKey<'s> {
    /// The table's number.
    pub(super) table: u32,
    /// Number of messages that retention had removed before, since it may remove rows that a message replaced.
    pub(super) gone: u64,
    /// The columns before the messages.
    pub(super) schema: &'s Schema,
}

/// Messages of consecutive batches of a table.
pub(super) struct Step {
    table: u32,
    gone: u64,
    schema: Schema,
    marks: Range<u64>,
    message_bytes: u64,
    /// Whether a reader took it since the last call of [`Steps::drop_unused`].
    is_used: AtomicBool,
    parsed: OnceLock<Changes>,
    /// The reader that parses it holds this lock, for which others wait.
    parsing: Mutex<()>,
}

impl Step {
    /// Returns the marks of its messages.
    pub(super) fn marks(&self) -> Range<u64> {
        self.marks.clone()
    }

    fn has(&self, key: &StepKey<'_>, mark: u64) -> bool {
        self.table == key.table
            && self.gone == key.gone
            && self.marks.contains(&mark)
            && self.schema == *key.schema
    }

    /// Returns the parsed messages; parses them if no other reader has. If that fails, the next reader tries
    /// again.
    pub(super) fn parsed(&self, parse: impl FnOnce() -> Result<Changes>) -> Result<Changes> {
        if let Some(parsed) = self.ready() {
            return Ok(parsed);
        }
        let _alone = lock(&self.parsing);
        match self.ready() {
            Some(parsed) => Ok(parsed),
            None => parse().map(|parsed| self.parsed.get_or_init(|| parsed).clone()),
        }
    }

    /// Returns the parsed messages without waiting; None if they are not parsed yet.
    pub(super) fn ready(&self) -> Option<Changes> {
        self.parsed.get().cloned()
    }
}

impl Steps {
    /// Returns the step that contains the message with this mark; None if there is none yet.
    pub(super) fn find(&self, key: &StepKey<'_>, mark: u64) -> Option<Arc<Step>> {
        let kept = lock(&self.kept);
        let step = kept.iter().rev().find(|step| step.has(key, mark))?;
        step.is_used.store(true, Ordering::Relaxed);
        Some(Arc::clone(step))
    }

    /// Returns the step that contains the first of these marks; without one, adds that of all of them.
    pub(super) fn claim(
        &self,
        key: &StepKey<'_>,
        marks: Range<u64>,
        message_bytes: u64,
    ) -> Arc<Step> {
        let mut kept = lock(&self.kept);
        if let Some(step) = kept.iter().rev().find(|step| step.has(key, marks.start)) {
            step.is_used.store(true, Ordering::Relaxed);
            return Arc::clone(step);
        }
        let step = Arc::new(Step {
            table: key.table,
            gone: key.gone,
            schema: key.schema.clone(),
            marks,
            message_bytes,
            is_used: AtomicBool::new(true),
            parsed: OnceLock::new(),
            parsing: Mutex::default(),
        });
        kept.push(Arc::clone(&step));
        forget_oldest(&mut kept, key.table);
        step
    }

    /// Drops the steps that no reader took since the last call.
    pub(super) fn drop_unused(&self) {
        lock(&self.kept).retain(|step| step.is_used.swap(false, Ordering::Relaxed));
    }

    /// Drops the steps of a table.
    pub(super) fn forget(&self, table: u32) {
        lock(&self.kept).retain(|step| step.table != table);
    }

    /// Drops all steps.
    pub(super) fn clear(&self) {
        lock(&self.kept).clear();
    }

    #[cfg(test)]
    fn marks(&self, table: u32) -> Vec<Range<u64>> {
        let kept = lock(&self.kept);
        kept.iter().filter(|step| step.table == table).map(|step| step.marks()).collect()
    }
}

/// Drops steps beyond the bounds. Of the table with the newest step, drops those with the lowest marks: readers
/// that are far behind leave the steps of the others alone.
fn forget_oldest(kept: &mut Vec<Arc<Step>>, table: u32) {
    let of_table = kept.iter().enumerate().filter(|(_, step)| step.table == table);
    if of_table.clone().count() > TABLE_STEPS_MAX
        && let Some((oldest, _)) = of_table.min_by_key(|(_, step)| step.marks.start)
    {
        kept.remove(oldest);
    }
    let mut bytes: u64 = kept.iter().map(|step| step.message_bytes).sum();
    while kept.len() > 1 && (kept.len() > STEPS_MAX || bytes > BYTES_MAX) {
        bytes -= kept.remove(0).message_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(table: u32, schema: &Schema) -> StepKey<'_> {
        StepKey { table, gone: 0, schema }
    }

    #[test]
    fn readers_take_the_step_that_contains_their_next_message() {
        let (steps, schema) = (Steps::default(), Schema::default());
        let first = steps.claim(&key(1, &schema), 5..9, 10);
        let claim = |key: &StepKey<'_>, marks: Range<u64>| steps.claim(key, marks, 10);
        assert!(Arc::ptr_eq(&first, &claim(&key(1, &schema), 5..12)));
        assert!(Arc::ptr_eq(&first, &claim(&key(1, &schema), 8..12)));
        let found = steps.find(&key(1, &schema), 8).unwrap();
        assert!(Arc::ptr_eq(&first, &found));
        assert!(steps.find(&key(1, &schema), 9).is_none());
        assert!(steps.find(&key(2, &schema), 8).is_none());
        assert!(steps.find(&StepKey { gone: 1, ..key(1, &schema) }, 8).is_none());
        let field = crate::Field { name: "a".into(), kind: crate::Kind::Text };
        let wider = Schema { fields: vec![field] };
        assert!(steps.find(&key(1, &wider), 8).is_none());
        assert_eq!(claim(&key(1, &wider), 8..12).marks(), 8..12);
        steps.forget(1);
        assert!(steps.find(&key(1, &schema), 8).is_none());
    }

    #[test]
    fn the_latest_steps_are_kept_within_their_bounds() {
        let (steps, schema) = (Steps::default(), Schema::default());
        for at in 10..16 {
            steps.claim(&key(1, &schema), at..at + 1, 10);
        }
        // A reader far behind does not displace them.
        let behind = steps.claim(&key(1, &schema), 3..5, 10);
        assert_eq!(behind.marks(), 3..5);
        assert_eq!(steps.marks(1), [12..13, 13..14, 14..15, 15..16]);
        // A large step is alone, and shared.
        let large = steps.claim(&key(2, &schema), 20..30, BYTES_MAX + 1);
        assert!(steps.marks(1).is_empty());
        assert!(Arc::ptr_eq(&large, &steps.claim(&key(2, &schema), 20..40, 10)));
        for table in 3..3 + 2 * STEPS_MAX as u32 {
            steps.claim(&key(table, &schema), 50..60, 10);
        }
        assert_eq!(lock(&steps.kept).len(), STEPS_MAX);
        steps.drop_unused();
        assert_eq!(lock(&steps.kept).len(), STEPS_MAX);
        let step = steps.find(&key(100, &schema), 55).unwrap();
        steps.drop_unused();
        assert_eq!(steps.marks(100), [step.marks()]);
        assert_eq!(lock(&steps.kept).len(), 1);
        steps.clear();
        assert!(lock(&steps.kept).is_empty());
    }

    #[test]
    fn a_step_that_fails_is_parsed_by_the_next_reader() {
        let (steps, schema) = (Steps::default(), Schema::default());
        let step = steps.claim(&key(1, &schema), 5..9, 10);
        assert!(step.ready().is_none());
        assert!(step.parsed(|| Err(crate::Error::Cancelled)).is_err());
        assert!(step.ready().is_none());
        let empty = || Ok(Changes::listed(crate::Table::default(), Vec::new(), 8));
        let first = step.parsed(empty).unwrap();
        let again = step.parsed(|| Err(crate::Error::Cancelled)).unwrap();
        assert!(Arc::ptr_eq(first.table(), again.table()));
        assert!(Arc::ptr_eq(first.table(), step.ready().unwrap().table()));
    }
}
