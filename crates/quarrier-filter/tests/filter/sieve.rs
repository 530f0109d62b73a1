//! The sieve selects the same rows as the oracle.

use quarrier_filter::{Expr, Sieve, naive, sql};
use quarrier_messages::build::{Cell, Row};
use quarrier_messages::{Field, Kind, Schema, Value};

const KINDS: [(&str, Kind); 9] = [
    ("i", Kind::Integer),
    ("d", Kind::Decimal { scale: 2 }),
    ("f", Kind::Float),
    ("b", Kind::Boolean),
    ("t", Kind::Text),
    ("day", Kind::Date),
    ("ts", Kind::Timestamp),
    ("u", Kind::Null),
    ("w", Kind::Decimal { scale: 20 }),
];

fn schema() -> Schema {
    let field = |(name, kind): (&str, Kind)| Field { name: name.into(), kind };
    Schema { fields: KINDS.map(field).to_vec() }
}

/// Pseudo-random numbers that are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

const OPS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "2.5",
    "0.125",
    "100",
    "1e0",
    "-7.25",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999.00000000000000000001",
    "0.0000000000000000005",
];
const TEXTS: [&str; 6] = ["''", "'a'", "'ab'", "'NEW'", "'é'", "'b%'"];
const PATTERNS: [&str; 8] = ["'%'", "'a'", "'a%'", "'%b'", "'%a%'", "'_b'", "'a%b%'", "''"];

/// Draws a condition on one column.
fn test(random: &mut Random) -> String {
    let op = *random.of(&OPS);
    match random.below(16) {
        0..4 => format!("{} {op} {}", random.of(&["i", "d", "f", "w"]), random.of(&NUMBERS)),
        4 => format!("{} {op} {}", random.of(&NUMBERS), random.of(&["i", "d", "w"])),
        5 => format!("t {op} {}", random.of(&TEXTS)),
        6 => format!("t LIKE {}", random.of(&PATTERNS)),
        7 => format!("t NOT IN ({}, {})", random.of(&TEXTS), random.of(&["NULL", "'a'", "'b'"])),
        8 => format!(
            "{} IN ({}, {}, NULL)",
            random.of(&["d", "w"]),
            random.of(&NUMBERS),
            random.of(&NUMBERS)
        ),
        9 => format!(
            "{} BETWEEN {} AND {}",
            random.of(&["i", "d", "f", "w"]),
            random.of(&NUMBERS),
            random.of(&NUMBERS)
        ),
        10 => format!("{} IS NULL", random.of(&KINDS).0),
        11 => "b".to_string(),
        12 => format!("day {op} DATE '1970-01-03'"),
        13 => format!(
            "ts {op} {}",
            random.of(&["TIMESTAMP '1970-01-01 00:00:01'", "DATE '1970-01-02'"])
        ),
        14 => format!(
            "{} {op} {}",
            random.of(&["i * d", "i / d", "d + 1", "CAST(t AS INTEGER)", "i", "w"]),
            random.of(&["d", "i", "2", "w"])
        ),
        _ => format!("u {op} 1"),
    }
}

fn condition(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return test(random);
    }
    let inner = |random: &mut Random| condition(random, depth - 1);
    match random.below(6) {
        0 | 1 => format!("({}) AND ({})", inner(random), inner(random)),
        2 => format!("({}) OR ({})", inner(random), inner(random)),
        3 => format!("NOT ({})", inner(random)),
        4 => format!("({}) IS {}", inner(random), random.of(&["TRUE", "NOT FALSE", "UNKNOWN"])),
        _ => test(random),
    }
}

/// Draws a row that fits the types. Values of exact columns have a random number of decimals.
fn row(random: &mut Random) -> Vec<Value> {
    let mut row = Vec::new();
    for (_, kind) in KINDS {
        let number = *random.of(&[0, 1, -1, 2, 100, 250, 12, -725, i64::MAX, i64::MIN]);
        row.push(match kind {
            _ if random.below(4) == 0 => Value::Null,
            Kind::Null => Value::Null,
            Kind::Boolean => Value::Boolean(number > 0),
            Kind::Integer => Value::Integer(number),
            Kind::Decimal { scale: 20 } => {
                let power = 10_i128.pow(*random.of(&[0, 5, 17]));
                let far = [1, u64::MAX.into(), 10_i128.pow(21) - 1];
                let mantissa = (i128::from(number % 1_000) + random.of(&far)) * power;
                Value::Decimal { mantissa, scale: 20 }
            }
            Kind::Decimal { scale } => {
                Value::Decimal { mantissa: (number / 1_000_000).max(number % 1_000).into(), scale }
            }
            Kind::Float => Value::Float(*random.of(&[0.0, -0.0, 1.0, 2.5, -7.25, f64::NAN, 1e300])),
            Kind::Date => Value::Date((number % 10) as i32),
            Kind::Timestamp => Value::Timestamp(number % 100_000 * 1_000_000_000),
            Kind::Text => Value::Text((*random.of(&["", "a", "ab", "b", "NEW", "12", "é"])).into()),
        });
    }
    row
}

/// Passes the values to the sieve as a parser does.
fn pour(values: &[Value], sieve: &mut Sieve, random: &mut Random) {
    sieve.clear();
    for (value, (name, _)) in values.iter().zip(KINDS) {
        let Some(field) = sieve.field(name) else { continue };
        match value {
            Value::Null if random.below(2) == 0 => sieve.null(field),
            Value::Boolean(truth) => sieve.boolean(field, *truth),
            Value::Integer(number) => sieve.integer(field, *number),
            Value::Decimal { mantissa, scale } => {
                // In its shortest notation.
                let (mut mantissa, mut scale) = (*mantissa, *scale);
                while scale > 0 && mantissa % 10 == 0 {
                    (mantissa, scale) = (mantissa / 10, scale - 1);
                }
                match Cell::exact(mantissa, scale) {
                    Cell::Integer(number) => sieve.integer(field, number),
                    Cell::Decimal { mantissa, scale } => sieve.decimal(field, mantissa, scale),
                    Cell::Wide { mantissa, scale } => {
                        sieve.number(field, Cell::Wide { mantissa, scale });
                    }
                    other => panic!("{other:?} is no exact number"),
                }
            }
            Value::Float(number) => sieve.float(field, *number),
            Value::Date(day) => sieve.date(field, *day),
            Value::Timestamp(nanoseconds) => sieve.timestamp(field, *nanoseconds),
            Value::Text(text) => sieve.text(field, text),
            _ => {}
        }
    }
}

#[test]
fn the_sieve_finds_the_same_rows_as_the_oracle() {
    let schema = schema();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut bound = 0;
    for _ in 0..4_000 {
        let strings: Vec<String> = (0..3)
            .map(|_| {
                let depth = random.below(4);
                condition(&mut random, depth)
            })
            .collect();
        let exprs: Vec<(String, Expr)> = strings
            .into_iter()
            .filter_map(|text| sql::condition(&text, &schema).ok().map(|expr| (text, expr)))
            .collect();
        bound += exprs.len();
        let alone: Vec<Expr> = exprs.iter().map(|(_, expr)| expr.clone()).collect();
        let mut sieve = Sieve::new(&schema, &alone);
        for _ in 0..20 {
            let values = row(&mut random);
            pour(&values, &mut sieve, &mut random);
            assert_eq!(sieve.misfits(), []);
            for (at, (text, expr)) in exprs.iter().enumerate() {
                let expected = naive::truth(expr, &values[..]);
                let found = sieve.is_true(at);
                match (expected, found) {
                    (Ok(truth), Ok(found)) => {
                        assert_eq!(found, truth == Some(true), "{text} of {values:?}");
                    }
                    // The first part to be evaluated determines the fault.
                    (Err(_), Err(_)) => {}
                    (expected, found) => panic!("{text} of {values:?}: {expected:?}, {found:?}"),
                }
            }
        }
    }
    assert!(bound > 8_000, "only {bound} conditions are right");
}

/// Draws a condition that requires a column to have a value, and has further tests.
fn anchored(random: &mut Random) -> String {
    let anchor = match random.below(8) {
        0..3 => format!("t = {}", random.of(&TEXTS)),
        3 => format!("t IN ({}, {})", random.of(&TEXTS), random.of(&TEXTS)),
        4 | 5 => format!("{} = {}", random.of(&["i", "d", "f", "w"]), random.of(&NUMBERS)),
        6 => format!("{} = {}", random.of(&NUMBERS), random.of(&["i", "d", "f", "w"])),
        _ => format!("day IN (DATE '1970-01-03', DATE '1970-01-0{}')", 1 + random.below(9)),
    };
    let mut parts = vec![anchor];
    for _ in 0..random.below(4) {
        parts.push(match random.below(4) {
            0 => test(random),
            _ => format!(
                "{} {} {}",
                random.of(&["i", "d", "f", "w"]),
                random.of(&OPS),
                random.of(&NUMBERS)
            ),
        });
    }
    let first = random.below(parts.len());
    parts.swap(0, first);
    parts.join(" AND ")
}

/// 10^6 pairs of rows and conditions, most of them in the index.
#[test]
fn many_conditions_find_the_same_as_each() {
    let schema = schema();
    let mut random = Random(0x51CE_4E5B_9BF5_8476);
    let (mut pairs, mut matches) = (0, 0);
    for _ in 0..100 {
        let strings: Vec<String> = (0..130)
            .map(|_| match random.below(5) {
                0 => condition(&mut random, 2),
                _ => anchored(&mut random),
            })
            .collect();
        let bind = |text: &String| sql::condition(text, &schema).ok();
        let (strings, exprs): (Vec<&String>, Vec<Expr>) =
            strings.iter().filter_map(|text| bind(text).map(|expr| (text, expr))).unzip();
        let mut sieve = Sieve::new(&schema, &exprs);
        let mut found = Vec::new();
        for _ in 0..100 {
            let values = row(&mut random);
            pour(&values, &mut sieve, &mut random);
            let done = sieve.all_true(&mut found);
            let truths: Vec<_> = exprs.iter().map(|expr| naive::truth(expr, &values[..])).collect();
            pairs += exprs.len();
            if let Some(at) = truths.iter().position(Result::is_err) {
                assert!(done.is_err(), "{} of {values:?}", strings[at]);
                continue;
            }
            assert_eq!(done, Ok(()), "{values:?}");
            let expected = truths.iter().enumerate().filter(|(_, it)| **it == Ok(Some(true)));
            let expected: Vec<u32> = expected.map(|(at, _)| at as u32).collect();
            let shown =
                |list: &[u32]| list.iter().map(|at| strings[*at as usize]).collect::<Vec<_>>();
            assert_eq!(shown(&found), shown(&expected), "{values:?}");
            matches += found.len();
        }
    }
    assert!(pairs > 900_000 && matches > 50_000, "{matches} of {pairs}");
}

#[test]
fn a_value_that_does_not_fit_its_type_is_a_misfit() {
    let schema = schema();
    let condition = |text: &str| sql::condition(text, &schema).unwrap();
    let misfits = |text: &str, set: &dyn Fn(&mut Sieve)| {
        let mut sieve = Sieve::new(&schema, &[condition(text)]);
        sieve.clear();
        set(&mut sieve);
        sieve.misfits().to_vec()
    };
    let put_text = |name: &'static str, text: &'static str| {
        move |sieve: &mut Sieve| {
            let field = sieve.field(name).unwrap();
            sieve.text(field, text);
        }
    };
    assert_eq!(misfits("i > 1", &put_text("i", "x")), [(0, Kind::Text)]);
    assert_eq!(misfits("u = 'x'", &put_text("u", "x")), [(7, Kind::Text)]);
    assert_eq!(misfits("u = 'x'", &put_text("U", "2024-01-01")), [(7, Kind::Date)]);
    assert_eq!(misfits("ts IS NULL", &put_text("ts", "2024-01-01T00:00:00Z")), []);
    assert_eq!(misfits("t = 'x'", &put_text("t", "2024-01-01")), []);
    let put_decimal = |sieve: &mut Sieve| {
        let field = sieve.field("i").unwrap();
        sieve.decimal(field, 15, 1);
    };
    // Exact numbers compare with constants regardless of their digits; calculations need a type.
    assert_eq!(misfits("i > 1", &put_decimal), []);
    assert_eq!(misfits("i / 2 > 1", &put_decimal), [(0, Kind::Decimal { scale: 1 })]);
}

#[test]
fn of_a_field_that_comes_twice_the_later_value_counts() {
    let schema = schema();
    let mut sieve =
        Sieve::new(&schema, &[sql::condition("i = 1 AND t LIKE 'a_c'", &schema).unwrap()]);
    sieve.clear();
    let (i, t) = (sieve.field("i").unwrap(), sieve.field("t").unwrap());
    sieve.text(i, "misfit");
    sieve.integer(i, 2);
    sieve.integer(i, 1);
    sieve.text(t, "x");
    sieve.text(t, "abc");
    assert_eq!(sieve.is_true(0), Ok(true));
    sieve.null(i);
    assert_eq!(sieve.is_true(0), Ok(false));
}
