//! Evaluates conditions on messages while they are parsed, without a table.
//!
//! ```text
//!  parser ─→ Sieve (a Row): tests of a column against constants ─ at once, as the value arrives
//!                           everything else ─ holds its values until the message is complete
//!            └─ is_true(condition) ─→ AND, OR, NOT of the results
//! ```
//!
//! Each column is bound with a type. A value that does not fit it makes the row a *misfit*: only
//! the types that the row needs are known. Bind the conditions to those types and read the message
//! again.

mod compile;
mod index;
mod lists;
mod row;
mod test;
mod tree;

use std::collections::HashMap;
use std::sync::Arc;

use quarrier_messages::{Kind, Schema};

use crate::naive::{self, Datum};
use crate::number::Exact;
use crate::sql::Lists;
use crate::{Expr, Fault};
use index::Index;
use lists::RowList;
use test::{NumberTest, TextTest};
use tree::Tree;

/// Streaming predicate evaluation: conditions bound to one schema, and the state of the current
/// row. Each worker has its own.
#[derive(Debug, Clone)]
pub struct Sieve {
    columns: Vec<Column>,
    /// The columns by their names.
    names: HashMap<Box<str>, usize>,
    /// For each of the schema's columns, its index in `columns`.
    places: Vec<Option<usize>>,
    conditions: Arc<[Tree]>,
    /// Many conditions, by the values that they require.
    index: Option<Arc<Index>>,
    /// The conditions that are not in the index.
    rest: Arc<[u32]>,
    /// The outcome of each test: see [`test`].
    truths: Vec<u8>,
    /// The outcomes of tests of absent values.
    absent: Vec<u8>,
    holds_values: bool,
    held: Vec<HeldValue>,
    held_text: String,
    misfits: Vec<(usize, Kind)>,
    lists: Vec<RowList>,
    /// Elements of the row that have no column: the list and the index.
    beyond: Vec<(usize, u64)>,
}

/// A column that a condition names.
#[derive(Debug, Clone)]
struct Column {
    name: Box<str>,
    /// Whether a field whose name differs only in ASCII case belongs to this column, too.
    is_open: bool,
    /// The column's index in the schema.
    place: usize,
    kind: Kind,
    numbers: Vec<(u32, NumberTest)>,
    strings: Vec<(u32, TextTest)>,
    is_held: bool,
    /// Whether it is an element of a list.
    is_element: bool,
    /// The lists that it is an element of.
    elements: Vec<lists::Membership>,
    /// Other columns that the same field belongs to.
    also: Vec<usize>,
    /// Whether `elements` and `also` are known.
    is_placed: bool,
    /// Whether the index tests its values.
    is_indexed: bool,
    /// Whether the row had a field for it.
    is_seen: bool,
}

/// A value to hold until the message is complete.
#[derive(Debug, Clone, Copy)]
enum HeldValue {
    Null,
    Boolean(bool),
    Integer(i64),
    Exact(i128, u8),
    Float(f64),
    Date(i32),
    Timestamp(i64),
    /// Start and end in `held_text`.
    Text(usize, usize),
}

impl Sieve {
    /// Makes a sieve of `conditions`, which are bound to `schema`. Fields of messages belong to
    /// columns with the same name; for columns of [`Kind::Null`], whose type is still unknown,
    /// names may also differ in ASCII case.
    pub fn new(schema: &Schema, conditions: &[Expr]) -> Self {
        Sieve::of(schema, conditions.into())
    }

    /// As [`Sieve::new`], without a copy of the conditions.
    pub fn of(schema: &Schema, conditions: Arc<[Expr]>) -> Self {
        compile::compiled(schema, &conditions)
    }

    /// Lets fields whose names differ only in ASCII case belong to these columns of the schema,
    /// too, as to those of [`Kind::Null`].
    #[must_use]
    pub fn open(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        for column in columns {
            if let Some(at) = self.places.get(column).copied().flatten() {
                self.columns[at].is_open = true;
            }
        }
        self
    }

    /// Whether the row had a field for this column of the schema, even one without a value.
    pub fn has_seen(&self, column: usize) -> bool {
        let at = self.places.get(column).copied().flatten();
        at.is_some_and(|at| self.columns[at].is_seen) || self.has_seen_list(column)
    }

    /// Whether a condition names this column of the schema.
    pub fn names(&self, column: usize) -> bool {
        self.places.get(column).is_some_and(Option::is_some)
    }

    /// Whether values of this column of the schema take part in calculations, or are compared with
    /// other columns: then the number of digits may matter, not only the value.
    pub fn is_held(&self, column: usize) -> bool {
        let at = self.places.get(column).copied().flatten();
        at.is_some_and(|at| self.columns[at].is_held)
    }

    /// Begins the next row.
    #[inline]
    pub fn clear(&mut self) {
        self.truths.copy_from_slice(&self.absent);
        if self.holds_values {
            self.held.fill(HeldValue::Null);
            self.held_text.clear();
        }
        self.misfits.clear();
        self.clear_lists();
    }

    /// Adds lists of messages. A field may be an element of one even if the schema has no column
    /// for it. Call this last.
    #[must_use]
    pub fn with_lists(mut self, lists: &Lists) -> Self {
        self.add_lists(lists);
        self
    }

    /// Returns the columns of the schema whose types do not fit the row's values, with types that
    /// do.
    #[inline]
    pub fn misfits(&self) -> &[(usize, Kind)] {
        &self.misfits
    }

    /// Returns the elements of the row's lists that have no column yet: the number of the list among
    /// its [`Lists`], and the index.
    #[inline]
    pub fn beyond(&self) -> &[(usize, u64)] {
        &self.beyond
    }

    /// Whether the conditions can be evaluated on the row, after all its fields were set.
    #[inline]
    pub fn fits(&self) -> bool {
        self.misfits.is_empty() && self.beyond.is_empty()
    }

    /// Whether condition number `condition` is TRUE for the row, which fits.
    ///
    /// # Errors
    /// If the condition has no value.
    #[inline]
    pub fn is_true(&self, condition: usize) -> Result<bool, Fault> {
        match &self.conditions[condition] {
            Tree::Tests(tests) => {
                Ok(tests.iter().all(|&test| self.truths[test as usize] == test::TRUE))
            }
            tree => Ok(self.truth(tree)? == Some(true)),
        }
    }

    /// Finds the conditions that are TRUE for the row, which fits, in their order.
    ///
    /// # Errors
    /// The first condition that has no value, and the fault.
    pub fn all_true(&self, found: &mut Vec<u32>) -> Result<(), (usize, Fault)> {
        let mut faults = Vec::new();
        self.outcomes(found, &mut faults);
        match faults.into_iter().min_by_key(|(condition, _)| *condition) {
            None => Ok(()),
            Some((condition, fault)) => Err((condition as usize, fault)),
        }
    }

    /// Finds the conditions that are TRUE for the row, which fits, in their order, and those that have no
    /// value, in any order.
    pub fn outcomes(&self, found: &mut Vec<u32>, faults: &mut Vec<(u32, Fault)>) {
        found.clear();
        faults.clear();
        for &condition in &*self.rest {
            match self.is_true(condition as usize) {
                Ok(true) => found.push(condition),
                Ok(false) => {}
                Err(fault) => faults.push((condition, fault)),
            }
        }
        if let Some(index) = &self.index {
            self.find(index, found, faults);
            found.sort_unstable();
        }
    }

    /// Returns the number of conditions.
    pub fn conditions(&self) -> usize {
        self.conditions.len()
    }

    fn truth(&self, tree: &Tree) -> Result<Option<bool>, Fault> {
        match tree {
            Tree::Constant(truth) => Ok(*truth),
            Tree::Test(test) => Ok(test::truth(self.truths[*test as usize])),
            Tree::Tests(tests) => {
                // The order of outcomes is FALSE, TRUE, UNKNOWN.
                let truths = tests.iter().map(|&test| self.truths[test as usize]);
                let (least, greatest) =
                    truths.fold((test::TRUE, test::TRUE), |(a, b), t| (a.min(t), b.max(t)));
                Ok(test::truth(if least == test::FALSE { least } else { greatest }))
            }
            Tree::And(operands) => self.joined(operands, false),
            Tree::Or(operands) => self.joined(operands, true),
            Tree::Not(operand) => Ok(self.truth(operand)?.map(|truth| !truth)),
            Tree::Is(operand, truth) => Ok(Some(self.truth(operand)? == *truth)),
            Tree::Row(expr) => naive::truth(expr, self),
            Tree::Indexed(number) => match &self.index {
                Some(index) => naive::truth(index.condition(*number as usize), self),
                None => Ok(None),
            },
        }
    }

    fn joined(&self, operands: &[Tree], decisive: bool) -> Result<Option<bool>, Fault> {
        let mut result = Ok(Some(!decisive));
        for operand in operands {
            match self.truth(operand) {
                Ok(Some(truth)) if truth == decisive => return Ok(Some(decisive)),
                Ok(Some(_)) => {}
                Ok(None) => result = result.and(Ok(None)),
                Err(fault) => result = result.and(Err(fault)),
            }
        }
        result
    }
}

impl naive::Row for Sieve {
    fn datum(&self, column: usize) -> Datum<'_> {
        let Some(at) = self.places.get(column).copied().flatten() else { return Datum::Null };
        let kind = self.columns[at].kind;
        match (self.held[at], kind) {
            (HeldValue::Null, _) => Datum::Null,
            (HeldValue::Boolean(truth), _) => Datum::Boolean(truth),
            (HeldValue::Integer(number), Kind::Decimal { scale }) => grown(number.into(), 0, scale),
            (HeldValue::Exact(mantissa, from), Kind::Decimal { scale }) => {
                grown(mantissa, from, scale)
            }
            (HeldValue::Integer(number), _) => Datum::Integer(number),
            (HeldValue::Exact(mantissa, scale), _) => Datum::Decimal { mantissa, scale },
            (HeldValue::Float(number), _) => Datum::Float(number),
            (HeldValue::Date(day), _) => Datum::Date(day),
            (HeldValue::Timestamp(nanoseconds), _) => Datum::Timestamp(nanoseconds),
            (HeldValue::Text(from, to), _) => Datum::Text(self.held_text[from..to].into()),
        }
    }
}

/// Returns a number with as many decimals as its column has, if they fit.
fn grown(mantissa: i128, from: u8, scale: u8) -> Datum<'static> {
    let exact = Exact::new(mantissa, from);
    match exact.rescaled(scale.max(from)) {
        Ok(Exact { mantissa, scale }) => Datum::Decimal { mantissa, scale },
        Err(_) => Datum::Decimal { mantissa, scale: from },
    }
}
