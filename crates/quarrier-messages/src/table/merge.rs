//! Removes rows from a table; repacks only segments that lose rows.
//!
//! ```text
//!  segments ─→ untouched: shared · with dead rows: remaining rows taken, with those of neighbours
//! ```

use std::sync::Arc;

use super::assemble::in_parallel;
use super::{Column, Table};
use crate::column::raw::{RawColumn, RawData, SEGMENT_ROWS};
use crate::column::{Data, Dictionary, SegmentColumn, Strings};
use crate::{Field, HiddenColumns, Kind, Schema};

/// Segments to merge, or one that stays unchanged.
struct Group<'d> {
    /// Each segment with its dead rows.
    segments: Vec<(usize, &'d [u64])>,
    /// Number of remaining rows.
    rows: usize,
    is_shared: bool,
}

/// A segment of all columns.
struct Piece {
    rows: u32,
    columns: Vec<Arc<SegmentColumn>>,
}

impl Table {
    /// Returns the table without the rows `dead`, which ascend. Takes time only for the segments
    /// with dead rows; shares the other segments and all dictionaries.
    pub(crate) fn without(&self, dead: &[u64], workers: usize) -> Table {
        match dead.is_empty() {
            true => self.clone(),
            false => self.regrouped(dead, |_| false, workers),
        }
    }

    /// Merges small segments, and drops strings without rows from dictionaries.
    pub(crate) fn repacked(&self, workers: usize) -> Table {
        let is_small = |segment| self.segment_rows(segment) <= SEGMENT_ROWS / 2;
        let mut table = self.regrouped(&[], is_small, workers);
        for column in &mut table.columns {
            if let Some(smaller) = with_used_strings(column, workers) {
                *column = smaller;
            }
        }
        table
    }

    fn regrouped(&self, dead: &[u64], is_joined: impl Fn(usize) -> bool, workers: usize) -> Table {
        let groups = self.groups(dead, is_joined);
        let pieces = in_parallel(groups, workers, |group| self.pieces(&group));
        let pieces: Vec<Piece> = pieces.into_iter().flatten().collect();
        let rows: Vec<u32> = pieces.iter().map(|piece| piece.rows).collect();
        let mut all: Vec<Vec<Arc<SegmentColumn>>> = vec![Vec::new(); self.columns.len()];
        for piece in pieces {
            all.iter_mut().zip(piece.columns).for_each(|(column, segment)| column.push(segment));
        }
        let column = |(old, segments): (&Column, Vec<Arc<SegmentColumn>>)| Column {
            rounded: old.rounded,
            ..Column::of(old.dictionary.clone(), segments)
        };
        let columns = self.columns.iter().zip(all).map(column).collect();
        Table::of(self.schema.clone(), columns, &rows)
    }

    fn groups<'d>(&self, mut dead: &'d [u64], is_joined: impl Fn(usize) -> bool) -> Vec<Group<'d>> {
        let mut groups: Vec<Group<'d>> = Vec::new();
        for segment in 0..self.segments() {
            let end = self.segment_start(segment + 1);
            let (here, rest) = dead.split_at(dead.partition_point(|row| *row < end));
            dead = rest;
            let rows = self.segment_rows(segment) - here.len();
            let is_shared = here.is_empty() && !is_joined(segment);
            let fits = |last: &&mut Group<'_>| {
                !is_shared && !last.is_shared && last.rows + rows <= SEGMENT_ROWS
            };
            match groups.last_mut().filter(fits) {
                _ if rows == 0 => {}
                Some(last) => {
                    last.segments.push((segment, here));
                    last.rows += rows;
                }
                None => groups.push(Group { segments: vec![(segment, here)], rows, is_shared }),
            }
        }
        groups
    }

    fn pieces(&self, group: &Group<'_>) -> Vec<Piece> {
        // A segment that loses nothing stays unchanged, alone in its group.
        if let [(segment, [])] = group.segments[..] {
            let columns = self.columns.iter().map(|column| Arc::clone(&column.segments[segment]));
            return vec![Piece { rows: group.rows as u32, columns: columns.collect() }];
        }
        let mut rows = Vec::with_capacity(group.rows);
        for &(segment, mut dead) in &group.segments {
            for row in self.segment_start(segment)..self.segment_start(segment + 1) {
                match dead.split_first() {
                    Some((first, rest)) if *first == row => dead = rest,
                    _ => rows.push(row),
                }
            }
        }
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let piece = |rows: &[u64]| {
            let taken =
                |(column, field): (&Column, &Field)| Arc::new(self.taken(column, field.kind, rows));
            let columns = self.columns.iter().zip(&self.schema.fields).map(taken).collect();
            Piece { rows: rows.len() as u32, columns }
        };
        self.cut(&rows, &all).into_iter().map(piece).collect()
    }

    /// Returns the table with an additional column of integers, one per row.
    pub(crate) fn with_numbers(
        mut self,
        name: &str,
        mut numbers: impl Iterator<Item = i64>,
    ) -> Table {
        let segment = |segment| {
            let rows = self.segment_rows(segment);
            let data = RawData::Integer(numbers.by_ref().take(rows).collect());
            Arc::new(SegmentColumn::pack(&RawColumn { valid: Vec::new(), data }))
        };
        let segments = (0..self.segments()).map(segment).collect();
        self.schema.fields.push(Field { name: name.into(), kind: Kind::Integer });
        self.columns.push(Column::of(None, segments));
        self
    }

    /// Returns the table with only its first `count` columns.
    pub(crate) fn with_columns(&self, count: usize) -> Table {
        let fields = self.schema.fields.iter().take(count).cloned().collect();
        let columns = self.columns.iter().take(count).cloned().collect();
        let (starts, hidden) = (self.starts.clone(), HiddenColumns::default());
        Table { schema: Schema { fields }, columns, starts, hidden }
    }
}

/// Returns the column with a dictionary of only the strings that its rows use; `None` if that is
/// not much smaller.
fn with_used_strings(column: &Column, workers: usize) -> Option<Column> {
    let dictionary = column.dictionary.as_ref()?;
    let mut is_used = vec![false; dictionary.len()];
    for segment in &column.segments {
        for row in 0..segment.rows() {
            if let Some(is_used) = segment.code(row).and_then(|code| is_used.get_mut(code as usize))
            {
                *is_used = true;
            }
        }
    }
    let used = is_used.iter().filter(|is_used| **is_used).count();
    if 2 * used > dictionary.len() {
        return None;
    }
    let (mut strings, mut codes) = (Strings::new(), vec![0; dictionary.len()]);
    for (text, (code, is_used)) in dictionary.iter().zip(codes.iter_mut().zip(is_used)) {
        if is_used {
            *code = strings.push(text)?;
        }
    }
    let segments = in_parallel(column.segments.iter().collect(), workers, |segment| {
        let Data::Codes(_) = segment.data() else { return Arc::clone(segment) };
        let code = |row| segment.code(row).and_then(|code| codes.get(code as usize)).copied();
        let data = RawData::Codes((0..segment.rows()).map(|row| code(row).unwrap_or(0)).collect());
        Arc::new(SegmentColumn::pack(&RawColumn { valid: segment.valid().to_vec(), data }))
    });
    let dictionary = (used > 0).then(|| Arc::new(Dictionary::from_sorted(strings)));
    Some(Column { rounded: column.rounded, ..Column::of(dictionary, segments) })
}

#[cfg(test)]
mod tests {
    use quarrier_core::source::Memory;

    use super::*;
    use crate::{Format, Load, Value};

    fn table(from: u64, rows: u64) -> Table {
        let line =
            |n: u64| format!("{{\"n\":{n},\"word\":\"w{}\",\"half\":{}.5}}\n", n % 1_000, n % 7);
        let text: String = (from..from + rows).map(line).collect();
        Load::new(Format::Json).workers(1).run(&[&Memory::new("m", text)]).unwrap().table
    }

    fn numbers(table: &Table) -> Vec<i64> {
        let number = |row| match table.value(row, 0) {
            Value::Integer(number) => number,
            other => panic!("{other:?}"),
        };
        (0..table.rows()).map(number).collect()
    }

    fn check(table: &Table, expected: &[i64]) {
        assert_eq!(numbers(table), expected);
        for (row, n) in expected.iter().enumerate() {
            let word = Value::Text(format!("w{}", n % 1_000).into());
            assert_eq!(table.value(row as u64, 1), word);
        }
    }

    #[test]
    fn dead_rows_are_removed_and_others_stay_in_order() {
        let one = Table::concat(&[table(0, 70_000), table(70_000, 10), table(70_010, 500)], 1);
        assert_eq!(one.segments(), 4);
        for dead in [
            vec![],
            vec![0],
            vec![65_535, 65_536, 69_999, 70_000],
            (70_000..70_010).collect(),
            (0..70_510).filter(|row| row % 3 > 0).collect::<Vec<u64>>(),
            (0..70_510).collect(),
        ] {
            let is_left = |row: &i64| dead.binary_search(&(*row as u64)).is_err();
            let expected: Vec<i64> = (0..70_510).filter(is_left).collect();
            check(&one.without(&dead, 2), &expected);
        }
        let first = one.without(&[70_505], 1);
        for segment in 0..3 {
            let [old, new] = [&one, &first].map(|it| &it.columns()[0].segments()[segment]);
            assert!(Arc::ptr_eq(old, new), "segment {segment}");
        }
    }

    #[test]
    fn a_repacked_table_has_few_segments_and_no_unused_strings() {
        let parts: Vec<Table> = (0..200).map(|at| table(at * 10, 10)).collect();
        let all = Table::concat(&parts, 1);
        let dead: Vec<u64> = (0..2_000).filter(|row| row % 1_000 >= 100).collect();
        let few = all.without(&dead, 1).repacked(1);
        let expected: Vec<i64> = (0..2_000).filter(|row| row % 1_000 < 100).collect();
        assert_eq!(few.segments(), 1);
        check(&few, &expected);
        assert_eq!(few.columns()[1].dictionary().unwrap().len(), 100);
        assert!(few.columns()[1].segments()[0].zone().max <= 99);
    }

    #[test]
    fn a_column_of_numbers_can_be_added_and_removed() {
        let table = table(0, 70_000);
        let marked = table.clone().with_numbers("mark", 5..);
        assert_eq!(marked.value(69_999, 3), Value::Integer(70_004));
        assert_eq!(marked.with_columns(3).schema(), table.schema());
    }
}
