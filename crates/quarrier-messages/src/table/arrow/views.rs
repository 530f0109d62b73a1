//! Selected rows of a table as a record batch for query engines.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::builder::make_view;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, StringViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use foldhash::fast::RandomState;

use super::show::{Shown, data_type_of, decimals, shared, whole};
use crate::column::{Data, Dictionary, Packed, SegmentColumn, Strings};
use crate::{Kind, Table};

/// Selected rows of a table in the Arrow types of query engines: strings are Utf8View, everything
/// else is as in [`Batches`](super::Batches). About 2 ns per value. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Views {
    table: Arc<Table>,
    schema: SchemaRef,
    /// A dictionary's strings as views, by column, if all of them are inline; built on first use.
    known: Arc<[OnceLock<Option<Vec<u128>>>]>,
}

/// Returns the types in Arrow of columns, given the number of digits of exact numbers by the column's index and
/// their decimals.
pub(in crate::table) fn views_schema(
    schema: &crate::Schema,
    precision: impl Fn(usize, u8) -> u8,
) -> SchemaRef {
    let field = |(at, field): (usize, &crate::Field)| {
        let data_type = data_type_of(field.kind, &Shown::View, |scale| precision(at, scale));
        Field::new(&*field.name, data_type, true)
    };
    let fields: Vec<Field> = schema.fields.iter().enumerate().map(field).collect();
    Arc::new(Schema::new(fields))
}

/// Rows of one segment.
#[derive(Debug, Clone)]
pub enum Places<'p> {
    /// Consecutive rows.
    Range(Range<usize>),
    /// Any rows, in any order.
    These(&'p [u32]),
}

/// Maximum length of a string that is stored inline in its view.
const INLINE_BYTES_MAX: usize = 12;

/// A batch shares a dictionary only if that has at most this many bytes per row: consumers that add
/// up the memory of batches count the dictionary for each of them.
const SHARED_BYTES_PER_ROW: usize = 16;

/// Maximum bytes per row of strings to copy without deduplication.
const COPIED_BYTES_PER_ROW: usize = 64;

impl Views {
    /// Makes views of `table`.
    pub fn new(table: Arc<Table>) -> Self {
        let precision = |at: usize, scale: u8| table.columns()[at].precision(scale);
        let schema = views_schema(table.schema(), precision);
        Views::with_schema(table, schema)
    }

    fn with_schema(table: Arc<Table>, schema: SchemaRef) -> Self {
        let known = (0..schema.fields().len()).map(|_| OnceLock::new()).collect();
        Views { table, schema, known }
    }

    /// Makes views of the columns of `schema`, in its order, with its numbers of digits for exact numbers: a
    /// part of a table may need fewer digits than the table. `None` if `table` lacks a column, or one has
    /// another type or needs more digits.
    pub fn of_part(table: &Table, schema: &SchemaRef) -> Option<Self> {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let views = Views::new(Arc::new(table.with_names(names)?));
        let is_held = |(own, declared): (&Arc<Field>, &Arc<Field>)| {
            let (own, declared) = (own.data_type(), declared.data_type());
            let is_held = match (own, declared) {
                (DataType::Decimal128(own, _), DataType::Decimal128(digits, _)) => own <= digits,
                _ => true,
            };
            is_held && wanted(own, declared) == declared
        };
        let is_part = views.schema.fields().iter().zip(schema.fields()).all(is_held);
        is_part.then(|| Views::with_schema(views.table, Arc::clone(schema)))
    }

    /// Returns the table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Returns the columns' names and types.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns values of a column, given their keys: integers, mantissas, dates, nanoseconds,
    /// booleans, or codes of the column's dictionary for strings.
    ///
    /// # Panics
    ///
    /// If the column or a code does not exist.
    pub fn values(&self, column: usize, numbers: &[Option<i64>]) -> ArrayRef {
        let dictionary = self.table.columns()[column].dictionary();
        let kind = self.table.schema().fields[column].kind;
        if let (Kind::Text, Some(dictionary)) = (kind, dictionary) {
            let strings = numbers.iter().map(|number| Some(dictionary.get((*number)? as usize)));
            return Arc::new(strings.collect::<StringViewArray>());
        }
        let nulls: NullBuffer = numbers.iter().map(Option::is_some).collect();
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let numbers = numbers.iter().map(|number| number.unwrap_or_default());
        if let Kind::Decimal { .. } = kind {
            let data_type = self.schema.field(column).data_type();
            return decimals(numbers.map(i128::from).collect(), nulls, data_type);
        }
        whole(kind, numbers.collect(), nulls)
    }

    /// Returns rows of a segment, with the columns at these indexes of the table, which have
    /// `schema`. Without columns, the batch has only a number of rows.
    ///
    /// # Errors
    ///
    /// If `schema` differs from the columns' own.
    ///
    /// # Panics
    ///
    /// If the segment, a row or a column does not exist.
    pub fn batch(
        &self,
        schema: &SchemaRef,
        columns: &[usize],
        segment: usize,
        places: &Places<'_>,
    ) -> Result<RecordBatch, ArrowError> {
        let arrays = columns.iter().enumerate().map(|(at, &place)| {
            let column = &self.table.columns()[place];
            let (segment, dictionary) = (&column.segments()[segment], column.dictionary());
            if let (Data::Codes(codes), Some(dictionary)) = (segment.data(), dictionary)
                && let Some(known) = self.known[place].get_or_init(|| short(dictionary))
            {
                let codes = places.numbers(codes);
                // A row with NULL may have any code.
                let view = |code: i64| known.get(code as usize).copied().unwrap_or_default();
                let views = codes.into_iter().map(view).collect();
                return view_array(views, Vec::new(), nulls(segment, places));
            }
            let own = self.schema.field(place).data_type();
            let data_type = schema.fields().get(at).map_or(own, |field| field.data_type());
            array(segment, dictionary, places, wanted(own, data_type))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays.collect(), &options)
    }
}

impl Places<'_> {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Places::Range(range) => range.len(),
            Places::These(places) => places.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the range from the first to the last row, if the rows ascend and are at least half
    /// of the range.
    fn close(&self) -> Option<Range<usize>> {
        match self {
            Places::Range(range) => (!range.is_empty()).then(|| range.clone()),
            Places::These(places) => {
                let span = *places.first()? as usize..*places.last()? as usize + 1;
                (span.len() <= 2 * places.len() && places.is_sorted()).then_some(span)
            }
        }
    }

    fn each(&self, mut each: impl FnMut(usize)) {
        match self {
            Places::Range(range) => range.clone().for_each(each),
            Places::These(places) => places.iter().for_each(|&place| each(place as usize)),
        }
    }

    fn numbers(&self, packed: &Packed) -> Vec<i64> {
        match self {
            Places::Range(range) => {
                let mut numbers = vec![0; range.len()];
                packed.unpack(range.start, &mut numbers);
                numbers
            }
            Places::These(places) => {
                let mut numbers = Vec::with_capacity(places.len());
                packed.gather(places, &mut numbers);
                numbers
            }
        }
    }
}

/// Returns the type of a column, with the requested number of digits for exact numbers: rows taken
/// from a table may need fewer digits than the table.
fn wanted<'t>(own: &'t DataType, wanted: &'t DataType) -> &'t DataType {
    match (own, wanted) {
        (DataType::Decimal128(_, one), DataType::Decimal128(_, other)) if one == other => wanted,
        _ => own,
    }
}

fn array(
    segment: &Arc<SegmentColumn>,
    dictionary: Option<&Arc<Dictionary>>,
    places: &Places<'_>,
    data_type: &DataType,
) -> ArrayRef {
    let nulls = nulls(segment, places);
    match segment.data() {
        Data::Null => arrow_array::new_null_array(data_type, places.len()),
        Data::Whole(packed) if matches!(segment.kind(), Kind::Decimal { .. }) => {
            let mantissas = places.numbers(packed).into_iter().map(i128::from);
            decimals(mantissas.collect(), nulls, data_type)
        }
        Data::Shifted { shift, packed } => {
            let mantissas = places.numbers(packed).into_iter().map(|it| shift + i128::from(it));
            decimals(mantissas.collect(), nulls, data_type)
        }
        Data::Exact(numbers) => {
            let mut mantissas = Vec::with_capacity(places.len());
            places.each(|place| mantissas.push(numbers[place]));
            decimals(mantissas, nulls, data_type)
        }
        Data::Whole(packed) => whole(segment.kind(), places.numbers(packed), nulls),
        Data::Scaled { exponent, packed } => {
            let numbers = places.numbers(packed).into_iter();
            let floats: Vec<f64> =
                numbers.map(|number| crate::column::scaled(number, *exponent)).collect();
            Arc::new(Float64Array::new(floats.into(), nulls))
        }
        Data::Float(values) => {
            let mut floats = Vec::with_capacity(places.len());
            places.each(|place| floats.push(values[place]));
            Arc::new(Float64Array::new(floats.into(), nulls))
        }
        Data::Text(strings) => match places.close() {
            Some(span) => segment_views(segment, strings, span, places, nulls),
            None => copied(strings, places, |place| place, nulls),
        },
        Data::Codes(packed) => {
            let Some(dictionary) = dictionary else { unreachable!("codes have a dictionary") };
            let codes = places.numbers(packed);
            if dictionary.bytes().len() <= SHARED_BYTES_PER_ROW * codes.len() {
                return viewed(dictionary, &codes, nulls);
            }
            let codes: Vec<u32> = codes.into_iter().map(|code| code as u32).collect();
            copied(dictionary, &Places::These(&codes), |code| code, nulls)
        }
    }
}

fn nulls(segment: &SegmentColumn, places: &Places<'_>) -> Option<NullBuffer> {
    if segment.valid().is_empty() || segment.kind() == Kind::Null {
        return None;
    }
    let bits = match places {
        Places::Range(range) => {
            // Copy only the words that contain the rows.
            let words = &segment.valid()[range.start / 64..range.end.div_ceil(64)];
            BooleanBuffer::new(Buffer::from_vec(words.to_vec()), range.start % 64, range.len())
        }
        Places::These(places) => {
            places.iter().map(|&place| segment.is_valid(place as usize)).collect()
        }
    };
    Some(NullBuffer::new(bits))
}

/// Maximum size of a dictionary whose strings are all kept as views.
const KNOWN_MAX: usize = 1 << 18;

/// Returns a dictionary's strings as views, if all of them are inline.
fn short(dictionary: &Dictionary) -> Option<Vec<u128>> {
    let is_short = dictionary.len() <= KNOWN_MAX
        && dictionary.iter().all(|text| text.len() <= INLINE_BYTES_MAX);
    is_short.then(|| dictionary.iter().map(|text| make_view(text.as_bytes(), 0, 0)).collect())
}

/// Makes views that point into a dictionary, and keep it alive.
fn viewed(dictionary: &Arc<Dictionary>, codes: &[i64], nulls: Option<NullBuffer>) -> ArrayRef {
    let (ends, bytes) = (dictionary.ends(), dictionary.bytes());
    let view = |code: usize| {
        let start = if code == 0 { 0 } else { ends[code - 1] };
        make_view(&bytes[start as usize..ends[code] as usize], 0, start)
    };
    let views: Vec<u128> = if dictionary.len() <= codes.len() {
        let known: Vec<u128> = (0..dictionary.len()).map(view).collect();
        codes.iter().map(|&code| known[code as usize]).collect()
    } else {
        codes.iter().map(|&code| view(code as usize)).collect()
    };
    let is_inline = bytes.len() <= INLINE_BYTES_MAX
        || (0..dictionary.len()).all(|at| dictionary.get(at).len() <= INLINE_BYTES_MAX);
    let buffers = if is_inline { Vec::new() } else { vec![shared(bytes, dictionary.clone())] };
    view_array(views, buffers, nulls)
}

/// Makes views that point into a segment's strings within `span`, and keep the segment alive.
fn segment_views(
    segment: &Arc<SegmentColumn>,
    strings: &Strings,
    span: Range<usize>,
    places: &Places<'_>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let ends = strings.ends();
    let start = |row: usize| if row == 0 { 0 } else { ends[row - 1] };
    let (first, end) = (start(span.start), ends[span.end - 1]);
    let bytes = &strings.bytes()[first as usize..end as usize];
    let (mut views, mut is_inline) = (Vec::with_capacity(places.len()), true);
    places.each(|row| {
        let text = &bytes[(start(row) - first) as usize..(ends[row] - first) as usize];
        is_inline &= text.len() <= INLINE_BYTES_MAX;
        views.push(make_view(text, 0, start(row) - first));
    });
    let owner = || shared(bytes, Arc::<SegmentColumn>::clone(segment));
    view_array(views, if is_inline { Vec::new() } else { vec![owner()] }, nulls)
}

/// Makes views of copied strings; inline strings need no copy, and NULL has none. If repeated
/// strings would take too much memory, each distinct string is copied once.
fn copied(
    strings: &Strings,
    places: &Places<'_>,
    number: impl Fn(usize) -> usize,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let mut numbers = Vec::with_capacity(places.len());
    let (mut row, mut length, mut next, mut rises) = (0, 0, 0, true);
    places.each(|place| {
        let is_valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        numbers.push(is_valid.then(|| number(place)));
        if let Some(number) = numbers[row] {
            length +=
                Some(strings.get(number).len()).filter(|&len| len > INLINE_BYTES_MAX).unwrap_or(0);
            (rises, next) = (rises && number >= next, number + 1);
        }
        row += 1;
    });
    let comes_once = rises || length <= COPIED_BYTES_PER_ROW * numbers.len();
    let mut bytes = Vec::with_capacity(if comes_once { length } else { 0 });
    let mut copies: HashMap<usize, u32, RandomState> = HashMap::default();
    let mut view = |number: usize| {
        let text = strings.get(number).as_bytes();
        if text.len() <= INLINE_BYTES_MAX {
            return make_view(text, 0, 0);
        }
        // All strings together have less than 2^31 bytes.
        let mut copy = || {
            let at = bytes.len() as u32;
            bytes.extend_from_slice(text);
            at
        };
        let at = if comes_once { copy() } else { *copies.entry(number).or_insert_with(copy) };
        make_view(text, 0, at)
    };
    let views = numbers.into_iter().map(|number| number.map_or(0, &mut view)).collect();
    let buffers = if bytes.is_empty() { Vec::new() } else { vec![Buffer::from_vec(bytes)] };
    view_array(views, buffers, nulls)
}

fn view_array(views: Vec<u128>, buffers: Vec<Buffer>, nulls: Option<NullBuffer>) -> ArrayRef {
    let views = ScalarBuffer::from(views);
    // SAFETY: the callers make every view of a UTF-8 string: with `make_view` of the string and its
    // offset in the only buffer, or inline if it has at most 12 bytes; 0 is an empty inline string.
    // They omit the buffer only if all views are inline. `nulls` has a bit for each view.
    Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers, nulls) })
}
