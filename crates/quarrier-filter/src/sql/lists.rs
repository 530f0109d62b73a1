//! Comparisons with lists: `5 < ANY (leg[*].qty)`.
//!
//! The elements of a list are columns: `leg[0].qty`, `leg[1].qty` and so on. So a comparison with some of
//! them is one of each:
//!
//! ```text
//!  x < ANY (leg[*].qty)   (x < leg[0].qty) IS TRUE OR (x < leg[1].qty) IS TRUE OR …
//!                         OR NULL AND (x is compared with NULL)
//!  x < ALL (leg[*].qty)   NOT (x >= ANY (leg[*].qty))
//! ```
//!
//! A list has the elements up to the last one with a value in one of its columns; elements before
//! that without a value are NULL. If it ends with elements without a value, the hidden column of
//! the ends of lists has its length: see
//! [`HiddenColumns::list_ends`](quarrier_messages::HiddenColumns::list_ends).

use std::collections::BTreeMap;

use quarrier_messages::list_end_mark;
use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, Value};

/// The part of a path that stands for all elements.
pub(super) const ALL: &str = "[*]";

/// An element of a list, as columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Element<'c> {
    /// Its index, from 0.
    pub index: u64,
    /// The column that the path names; `None` if no message has it.
    pub value: Option<&'c str>,
    /// The other columns of the element.
    pub others: Vec<&'c str>,
}

/// Whether a path refers to all elements of a list.
pub fn is_list(path: &str) -> bool {
    path.contains(ALL)
}

/// Returns the elements to which a path such as `leg[*].qty` or `tag[*]` refers, among `columns`;
/// `None` if it matches no column. A gap of elements without columns is returned as a single
/// element.
pub fn elements<'c>(path: &str, columns: &[&'c str]) -> Option<Vec<Element<'c>>> {
    let (list, field) = path.split_once(ALL)?;
    let found = |is_exact: bool| {
        let is_same = |one: &str, other: &str| match is_exact {
            true => one == other,
            false => one.eq_ignore_ascii_case(other),
        };
        let mut found: BTreeMap<u64, Element<'c>> = BTreeMap::new();
        for &column in columns {
            let Some((head, rest)) = column.split_at_checked(list.len()) else { continue };
            let indexed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let Some((index, rest)) = indexed.filter(|_| is_same(head, list)) else { continue };
            let Ok(index) = index.parse() else { continue };
            let element = found.entry(index).or_insert(Element { index, ..Element::default() });
            match element.value {
                None if is_same(rest, field) => element.value = Some(column),
                _ => element.others.push(column),
            }
        }
        found.values().any(|element| element.value.is_some()).then_some(found)
    };
    let found = found(true).or_else(|| found(false))?;
    let (mut elements, mut next) = (Vec::with_capacity(found.len()), 0);
    for (index, element) in found {
        if index > next {
            elements.push(Element { index: next, ..Element::default() });
        }
        next = index.saturating_add(1);
        elements.push(element);
    }
    Some(elements)
}

/// Returns the fields of the elements of a list, each once: `.qty`, or an empty string for elements
/// that are values. Empty if no column belongs to the list.
pub fn list_fields<'c>(list: &str, columns: &[&'c str]) -> Vec<&'c str> {
    let fields = |is_exact: bool| {
        let mut fields: Vec<&'c str> = Vec::new();
        for &column in columns {
            let Some((head, rest)) = column.split_at_checked(list.len()) else { continue };
            let is_same = head == list || !is_exact && head.eq_ignore_ascii_case(list);
            let indexed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let Some((index, field)) = indexed.filter(|_| is_same) else { continue };
            if index.parse::<u64>().is_ok() && !fields.contains(&field) {
                fields.push(field);
            }
        }
        fields
    };
    let exact = fields(true);
    if exact.is_empty() { fields(false) } else { exact }
}

/// Returns the names that columns give the list of a path such as `leg[*].qty`: one, or several that
/// differ in case.
pub fn list_names<'c>(path: &str, elements: &[Element<'c>]) -> Vec<&'c str> {
    let length = path.find(ALL).unwrap_or(path.len());
    let mut names: Vec<&'c str> = Vec::new();
    for column in elements.iter().flat_map(|element| element.value.iter().chain(&element.others)) {
        if let Some(name) = column.get(..length).filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    names
}

/// Returns the condition that the list of this name ends with an element without a value. `ends` is the
/// hidden column of the ends of lists.
pub fn ends_without_value(list: &str, ends: Expr) -> Expr {
    let mut pattern = String::from("%");
    for character in list_end_mark(list).chars() {
        if matches!(character, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(character);
    }
    pattern.push('%');
    let text = |text: String| Value::SingleQuotedString(text);
    Expr::IsTrue(Box::new(Expr::Like {
        negated: false,
        any: false,
        expr: Box::new(ends),
        pattern: Box::new(Expr::Value(text(pattern).into())),
        escape_char: Some(text("!".to_string()).into()),
    }))
}

/// Expands `left op ANY (elements)`, or ALL, into an expression of columns; `column` makes the
/// reference to a column. `ends` are the conditions under which the list ends with an element without
/// a value.
///
/// # Errors
/// If `op` is not a comparison.
pub fn quantified(
    left: &Expr,
    (op, is_all): (&BinaryOperator, bool),
    (elements, ends): (&[Element<'_>], Vec<Expr>),
    column: &dyn Fn(&str) -> Expr,
) -> Result<Expr, String> {
    let values = elements.iter().filter_map(|element| element.value).map(column);
    let mut any = compared(left, (op, is_all), values)?;
    let nulls = Nulls::of(elements, column);
    let mut unknown: Vec<Expr> = nulls.is_element.into_iter().chain(ends).collect();
    if !is_value(left)
        && let Some(has_elements) = nulls.has_values
    {
        let is_null = Expr::IsNull(Box::new(nested(left.clone())));
        unknown.push(binary(is_null, BinaryOperator::And, has_elements));
    }
    if let Some(unknown) = joined(unknown, &BinaryOperator::Or) {
        let null = Expr::Value(Value::Null.into());
        any.push(binary(null, BinaryOperator::And, unknown));
    }
    Ok(either(any, is_all))
}

/// Expands the comparison as [`quantified`] does, for a list whose length is a column, which is
/// NULL for a list without elements. `elements` are the columns with their indexes, in ascending
/// order.
///
/// # Errors
/// If `op` is not a comparison.
pub(super) fn quantified_by_length(
    left: &Expr,
    (op, is_all): (&BinaryOperator, bool),
    (elements, length): (&[(u64, &str)], &str),
) -> Result<Expr, String> {
    let mut any = compared(left, (op, is_all), elements.iter().map(|(_, value)| column(value)))?;
    let is_longer = |than: u64| {
        let than = Expr::Value(Value::Number(than.to_string(), false).into());
        binary(column(length), BinaryOperator::Gt, than)
    };
    let (mut unknown, mut next) = (Vec::new(), 0);
    for &(index, value) in elements {
        if index > next {
            unknown.push(is_longer(next));
        }
        let is_null = Expr::IsNull(Box::new(column(value)));
        unknown.push(binary(is_null, BinaryOperator::And, is_longer(index)));
        next = index.saturating_add(1);
    }
    unknown.push(is_longer(next));
    if !is_value(left) {
        let is_null = Expr::IsNull(Box::new(nested(left.clone())));
        unknown.push(binary(is_null, BinaryOperator::And, is_longer(0)));
    }
    if let Some(unknown) = joined(unknown, &BinaryOperator::Or) {
        let null = Expr::Value(Value::Null.into());
        any.push(binary(null, BinaryOperator::And, Expr::IsTrue(Box::new(unknown))));
    }
    Ok(either(any, is_all))
}

/// Returns, for each value, whether the comparison is TRUE, or for ALL whether it is FALSE.
fn compared(
    left: &Expr,
    (op, is_all): (&BinaryOperator, bool),
    values: impl Iterator<Item = Expr>,
) -> Result<Vec<Expr>, String> {
    let op = match is_all {
        true => negated(op),
        false => negated(op).map(|_| op.clone()),
    };
    let op = op.ok_or("ANY and ALL take a comparison: = <> < <= > >=")?;
    let compared = values.map(|value| binary(left.clone(), op.clone(), value));
    Ok(compared.map(|compared| Expr::IsTrue(Box::new(compared))).collect())
}

/// Combines the results of [`compared`] into ANY, or into ALL.
fn either(any: Vec<Expr>, is_all: bool) -> Expr {
    let any = joined(any, &BinaryOperator::Or).unwrap_or_else(|| truth(false));
    match is_all {
        true => nested(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) }),
        false => any,
    }
}

/// Conditions on a range of elements of a list; `None` is FALSE.
struct Nulls {
    /// An element has no value, or does not exist.
    is_missing: Option<Expr>,
    /// An element exists, because one of its columns has a value.
    has_values: Option<Expr>,
    /// An element without a value exists, because one of its columns, or of later elements, has a
    /// value.
    is_element: Option<Expr>,
}

impl Nulls {
    /// Divides the elements in halves, so that the conditions stay short.
    fn of(elements: &[Element<'_>], column: &dyn Fn(&str) -> Expr) -> Nulls {
        let (and, or) = (BinaryOperator::And, BinaryOperator::Or);
        if let [element] = elements {
            let is_there = |name: &&str| Expr::IsNotNull(Box::new(column(name)));
            let is_missing = match element.value {
                Some(name) => Expr::IsNull(Box::new(column(name))),
                None => truth(true),
            };
            let others = joined(element.others.iter().map(is_there).collect(), &or);
            let value = element.value.iter().map(is_there);
            let has_values = joined(value.chain(others.clone()).collect(), &or);
            let is_element = others.map(|others| binary(is_missing.clone(), and, others));
            return Nulls { is_missing: Some(is_missing), has_values, is_element };
        }
        if elements.is_empty() {
            return Nulls { is_missing: None, has_values: None, is_element: None };
        }
        let (first, last) = elements.split_at(elements.len() / 2);
        let (first, last) = (Nulls::of(first, column), Nulls::of(last, column));
        let across = match (&first.is_missing, &last.has_values) {
            (Some(missing), Some(there)) => Some(binary(missing.clone(), and, there.clone())),
            _ => None,
        };
        let either = |parts: Vec<Option<Expr>>| joined(parts.into_iter().flatten().collect(), &or);
        Nulls {
            is_missing: either(vec![first.is_missing, last.is_missing]),
            has_values: either(vec![first.has_values, last.has_values]),
            is_element: either(vec![first.is_element, last.is_element, across]),
        }
    }
}

/// Returns the comparison that is TRUE where `op` is FALSE.
fn negated(op: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match op {
        BinaryOperator::Eq => BinaryOperator::NotEq,
        BinaryOperator::NotEq => BinaryOperator::Eq,
        BinaryOperator::Lt => BinaryOperator::GtEq,
        BinaryOperator::GtEq => BinaryOperator::Lt,
        BinaryOperator::Gt => BinaryOperator::LtEq,
        BinaryOperator::LtEq => BinaryOperator::Gt,
        _ => return None,
    })
}

/// Whether an operand is a literal, which is not NULL.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => value.value != Value::Null,
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_value(inner),
        Expr::TypedString(_) => true,
        _ => false,
    }
}

/// Joins operands by AND or OR, as a balanced tree.
fn joined(mut operands: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    if operands.len() <= 1 {
        return operands.pop();
    }
    let last = operands.split_off(operands.len() / 2);
    Some(binary(joined(operands, op)?, op.clone(), joined(last, op)?))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    nested(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) })
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn truth(truth: bool) -> Expr {
    Expr::Value(Value::Boolean(truth).into())
}

/// Makes a reference to a column.
pub(super) fn column(name: &str) -> Expr {
    Expr::Identifier(Ident::with_quote('"', name))
}
