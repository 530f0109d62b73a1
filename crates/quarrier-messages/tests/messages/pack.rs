//! Packing preserves every row's value, and zone maps cover all values.

use proptest::prelude::*;
use quarrier_messages::column::raw::{BLOCK_ROWS, RawColumn, RawData, SEGMENT_ROWS};
use quarrier_messages::column::{Data, Lanes, SegmentColumn, Strings, Zone, float_key, text_key};
use quarrier_messages::{Kind, Value};

/// Returns the value of a raw column's row.
pub(crate) fn raw_value(raw: &RawColumn, row: usize, strings: &Strings) -> Value {
    if !raw.valid.is_empty() && raw.valid[row / 64] >> (row % 64) & 1 == 0 {
        return Value::Null;
    }
    match &raw.data {
        RawData::Null(_) => Value::Null,
        RawData::Boolean { bits, .. } => Value::Boolean(bits[row / 64] >> (row % 64) & 1 == 1),
        RawData::Integer(values) => Value::Integer(values[row]),
        RawData::Decimal { scale, mantissas } => {
            Value::Decimal { mantissa: mantissas[row].into(), scale: *scale }
        }
        RawData::Wide { scale, mantissas } => {
            Value::Decimal { mantissa: mantissas[row], scale: *scale }
        }
        RawData::Float(values) => Value::Float(values[row]),
        RawData::Date(values) => Value::Date(values[row]),
        RawData::Timestamp(values) => Value::Timestamp(values[row]),
        RawData::Codes(codes) => Value::Text(strings.get(codes[row] as usize).into()),
        RawData::Text { ends, bytes } => {
            let start = if row == 0 { 0 } else { ends[row - 1] as usize };
            let text = std::str::from_utf8(&bytes[start..ends[row] as usize]).unwrap();
            Value::Text(text.into())
        }
    }
}

/// Whether both are equal; compares floats bit for bit.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn key(packed: &SegmentColumn, row: usize, strings: &Strings) -> Option<i128> {
    if let Value::Decimal { mantissa, .. } = packed.value(row, Some(strings)) {
        return Some(mantissa);
    }
    narrow_key(packed, row, strings).map(i128::from)
}

fn narrow_key(packed: &SegmentColumn, row: usize, strings: &Strings) -> Option<i64> {
    if let (Data::Codes(codes), true) = (packed.data(), packed.is_valid(row)) {
        return Some(codes.get(row));
    }
    Some(match packed.value(row, Some(strings)) {
        Value::Null => return None,
        Value::Boolean(truth) => truth.into(),
        Value::Integer(number) | Value::Timestamp(number) => number,
        Value::Float(float) => float_key(float),
        Value::Date(day) => day.into(),
        Value::Text(text) => text_key(text),
        other => panic!("{other:?} is in no column"),
    })
}

/// Packs, compares everything, and returns the packed column.
fn check(raw: &RawColumn, strings: &Strings) -> SegmentColumn {
    let packed = SegmentColumn::pack(raw);
    let rows = raw.data.rows();
    assert_eq!(packed.rows(), rows);
    for row in 0..rows {
        let (was, is) =
            (raw_value(raw, row, strings), packed.value(row, Some(strings)).map_text(Into::into));
        assert!(same(&was, &is), "row {row} was {was:?} and is {is:?} in {}", packed.encoding());
        assert_eq!(packed.is_valid(row), was != Value::Null);
    }
    check_zones(&packed, strings);
    check_padding(&packed);
    packed
}

fn check_zones(packed: &SegmentColumn, strings: &Strings) {
    let rows = packed.rows();
    let zone = |rows: std::ops::Range<usize>| {
        rows.fold(Zone::EMPTY, |zone, row| {
            zone.joined(match key(packed, row, strings) {
                Some(key) => Zone { min: key, max: key, nulls: 0 },
                None => Zone { nulls: 1, ..Zone::EMPTY },
            })
        })
    };
    assert_eq!(packed.zone(), zone(0..rows));
    let blocks = (0..rows).step_by(BLOCK_ROWS).map(|at| zone(at..rows.min(at + BLOCK_ROWS)));
    assert_eq!(packed.blocks(), blocks.collect::<Vec<_>>());
}

fn check_padding(packed: &SegmentColumn) {
    let rows = packed.rows();
    let filled = rows.next_multiple_of(64);
    if let Some(&last) = packed.valid().last().filter(|_| rows < filled) {
        assert_eq!(last >> (rows % 64), 0);
    }
    let numbers = match packed.data() {
        Data::Whole(numbers)
        | Data::Codes(numbers)
        | Data::Shifted { packed: numbers, .. }
        | Data::Scaled { packed: numbers, .. } => numbers,
        Data::Exact(values) => return assert_eq!(values.len(), filled),
        Data::Float(values) => return assert_eq!(values.len(), filled),
        Data::Null | Data::Text(_) => return,
    };
    for first in [0, rows / 2, rows - 1] {
        let mut part = vec![0; rows - first];
        numbers.unpack(first, &mut part);
        assert!(part.iter().enumerate().all(|(at, &number)| numbers.get(first + at) == number));
    }
    let rising: Vec<u32> = (0..rows as u32).filter(|row| row % 3 != 1).collect();
    let falling: Vec<u32> = rising.iter().rev().copied().collect();
    for places in [rising, falling] {
        let mut picked = vec![7];
        numbers.gather(&places, &mut picked);
        let one_by_one = places.iter().map(|&place| numbers.get(place as usize));
        assert!([7].into_iter().chain(one_by_one).eq(picked));
    }
    let lanes: Vec<u64> = match numbers.lanes() {
        Lanes::Constant => return,
        Lanes::Bits(words) => return assert_eq!(words.len(), filled / 64),
        Lanes::U8(lanes) => lanes.iter().map(|&lane| lane.into()).collect(),
        Lanes::U16(lanes) => lanes.iter().map(|&lane| lane.into()).collect(),
        Lanes::U32(lanes) => lanes.iter().map(|&lane| lane.into()).collect(),
        Lanes::U64(lanes) => lanes.clone(),
        Lanes::Runs { ends, values } => {
            assert_eq!((ends.len(), ends.last()), (values.len(), Some(&(rows as u32))));
            return;
        }
    };
    assert_eq!(lanes.len(), filled);
    let absent = (0..filled).filter(|&row| row >= rows || !packed.is_valid(row));
    assert!(absent.into_iter().all(|row| lanes[row] == 0), "a row without a value has lane 0");
}

fn raw(data: RawData) -> RawColumn {
    RawColumn { valid: Vec::new(), data }
}

/// Makes plain strings.
fn plain(strings: &[&str]) -> RawData {
    let strings: Strings = strings.iter().copied().collect();
    RawData::Text { ends: strings.ends().to_vec(), bytes: strings.bytes().to_vec() }
}

const EXTREMES: [i64; 9] = [0, 1, -1, 255, 256, 65_536, 1 << 32, i64::MIN, i64::MAX];

pub(crate) const FLOATS: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    0.30000000000000004,
    1e15,
    1e18,
    2_251_799_813_685_248.0,
    9_007_199_254_740_993.0,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn numbers(rows: usize) -> impl Strategy<Value = Vec<i64>> {
    let one = prop_oneof![
        Just(0..=0i64),
        Just(5..=6),
        Just(-3..=100),
        Just(0..=40_000),
        Just(1 << 40..=(1 << 40) + (1 << 20)),
        Just(i64::MIN..=i64::MAX),
    ];
    let drawn = one.prop_flat_map(move |range| prop::collection::vec(range, rows));
    let extremes = prop::collection::vec(prop::sample::select(&EXTREMES[..]), rows);
    let runs = (1..500usize, prop::collection::vec(-9..9i64, rows))
        .prop_map(|(long, from)| (0..from.len()).map(|row| from[row / long * long]).collect());
    prop_oneof![4 => drawn, 1 => extremes, 2 => runs]
}

/// Generates numbers of up to 38 digits, near each other or not.
fn wide_numbers(rows: usize) -> impl Strategy<Value = Vec<i128>> {
    let most = 10_i128.pow(38) - 1;
    let from =
        prop::sample::select(vec![0, 1 << 63, -(1 << 64), most - (1 << 64), -most + (1 << 64)]);
    let near = (from, numbers(rows))
        .prop_map(|(from, all)| all.into_iter().map(|number| from + i128::from(number)).collect());
    let any = prop::collection::vec(-most..=most, rows);
    prop_oneof![3 => near, 1 => any]
}

fn floats(rows: usize) -> impl Strategy<Value = Vec<f64>> {
    let cents = numbers(rows).prop_map(|all| all.iter().map(|&n| n as f64 / 100.0).collect());
    let any = prop::collection::vec(any::<f64>(), rows);
    let extremes = prop::collection::vec(prop::sample::select(&FLOATS[..]), rows);
    prop_oneof![3 => cents, 1 => any, 1 => extremes]
}

const WORDS: [&str; 9] = ["", "a", "ab", "é", "zz", "\u{0}", "\u{10ffff}", "abcdefgh", "abcdefghi"];

fn data(rows: usize) -> impl Strategy<Value = RawData> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), rows);
    prop_oneof![
        Just(RawData::Null(rows)),
        prop::collection::vec(any::<u64>(), rows.div_ceil(64))
            .prop_map(move |bits| RawData::Boolean { bits, rows }),
        numbers(rows).prop_map(RawData::Integer),
        (0..19u8, numbers(rows))
            .prop_map(|(scale, mantissas)| RawData::Decimal { scale, mantissas }),
        (0..=38u8, wide_numbers(rows))
            .prop_map(|(scale, mantissas)| RawData::Wide { scale, mantissas }),
        floats(rows).prop_map(RawData::Float),
        numbers(rows).prop_map(|all| RawData::Date(all.iter().map(|&day| day as i32).collect())),
        numbers(rows).prop_map(RawData::Timestamp),
        prop::collection::vec(0..WORDS.len() as u32, rows).prop_map(RawData::Codes),
        words.prop_map(|words| plain(&words)),
    ]
}

fn validity(rows: usize) -> impl Strategy<Value = Vec<u64>> {
    let words = rows.div_ceil(64);
    prop_oneof![
        2 => Just(Vec::new()),
        1 => Just(vec![u64::MAX; words]),
        1 => Just(vec![0; words]),
        1 => prop::collection::vec(any::<u64>(), words),
        1 => prop::collection::vec(prop::sample::select(vec![0, 1 << 63, u64::MAX]), words),
    ]
}

/// Generates a column of any type, mostly with few rows.
fn column() -> impl Strategy<Value = RawColumn> {
    let rows = prop_oneof![4 => 1..200usize, 1 => 4_000..9_000usize];
    rows.prop_flat_map(|rows| (validity(rows), data(rows)))
        .prop_map(|(valid, data)| RawColumn { valid, data })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn packed_values_equal_the_written_ones(raw in column()) {
        check(&raw, &WORDS.into_iter().collect());
    }

    #[test]
    fn float_keys_compare_like_floats(a in any::<f64>(), b in any::<f64>()) {
        prop_assert_eq!(a.partial_cmp(&b), Some(float_key(a).cmp(&float_key(b))));
    }

    #[test]
    fn string_keys_never_decrease(a in ".{0,10}", b in ".{0,10}") {
        if a <= b {
            prop_assert!(text_key(&a) <= text_key(&b));
        }
    }
}

#[test]
fn float_keys_of_extremes_are_in_order_and_nan_is_last() {
    let mut floats = FLOATS.to_vec();
    floats.retain(|float| !float.is_nan());
    for &a in &floats {
        assert!(float_key(a) < float_key(f64::NAN) && float_key(a) < float_key(-f64::NAN));
        for &b in &floats {
            assert_eq!(a.partial_cmp(&b), Some(float_key(a).cmp(&float_key(b))), "{a} and {b}");
        }
    }
}

#[test]
fn lanes_are_as_narrow_as_the_range() {
    let strings = Strings::new();
    let encoding = |values: Vec<i64>| check(&raw(RawData::Integer(values)), &strings).encoding();
    let from_to =
        |from: i64, to: i64| (0..100).map(move |row| if row % 2 == 0 { from } else { to });
    assert_eq!(encoding(vec![7; 100]), "constant");
    for (range, expected) in [
        (1, "1-bit"),
        (2, "8-bit"),
        (255, "8-bit"),
        (256, "16-bit"),
        (65_535, "16-bit"),
        (65_536, "32-bit"),
        (0xffff_ffff, "32-bit"),
        (0x1_0000_0000, "64-bit"),
    ] {
        assert_eq!(encoding(from_to(-5, range - 5).collect()), expected, "a range of {range}");
    }
    assert_eq!(encoding(from_to(i64::MIN, i64::MAX).collect()), "64-bit");
    assert_eq!(encoding((0..SEGMENT_ROWS as i64).map(|row| row / 4_000).collect()), "runs");
}

#[test]
fn floats_with_two_digits_become_whole_numbers() {
    let prices = (0..SEGMENT_ROWS).map(|row| (row * 7 % 100_000) as f64 / 100.0);
    let packed = check(&raw(RawData::Float(prices.collect())), &Strings::new());
    assert!(matches!(packed.data(), Data::Scaled { exponent: 2, .. }), "{}", packed.encoding());
    assert_eq!(packed.encoding(), "integers / 10^2, 32-bit");
    for odd in FLOATS {
        let mut values = vec![12.25; 300];
        values[257] = odd;
        check(&raw(RawData::Float(values)), &Strings::new());
    }
}

#[test]
fn a_column_without_values_takes_no_lanes() {
    let nothing = RawColumn { valid: vec![0; 2], data: RawData::Integer(vec![3; 100]) };
    let packed = check(&nothing, &Strings::new());
    assert_eq!((packed.data(), packed.kind()), (&Data::Null, Kind::Integer));
    assert_eq!(check(&raw(RawData::Null(5_000)), &Strings::new()).kind(), Kind::Null);
}
