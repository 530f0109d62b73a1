//! Processes rows of a segment, a few thousand at a time: their slots, and their numbers.

use std::ops::Range;

use quarrier_messages::column::{Data, SegmentColumn};
use quarrier_messages::{Places, Table};

use super::bounds::{Domain, NumberKind};
use super::{GroupPlan, Number};

/// Number of rows to process at once, so that their state stays in the L1 cache.
pub(super) const CHUNK_ROWS: usize = 4_096;

/// If at least one in this many rows is selected, the others are calculated, too.
const DENSE_ROWS: usize = 4;

/// The selected rows of a chunk.
#[derive(Debug, Clone)]
pub(super) enum Rows<'p> {
    /// Consecutive rows.
    Range(Range<usize>),
    /// These rows, which are close together.
    Dense(&'p [u32]),
    /// These rows, which are far apart.
    Sparse(&'p [u32]),
}

/// Selected rows, divided into chunks.
pub(super) struct Chunks<'p> {
    left: Rows<'p>,
}

impl<'p> Chunks<'p> {
    pub(super) fn of(places: &Places<'p>) -> Self {
        let left = match places {
            Places::Range(range) => Rows::Range(range.clone()),
            Places::These(rows) => Rows::Sparse(rows),
        };
        Chunks { left }
    }
}

impl<'p> Iterator for Chunks<'p> {
    type Item = Rows<'p>;

    fn next(&mut self) -> Option<Rows<'p>> {
        match &mut self.left {
            Rows::Range(range) => {
                let end = range.end.min(range.start + CHUNK_ROWS);
                let chunk = range.start..end;
                range.start = end;
                (!chunk.is_empty()).then_some(Rows::Range(chunk))
            }
            Rows::Dense(rows) | Rows::Sparse(rows) => {
                let first = *rows.first()? as usize;
                let near = rows.partition_point(|&row| (row as usize) < first + CHUNK_ROWS);
                let span = rows[near - 1] as usize + 1 - first;
                let is_dense = near * DENSE_ROWS >= span;
                let taken = if is_dense { near } else { rows.len().min(CHUNK_ROWS) };
                let (chunk, left) = rows.split_at(taken);
                *rows = left;
                Some(match is_dense {
                    true if span == taken => Rows::Range(first..first + taken),
                    true => Rows::Dense(chunk),
                    false => Rows::Sparse(chunk),
                })
            }
        }
    }
}

/// The state of a chunk's rows.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The slot of each selected row.
    pub(super) slots: Vec<u32>,
    /// The index of each selected row's numbers; empty if that is the row's own index.
    pub(super) places: Vec<u32>,
    /// The selected rows, by their index in the segment.
    pub(super) rows: Vec<u32>,
    /// The values of each integer number.
    pub(super) wholes: Vec<Vec<i64>>,
    /// The values of each float number.
    pub(super) floats: Vec<Vec<f64>>,
    keys: Vec<i64>,
}

/// Returns the bytes that a chunk takes: its slots, rows and places, a key, and its numbers.
pub(super) fn nbytes(plan: &GroupPlan) -> usize {
    CHUNK_ROWS * (3 * size_of::<u32>() + (1 + plan.grouping.numbers.len()) * size_of::<i64>())
}

impl Chunk {
    pub(super) fn new(plan: &GroupPlan) -> Self {
        let numbers = plan.grouping.numbers.len();
        Chunk {
            slots: Vec::with_capacity(CHUNK_ROWS),
            places: Vec::new(),
            rows: Vec::new(),
            wholes: vec![Vec::new(); numbers],
            floats: vec![Vec::new(); numbers],
            keys: Vec::new(),
        }
    }

    /// Loads these rows.
    pub(super) fn load(&mut self, table: &Table, plan: &GroupPlan, segment: usize, rows: Rows<'_>) {
        self.place(&rows);
        self.slots.clear();
        self.slots.resize(self.rows.len(), 0);
        for (&key, domain) in plan.grouping.keys.iter().zip(&plan.domains) {
            self.advance(&table.columns()[key].segments()[segment], *domain, &rows);
        }
        for (at, number) in plan.grouping.numbers.iter().enumerate() {
            match *number {
                Number::Column(column) => {
                    let segment = &table.columns()[column].segments()[segment];
                    match plan.reaches[at].kind {
                        NumberKind::Whole(..) => load(segment, &rows, &mut self.wholes[at]),
                        NumberKind::Float => {
                            load_floats(segment, &rows, &mut self.keys, &mut self.floats[at]);
                        }
                        NumberKind::Counted => {}
                    }
                }
                Number::Constant(value) => {
                    let length = rows.lanes();
                    self.wholes[at].clear();
                    self.wholes[at].resize(length, value);
                }
                // Only the numbers of rows with NULL can wrap.
                Number::Plus(a, b) => self.calculate(at, (a, b), i64::wrapping_add),
                Number::Minus(a, b) => self.calculate(at, (a, b), i64::wrapping_sub),
                Number::Times(a, b) => self.calculate(at, (a, b), i64::wrapping_mul),
            }
        }
    }

    fn place(&mut self, rows: &Rows<'_>) {
        self.places.clear();
        self.rows.clear();
        match rows {
            Rows::Range(range) => self.rows.extend(range.start as u32..range.end as u32),
            Rows::Dense(rows) => {
                let first = rows[0];
                self.rows.extend_from_slice(rows);
                self.places.extend(rows.iter().map(|row| row - first));
            }
            Rows::Sparse(rows) => self.rows.extend_from_slice(rows),
        }
    }

    /// Adds a key's codes to the slots.
    fn advance(&mut self, segment: &SegmentColumn, domain: Domain, rows: &Rows<'_>) {
        load(segment, rows, &mut self.keys);
        let Chunk { slots, places, keys, rows, .. } = self;
        let size = domain.size as u32;
        let shift = i64::from(domain.has_null);
        let has_null_here = !segment.valid().is_empty() || matches!(segment.data(), Data::Null);
        // The validity of the row decides: a value that is not a code belongs to NULL.
        let code = |key: i64| key.wrapping_sub(domain.least).wrapping_add(shift) as u32;
        if has_null_here {
            for (at, (slot, &row)) in slots.iter_mut().zip(rows.iter()).enumerate() {
                let place = places.get(at).map_or(at, |&place| place as usize);
                let is_valid = is_valid(segment, row as usize);
                *slot = *slot * size + if is_valid { code(keys[place]) } else { 0 };
            }
        } else if places.is_empty() {
            for (slot, &key) in slots.iter_mut().zip(keys.iter()) {
                *slot = *slot * size + code(key);
            }
        } else {
            for (slot, &place) in slots.iter_mut().zip(places.iter()) {
                *slot = *slot * size + code(keys[place as usize]);
            }
        }
    }

    fn calculate(&mut self, at: usize, (a, b): (usize, usize), step: impl Fn(i64, i64) -> i64) {
        let (before, rest) = self.wholes.split_at_mut(at);
        let into = &mut rest[0];
        into.clear();
        into.extend(before[a].iter().zip(&before[b]).map(|(&a, &b)| step(a, b)));
    }
}

impl Rows<'_> {
    /// Returns how many rows have their numbers calculated.
    fn lanes(&self) -> usize {
        match self {
            Rows::Range(range) => range.len(),
            Rows::Dense(rows) => span(rows).len(),
            Rows::Sparse(rows) => rows.len(),
        }
    }
}

fn span(rows: &[u32]) -> Range<usize> {
    rows[0] as usize..rows[rows.len() - 1] as usize + 1
}

/// Whether a row has a value; false for a column without any.
pub(super) fn is_valid(segment: &SegmentColumn, row: usize) -> bool {
    segment.is_valid(row) && !matches!(segment.data(), Data::Null)
}

/// Loads the integers or codes of a column; 0 if it has no values.
fn load(segment: &SegmentColumn, rows: &Rows<'_>, out: &mut Vec<i64>) {
    out.clear();
    let (Data::Whole(packed) | Data::Codes(packed) | Data::Scaled { packed, .. }) = segment.data()
    else {
        out.resize(rows.lanes(), 0);
        return;
    };
    let range = match rows {
        Rows::Sparse(rows) => return packed.gather(rows, out),
        Rows::Dense(rows) => span(rows),
        Rows::Range(range) => range.clone(),
    };
    out.resize(range.len(), 0);
    packed.unpack(range.start, out);
}

fn load_floats(
    segment: &SegmentColumn,
    rows: &Rows<'_>,
    numbers: &mut Vec<i64>,
    out: &mut Vec<f64>,
) {
    out.clear();
    match segment.data() {
        Data::Float(floats) => match rows {
            Rows::Range(range) => out.extend_from_slice(&floats[range.clone()]),
            Rows::Dense(rows) => out.extend_from_slice(&floats[span(rows)]),
            Rows::Sparse(rows) => out.extend(rows.iter().map(|&row| floats[row as usize])),
        },
        Data::Scaled { exponent, .. } => {
            load(segment, rows, numbers);
            let power = 10_f64.powi((*exponent).into());
            out.extend(numbers.iter().map(|&number| number as f64 / power));
        }
        Data::Null
        | Data::Whole(_)
        | Data::Shifted { .. }
        | Data::Exact(_)
        | Data::Codes(_)
        | Data::Text(_) => {
            out.resize(rows.lanes(), 0.0);
        }
    }
}
