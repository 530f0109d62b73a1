//! Draws random conditions. Most of their literals are values of the table, or adjacent to one.

use super::{Arithmetic, Comparison, Condition, Operand};
use crate::draw::Draw;
use crate::table::{Kind, Table};
use crate::value::{Value, exact, trimmed, whole};

const COMPARISONS: [Comparison; 7] = [
    Comparison::Equal,
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// Draws a condition over the columns of a table, with up to `depth` levels of AND, OR and NOT.
pub fn condition(draw: &mut Draw, table: &Table, depth: usize) -> Condition {
    if depth > 0 && draw.chance(45) {
        let one = Box::new(condition(draw, table, depth - 1));
        return match draw.below(8) {
            0 => Condition::Not(one),
            1 => Condition::Unknown(one),
            2..=4 => Condition::And(one, Box::new(condition(draw, table, depth - 1))),
            _ => Condition::Or(one, Box::new(condition(draw, table, depth - 1))),
        };
    }
    let column = draw.below(table.columns.len());
    let kind = table.columns[column].kind;
    if kind == Kind::Truth {
        return match draw.below(3) {
            0 => Condition::IsNull(Operand::Column(column), draw.chance(50)),
            1 => Condition::Compare(
                Comparison::Equal,
                Operand::Column(column),
                literal(draw, table, column),
            ),
            _ => Condition::Truth(column),
        };
    }
    predicate(draw, table, column)
}

fn predicate(draw: &mut Draw, table: &Table, column: usize) -> Condition {
    let kind = table.columns[column].kind;
    let operand = operand(draw, table, column);
    let negated = draw.chance(30);
    match draw.below(10) {
        0 | 1 => {
            let low = literal_beside(draw, table, column, &operand);
            let high = literal_beside(draw, table, column, &operand);
            Condition::Between { operand, negated, low, high }
        }
        2 | 3 => {
            let length = 1 + draw.magnitude(1, 40);
            let list = (0..length).map(|_| literal_beside(draw, table, column, &operand));
            let list = list.collect();
            Condition::In { operand, negated, list }
        }
        4 => Condition::IsNull(operand, negated),
        5 | 6 if kind == Kind::Text => {
            let is_escaped = draw.chance(30);
            let pattern = pattern(draw, table, column, is_escaped);
            Condition::Like { operand, negated, pattern, is_escaped }
        }
        7 => {
            let other = same_kind(draw, table, column);
            Condition::Compare(*draw.of(&COMPARISONS), operand, Operand::Column(other))
        }
        _ => {
            let right = literal_beside(draw, table, column, &operand);
            Condition::Compare(*draw.of(&COMPARISONS), operand, right)
        }
    }
}

/// A column, or an expression over it of the same type.
fn operand(draw: &mut Draw, table: &Table, column: usize) -> Operand {
    let plain = Operand::Column(column);
    match (draw.below(10), table.columns[column].kind) {
        (0, Kind::Whole) => {
            let op = *draw.of(&[Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply]);
            let number = draw.between(-3, 3);
            let right = Operand::Literal(whole(number), number.to_string());
            Operand::Calculated(op, Box::new(plain), Box::new(right))
        }
        (0, Kind::Text) => Operand::Upper(Box::new(plain)),
        (1, Kind::Text) => {
            let right = Operand::Literal(Value::Text("x".into()), "'x'".into());
            Operand::Joined(Box::new(plain), Box::new(right))
        }
        (2, _) => Operand::Coalesce(Box::new(plain), Box::new(literal(draw, table, column))),
        (3, _) => {
            let condition =
                Condition::IsNull(Operand::Column(draw.below(table.columns.len())), true);
            let otherwise = literal(draw, table, column);
            Operand::Case(Box::new(condition), Box::new(plain), Box::new(otherwise))
        }
        _ => plain,
    }
}

/// A column whose values compare exactly with those of this one.
fn same_kind(draw: &mut Draw, table: &Table, column: usize) -> usize {
    let class = |kind| match kind {
        Kind::Whole | Kind::Wide | Kind::Exact => Kind::Whole,
        kind => kind,
    };
    let wanted = class(table.columns[column].kind);
    let fitting = |other: &usize| class(table.columns[*other].kind) == wanted;
    let all: Vec<usize> = (0..table.columns.len()).filter(fitting).collect();
    *draw.of(&all)
}

/// A literal with a value of the column, or with an adjacent one.
fn literal(draw: &mut Draw, table: &Table, column: usize) -> Operand {
    let column = &table.columns[column];
    let mut value = Value::Null;
    for _ in 0..8 {
        value = column.values[draw.below(table.rows)].clone();
        if !value.is_null() {
            break;
        }
    }
    if draw.chance(25) {
        value = beside(draw, value);
    }
    let text = written(draw, &value);
    Operand::Literal(value, text)
}

/// A literal to compare directly with the operand. For a column of dates or timestamps, it may be a
/// plain string.
fn literal_beside(draw: &mut Draw, table: &Table, column: usize, operand: &Operand) -> Operand {
    match (literal(draw, table, column), operand) {
        (
            Operand::Literal(value @ (Value::Day(_) | Value::Moment(_)), text),
            Operand::Column(_),
        ) if draw.chance(30) => {
            let text = text[text.find('\'').unwrap_or(0)..].into();
            Operand::Literal(value, text)
        }
        (literal, _) => literal,
    }
}

fn beside(draw: &mut Draw, value: Value) -> Value {
    let by = draw.between(-2, 2);
    match value {
        // A number of 38 digits may have no successor.
        Value::Exact { mantissa, scale } if mantissa.unsigned_abs() < 10_u128.pow(37) => {
            Value::Exact { mantissa: mantissa + i128::from(by), scale }
        }
        Value::Float(number) if by > 0 => Value::Float(number.next_up()),
        Value::Float(number) => Value::Float(number.next_down()),
        Value::Text(text) => {
            let end = text.char_indices().nth(draw.below(4)).map_or(text.len(), |(at, _)| at);
            Value::Text(text[..end].into())
        }
        Value::Day(day) => Value::Day(day + by as i32),
        Value::Moment(at) => Value::Moment(at + by),
        value => value,
    }
}

/// Writes a literal in one of several equivalent ways.
fn written(draw: &mut Draw, value: &Value) -> String {
    match value {
        // Compared with a column of floats, a number with a point is a float, too.
        Value::Float(number) if draw.chance(50) && (1e-5..1e17).contains(&number.abs()) => {
            format!("{number:?}")
        }
        Value::Exact { mantissa, scale } if draw.chance(50) => trimmed(&exact(*mantissa, *scale)),
        value => value.literal(),
    }
}

/// Makes a LIKE pattern from a value of the column.
fn pattern(draw: &mut Draw, table: &Table, column: usize, is_escaped: bool) -> String {
    let text = match &table.columns[column].values[draw.below(table.rows)] {
        Value::Text(text) => text.to_string(),
        _ => "u".into(),
    };
    let letters: Vec<char> = text.chars().collect();
    let from = draw.below(letters.len() + 1);
    let to = (from + draw.below(6)).min(letters.len());
    let part: String = letters[from..to].iter().map(|&c| quoted(c, is_escaped)).collect();
    let head: String = letters[..to.min(5)].iter().map(|&c| quoted(c, is_escaped)).collect();
    match draw.below(7) {
        0 | 1 => format!("{head}%"),
        2 => format!("%{part}"),
        3 | 4 => format!("%{part}%"),
        5 => format!("_{}%", head.chars().skip(1).filter(|&c| c != '!').collect::<String>()),
        _ => letters.iter().map(|&c| quoted(c, is_escaped)).collect(),
    }
}

fn quoted(letter: char, is_escaped: bool) -> String {
    if is_escaped && matches!(letter, '%' | '_' | '!') {
        format!("!{letter}")
    } else {
        letter.into()
    }
}
