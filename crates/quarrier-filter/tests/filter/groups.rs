//! Groups, compared with a loop over the rows.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quarrier_filter::group::{GroupPlan, Grouped, Grouper, Grouping, Measure, Number, Total};
use quarrier_messages::{Places, Table, Value};

use crate::scan::tables::{COLUMNS, Random, table};

fn column(name: &str) -> usize {
    COLUMNS.iter().position(|known| *known == name).unwrap()
}

/// The keys, each with its maximum number of codes.
const KEYS: [(&str, usize); 7] = [
    ("tiny", 6),
    ("flag", 3),
    ("word", 9),
    ("runs", 12_002),
    ("day", 401),
    ("many", 501),
    ("small", 1_001),
];

/// Numbers of which any three have a product within 62 bits.
const NUMBERS: [&str; 6] = ["tiny", "small", "wide", "money", "day", "runs"];

/// The value of a row, an integer or a float; `None` for NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Calculated {
    Whole(i128),
    Float(f64),
}

fn calculated(table: &Table, row: u64, numbers: &[Number]) -> Vec<Option<Calculated>> {
    let mut done: Vec<Option<Calculated>> = Vec::new();
    for number in numbers {
        let pair = |a: usize, b: usize, step: fn(i128, i128) -> i128| match (done[a], done[b]) {
            (Some(Calculated::Whole(a)), Some(Calculated::Whole(b))) => {
                Some(Calculated::Whole(step(a, b)))
            }
            _ => None,
        };
        let next = match *number {
            Number::Column(column) => match table.value(row, column) {
                Value::Null => None,
                Value::Integer(value) => Some(Calculated::Whole(value.into())),
                Value::Decimal { mantissa, .. } => Some(Calculated::Whole(mantissa)),
                Value::Date(day) => Some(Calculated::Whole(day.into())),
                Value::Float(value) => Some(Calculated::Float(value)),
                // A value that is only counted.
                _ => Some(Calculated::Whole(0)),
            },
            Number::Constant(value) => Some(Calculated::Whole(value.into())),
            Number::Plus(a, b) => pair(a, b, |a, b| a + b),
            Number::Minus(a, b) => pair(a, b, |a, b| a - b),
            Number::Times(a, b) => pair(a, b, |a, b| a * b),
        };
        done.push(next);
    }
    done
}

/// Computes a measure row by row.
fn measured(measure: Measure, rows: &[Vec<Option<Calculated>>]) -> Option<Calculated> {
    let of = |number: usize| rows.iter().filter_map(move |row| row[number]);
    let bound = |number, keeps: fn(f64, f64) -> bool| {
        of(number).reduce(|a, b| {
            let value = |it| match it {
                Calculated::Whole(value) => value as f64,
                Calculated::Float(value) => value,
            };
            if keeps(value(a), value(b)) { a } else { b }
        })
    };
    match measure {
        Measure::Rows => Some(Calculated::Whole(rows.len() as i128)),
        Measure::Count(number) => Some(Calculated::Whole(of(number).count() as i128)),
        Measure::Sum(number) => of(number).reduce(|a, b| match (a, b) {
            (Calculated::Whole(a), Calculated::Whole(b)) => Calculated::Whole(a + b),
            (Calculated::Float(a), Calculated::Float(b)) => Calculated::Float(a + b),
            both => panic!("{both:?} have no sum"),
        }),
        Measure::Least(number) => bound(number, |a, b| a <= b),
        Measure::Greatest(number) => bound(number, |a, b| a >= b),
    }
}

type Groups = BTreeMap<Vec<String>, Vec<Option<Calculated>>>;

fn expected(table: &Table, rows: &[u64], grouping: &Grouping) -> Groups {
    let mut groups: BTreeMap<Vec<String>, Vec<Vec<Option<Calculated>>>> = BTreeMap::new();
    if grouping.keys.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    for &row in rows {
        let keys = grouping.keys.iter().map(|&key| format!("{:?}", table.value(row, key)));
        let numbers = calculated(table, row, &grouping.numbers);
        groups.entry(keys.collect()).or_default().push(numbers);
    }
    let all = |rows: Vec<_>| grouping.measures.iter().map(|&one| measured(one, &rows)).collect();
    groups.into_iter().map(|(keys, rows)| (keys, all(rows))).collect()
}

fn shown(table: &Table, grouping: &Grouping, grouped: &Grouped) -> Groups {
    let key = |key: usize, value: Option<i64>| {
        let Some(number) = value else { return format!("{:?}", Value::<&str>::Null) };
        let value: Value = match COLUMNS[key] {
            "flag" => Value::Boolean(number != 0),
            "day" => Value::Date(number as i32),
            "word" | "many" => {
                let dictionary = table.columns()[key].dictionary().unwrap();
                Value::Text(dictionary.get(number as usize).into())
            }
            _ => Value::Integer(number),
        };
        format!("{value:?}")
    };
    let group = |at: usize| {
        let keys = grouping.keys.iter().zip(&grouped.keys);
        let keys = keys.map(|(&place, values)| key(place, values[at])).collect();
        let measures = grouped.measures.iter().map(|total| match total {
            Total::Whole(values) => values[at].map(Calculated::Whole),
            Total::Float(values) => values[at].map(Calculated::Float),
        });
        (keys, measures.collect())
    };
    (0..grouped.groups).map(group).collect()
}

fn compare(found: &Groups, expected: &Groups) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (key, values) in found {
        for (value, wanted) in values.iter().zip(&expected[key]) {
            match (value, wanted) {
                // The grouper adds floats in another order.
                (Some(Calculated::Float(a)), Some(Calculated::Float(b))) => {
                    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{key:?}: {a} for {b}");
                }
                _ => assert_eq!(value, wanted, "{key:?}"),
            }
        }
    }
}

/// Groups the given rows of each segment, and compares with `expected`.
fn check(table: &Table, rows: &[Vec<u32>], grouping: Grouping) {
    let plan = GroupPlan::of(table, grouping.clone());
    let plan = plan.unwrap_or_else(|| panic!("no plan for {grouping:?}"));
    let mut grouper = Grouper::new(table, &plan);
    let mut all = Vec::new();
    for (segment, rows) in rows.iter().enumerate() {
        let (first, length) = (table.segment_start(segment), table.segment_rows(segment));
        if rows.len() == length {
            grouper.add(segment, &Places::Range(0..length));
        } else {
            grouper.add(segment, &Places::These(rows));
        }
        all.extend(rows.iter().map(|&row| first + u64::from(row)));
    }
    let found = shown(table, &grouping, &grouper.finish());
    compare(&found, &expected(table, &all, &grouping));
}

/// Draws keys with a bounded number of groups.
fn keys(random: &mut Random) -> Vec<usize> {
    let mut left = quarrier_filter::group::SLOTS_MAX;
    let mut keys = Vec::new();
    for _ in 0..random.below(4) {
        let (name, size) = *random.pick(&KEYS);
        if size <= left {
            left /= size;
            keys.push(column(name));
        }
    }
    keys
}

fn grouping(random: &mut Random) -> Grouping {
    let mut numbers: Vec<Number> =
        (0..3).map(|_| Number::Column(column(random.pick::<&str>(&NUMBERS)))).collect();
    numbers.push(Number::Constant(random.below(200) as i64 - 100));
    let steps = [Number::Plus, Number::Minus, Number::Times];
    let mut products = 0;
    for _ in 0..random.below(4) {
        let step = *random.pick(&steps);
        let number = step(random.below(4) as usize, random.below(numbers.len() as u64) as usize);
        products += usize::from(matches!(number, Number::Times(..)));
        if products <= 2 {
            numbers.push(number);
        }
    }
    let floats = numbers.len();
    numbers.push(Number::Column(column("price")));
    let counted = numbers.len();
    numbers.push(Number::Column(column(random.pick::<&str>(&["plain", "word", "flag"]))));
    let measures = [Measure::Count, Measure::Sum, Measure::Least, Measure::Greatest];
    let mut chosen = vec![Measure::Rows, Measure::Sum(floats), Measure::Least(floats)];
    chosen.extend([Measure::Greatest(floats), Measure::Count(floats), Measure::Count(counted)]);
    for number in 0..floats {
        chosen.extend(measures.iter().filter(|_| random.below(2) == 0).map(|of| of(number)));
    }
    Grouping { keys: keys(random), numbers, measures: chosen }
}

/// Draws all rows of a segment, none, some close together, or few.
fn rows(random: &mut Random, length: usize) -> Vec<u32> {
    let of = [1, 2, 3, 50, 5_000][random.below(5) as usize];
    let none = random.below(6) == 0;
    (0..length as u32).filter(|_| !none && random.below(of) == 0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn groups_match_a_loop_over_the_rows(
        seed: u64,
        segments in prop::collection::vec(1..9000_usize, 1..4),
    ) {
        let table = table(seed, &segments);
        let mut random = Random(seed);
        let rows: Vec<_> = segments.iter().map(|&length| rows(&mut random, length)).collect();
        for _ in 0..4 {
            check(&table, &rows, grouping(&mut random));
        }
    }
}

#[test]
fn groupings_that_may_not_fit_have_no_plan() {
    let table = table(7, &[5_000, 5_000]);
    let refused = |keys: &[&str], numbers: &[Number]| {
        let keys = keys.iter().map(|name| column(name)).collect();
        let grouping = Grouping { keys, numbers: numbers.to_vec(), measures: vec![Measure::Rows] };
        assert_eq!(GroupPlan::of(&table, grouping.clone()).map(|_| ()), None, "{grouping:?}");
    };
    // Too many groups, and keys without codes.
    refused(&["small", "many"], &[]);
    refused(&["wide"], &[]);
    refused(&["plain"], &[]);
    refused(&["price"], &[]);
    // Numbers beyond 62 bits, NaN, and values that are not numbers.
    refused(&[], &[Number::Column(column("huge"))]);
    refused(&[], &[Number::Column(column("odd"))]);
    refused(&[], &[Number::Column(column("word")), Number::Plus(0, 0)]);
    refused(&[], &[Number::Column(column("price")), Number::Plus(0, 0)]);
    let (numbers, measures) = (vec![Number::Column(column("word"))], vec![Measure::Least(0)]);
    assert!(GroupPlan::of(&table, Grouping { keys: Vec::new(), numbers, measures }).is_none());
    let wide = Number::Column(column("wide"));
    refused(&[], &[wide, Number::Times(0, 0), Number::Times(1, 1), Number::Times(2, 2)]);
}

#[test]
fn sums_beyond_64_bits_are_right() {
    let table = table(11, &[9_000]);
    let wide = Number::Column(column("wide"));
    // Up to 2^61: the sum of a few of them exceeds 64 bits.
    let numbers = vec![wide, Number::Times(0, 0), Number::Constant(1 << 20), Number::Times(1, 2)];
    let measures = vec![Measure::Sum(3), Measure::Sum(1), Measure::Greatest(3)];
    let rows = vec![(0..9_000).collect()];
    for keys in [vec![], vec![column("tiny")], vec![column("many")]] {
        check(
            &table,
            &rows,
            Grouping { keys, numbers: numbers.clone(), measures: measures.clone() },
        );
    }
}
