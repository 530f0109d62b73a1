//! The parts of all workers become one table.
//!
//! ```text
//!  parts ─→ fields ─→ a plan for each column ─→ segments, converted or with new codes
//!           by name    least kind of all,        in parallel, each freed as it is
//!                      one sorted dictionary     replaced
//! ```

mod convert;
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
use crate::column::{SegmentColumn, Texts};
use crate::part::Part;
use crate::{Field, Packing, Schema};
use fields::ColumnParts;
use plan::Plan;

/// Fewer rows leave too little unused memory to be worth the time.
const SETTLED_ROWS_MIN: u64 = 1 << 20;

/// Segments on the way into a table, in order.
pub(super) struct Pieces<'p> {
    /// The rows of each.
    rows: Vec<u32>,
    /// The columns, by name, with their parts.
    columns: Vec<ColumnParts<'p>>,
}

/// A column of one segment, and the number of the dictionary of its codes among those of its
/// column; `None` where no row has the field.
pub(super) type Piece = Option<(Arc<SegmentColumn>, usize)>;

impl Table {
    /// Joins the work of `workers` on that many threads: segments in the order of their places, fields
    /// in the order in which messages show them. A column gets the narrowest type that holds all its
    /// values; exact numbers become floats if 38 digits do not hold all of them, and
    /// [`Column::rounded`] counts those that lost digits. Strings get one dictionary for all segments,
    /// unless a worker gave up its own, most strings differ or they are too large: then none.
    ///
    /// Memory beside parts and table: the places of all strings of a column's dictionaries, and a
    /// segment for each thread.
    ///
    /// # Panics
    ///
    /// If a part contradicts itself: a column with other rows than its segment, a code without
    /// a string, a column without a field.
    pub fn assemble(parts: Vec<Part>, workers: usize) -> Table {
        Self::assemble_packed(parts, workers, None, Packing::default())
    }

    /// As [`assemble`](Self::assemble), with the columns of `schema`, in its order, and no others.
    /// A column has the type that it has there, or the least one that holds this type and all its
    /// values.
    ///
    /// # Panics
    ///
    /// As [`assemble`](Self::assemble) does.
    pub fn assemble_as(schema: &Schema, parts: Vec<Part>, workers: usize) -> Table {
        Self::assemble_packed(parts, workers, Some(schema), Packing::default())
    }

    /// As [`assemble`](Self::assemble) or [`assemble_as`](Self::assemble_as), packed by other
    /// bounds.
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

    /// The rows of all `tables`, one table after the other, as if they were parts of one. Unchanged
    /// segments and dictionaries are shared.
    pub fn concat(tables: &[Table], workers: usize) -> Table {
        Table::from_pieces(Pieces::of_tables(tables), workers, Packing::default()).settled()
    }

    /// The table, after its parts have been freed.
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

/// A list of the dictionaries of a column, and of those that are the same as one before.
pub(super) type Dictionaries<'p> = Vec<&'p Texts>;
