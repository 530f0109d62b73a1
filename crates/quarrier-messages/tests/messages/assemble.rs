//! An assembled table has the rows of the messages, whichever worker parsed them.

use proptest::prelude::*;
use quarrier_core::source::Memory;
use quarrier_messages::build::{Cell, FieldId, Row, RowBuilder};
use quarrier_messages::column::raw::{RawColumn, RawData};
use quarrier_messages::column::{Data, SegmentColumn, Strings};
use quarrier_messages::{
    Field, Format, Kind, Load, Part, PartField, PartSegment, Schema, Table, Value,
};

use crate::pack::same;

/// A message: the values set in the fields `a`, `b` and `c`.
type Message = [Option<Cell<'static>>; 3];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Lets worker `n % workers` write chunk `n` of the messages.
fn parts(messages: &[Message], chunk_rows: usize, workers: usize) -> Vec<Part> {
    let mut builders: Vec<_> =
        (0..workers).map(|_| (RowBuilder::new(9), Part::default())).collect();
    for (number, chunk) in messages.chunks(chunk_rows).enumerate() {
        let (builder, part) = &mut builders[number % workers];
        write(builder, part, number as u64, chunk);
    }
    let finished = builders.into_iter().map(|(builder, mut part)| {
        for (index, field) in part.fields.iter_mut().enumerate() {
            let (ends, bytes) = builder.dictionary(FieldId::new(index));
            field.dictionary = Strings::from_parts(ends.to_vec(), bytes.to_vec());
        }
        part
    });
    finished.collect()
}

fn write(builder: &mut RowBuilder, part: &mut Part, place: u64, messages: &[Message]) {
    for message in messages {
        for (name, cell) in NAMES.iter().zip(message) {
            if let Some(cell) = cell {
                let field = builder.field(name).unwrap();
                if field.index() == part.fields.len() {
                    part.fields.push(PartField { name: (*name).into(), ..PartField::default() });
                }
                builder.put(field, *cell);
            }
        }
        builder.commit();
    }
    let mut columns = vec![None; part.fields.len()];
    builder.finish_segment(|field, raw| columns[field.index()] = Some(SegmentColumn::pack(raw)));
    part.segments.push(PartSegment { place, rows: messages.len() as u32, columns });
}

/// Returns the value of a cell in a column of type `kind`.
fn expected(cell: Option<Cell<'_>>, kind: Kind) -> Value {
    let float = |cell| match cell {
        Cell::Integer(number) => number as f64,
        Cell::Float(float) => float,
        other => match other.as_exact() {
            Some((mantissa, scale)) => format!("{mantissa}e-{scale}").parse().unwrap(),
            None => panic!("{other:?} is no number"),
        },
    };
    match (cell.unwrap_or(Cell::Null), kind) {
        (Cell::Null, _) => Value::Null,
        (Cell::Boolean(truth), Kind::Boolean) => Value::Boolean(truth),
        (Cell::Integer(number), Kind::Integer) => Value::Integer(number),
        (Cell::Integer(number), Kind::Decimal { scale }) => {
            Value::Decimal { mantissa: i128::from(number) * 10i128.pow(scale.into()), scale }
        }
        (Cell::Decimal { .. } | Cell::Wide { .. }, Kind::Decimal { scale }) => {
            let (mantissa, from) = cell.and_then(Cell::as_exact).unwrap();
            Value::Decimal { mantissa: mantissa * 10i128.pow((scale - from).into()), scale }
        }
        (cell, Kind::Float) => Value::Float(float(cell)),
        (Cell::Date(day), Kind::Date) => Value::Date(day),
        (Cell::Date(day), Kind::Timestamp) => Value::Timestamp(i64::from(day) * 86_400_000_000_000),
        (Cell::Timestamp(time), Kind::Timestamp) => Value::Timestamp(time),
        (Cell::Text(text), Kind::Text) => Value::Text(text.into()),
        (Cell::Boolean(truth), Kind::Text) => Value::Text(truth.to_string().into()),
        (Cell::Integer(number), Kind::Text) => Value::Text(number.to_string().into()),
        (Cell::Float(float), Kind::Text) => Value::Text(float.to_string().into()),
        (cell @ (Cell::Decimal { .. } | Cell::Wide { .. }), Kind::Text) => {
            let mut text = String::new();
            cell.write(&mut text);
            Value::Text(text.into())
        }
        (cell, kind) => panic!("{cell:?} in a column of {kind:?}"),
    }
}

fn kind_of(cell: Option<Cell<'_>>) -> Kind {
    match cell.unwrap_or(Cell::Null) {
        Cell::Null => Kind::Null,
        Cell::Boolean(_) => Kind::Boolean,
        Cell::Integer(_) => Kind::Integer,
        Cell::Decimal { scale, .. } | Cell::Wide { scale, .. } => Kind::Decimal { scale },
        Cell::Float(_) | Cell::Rounded(_) => Kind::Float,
        Cell::Date(_) => Kind::Date,
        Cell::Timestamp(_) => Kind::Timestamp,
        Cell::Text(_) => Kind::Text,
    }
}

/// Compares a table with the messages, whose fields have the order of `names`.
fn check(table: &Table, messages: &[Message]) {
    let mut names = Vec::new();
    for message in messages {
        let set = (0..3).filter(|&field| message[field].is_some());
        names.extend(set.filter(|field| !names.contains(field)).collect::<Vec<_>>());
    }
    let shown: Vec<_> = table.schema().fields.iter().map(|field| &*field.name).collect();
    assert_eq!(shown, names.iter().map(|&field| NAMES[field]).collect::<Vec<_>>());
    assert_eq!(table.rows(), messages.len() as u64);
    for (column, &field) in names.iter().enumerate() {
        let kinds = messages.iter().map(|message| kind_of(message[field]));
        let kind = kinds.fold(Kind::Null, Kind::widened);
        assert_eq!(table.schema().fields[column].kind, kind);
        for (row, message) in messages.iter().enumerate() {
            let (is, should) = (table.value(row as u64, column), expected(message[field], kind));
            assert!(same(&is, &should), "{is:?}, not {should:?}, in row {row} of {}", NAMES[field]);
        }
        check_column(table, column, kind);
    }
}

fn check_column(table: &Table, column: usize, kind: Kind) {
    let column = &table.columns()[column];
    assert_eq!(column.segments().len(), table.segments());
    for (at, segment) in column.segments().iter().enumerate() {
        assert_eq!((segment.kind(), segment.rows()), (kind, table.segment_rows(at)));
        if let Data::Codes(_) = segment.data() {
            assert!(segment.zone().max < column.dictionary().unwrap().len() as i128);
        }
    }
    if let Some(dictionary) = column.dictionary() {
        assert!((1..dictionary.len()).all(|at| dictionary.get(at - 1) < dictionary.get(at)));
    }
}

fn cell() -> impl Strategy<Value = Cell<'static>> {
    const TEXTS: [&str; 8] = ["", "x", "ab", "é", "10", "zzzzzzzz", "zzzzzzzzz", "zzzzzzzzy"];
    prop_oneof![
        Just(Cell::Null),
        any::<bool>().prop_map(Cell::Boolean),
        (-300..300i64).prop_map(Cell::Integer),
        (-9_999..9_999i64, 0..4u8).prop_map(|(mantissa, scale)| Cell::Decimal { mantissa, scale }),
        // Floats have these values as well, and come before strings in a column of both.
        (-99..99i128, 0..4u8).prop_map(|(by, scale)| Cell::exact(by * 10_i128.pow(30), scale)),
        (-99..99i64).prop_map(|halves| Cell::Float(halves as f64 / 2.0)),
        prop::sample::select(&TEXTS[..]).prop_map(Cell::Text),
    ]
}

fn day() -> impl Strategy<Value = Cell<'static>> {
    prop_oneof![
        (-9_999..9_999i32).prop_map(Cell::Date),
        any::<i64>().prop_map(Cell::Timestamp),
        Just(Cell::Null),
    ]
}

/// Generates messages: field `a` keeps one type for long, `b` has any, `c` has dates and times.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let message =
        (prop::option::of(cell()), prop::option::of(day())).prop_map(|(b, c)| [None, b, c]);
    let calm = prop::collection::vec((cell(), 1..30usize), 1..5);
    (prop::collection::vec(message, 1..90), calm).prop_map(|(mut messages, calm)| {
        let long = calm.into_iter().flat_map(|(cell, rows)| std::iter::repeat_n(cell, rows));
        messages.iter_mut().zip(long).for_each(|(message, cell)| message[0] = Some(cell));
        messages
    })
}

proptest! {
    #[test]
    fn a_table_does_not_depend_on_workers_and_segments(
        messages in messages(), chunk_rows in 1..40usize, workers in 1..4usize,
    ) {
        check(&Table::assemble(parts(&messages, chunk_rows, workers), workers), &messages);
    }

    #[test]
    fn concatenated_tables_equal_the_table_of_all_messages(
        messages in messages(), cut in 1..60usize, chunk_rows in 1..40usize,
    ) {
        let tables: Vec<_> = messages
            .chunks(cut)
            .map(|messages| Table::assemble(parts(messages, chunk_rows, 2), 1))
            .collect();
        check(&Table::concat(&tables, 2), &messages);
    }

    #[test]
    fn taken_rows_keep_their_values(
        messages in messages(), picks in prop::collection::vec(any::<u64>(), 0..200),
    ) {
        let table = Table::assemble(parts(&messages, 7, 1), 1);
        let rows: Vec<_> = picks.iter().map(|pick| pick % table.rows()).collect();
        let columns: Vec<_> = (0..table.columns().len()).rev().collect();
        let taken = table.take(&rows, &columns, 2);
        prop_assert_eq!(taken.rows(), rows.len() as u64);
        for (at, &column) in columns.iter().enumerate() {
            prop_assert_eq!(&taken.schema().fields[at], &table.schema().fields[column]);
            for (row, &from) in rows.iter().enumerate() {
                let (is, was) = (taken.value(row as u64, at), table.value(from, column));
                prop_assert!(same(&is, &was), "{:?} was {:?}", is, was);
            }
            check_column(&taken, at, table.schema().fields[column].kind);
        }
    }
}

fn one_column(data: Vec<(RawData, &[&str])>) -> Vec<Part> {
    let part = |(place, (data, strings)): (usize, (RawData, &[&str]))| {
        let rows = data.rows() as u32;
        let packed = SegmentColumn::pack(&RawColumn { valid: Vec::new(), data });
        let dictionary = strings.iter().copied().collect();
        let fields = vec![PartField { name: "a".into(), dictionary, rounded: 0 }];
        let columns = vec![Some(packed)];
        Part { fields, segments: vec![PartSegment { place: place as u64, rows, columns }] }
    };
    data.into_iter().enumerate().map(part).collect()
}

#[test]
fn exact_numbers_stay_exact_while_38_digits_hold_all() {
    let large = || RawData::Integer(vec![i64::MAX, i64::MAX - 1, 1]);
    let fine = |scale, mantissas| RawData::Decimal { scale, mantissas };
    let parts = |fine| one_column(vec![(large(), &[]), (fine, &[])]);
    let table = Table::assemble(parts(fine(2, vec![125])), 1);
    assert_eq!(table.schema().fields[0].kind, Kind::Decimal { scale: 2 });
    let values = |table: &Table| (0..4).map(|row| table.value(row, 0)).collect::<Vec<_>>();
    let (most, exact) = (i128::from(i64::MAX), |mantissa| Value::Decimal { mantissa, scale: 2 });
    assert_eq!(values(&table), [100 * most, 100 * (most - 1), 100, 125].map(exact));
    assert_eq!(table.columns()[0].rounded(), 0);
    let table = Table::assemble(parts(fine(20, vec![125])), 1);
    assert_eq!(table.schema().fields[0].kind, Kind::Float);
    let most = i64::MAX as f64;
    assert_eq!(values(&table), [most, most, 1.0, 125e-20].map(Value::Float));
    // Both round to 2^63.
    assert_eq!(table.columns()[0].rounded(), 2);
}

#[test]
fn a_number_that_a_message_sets_twice_loses_its_digits_once() {
    let (long, fine) = ("12345678901234567890123456789012345678", "1234567890123456.7");
    let line = |value: &str| format!("{{\"a\":{value}}}\n");
    let twice = |value: &str, then: &str| format!("{{\"a\":{value},\"a\":{then}}}\n");
    for (log, rounded) in [
        (line(fine) + &line(long) + &line(long) + &line(long), 4),
        (line(fine) + &line(long) + &twice(long, long), 3),
        (line(fine) + &line(long) + &twice(long, "0.5"), 2),
        (line(fine) + &line(long) + &twice(long, "null"), 2),
        (line(fine) + &twice(long, "0.5"), 1),
        (line(fine) + &line(long) + &line(long).replace('}', ""), 2),
    ] {
        let load = Load::new(Format::Json);
        let loaded = load.run(&[&Memory::new("log", log.clone().into_bytes())]).unwrap();
        assert_eq!(loaded.table.columns()[0].rounded(), rounded, "{log}");
    }
}

#[test]
fn a_schema_selects_columns_and_their_minimal_types() {
    let field = |name: &str, kind| Field { name: name.into(), kind };
    let decimal = Kind::Decimal { scale: 1 };
    let schema = Schema { fields: vec![field("z", Kind::Date), field("a", decimal)] };
    let parts = one_column(vec![(RawData::Integer(vec![7]), &[])]);
    let table = Table::assemble_as(&schema, parts, 1);
    assert_eq!(table.schema(), &schema);
    assert_eq!(table.value(0, 0), Value::Null);
    assert_eq!(table.value(0, 1), Value::Decimal { mantissa: 70, scale: 1 });
}

#[test]
fn one_part_without_a_dictionary_makes_the_column_plain() {
    let plain = RawData::Text { ends: vec![1, 1], bytes: b"x".to_vec() };
    let codes = RawData::Codes(vec![1, 0]);
    let table = Table::assemble(one_column(vec![(codes, &["b", "a"]), (plain, &[])]), 2);
    assert!(table.columns()[0].dictionary().is_none());
    let all: Vec<_> = (0..4).map(|row| table.value(row, 0)).collect();
    assert_eq!(all, ["a", "b", "x", ""].map(|text| Value::Text(text.into())));
}

#[test]
fn repeated_long_strings_are_not_spelled_out() {
    let long = "x".repeat(1 << 20);
    let codes = RawData::Codes(vec![0; 60_000]);
    let plain = RawData::Text { ends: vec![1], bytes: b"y".to_vec() };
    let table = Table::assemble(one_column(vec![(codes, &[&*long]), (plain, &[])]), 2);
    assert!(table.nbytes() < 3 << 20, "{} bytes", table.nbytes());
    assert_eq!(table.value(59_999, 0), Value::Text(long.into()));
    assert_eq!(table.value(60_000, 0), Value::Text("y".into()));
}

#[test]
fn tables_that_share_their_strings_share_segments() {
    let codes = |codes| one_column(vec![(RawData::Codes(codes), &["a", "b"])]);
    let one = Table::assemble(codes(vec![0, 1]), 1);
    let two = Table::assemble(codes(vec![1, 1]), 1);
    let both = Table::concat(&[one.clone(), two], 1);
    let shared =
        std::sync::Arc::ptr_eq(&both.columns()[0].segments()[0], &one.columns()[0].segments()[0]);
    assert!(shared);
    assert_eq!(both.value(3, 0), Value::Text("b".into()));
}

#[test]
fn no_parts_make_a_table_without_rows() {
    let table = Table::assemble(Vec::new(), 2);
    assert_eq!((table.rows(), table.segments(), table.columns().len()), (0, 0, 0));
    assert_eq!(Table::concat(&[table, Table::default()], 1).rows(), 0);
}
