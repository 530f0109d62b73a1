//! Assembles the parts of all workers into one table.
//!
//! ```text
//!  parts ─→ fields ─→ a plan for each column ─→ segments, converted or with new codes
//!           by name    narrowest type of all,    in parallel, each freed once it
//!                      one sorted dictionary     is replaced
//! ```

pub(super) mod convert;
mod dictionaries;
mod fields;
mod parallel;
mod plan;

pub(super) use parallel::in_parallel;
use parallel::in_parallel_with;

use std::sync::Arc;

use quarrier_core::region::give_back_freed_memory;

use super::{Column, Table};
use crate::column::raw::SEGMENT_ROWS;
use crate::column::{SegmentColumn, Strings};
use crate::part::Part;
use crate::{Field, Packing, Schema};
use fields::ColumnParts;
use plan::Plan;

/// With fewer rows, too little memory is unused to be worth the time.
const SETTLED_ROWS_MIN: u64 = 1 << 20;

/// The segments of the table to assemble, in order.
pub(super) struct Pieces<'p> {
    /// The number of rows of each segment.
    rows: Vec<u32>,
    /// The columns, by name, with their parts.
    columns: Vec<ColumnParts<'p>>,
}

/// A column of one segment, and the index of its dictionary among the column's dictionaries; `None`
/// if no row has the field.
pub(super) type Piece = Option<(Arc<SegmentColumn>, usize)>;

impl Table {
    /// Assembles the parts of workers on `workers` threads: segments in the order of their places,
    /// fields in the order in which they occur in the messages. A column gets the narrowest type
    /// that holds all its values; exact numbers become floats if 38 digits do not hold all of them,
    /// and [`Column::rounded`] counts those that lost digits. Strings get one dictionary for all
    /// segments; none if a worker gave up its own, most strings are distinct, or they are too
    /// large.
    ///
    /// Memory besides parts and table: the positions of all strings of a column's dictionaries, and
    /// a segment per thread.
    ///
    /// # Panics
    ///
    /// If a part contradicts itself: a column with a different number of rows than its segment, a
    /// code without a string, a column without a field.
    pub fn assemble(parts: Vec<Part>, workers: usize) -> Table {
        Self::assemble_packed(parts, workers, None, Packing::default())
    }

    /// Like [`assemble`](Self::assemble), with only the columns of `schema`, in its order. A column
    /// has its type in `schema`, or the narrowest one that holds this type and all values.
    ///
    /// # Panics
    ///
    /// As [`assemble`](Self::assemble).
    pub fn assemble_as(schema: &Schema, parts: Vec<Part>, workers: usize) -> Table {
        Self::assemble_packed(parts, workers, Some(schema), Packing::default())
    }

    /// Like [`assemble`](Self::assemble) or [`assemble_as`](Self::assemble_as), with limits on
    /// packing.
    #[doc(hidden)]
    pub fn assemble_packed(
        mut parts: Vec<Part>,
        workers: usize,
        schema: Option<&Schema>,
        packing: Packing,
    ) -> Table {
        let mut taken: Vec<_> =
            (0..parts.len()).map(|part| std::mem::take(&mut parts[part].segments)).collect();
        let pieces = Pieces::of_parts(&parts, &mut taken, schema);
        drop(taken);
        let table = Table::from_pieces(pieces, workers, packing);
        drop(parts);
        table.settled()
    }

    /// Concatenates the rows of all `tables`, as if the tables were parts of one. Shares unchanged
    /// segments and dictionaries.
    pub fn concat(tables: &[Table], workers: usize) -> Table {
        Table::from_pieces(Pieces::of_tables(tables), workers, Packing::default()).settled()
    }

    /// Returns the memory of the freed parts to the system if the table is large.
    fn settled(self) -> Table {
        if self.rows() >= SETTLED_ROWS_MIN {
            give_back_freed_memory();
        }
        self
    }

    fn from_pieces(pieces: Pieces<'_>, workers: usize, packing: Packing) -> Table {
        let Pieces { rows, columns } = pieces;
        let right = rows.iter().all(|&rows| (1..=SEGMENT_ROWS).contains(&(rows as usize)));
        assert!(right, "a segment has 1 to {SEGMENT_ROWS} rows");
        let rows = &rows;
        let mut planned = in_parallel(columns, workers, |column| Plan::new(column, rows, packing));
        let mut jobs = Vec::new();
        for (column, planned) in planned.iter_mut().enumerate() {
            let pieces = std::mem::take(&mut planned.pieces);
            jobs.extend(pieces.into_iter().enumerate().map(|(at, piece)| (column, at, piece)));
        }
        let plans = &planned;
        let segments = in_parallel_with(jobs, workers, Vec::new, |codes, job| {
            let (column, segment, piece) = job;
            plans[column].segment(piece, rows[segment] as usize, codes)
        });
        let mut segments = segments.into_iter();
        let mut schema = Schema::default();
        let mut columns = Vec::new();
        for plan in planned {
            schema.fields.push(Field { name: plan.name, kind: plan.kind });
            let segments = segments.by_ref().take(rows.len()).collect();
            columns.push(Column { rounded: plan.rounded, ..Column::of(plan.dictionary, segments) });
        }
        Table::of(schema, columns, rows)
    }
}

/// The dictionaries of a column, including duplicates.
pub(super) type Dictionaries<'p> = Vec<&'p Strings>;
