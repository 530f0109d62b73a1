//! Selects rows and columns of a table as a new table.

use std::sync::Arc;

use super::assemble::in_parallel;
use super::{Column, Table};
use crate::column::raw::{RawColumn, RawData, SEGMENT_ROWS};
use crate::column::{Data, Packed, SegmentColumn};
use crate::{Kind, Schema};

/// Maximum bytes of strings of a segment, in all columns together: their offsets have 32 bits.
const TEXT_BYTES_MAX: usize = 1 << 30;

impl Table {
    /// Returns these rows and columns, in these orders; rows and columns may be repeated. About 10
    /// ns per value. Shares dictionaries.
    ///
    /// # Panics
    ///
    /// If a row or column does not exist.
    #[must_use]
    pub fn take(&self, rows: &[u64], columns: &[usize], workers: usize) -> Table {
        let chunks = self.cut(rows, columns);
        let pairs =
            columns.iter().flat_map(|&column| chunks.iter().map(move |&rows| (column, rows)));
        let taken = in_parallel(pairs.collect(), workers, |(column, rows)| {
            let kind = self.schema.fields[column].kind;
            Arc::new(self.taken(&self.columns[column], kind, rows))
        });
        let mut taken = taken.into_iter();
        let mut schema = Schema::default();
        let mut kept = Vec::with_capacity(columns.len());
        for &column in columns {
            schema.fields.push(self.schema.fields[column].clone());
            let segments = taken.by_ref().take(chunks.len()).collect();
            kept.push(Column::of(self.columns[column].dictionary.clone(), segments));
        }
        let segment_rows: Vec<u32> = chunks.iter().map(|rows| rows.len() as u32).collect();
        Table::of(schema, kept, &segment_rows)
    }

    /// Divides rows among segments.
    pub(super) fn cut<'r>(&self, rows: &'r [u64], columns: &[usize]) -> Vec<&'r [u64]> {
        let is_long = |column: &&Column| {
            let mut segments = column.segments.iter();
            segments.any(|segment| matches!(segment.data(), Data::Text(_)))
        };
        let long: Vec<&Column> =
            columns.iter().map(|&column| &self.columns[column]).filter(is_long).collect();
        if long.is_empty() {
            return rows.chunks(SEGMENT_ROWS).collect();
        }
        let (mut chunks, mut left) = (Vec::new(), rows);
        while !left.is_empty() {
            let mut chunk = Filled::of(&long);
            let fits = left.iter().take(SEGMENT_ROWS).take_while(|&&row| {
                let (segment, place) = self.locate(row);
                chunk.holds(segment, place)
            });
            let (chunk, rest) = left.split_at(fits.count().max(1));
            chunks.push(chunk);
            left = rest;
        }
        chunks
    }

    pub(super) fn taken(&self, column: &Column, kind: Kind, rows: &[u64]) -> SegmentColumn {
        let data = match kind {
            Kind::Float => RawData::Float(self.floats(column, rows)),
            Kind::Text => match self.codes(column, rows) {
                Some(codes) => RawData::Codes(codes),
                None => self.strings(column, rows),
            },
            Kind::Null => RawData::Null(rows.len()),
            Kind::Decimal { scale } if column.is_wide() => {
                RawData::Wide { scale, mantissas: self.wide_numbers(column, rows) }
            }
            kind => RawData::of_numbers(kind, self.numbers(column, rows)),
        };
        let packed = SegmentColumn::pack(&RawColumn { valid: self.valid(column, rows), data });
        if *packed.data() == Data::Null { SegmentColumn::nulls(kind, rows.len()) } else { packed }
    }

    /// Calls `each` with every segment that has requested rows, and their indexes in it, in order.
    fn for_each_group(
        &self,
        column: &Column,
        rows: &[u64],
        mut each: impl FnMut(&SegmentColumn, &mut dyn Iterator<Item = usize>),
    ) {
        let mut left = rows;
        while let Some(&first) = left.first() {
            let (segment, _) = self.locate(first);
            let (start, end) = (self.segment_start(segment), self.segment_start(segment + 1));
            let count = left.iter().take_while(|&&row| (start..end).contains(&row)).count();
            let (group, rest) = left.split_at(count);
            each(&column.segments[segment], &mut group.iter().map(|&row| (row - start) as usize));
            left = rest;
        }
    }

    fn valid(&self, column: &Column, rows: &[u64]) -> Vec<u64> {
        let mut valid = vec![0; rows.len().div_ceil(64)];
        let mut at = 0;
        self.for_each_group(column, rows, |segment, places| {
            for place in places {
                valid[at / 64] |= u64::from(segment.is_valid(place)) << (at % 64);
                at += 1;
            }
        });
        valid
    }

    fn numbers(&self, column: &Column, rows: &[u64]) -> Vec<i64> {
        let mut numbers = Vec::with_capacity(rows.len());
        self.for_each_group(column, rows, |segment, places| match segment.data() {
            Data::Whole(packed) => gather(packed, places, &mut numbers),
            _ => numbers.extend(places.map(|_| 0)),
        });
        numbers
    }

    fn wide_numbers(&self, column: &Column, rows: &[u64]) -> Vec<i128> {
        let mut numbers = Vec::with_capacity(rows.len());
        self.for_each_group(column, rows, |segment, places| {
            numbers.extend(places.map(|place| segment.number(place).unwrap_or(0)));
        });
        numbers
    }

    fn floats(&self, column: &Column, rows: &[u64]) -> Vec<f64> {
        let mut floats = Vec::with_capacity(rows.len());
        self.for_each_group(column, rows, |segment, places| {
            floats.extend(places.map(|place| segment.float(place).unwrap_or(0.0)));
        });
        floats
    }

    /// Returns the codes, if the rows have only codes.
    fn codes(&self, column: &Column, rows: &[u64]) -> Option<Vec<u32>> {
        column.dictionary.as_ref()?;
        let mut numbers = Vec::with_capacity(rows.len());
        let mut is_plain = false;
        self.for_each_group(column, rows, |segment, places| match segment.data() {
            Data::Codes(packed) => gather(packed, places, &mut numbers),
            Data::Text(_) => is_plain = true,
            _ => numbers.extend(places.map(|_| 0)),
        });
        (!is_plain).then(|| numbers.into_iter().map(|code| code as u32).collect())
    }

    fn strings(&self, column: &Column, rows: &[u64]) -> RawData {
        let (mut ends, mut bytes) = (Vec::with_capacity(rows.len()), Vec::new());
        let dictionary = column.strings();
        self.for_each_group(column, rows, |segment, places| {
            for place in places {
                bytes.extend_from_slice(segment.text(place, dictionary).unwrap_or("").as_bytes());
                ends.push(bytes.len() as u32);
            }
        });
        RawData::Text { ends, bytes }
    }
}

/// A chunk of rows under construction.
struct Filled<'c> {
    /// The columns with plain strings, and for each whether the chunk has rows with codes and rows
    /// with plain strings.
    columns: Vec<(&'c Column, [bool; 2])>,
    bytes: usize,
    /// Bytes of the strings that have codes.
    of_codes: usize,
}

/// Maximum bytes of strings with codes in a chunk with plain strings, counting repetitions.
const SPELLED_BYTES_MAX: usize = 64 << 10;

impl<'c> Filled<'c> {
    fn of(columns: &[&'c Column]) -> Self {
        let columns = columns.iter().map(|&column| (column, [false; 2])).collect();
        Filled { columns, bytes: 0, of_codes: 0 }
    }

    /// Whether this row fits as well. It does not if strings that rows share would have to be
    /// stored for each of them.
    fn holds(&mut self, segment: usize, place: usize) -> bool {
        for (column, has) in &mut self.columns {
            let length = column.text(segment, place).map_or(0, str::len);
            let is_plain = matches!(column.segments[segment].data(), Data::Text(_));
            has[usize::from(is_plain)] = true;
            self.bytes += length;
            self.of_codes += if is_plain { 0 } else { length };
        }
        let spells = self.columns.iter().any(|(_, has)| *has == [true; 2]);
        self.bytes <= TEXT_BYTES_MAX && !(spells && self.of_codes > SPELLED_BYTES_MAX)
    }
}

fn gather(packed: &Packed, places: &mut dyn Iterator<Item = usize>, out: &mut Vec<i64>) {
    out.extend(places.map(|place| packed.get(place)));
}
