//! Random tables with every encoding.

use quarrier_messages::column::raw::{RawColumn, RawData, SEGMENT_ROWS};
use quarrier_messages::column::{SegmentColumn, Strings};
use quarrier_messages::{Part, PartField, PartSegment, Table};

/// Pseudo-random numbers, the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// The columns' names; `column` determines their contents.
pub(crate) const COLUMNS: [&str; 17] = [
    "tiny", "small", "wide", "huge", "flag", "money", "price", "odd", "day", "at", "word", "many",
    "plain", "runs", "unsigned", "giant", "mixed",
];

/// The greatest number of 38 digits.
const MOST: i128 = 10_i128.pow(38) - 1;

/// Mantissas that exceed 64 bits, and others.
pub(crate) const MANTISSAS: [i128; 12] = [
    0,
    -1,
    700,
    i64::MAX as i128,
    1 << 63,
    i64::MIN as i128 - 1,
    u64::MAX as i128,
    u64::MAX as i128 - 1,
    1 << 70,
    -(1 << 100),
    MOST,
    -MOST,
];

/// The words of the column `word`.
pub(crate) const WORDS: [&str; 8] = ["", "a", "ab", "abc", "b", "ba", "é", "zz top"];

/// Makes a table with this number of rows in each segment.
pub(crate) fn table(seed: u64, segments: &[usize]) -> Table {
    let mut random = Random(seed);
    let mut dictionaries = vec![Strings::new(); COLUMNS.len()];
    dictionaries[10] = WORDS.iter().rev().copied().collect();
    let many: Vec<String> = (0..500).map(|at| format!("note {} {}", at * 7919 % 500, at)).collect();
    dictionaries[11] = many.iter().map(String::as_str).collect();
    let fields = COLUMNS.iter().zip(dictionaries);
    let fields = fields
        .map(|(name, dictionary)| PartField { name: (*name).into(), dictionary, rounded: 0 })
        .collect();
    let segment = |(place, &rows): (usize, &usize)| {
        assert!(rows <= SEGMENT_ROWS, "a segment of {rows} rows");
        let columns = (0..COLUMNS.len()).map(|column| {
            // Some columns are missing from segments after the first; some have NULL.
            if place > 0 && random.below(12) == 0 {
                return None;
            }
            let data = data(column, rows, &mut random);
            let valid = match random.below(2) {
                0 => Vec::new(),
                _ => valid(rows, &mut random),
            };
            Some(SegmentColumn::pack(&RawColumn { valid, data }))
        });
        PartSegment { place: place as u64, rows: rows as u32, columns: columns.collect() }
    };
    let segments = segments.iter().enumerate().map(segment).collect();
    Table::assemble(vec![Part { fields, segments }], 2)
}

fn valid(rows: usize, random: &mut Random) -> Vec<u64> {
    let sparse = random.below(2) == 0;
    let mut words: Vec<u64> = (0..rows.div_ceil(64))
        .map(|_| if sparse { random.next() & random.next() } else { random.next() | random.next() })
        .collect();
    if !rows.is_multiple_of(64)
        && let Some(last) = words.last_mut()
    {
        *last &= (1 << (rows % 64)) - 1;
    }
    words
}

/// Draws exact numbers in lanes of any width, over a base of any size.
fn wide(name: &str, rows: usize, random: &mut Random) -> RawData {
    let base = *random.pick(&MANTISSAS);
    let how = if name == "mixed" { random.below(5) } else { 5 };
    let near = [1, 2, 200, 60_000, 1 << 40].map(|most| random.below(most) + 1);
    let most = *random.pick(&near);
    let mut one = |row: usize| match (name, how) {
        ("unsigned", _) if row.is_multiple_of(9) => i128::from(random.next()),
        ("unsigned", _) => i128::from(u64::MAX) - i128::from(random.below(10)),
        ("giant", _) | (_, 4) => *random.pick(&MANTISSAS),
        (_, 0) => base.clamp(1 - MOST / 2, MOST / 2) + i128::from(random.below(most)),
        (_, 1) => (row / 500) as i128 * (1 << 64),
        (_, 2) => random.below(most).into(),
        _ => base.clamp(1 - MOST / 2, MOST / 2) + i128::from(random.next()),
    };
    let mantissas = (0..rows).map(&mut one).collect();
    RawData::Wide {
        scale: [0, 2, 20][if name == "mixed" { 2 } else { (name == "giant").into() }],
        mantissas,
    }
}

fn data(column: usize, rows: usize, random: &mut Random) -> RawData {
    if let "unsigned" | "giant" | "mixed" = COLUMNS[column] {
        return wide(COLUMNS[column], rows, random);
    }
    let r = random;
    let mut each = |next: &mut dyn FnMut(&mut Random, usize) -> i64| -> Vec<i64> {
        (0..rows).map(|row| next(r, row)).collect()
    };
    let extremes = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX];
    match COLUMNS[column] {
        "tiny" => RawData::Integer(each(&mut |r, _| r.below(5) as i64 - 2)),
        "small" => RawData::Integer(each(&mut |r, _| r.below(1000) as i64)),
        "wide" => RawData::Integer(each(&mut |r, _| r.below(1 << 20) as i64 - 500)),
        "huge" => RawData::Integer(each(&mut |r, _| *r.pick(&extremes))),
        "flag" => {
            let bits = (0..rows.div_ceil(64)).map(|_| r.next()).collect();
            RawData::Boolean { bits, rows }
        }
        "money" => {
            RawData::Decimal { scale: 2, mantissas: each(&mut |r, _| r.below(50_000) as i64 - 100) }
        }
        "price" => {
            let cents = each(&mut |r, _| r.below(20_000) as i64 - 50);
            RawData::Float(cents.into_iter().map(|cents| cents as f64 / 100.0).collect())
        }
        "odd" => {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.5, 0.1, 1e300];
            let nth = each(&mut |r, _| r.below(9) as i64);
            let float = |n: i64| odd.get(n as usize).copied().unwrap_or(n as f64 / 7.0);
            RawData::Float(nth.into_iter().map(float).collect())
        }
        "day" => {
            let days = each(&mut |r, _| r.below(400) as i64 - 10);
            RawData::Date(days.into_iter().map(|day| day as i32).collect())
        }
        // Ascending, as timestamps usually are, so that blocks are skipped.
        "at" => {
            let mut at = 0;
            RawData::Timestamp(each(&mut |r, _| {
                at += r.below(2_000_000_000_000) as i64;
                at
            }))
        }
        "word" => {
            let codes = each(&mut |r, _| r.below(WORDS.len() as u64) as i64);
            RawData::Codes(codes.into_iter().map(|code| code as u32).collect())
        }
        "many" => {
            let codes = each(&mut |r, _| r.below(500) as i64);
            RawData::Codes(codes.into_iter().map(|code| code as u32).collect())
        }
        "plain" => {
            let (mut ends, mut bytes) = (Vec::new(), Vec::new());
            for nth in each(&mut |r, _| r.below(WORDS.len() as u64) as i64) {
                bytes.extend_from_slice(WORDS[nth as usize].as_bytes());
                ends.push(bytes.len() as u32);
            }
            RawData::Text { ends, bytes }
        }
        _ => RawData::Integer(each(&mut |_, row| (row / 700) as i64 * 1000)),
    }
}
