//! Standing conditions: they come and go, and each row finds those that are TRUE for it.
//!
//! ```text
//!  insert ─→ waiting ─(next row)─→ levels of sieves, each at least four times as large as the next
//!  remove ─→ its key is dropped; a level keeps the condition until half of all are dropped
//! ```
//!
//! A sieve of many conditions cannot grow, and compiling it takes time proportional to its conditions.
//! With these levels, each condition is compiled a logarithmic number of times, however conditions and
//! rows alternate (Bentley and Saxe, "Decomposable searching problems", 1980).

use std::collections::HashSet;
use std::sync::Arc;

use quarrier_messages::{Schema, Table, Value};

use crate::{Expr, Fault, Sieve};

/// How many times as large a level is as the next, at least.
const RATIO: usize = 4;

/// Conditions over rows of one schema, with keys that the caller chooses.
///
/// ```
/// use quarrier_filter::{MatchedRow, Standing, sql};
/// use quarrier_messages::{Field, Kind, Schema, Table};
///
/// let schema = Schema { fields: vec![Field { name: "qty".into(), kind: Kind::Integer }] };
/// let mut standing = Standing::new(&schema);
/// standing.insert(7, sql::condition("qty > 5", &schema)?);
/// assert_eq!(standing.len(), 1);
/// assert!(standing.remove(7) && !standing.remove(7));
/// # Ok::<(), quarrier_filter::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Standing {
    schema: Schema,
    keys: HashSet<u64>,
    waiting: Level,
    /// The largest first.
    levels: Vec<CompiledLevel>,
    found: Vec<u32>,
    faults: Vec<(u32, Fault)>,
}

#[derive(Debug, Clone, Default)]
struct Level {
    keys: Vec<u64>,
    conditions: Vec<Expr>,
}

/// Conditions with their keys, compiled.
#[derive(Debug, Clone)]
struct CompiledLevel {
    keys: Vec<u64>,
    /// The sieve has the same ones.
    conditions: Arc<[Expr]>,
    sieve: Sieve,
}

/// The conditions that concern a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchedRow {
    /// The keys of the conditions that are TRUE, ascending.
    pub matching: Vec<u64>,
    /// The keys of the conditions that have no value for the row, ascending.
    pub faults: Vec<(u64, Fault)>,
}

impl Level {
    fn append(&mut self, other: Level) {
        self.keys.extend(other.keys);
        self.conditions.extend(other.conditions);
    }

    fn without_others(self, keys: &HashSet<u64>) -> Level {
        let both = self.keys.into_iter().zip(self.conditions);
        let (keys, conditions) = both.filter(|(key, _)| keys.contains(key)).unzip();
        Level { keys, conditions }
    }

    fn compiled(self, schema: &Schema) -> CompiledLevel {
        let conditions: Arc<[Expr]> = self.conditions.into();
        let sieve = Sieve::of(schema, Arc::clone(&conditions));
        CompiledLevel { keys: self.keys, conditions, sieve }
    }
}

impl CompiledLevel {
    fn taken_apart(self) -> Level {
        let CompiledLevel { keys, mut conditions, sieve } = self;
        // Then the conditions are only here, unless a clone of the whole set has them.
        drop(sieve);
        let taken = |it: &mut Expr| std::mem::replace(it, Expr::Literal(Value::Null));
        let conditions = match Arc::get_mut(&mut conditions) {
            Some(all) => all.iter_mut().map(taken).collect(),
            None => conditions.to_vec(),
        };
        Level { keys, conditions }
    }
}

impl Standing {
    /// Makes an empty set of conditions over rows of this schema.
    pub fn new(schema: &Schema) -> Self {
        Standing {
            schema: schema.clone(),
            keys: HashSet::new(),
            waiting: Level::default(),
            levels: Vec::new(),
            found: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Adds a condition that is bound to the schema; keys rise. Takes constant time; the next row pays
    /// for compiling it.
    ///
    /// # Panics
    /// If the key is that of another condition.
    pub fn insert(&mut self, key: u64, condition: Expr) {
        assert!(self.keys.insert(key), "key {key} is in use");
        self.waiting.keys.push(key);
        self.waiting.conditions.push(condition);
    }

    /// Removes a condition; returns whether there was one. Takes constant time.
    pub fn remove(&mut self, key: u64) -> bool {
        self.keys.remove(&key)
    }

    /// Returns the number of conditions.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Finds the conditions that are TRUE for a row of a table with the schema, and those that have no
    /// value for it.
    ///
    /// # Panics
    /// If the table has no such row, or fewer columns than the schema.
    pub fn find(&mut self, table: &Table, row: u64, into: &mut MatchedRow) {
        into.matching.clear();
        into.faults.clear();
        if self.keys.is_empty() {
            return;
        }
        self.compile();
        for CompiledLevel { keys, sieve, .. } in &mut self.levels {
            sieve.take_row(table, row);
            debug_assert!(sieve.fits(), "the row has another schema");
            sieve.outcomes(&mut self.found, &mut self.faults);
            let found = self.found.iter().map(|&condition| keys[condition as usize]);
            into.matching.extend(found.filter(|key| self.keys.contains(key)));
            let faults = self.faults.drain(..);
            let faults = faults.map(|(condition, fault)| (keys[condition as usize], fault));
            into.faults.extend(faults.filter(|(key, _)| self.keys.contains(key)));
        }
        into.matching.sort_unstable();
        into.faults.sort_unstable_by_key(|(key, _)| *key);
    }

    /// Compiles the waiting conditions, with the levels that would be too small beside them.
    fn compile(&mut self) {
        let held: usize = self.levels.iter().map(|level| level.keys.len()).sum();
        let has_many_dropped = held + self.waiting.keys.len() > 2 * self.keys.len();
        if self.waiting.keys.is_empty() && !has_many_dropped {
            return;
        }
        let mut new = std::mem::take(&mut self.waiting).without_others(&self.keys);
        while let Some(last) = self.levels.last()
            && (has_many_dropped || last.keys.len() < RATIO * new.keys.len())
        {
            let Some(level) = self.levels.pop() else { break };
            let mut level = level.taken_apart();
            level.append(new);
            new = level.without_others(&self.keys);
        }
        if !new.keys.is_empty() {
            self.levels.push(new.compiled(&self.schema));
        }
    }
}
