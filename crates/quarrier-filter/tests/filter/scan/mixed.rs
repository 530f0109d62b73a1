//! Columns of strings in which some segments have codes and others plain strings: the scan selects
//! the same rows as the naive evaluator.

use std::sync::Arc;

use proptest::prelude::*;
use quarrier_filter::group::{GroupPlan, Grouping};
use quarrier_filter::{Expr, Order, Query, Scan, Scanner, sql};
use quarrier_messages::column::raw::{RawColumn, RawData};
use quarrier_messages::column::{Data, SegmentColumn, Strings};
use quarrier_messages::{Format, Load, Packing, Part, PartField, PartSegment, Table, Value};

use super::orders::sorted;
use super::tables::Random;
use super::{check, expected, rows};

/// Strings of two columns and a number, for each row.
type Row = (Option<String>, Option<String>, i64);

/// Draws runs of rows: few strings that repeat, many that do not, NULL; short ones and long ones,
/// with and without a common prefix.
fn drawn(random: &mut Random, count: usize) -> Vec<Row> {
    let mut all = Vec::new();
    while all.len() < count {
        let length = 1 + random.below(count as u64 / 2 + 1) as usize;
        let (left, right) = (Run::of(random), Run::of(random));
        for _ in 0..length.min(count - all.len()) {
            let number = all.len() as i64 % 97;
            all.push((left.text(random), right.text(random), number));
        }
    }
    all
}

struct Run {
    what: u64,
    pad: usize,
    nulls: u64,
}

impl Run {
    fn of(random: &mut Random) -> Run {
        let pad = *random.pick(&[0, 0, 0, 1, 7, 13, 300, 5_000]);
        Run { what: random.below(5), pad, nulls: *random.pick(&[0, 0, 1, 6]) }
    }

    fn text(&self, random: &mut Random) -> Option<String> {
        if self.what == 0 || random.below(8) < self.nulls {
            return None;
        }
        let pad = "x".repeat(self.pad);
        Some(match self.what {
            1 => (*random.pick(&["", "a", "ab", "same be", "same beginning", "é"])).to_string(),
            2 => format!("{}{pad}", random.pick(&["low", "upper", "same beginning "])),
            3 => format!("u{}{pad}", random.below(100_000)),
            _ => format!("same beginning {}{pad}", random.below(100_000)),
        })
    }
}

/// Loads the rows as JSON lines, with limits so low that columns change their packing.
fn loaded(all: &[Row], packing: Packing, workers: usize) -> Table {
    let text = |text: &Option<String>| match text {
        Some(text) => format!("\"{text}\""),
        None => "null".into(),
    };
    let line = |(t, s, n): &Row| format!("{{\"n\":{n},\"t\":{},\"s\":{}}}\n", text(t), text(s));
    let lines: String = all.iter().map(line).collect();
    let load = Load::new(Format::Json).workers(workers).packing(packing);
    load.run_stream("lines", &mut lines.as_bytes()).unwrap().table
}

/// Makes a table of the same rows, in segments that have codes or plain strings at random.
fn assembled(all: &[Row], random: &mut Random) -> Table {
    let mut dictionaries = [Strings::new(), Strings::new(), Strings::new()];
    let (mut segments, mut left) = (Vec::new(), all);
    while !left.is_empty() {
        let longest = *random.pick(&[40, 700, 9_000]);
        let count = left.len().min(1 + random.below(longest) as usize);
        let (own, rest) = left.split_at(count);
        left = rest;
        let numbers = RawData::Integer(own.iter().map(|row| row.2).collect());
        let mut columns =
            vec![Some(SegmentColumn::pack(&RawColumn { valid: Vec::new(), data: numbers }))];
        for column in [1, 2] {
            let strings = own.iter().map(|row| if column == 1 { &row.0 } else { &row.1 });
            let strings: Vec<Option<&str>> = strings.map(Option::as_deref).collect();
            let is_plain = random.below(2) == 0;
            columns.push(Some(segment(&strings, is_plain, &mut dictionaries[column])));
        }
        let place = segments.len() as u64;
        segments.push(PartSegment { place, rows: own.len() as u32, columns });
    }
    let fields = ["n", "t", "s"].into_iter().zip(dictionaries);
    let fields =
        fields.map(|(name, dictionary)| PartField { name: name.into(), dictionary, rounded: 0 });
    let part = Part { fields: fields.collect(), segments };
    let packing = Packing { spelled_bytes: 0, ..Packing::default() };
    Table::assemble_packed(vec![part], 2, None, packing)
}

fn segment(strings: &[Option<&str>], is_plain: bool, dictionary: &mut Strings) -> SegmentColumn {
    let mut valid = vec![0u64; strings.len().div_ceil(64)];
    let (mut codes, mut ends, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut known: std::collections::HashMap<String, u32> =
        dictionary.iter().map(str::to_string).zip(0..).collect();
    for (row, text) in strings.iter().enumerate() {
        if let Some(text) = text {
            valid[row / 64] |= 1 << (row % 64);
            bytes.extend_from_slice(text.as_bytes());
        }
        ends.push(bytes.len() as u32);
        codes.push(match text.filter(|_| !is_plain) {
            Some(text) => match known.get(text) {
                Some(code) => *code,
                None => {
                    let code = dictionary.push(text).unwrap();
                    known.insert(text.to_string(), code);
                    code
                }
            },
            None => 0,
        });
    }
    let data = if is_plain { RawData::Text { ends, bytes } } else { RawData::Codes(codes) };
    SegmentColumn::pack(&RawColumn { valid, data })
}

/// Draws a condition on one column of strings, for any way of evaluating it.
fn test(column: &str, random: &mut Random) -> String {
    let strings = ["", "a", "ab", "low", "u", "u5", "same beginning ", "same beginning 5", "upper"];
    let quoted = |random: &mut Random| format!("'{}'", random.pick(&strings));
    let (a, b, c) = (quoted(random), quoted(random), quoted(random));
    let op = *random.pick(&["=", "<>", "<", "<=", ">", ">="]);
    let pattern =
        *random.pick(&["u%", "same beginning%", "%5%", "_ow%", "%x", "", "%", "u_2%", "%beg_n%3%"]);
    match random.below(14) {
        0 | 1 => format!("{column} {op} {a}"),
        2 => format!("{a} {op} {column}"),
        3 => format!("{column} BETWEEN {a} AND {b}"),
        4 => format!("{column} IN ({a}, {b}, {c})"),
        5 => format!("{column} NOT IN ({a}, {b}, NULL)"),
        6 | 7 => format!("{column} LIKE '{pattern}'"),
        8 => format!("{column} NOT LIKE '{pattern}'"),
        9 => format!("{column} SIMILAR TO '(u|low)[0-9x]*'"),
        10 => format!("{column} LIKE_REGEX '^(same|a)'"),
        11 => format!("{column} IS NULL"),
        12 => format!("UPPER(SUBSTRING({column} FROM 1 FOR 2)) IN ('U5', 'SA', 'LO')"),
        _ => format!("CHARACTER_LENGTH({column}) {op} {}", random.below(20)),
    }
}

fn condition(random: &mut Random, depth: u64) -> String {
    let column = *random.pick(&["t", "t", "s"]);
    if depth == 0 {
        return match random.below(8) {
            0 => format!("t {} s", random.pick(&["=", "<", ">=", "<>"])),
            1 => format!("n < {}", random.below(97)),
            2 => "CAST(t AS INTEGER) > 3".to_string(),
            _ => test(column, random),
        };
    }
    let inner = |random: &mut Random| condition(random, depth - 1);
    match random.below(5) {
        0 => format!("({}) AND ({})", inner(random), inner(random)),
        1 => format!("({}) OR ({})", inner(random), inner(random)),
        2 => format!("NOT ({})", inner(random)),
        3 => format!("({}) IS NOT TRUE", inner(random)),
        _ => inner(random),
    }
}

fn conditions(table: &Table, random: &mut Random, count: usize) -> Vec<Expr> {
    let bound = |nth: usize| {
        let text = condition(random, nth as u64 % 3);
        sql::condition(&text, table.schema()).ok()
    };
    (0..count).filter_map(bound).collect()
}

fn check_orders(table: &Table, condition: &Expr, random: &mut Random) {
    let Ok(found) = expected(table, condition) else { return };
    for nth in 0..6 {
        let order: Vec<Order> = (0..1 + nth % 3)
            .map(|_| Order {
                column: random.below(3) as usize,
                descending: random.below(2) == 0,
                nulls_first: random.below(2) == 0,
            })
            .collect();
        let limit = *random.pick(&[None, Some(1), Some(10), Some(700)]);
        let query = Query { order: order.clone(), limit, ..rows(condition.clone()) };
        let best = sorted(table, found.clone(), &order);
        let best: Vec<u64> = best.into_iter().take(limit.unwrap_or(u64::MAX) as usize).collect();
        for workers in [1, 3] {
            let answers = Scan::new(table, std::slice::from_ref(&query)).workers(workers).run();
            assert_eq!(answers[0].as_ref().unwrap().rows, best, "{order:?} {limit:?}");
        }
        let scanner = Scanner::start(Arc::new(table.clone()), 2).unwrap();
        assert_eq!(scanner.submit(query).wait().unwrap().rows, best, "{order:?} {limit:?}");
    }
}

/// Checks that selected rows, and concatenated tables, have the values of the table.
fn check_taken(table: &Table, random: &mut Random) {
    let some: Vec<u64> = (0..table.rows()).filter(|_| random.below(2) == 0).collect();
    let taken = table.take(&some, &[1, 2], 2);
    let twice = Table::concat(&[table.clone(), taken.clone()], 2);
    for (at, &row) in some.iter().enumerate() {
        for column in [1, 2] {
            assert_eq!(taken.value(at as u64, column - 1), table.value(row, column));
            let second = twice.value(table.rows() + at as u64, column);
            assert_eq!(second, table.value(row, column));
        }
    }
}

fn check_all(all: &[Row], table: &Table, random: &mut Random) {
    for (row, (t, s, n)) in all.iter().enumerate() {
        let text = |text: &Option<String>| match text {
            Some(text) => Value::Text(text.as_str().into()),
            None => Value::Null,
        };
        let place = |name: &str| table.schema().position(name).unwrap();
        assert_eq!(table.value(row as u64, place("n")), Value::Integer(*n));
        assert_eq!(table.value(row as u64, place("t")), text(t));
        assert_eq!(table.value(row as u64, place("s")), text(s));
    }
    check(table, &conditions(table, random, 12));
    let everything = sql::condition("n >= 0", table.schema()).unwrap();
    check_orders(table, &everything, random);
    check_taken(table, random);
    for column in [1, 2] {
        // Grouping by codes requires that every segment of the column has codes.
        let grouping = Grouping { keys: vec![column], ..Grouping::default() };
        assert!(!table.columns()[column].is_mixed() || GroupPlan::of(table, grouping).is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn segments_of_codes_and_of_plain_text_answer_alike(seed: u64, count in 1..3_000_usize) {
        let mut random = Random(seed);
        let all = drawn(&mut random, count);
        let table = assembled(&all, &mut random);
        check_all(&all, &table, &mut random);
    }

    #[test]
    fn how_lines_are_cut_and_packed_does_not_matter(
        seed: u64,
        count in 1..2_000_usize,
        segment_rows in prop_oneof![1..80_usize, 200..6_000_usize],
        claim_bytes in prop_oneof![Just(4), 100..5_000_u64, 10_000..100_000_u64],
        dictionary_bytes in prop_oneof![0..300_usize, 1_000..20_000_usize],
        spelled_bytes in prop_oneof![4 => Just(0), 1 => 1..10_000_usize],
        workers in 1..5_usize,
    ) {
        let mut random = Random(seed);
        let all = drawn(&mut random, count);
        let packing = Packing { segment_rows, claim_bytes, dictionary_bytes, spelled_bytes };
        let table = loaded(&all, packing, workers);
        check_all(&all, &table, &mut random);
    }
}

/// Makes a few notes that repeat, then many that do not.
fn notes(rows: usize, few_bytes: usize, many_bytes: usize) -> Vec<Row> {
    let note = |row: usize| match row < rows / 2 {
        true => format!("{}{}", ["a", "b", "z"][row % 3], "n".repeat(few_bytes)),
        false => format!("u{row}{}", "m".repeat(many_bytes)),
    };
    (0..rows).map(|row| (Some(note(row)), None, row as i64)).collect()
}

#[test]
fn a_set_of_codes_is_not_asked_of_plain_text() {
    let all = notes(1_400, 400, 100);
    let packing = Packing {
        segment_rows: 200,
        claim_bytes: 20_000,
        dictionary_bytes: 10_000,
        spelled_bytes: 1,
    };
    for workers in [1, 2, 3] {
        let table = loaded(&all, packing, workers);
        let column = table.schema().position("t").unwrap();
        let has = |what: fn(&Data) -> bool| {
            table.columns()[column].segments().iter().any(|segment| what(segment.data()))
        };
        assert!(has(|data| matches!(data, Data::Codes(_))), "{workers} workers");
        assert!(has(|data| matches!(data, Data::Text(_))), "{workers} workers");
        assert!(table.columns()[column].is_mixed());
        for (text, count) in [
            ("t LIKE 'u%'", 700),
            ("t NOT LIKE 'u%'", 700),
            ("t < 'u'", 467),
            ("t >= 'u'", 933),
            ("t LIKE '%n%'", 700),
        ] {
            let condition = sql::condition(text, table.schema()).unwrap();
            let found = expected(&table, &condition).unwrap();
            assert_eq!(found.len(), count, "{text}");
            check(&table, &[condition]);
        }
    }
}
