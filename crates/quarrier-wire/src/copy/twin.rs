//! Compares the rows that are written directly with those that go through values.

use proptest::prelude::*;

use super::read::{Reader, Target};
use super::write::BINARY_BEGIN;
use crate::failure::Failure;
use crate::kind;
use crate::sql::{CopyOptions, Utility, utility};

const KINDS: &[u32] = &[
    kind::BOOL,
    kind::BYTEA,
    kind::INT8,
    kind::INT2,
    kind::INT4,
    kind::TEXT,
    kind::TEXTS,
    kind::OID,
    kind::JSON,
    kind::FLOAT4,
    kind::FLOAT8,
    kind::VARCHAR,
    kind::DATE,
    kind::TIME,
    kind::TIMESTAMP,
    kind::TIMESTAMPTZ,
    kind::INTERVAL,
    kind::NUMERIC,
    kind::UUID,
    kind::JSONB,
];

/// The formats and the options that change how a line is split.
const OPTIONS: &[&str] = &[
    "FORMAT binary",
    "FORMAT text",
    "FORMAT text, DELIMITER '|', NULL 'a'",
    "FORMAT csv",
    "FORMAT csv, HEADER, NULL 'null'",
    "FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\\'",
    "FORMAT csv, QUOTE 'q', ESCAPE ','",
];

fn options_of(given: &str) -> CopyOptions {
    let statement = format!("COPY t FROM STDIN WITH ({given})");
    match utility(&statement) {
        Ok(Some(Utility::CopyIn { options, .. })) => options,
        other => unreachable!("{given}: {other:?}"),
    }
}

fn target() -> impl Strategy<Value = Target> {
    let scale = prop_oneof![Just(None), (0_u8..6).prop_map(Some)];
    (prop::sample::select(KINDS), scale, "[a-c\"\\n\u{e9}]{0,3}")
        .prop_map(|(kind, scale, name)| Target { name, kind, scale })
}

/// Numbers near the limits of what is written directly, and any others.
fn float() -> impl Strategy<Value = f64> {
    const LIMITS: &[f64] =
        &[1e15, 1e16, 1e-4, 1e-5, 1e22, 9_007_199_254_740_993.0, f64::MAX, 5e-324];
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (any::<i64>(), 0..20).prop_map(|(digits, decimals)| digits as f64 / 10_f64.powi(decimals)),
        (-999_999_999_i64..999_999_999, 0..12)
            .prop_map(|(digits, decimals)| digits as f64 / 10_f64.powi(decimals)),
        (prop::sample::select(LIMITS), -2_i64..=2)
            .prop_map(|(limit, steps)| f64::from_bits((limit.to_bits() as i64 + steps) as u64)),
        Just(-0.0),
    ]
}

fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -20_000_i64..20_000,
        any::<i32>().prop_map(i64::from),
        prop::sample::select(&[i64::MIN, i64::MAX, 86_400_000_000, 0][..]),
        (0_i64..4_000_000_000_000).prop_map(|seconds| seconds * 100_000 - 63_082_281_600_000_000),
    ]
}

/// A number in PostgreSQL's binary form, mostly valid.
fn numeric() -> impl Strategy<Value = Vec<u8>> {
    let group = prop_oneof![9 => 0_u16..10_000, 3 => Just(0), 1 => any::<u16>()];
    let head = (-3_i16..5, prop_oneof![Just(0_u16), Just(0x4000), any::<u16>()], 0_u16..9);
    let count = prop_oneof![9 => Just(0_u16), 1 => any::<u16>()];
    (prop::collection::vec(group, 0..6), head, count).prop_map(|(groups, head, more)| {
        let (weight, sign, decimals) = head;
        let mut cell = (groups.len() as u16).wrapping_add(more).to_be_bytes().to_vec();
        cell.extend(weight.to_be_bytes());
        cell.extend(sign.to_be_bytes());
        cell.extend(decimals.to_be_bytes());
        groups.iter().for_each(|group| cell.extend(group.to_be_bytes()));
        cell
    })
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,20}", "[ -~\u{0}-\u{20}\u{7f}\u{e9}\u{20ac}]{0,12}"]
}

/// A cell in binary, for any type.
fn binary_cell() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        integer().prop_map(|number| number.to_be_bytes().to_vec()),
        integer().prop_map(|number| (number as i32).to_be_bytes().to_vec()),
        integer().prop_map(|number| (number as i16).to_be_bytes().to_vec()),
        float().prop_map(|number| number.to_be_bytes().to_vec()),
        float().prop_map(|number| (number as f32).to_be_bytes().to_vec()),
        numeric(),
        (0_u8..3).prop_map(|byte| vec![byte]),
        string().prop_map(String::into_bytes),
        string().prop_map(|text| [b"\x01", text.as_bytes()].concat()),
        prop::collection::vec(any::<u8>(), 0..20),
    ]
}

/// A cell in text, for any type.
fn text_cell() -> impl Strategy<Value = String> {
    let spelt = &[
        "",
        "null",
        "a",
        "t",
        "true",
        "FALSE",
        "off",
        "-0",
        "007",
        "+7",
        "-",
        ".",
        "5.",
        ".5",
        "1e3",
        "NaN",
        "-inf",
        "1.005",
        "99.995",
        "0.50",
        "-0.0",
        "32768",
        "9999999999",
        "\\x00fF",
        "2024-02-29",
        "2024-02-29 Z",
        "12:34:56.5",
        "2024-02-29 12:34:56+02",
        " 2024-02-29",
        "2024-02-29T12:34:56.123456Z",
        "{a,\"b c\",NULL}",
        "{1",
        "\\N",
        "\\.",
    ][..];
    prop_oneof![
        4 => integer().prop_map(|number| number.to_string()),
        2 => float().prop_map(|number| number.to_string()),
        2 => float().prop_map(|number| format!("{number:?}")),
        2 => "-?[0-9]{0,4}\\.?[0-9]{0,8}",
        4 => prop::sample::select(spelt).prop_map(str::to_string),
        2 => string(),
        1 => "[ \t]?[0-9]{1,5}[ \t]?",
    ]
}

/// A row of any format, whose cells are mostly as many as the columns.
fn row(options: &'static str, count: usize) -> impl Strategy<Value = Vec<u8>> {
    let count = prop_oneof![19 => Just(count), 1 => 0..count + 2];
    let cell = (0_u8..8, binary_cell(), text_cell()).boxed();
    let cells = count.prop_flat_map(move |count| prop::collection::vec(cell.clone(), count));
    cells.prop_map(move |cells| match options_of(options) {
        given if options != "FORMAT binary" => {
            let delimiter = char::from(given.delimiter).to_string();
            let quote = char::from(given.quote);
            let cell = |(how, _, cell): &(u8, Vec<u8>, String)| match how {
                0 => given.null.clone(),
                1 => format!("{quote}{cell}{quote}"),
                2 => cell.replace(['\\', '\n', '\t', ';', ',', '|'], "\\n"),
                _ => cell.replace(['\\', '\n', '\t', ';', ',', '|'], "-"),
            };
            let line: Vec<String> = cells.iter().map(cell).collect();
            format!("{}\n", line.join(&delimiter)).into_bytes()
        }
        _ => {
            let mut row = (cells.len() as u16).to_be_bytes().to_vec();
            for (how, cell, _) in &cells {
                let length = if *how == 0 { -1 } else { cell.len() as i32 };
                row.extend(length.to_be_bytes());
                row.extend(cell.iter().filter(|_| *how > 0));
            }
            row
        }
    })
}

/// The options, the columns, the bytes, and the lengths of the pieces that they arrive in.
type Copied = (&'static str, Vec<Target>, Vec<u8>, Vec<usize>);

fn copied() -> impl Strategy<Value = Copied> {
    let columns = prop::collection::vec(target(), 1..4);
    (prop::sample::select(OPTIONS), columns).prop_flat_map(|(options, columns)| {
        let rows = prop::collection::vec(row(options, columns.len()), 0..4);
        let damage = prop_oneof![3 => Just(None), 1 => any::<(usize, u8)>().prop_map(Some)];
        let pieces = prop::collection::vec(1_usize..60, 1..5);
        (Just(options), Just(columns), rows, damage, pieces).prop_map(
            |(options, columns, rows, damage, pieces)| {
                let mut bytes = rows.concat();
                if let (Some((at, byte)), false) = (damage, bytes.is_empty()) {
                    let at = at % bytes.len();
                    bytes[at] = byte;
                }
                if options == "FORMAT binary" {
                    bytes.splice(0..0, BINARY_BEGIN.iter().copied());
                }
                (options, columns, bytes, pieces)
            },
        )
    })
}

/// Returns the messages up to an error, their number, and the error.
fn read(mut reader: Reader, bytes: &[u8], pieces: &[usize]) -> (Vec<u8>, u64, Option<Failure>) {
    let mut out = Vec::new();
    let mut rest = bytes;
    for piece in pieces.iter().cycle() {
        let (piece, after) = rest.split_at((*piece).min(rest.len()));
        rest = after;
        let done = match piece.is_empty() {
            true => reader.finish(&mut out),
            false => reader.push(piece, &mut out),
        };
        if done.is_err() || piece.is_empty() {
            return (out, reader.rows, done.err());
        }
    }
    unreachable!("the pieces go on without end")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rows_written_directly_are_those_of_their_values(copied in copied()) {
        let (options, columns, bytes, pieces) = copied;
        let options = options_of(options);
        let direct = Reader::new(options.clone(), columns.clone());
        let naive = Reader::naive(options, columns);
        let expected = read(naive, &bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(read(direct, &bytes, &pieces), expected);
    }
}
