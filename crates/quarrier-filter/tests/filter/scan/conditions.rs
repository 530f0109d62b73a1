//! Random conditions.

use std::sync::Arc;

use proptest::prelude::*;
use quarrier_filter::expr::{Arithmetic, Comparison, Function, Matcher, Pattern};
use quarrier_filter::matching::Matching;
use quarrier_filter::{Expr, Keys, Query, Scan, sql};
use quarrier_messages::column::SegmentColumn;
use quarrier_messages::column::raw::{RawColumn, RawData};
use quarrier_messages::{Kind, Part, PartField, PartSegment, Table, Value};

use super::tables::{COLUMNS, MANTISSAS, Random, WORDS, table};
use super::{check, count};

const OPS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

fn literal(kind: Kind, random: &mut Random) -> Value {
    if random.below(15) == 0 {
        return Value::Null;
    }
    let number = *random.pick(&[-2, -1, 0, 1, 2, 7, 100, 499, 500, 5000, 1 << 19, 1 << 40]);
    match kind {
        Kind::Null | Kind::Text if random.below(2) == 0 => {
            Value::Text(format!("note {}", random.below(500)).into())
        }
        Kind::Null | Kind::Text => Value::Text((*random.pick(&WORDS)).into()),
        Kind::Boolean => Value::Boolean(random.below(2) == 0),
        Kind::Decimal { .. } if random.below(3) == 0 => {
            Value::Decimal { mantissa: *random.pick(&MANTISSAS), scale: *random.pick(&[0, 2, 20]) }
        }
        Kind::Integer | Kind::Decimal { .. } | Kind::Float => match random.below(4) {
            0 => Value::Float(*random.pick(&[0.5, -0.0, f64::NAN, f64::INFINITY, 1e19, 33.3])),
            1 => Value::Decimal { mantissa: number.into(), scale: random.below(5) as u8 },
            2 => Value::Integer(*random.pick(&[i64::MIN, i64::MAX, number])),
            _ => Value::Integer(number),
        },
        Kind::Date if random.below(3) > 0 => Value::Date(random.below(400) as i32 - 10),
        Kind::Date | Kind::Timestamp => {
            Value::Timestamp(random.below(400) as i64 * 86_400_000_000_000 + (number & 1))
        }
    }
}

fn numbers(table: &Table, random: &mut Random, depth: u32) -> Expr {
    let numeric = |kind: Kind| matches!(kind, Kind::Integer | Kind::Decimal { .. } | Kind::Float);
    match random.below(if depth == 0 { 2 } else { 5 }) {
        0 => Expr::Literal(literal(Kind::Integer, random)),
        1 => loop {
            let column = random.below(COLUMNS.len() as u64) as usize;
            if numeric(table.schema().fields[column].kind) {
                break Expr::Column(column);
            }
        },
        2 => Expr::Negate(Box::new(numbers(table, random, depth - 1))),
        _ => {
            let ops = [
                Arithmetic::Add,
                Arithmetic::Subtract,
                Arithmetic::Multiply,
                Arithmetic::Multiply,
                Arithmetic::Divide,
            ];
            Expr::Arithmetic {
                op: *random.pick(&ops),
                left: Box::new(numbers(table, random, depth - 1)),
                right: Box::new(numbers(table, random, depth - 1)),
            }
        }
    }
}

/// Draws keys of any density, between the column's ends, or between others if these are too far
/// apart or by chance.
fn among(table: &Table, column: usize, random: &mut Random) -> Expr {
    let span = Keys::span_of(table, column).filter(|_| random.below(4) > 0).unwrap_or(-1..=300);
    let mut keys = Keys::none_of(&span);
    let one_in = *random.pick(&[1, 2, 10, 100_000]);
    for key in span {
        if random.below(one_in) == 0 {
            keys.insert(key);
        }
    }
    Expr::Among { column, keys: Arc::new(keys) }
}

fn test(table: &Table, random: &mut Random) -> Expr {
    let column = random.below(COLUMNS.len() as u64) as usize;
    let kind = table.schema().fields[column].kind;
    let operand = Box::new(Expr::Column(column));
    match random.below(9) {
        8 if kind == Kind::Integer => among(table, column, random),
        0 => Expr::IsNull(operand),
        1 => {
            let list = (0..1 + random.below(20)).map(|_| Expr::Literal(literal(kind, random)));
            Expr::In { operand, list: list.collect() }
        }
        2 if kind == Kind::Text => {
            let patterns = ["a%", "%b%", "note 1%", "%7%", "note __", "%", "", "%a", "no%1"];
            let pattern =
                Matching::new(random.pick::<&str>(&patterns), None, Matcher::Like).unwrap();
            Expr::Match { operand, pattern: Pattern::Fixed(pattern) }
        }
        3 if kind == Kind::Text => Expr::Compare {
            op: *random.pick(&OPS),
            left: Box::new(Expr::Call {
                function: Function::CharacterLength,
                arguments: vec![Expr::Column(column)],
            }),
            right: Box::new(Expr::Literal(Value::Integer(random.below(5) as i64))),
        },
        4 | 5 => Expr::Compare {
            op: *random.pick(&OPS),
            left: Box::new(numbers(table, random, 2)),
            right: Box::new(numbers(table, random, 1)),
        },
        6 if kind == Kind::Boolean => *operand,
        _ => {
            let literal = Box::new(Expr::Literal(literal(kind, random)));
            let (left, right) =
                if random.below(4) == 0 { (literal, operand) } else { (operand, literal) };
            Expr::Compare { op: *random.pick(&OPS), left, right }
        }
    }
}

pub(crate) fn condition(table: &Table, random: &mut Random, depth: u32) -> Expr {
    if depth == 0 {
        return test(table, random);
    }
    let mut some =
        || (0..2 + random.below(2)).map(|_| condition(table, random, depth - 1)).collect();
    match some() {
        operands if random.below(3) == 0 => Expr::And(operands),
        operands if random.below(2) == 0 => Expr::Or(operands),
        mut operands => {
            let operand = Box::new(operands.pop().unwrap());
            match random.below(3) {
                0 => Expr::Is { operand, truth: *random.pick(&[Some(true), Some(false), None]) },
                _ => Expr::Not(operand),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_condition_selects_the_same_rows_as_the_naive_evaluator(
        seed: u64,
        segments in prop::collection::vec(
            prop_oneof![1..200_usize, Just(4096), 4000..4200_usize, Just(8192), Just(8500)],
            1..4,
        ),
    ) {
        let table = table(seed, &segments);
        let mut random = Random(seed ^ 0x5555);
        let conditions: Vec<_> =
            (0..12).map(|nth| condition(&table, &mut random, nth % 4)).collect();
        check(&table, &conditions);
    }
}

#[test]
fn keys_of_a_column_of_two_numbers_are_none_one_or_both_of_them() {
    // Lanes of one bit: without NULL, with some, and a segment with a single number and NULL.
    let number = |row: usize| 5 + i64::from(row.is_multiple_of(3));
    let segment = |place, valid: Option<u64>, number: &dyn Fn(usize) -> i64| {
        let data = RawData::Integer((0..5_000).map(number).collect());
        let mut valid: Vec<u64> = valid.map_or_else(Vec::new, |word| vec![word; 79]);
        if let Some(last) = valid.last_mut() {
            *last &= (1 << (5_000 % 64)) - 1;
        }
        let column = Some(SegmentColumn::pack(&RawColumn { valid, data }));
        PartSegment { place, rows: 5_000, columns: vec![column] }
    };
    let segments = vec![
        segment(0, None, &number),
        segment(1, Some(0x0f0f_0ff0_1234_5678), &number),
        segment(2, Some(0x0f0f_0ff0_1234_5678), &|_| 6),
    ];
    let fields = vec![PartField { name: "two".into(), ..PartField::default() }];
    let table = Table::assemble(vec![Part { fields, segments }], 2);
    let conditions: Vec<Expr> = [&[][..], &[5], &[6], &[5, 6]]
        .into_iter()
        .map(|wanted| {
            let mut keys = Keys::none_of(&Keys::span_of(&table, 0).unwrap());
            wanted.iter().for_each(|&key| keys.insert(key));
            Expr::Among { column: 0, keys: Arc::new(keys) }
        })
        .collect();
    let negated: Vec<Expr> =
        conditions.iter().map(|among| Expr::Not(Box::new(among.clone()))).collect();
    check(&table, &[conditions, negated].concat());
}

#[test]
fn every_condition_on_a_table_without_rows_selects_none() {
    let table = table(1, &[]);
    let query = count(Expr::Literal(Value::Boolean(true)));
    let answers = Scan::new(&table, &[query]).workers(4).run();
    assert_eq!(answers[0].as_ref().unwrap().count, 0);
}

#[test]
fn two_hundred_conditions_at_once_select_the_same_as_each_alone() {
    let table = table(77, &[5000, 4096, 300]);
    let mut random = Random(7);
    let queries: Vec<Query> =
        (0..200).map(|nth| count(condition(&table, &mut random, nth % 3))).collect();
    let together = Scan::new(&table, &queries).workers(2).run();
    for (query, together) in queries.iter().zip(together) {
        let alone = Scan::new(&table, std::slice::from_ref(query)).run();
        match (together, &alone[0]) {
            (Ok(together), Ok(alone)) => assert_eq!(together, *alone),
            (Err(together), Err(alone)) => assert_eq!(together, *alone),
            (together, alone) => panic!("{together:?} and {alone:?}: {query:?}"),
        }
    }
}

#[test]
fn a_fault_that_another_condition_decides_is_none() {
    let table = table(3, &[5000]);
    let schema = table.schema();
    for (text, faults) in [
        ("1 / (small - small) > 0", true),
        ("small < 0 AND 1 / (small - small) > 0", false),
        ("small >= 0 OR small IS NULL OR 1 / (small - small) > 0", false),
        ("(1 / (small - small) > 0) IS UNKNOWN", true),
    ] {
        let condition = sql::condition(text, schema).unwrap();
        let answers = Scan::new(&table, &[count(condition)]).run();
        assert_eq!(answers[0].is_err(), faults, "{text}");
    }
}

#[test]
fn a_negated_decimal_keeps_its_digits() {
    let table = table(3, &[5000]);
    let strings = ["-(small * 0.0007) > runs - 5000", "-money < small", "1.5 > -(money + small)"];
    let conditions = strings.map(|text| sql::condition(text, table.schema()).unwrap());
    check(&table, &conditions);
}

#[test]
fn products_are_compared_exactly_at_the_products_there_are() {
    let table = table(3, &[4500, 900]);
    let mut conditions = Vec::new();
    for (a, b) in [("small", "wide"), ("money", "small"), ("price", "small"), ("tiny", "runs")] {
        for row in [0, 1, 77, 4096, 4600] {
            let value = |name| table.value(row, table.schema().position(name).unwrap());
            let product = match (value(a), value(b)) {
                (Value::Integer(x), Value::Integer(y)) => (x * y).to_string(),
                (Value::Decimal { mantissa, .. }, Value::Integer(y)) => {
                    format!("{}e-2", mantissa * i128::from(y))
                }
                (Value::Float(x), Value::Integer(y)) => format!("{:?}e0", x * y as f64),
                _ => continue,
            };
            for op in ["=", "<", "<=", ">", ">=", "<>"] {
                let text = format!("{a} * {b} {op} {product}");
                conditions.push(sql::condition(&text, table.schema()).unwrap());
            }
        }
    }
    check(&table, &conditions);
}
