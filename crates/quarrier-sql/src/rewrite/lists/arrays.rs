//! Arrays made of the columns of a list.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{BinaryOperator, CaseWhen, CastKind, DataType, Expr, Value};
use quarrier_filter::sql::Element;
use quarrier_messages::{LIST_ENDS_COLUMN, list_end_mark};

use super::super::refused;
use super::scope::{Fields, List};
use crate::Result;
use crate::dialect::call;

/// Maximum number of elements of a list, including those that no message has.
const ELEMENTS_MAX: u64 = 65_536;

/// Unnests an array to a row for each element.
pub(super) fn unnest(array: Expr) -> Expr {
    call("unnest", vec![array])
}

/// The list as an array of its own length, rather than the number of its columns.
///
/// # Errors
/// The list is too long.
pub(super) fn array(list: &List<'_>) -> Result<Expr> {
    let (mut values, mut lengths) = (Vec::new(), Vec::new());
    for element in &list.elements {
        if element.index >= ELEMENTS_MAX {
            return Err(refused(format!("a list of more than {ELEMENTS_MAX} elements")));
        }
        while (values.len() as u64) < element.index {
            values.push(null());
        }
        values.push(element.value.map_or_else(null, |name| list.column(name)));
        if let Some(condition) = is_there(list, element) {
            lengths.push((condition, element.index + 1));
        }
    }
    // A list that ends without a value is longer than its columns show.
    let ends = list.ends().into_iter().zip(list.names_with_ends.iter());
    let ends = ends.map(|(condition, name)| (condition, length_with_end(list, name)));
    let lengths = lengths.into_iter().rev().map(|(condition, length)| (condition, number(length)));
    let conditions = ends.chain(lengths).map(|(condition, result)| CaseWhen { condition, result });
    let length = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: conditions.collect(),
        else_result: Some(Box::new(number(0))),
    };
    let values = call("make_array", values);
    Ok(match list.names_with_ends.is_empty() {
        true => call("array_slice", vec![values, number(1), length]),
        false => call("array_resize", vec![values, length]),
    })
}

/// The length of a list that ends without a value: the number after the list's mark.
fn length_with_end(list: &List<'_>, name: &str) -> Expr {
    let text = |text: String| Expr::Value(Value::SingleQuotedString(text).into());
    let ends = vec![list.column(LIST_ENDS_COLUMN), text(list_end_mark(name)), number(2)];
    let length = vec![call("split_part", ends), text("]".to_string()), number(1)];
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(call("split_part", length)),
        data_type: DataType::BigInt(None),
        array: false,
        format: None,
    }
}

/// The fields of a list, unnested side by side, as a struct. Elements without fields are unnested
/// as values.
///
/// # Errors
/// The list is too long.
pub(super) fn structs(fields: &Fields<'_>) -> Result<Expr> {
    if let [(field, list)] = fields.as_slice()
        && field.is_empty()
    {
        return Ok(unnest(array(list)?));
    }
    let mut arguments = Vec::new();
    for (field, list) in fields {
        let name = if field.is_empty() { "value" } else { field };
        arguments.push(Expr::Value(Value::SingleQuotedString(name.to_string()).into()));
        arguments.push(unnest(array(list)?));
    }
    Ok(call("named_struct", arguments))
}

/// A condition for whether any column of an element has a value.
fn is_there(list: &List<'_>, element: &Element<'_>) -> Option<Expr> {
    let names = element.value.iter().chain(&element.others);
    let tests = names.map(|name| Expr::IsNotNull(Box::new(list.column(name))));
    tests.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Or,
        right: Box::new(right),
    })
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

fn number(number: u64) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).into())
}
