//! Ranges of a source, described and loaded one by one, are the source: its messages, columns, rows, rejects and the
//! number of values that lost digits.

use std::sync::Arc;

use proptest::prelude::*;
use quarrier_core::source::Memory;
use quarrier_messages::{
    Description, Format, HiddenColumns, Load, Loaded, Packing, Places, Table, Value, Views,
};

/// Values of which no two together depend on where a segment ends.
const POOLS: [&[&str]; 3] = [
    &["null", "5", "-9223372036854775808", "1.5", "-0.125", "1e300", "92233720368547758081.5"],
    &[
        "null",
        "\"2024-05-31\"",
        "\"2024-05-31T12:00:00Z\"",
        "\"soon\"",
        "true",
        "7",
        "1.50",
        "\"é\"",
    ],
    &["12345678901234567890123456789012345678", "0.5", "1234567890123456.7", "null"],
];

fn log(picks: &[(usize, usize, usize)], ends: &[&str]) -> Vec<u8> {
    let mut lines = Vec::new();
    for &(pool, value, shape) in picks {
        let value = POOLS[pool][value % POOLS[pool].len()];
        let line = match shape {
            0 => format!("{{\"a{pool}\":{value}"),
            1 => "no message".to_string(),
            2 => String::new(),
            3 => format!("{{\"a{pool}\":{value},\"late{pool}\":[{{\"q\":{value}}},null]}}"),
            4 => format!("{{\"late{pool}\":1,\"b\":0,\"gone{value}\":2,\"a{pool}\":"),
            5 => format!("{{\"b\":\"{}\",\"a{pool}\":{value}}}", "x".repeat(90)),
            _ => format!("{{\"a{pool}\":{value}}}"),
        };
        lines.extend(line.into_bytes());
        lines.extend(ends[value.len() % ends.len()].bytes());
    }
    lines
}

fn rows(table: &Table) -> Vec<Vec<Value>> {
    let columns = table.columns().len();
    (0..table.rows()).map(|row| (0..columns).map(|at| table.value(row, at)).collect()).collect()
}

/// Rows in Arrow, with the columns of the whole table.
fn shown(views: &Views) -> Vec<String> {
    let columns: Vec<usize> = (0..views.schema().fields().len()).collect();
    let segments = 0..views.table().segments();
    let batches = segments.map(|segment| {
        let places = Places::Range(0..views.table().segment_rows(segment));
        let batch = views.batch(views.schema(), &columns, segment, &places).unwrap();
        (0..batch.num_rows()).map(move |row| format!("{:?}", batch.slice(row, 1).columns()))
    });
    batches.flatten().collect()
}

fn rejects(loaded: &Loaded, lines: u64) -> Vec<(u64, u64, &'static str)> {
    let place = |it: &quarrier_messages::Reject| (it.line + lines, it.offset, it.fault.what);
    loaded.rejects.iter().map(place).collect()
}

/// The number of values of each column that lost digits.
fn rounded(table: &Table) -> Vec<(&str, u64)> {
    let fields = table.schema().fields.iter().zip(table.columns());
    let mut all: Vec<_> = fields.map(|(field, column)| (&*field.name, column.rounded())).collect();
    all.sort_unstable();
    all
}

fn check(bytes: &[u8], cuts: &[u64], load: &Load<'_>) {
    let source = Memory::new("log", bytes.to_vec());
    let length = bytes.len() as u64;
    let mut borders: Vec<u64> = cuts.iter().map(|cut| cut % (length + 1)).collect();
    borders.extend([0, length]);
    borders.sort_unstable();
    let ranges: Vec<_> = borders.windows(2).map(|ends| ends[0]..ends[1]).collect();
    let whole = load.run(&[&source]).unwrap();
    let (mut all, mut lines, mut rejected) = (Description::default(), 0, Vec::new());
    for range in &ranges {
        let part = load.clone().range(range.clone()).run(&[&source]).unwrap();
        all.join(&part.table.description());
        rejected.extend(rejects(&part, lines));
        lines += part.lines;
        assert_eq!(part.bytes, range.end - range.start);
    }
    let about = format!("{:?} at {borders:?}", String::from_utf8_lossy(bytes));
    assert_eq!(rejected, rejects(&whole, 0), "{about}");
    assert_eq!((lines, all.rows), (whole.lines, whole.table.rows()), "{about}");
    let mut lost: Vec<_> = all.columns.iter().map(|it| (&*it.name, it.rounded)).collect();
    lost.sort_unstable();
    assert_eq!(lost, rounded(&whole.table), "{about}");
    let (schema, arrow) = all.schemas(whole.table.hidden());
    let views = Views::new(Arc::new(whole.table.clone()));
    assert_eq!((&schema, &arrow), (whole.table.schema(), views.schema()), "{about}");
    let (mut found, mut found_in_arrow) = (Vec::new(), Vec::new());
    for range in ranges {
        let part = load.clone().schema(schema.clone()).range(range).run(&[&source]).unwrap();
        let part = Views::of_part(&part.table, &arrow).expect(&about);
        found_in_arrow.extend(shown(&part));
        found.extend(rows(&part.table().clone()));
    }
    assert_eq!(found, rows(&whole.table), "{about}");
    assert_eq!(found_in_arrow, shown(&views), "{about}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn parts_have_the_columns_and_rows_of_the_whole(
        pools in prop::collection::vec(0..3_usize, 1..3),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0..8_usize, 0..10_usize), 1..40),
        cuts in prop::collection::vec(any::<u64>(), 0..6),
        segment_rows in 1..20_usize,
        workers in 1..4_usize,
        is_crlf in any::<bool>(),
        has_places in any::<bool>(),
    ) {
        let picks: Vec<_> = picks
            .iter()
            .map(|(pool, value, shape)| (*pool.get(&pools), *value, *shape))
            .collect();
        let packing = Packing { segment_rows, claim_bytes: 90, ..Packing::default() };
        let hidden = HiddenColumns { offset: has_places, message: has_places, ..Default::default() };
        let ends: &[&str] = if is_crlf { &["\r\n", "\n"] } else { &["\n"] };
        let load = Load::new(Format::Json).workers(workers).packing(packing).hidden(hidden);
        check(&log(&picks, ends), &cuts, &load);
    }
}

#[test]
fn a_range_of_a_source_that_is_read_in_order_is_refused() {
    let source = Memory::new("f.csv", "a\n1\n2\n");
    let csv = Format::named("csv").unwrap().unwrap();
    assert_eq!(Load::new(csv.clone()).range(0..6).run(&[&source]).unwrap().table.rows(), 2);
    for format in [csv, Format::named("fix").unwrap().unwrap()] {
        assert!(!format.is_in_lines());
        let refused = Load::new(format).range(2..6).run(&[&source]).unwrap_err().to_string();
        assert!(refused.starts_with("f.csv: "), "{refused}");
    }
}

#[test]
fn a_part_with_wider_values_or_without_a_column_is_none() {
    let table = |json: &str| {
        let source = Memory::new("log", json.to_string());
        Load::new(Format::Json).run(&[&source]).unwrap().table
    };
    let whole = Views::new(Arc::new(table("{\"a\":1.25,\"b\":\"x\"}\n")));
    for (json, is_part) in [
        ("{\"b\":\"y\",\"a\":7.5}\n", false),
        ("{\"b\":\"y\",\"a\":7.51}\n", true),
        ("{\"a\":7.51}\n", false),
        ("{\"b\":\"y\",\"a\":\"z\"}\n", false),
        ("{\"b\":\"y\",\"a\":12345678901234567890.25}\n", false),
    ] {
        assert_eq!(Views::of_part(&table(json), whole.schema()).is_some(), is_part, "{json}");
    }
}
