//! CHAR(n): strings of exactly n characters, whose comparisons pad the shorter side with blanks.
//! And VARCHAR(n), which truncates.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator as Op, CharacterLength, DataType, Expr, Function, Value,
};

use super::predicates::is_comparison;
use super::refused;
use crate::Result;
use crate::dialect::call;

const CHARACTER: &str = "sql_char";

/// Maximum length of a CHAR or VARCHAR, in characters.
const CHARACTERS_MAX: u64 = 1 << 20;

/// Whether an expression is a string of fixed length.
pub(super) fn is_padded(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_padded(inner),
        Expr::Function(Function { name, .. }) => name.to_string() == CHARACTER,
        _ => false,
    }
}

/// `CAST(x AS CHAR(n))` and `CAST(x AS VARCHAR(n))`
pub(super) fn cast(expr: &mut Expr) -> Result<()> {
    let Expr::Cast { expr: operand, data_type, .. } = expr else { return Ok(()) };
    let (name, length) = match data_type {
        DataType::Char(length) | DataType::Character(length) => {
            let one = CharacterLength::IntegerLength { length: 1, unit: None };
            (CHARACTER, length.unwrap_or(one))
        }
        DataType::Varchar(Some(length))
        | DataType::CharacterVarying(Some(length))
        | DataType::CharVarying(Some(length)) => ("sql_varchar", *length),
        _ => return Ok(()),
    };
    let CharacterLength::IntegerLength { length, .. } = length else { return Ok(()) };
    if length == 0 || length > CHARACTERS_MAX {
        return Err(refused(format!(
            "a string has 1 to {CHARACTERS_MAX} characters, not {length}"
        )));
    }
    let text = Expr::Cast {
        kind: datafusion::sql::sqlparser::ast::CastKind::Cast,
        expr: operand.clone(),
        data_type: DataType::Varchar(None),
        array: false,
        format: None,
    };
    let length = Expr::Value(Value::Number(length.to_string(), false).into());
    *expr = call(name, vec![text, length]);
    Ok(())
}

/// Rewrites a comparison with a string of fixed length.
pub(super) fn compared(expr: &mut Expr) {
    let Expr::BinaryOp { left, op, right } = expr else { return };
    if is_comparison(op) && (is_padded(left) || is_padded(right)) {
        *expr = Expr::Nested(Box::new(order(left, op.clone(), right)));
    }
}

fn order(left: &Expr, op: Op, right: &Expr) -> Expr {
    let order = call("sql_compare_padded", vec![left.clone(), right.clone()]);
    let zero = Expr::Value(Value::Number("0".to_string(), false).into());
    Expr::BinaryOp { left: Box::new(order), op, right: Box::new(zero) }
}

/// `x IN (…)` with strings of fixed length.
pub(super) fn listed(operand: &Expr, list: &[Expr]) -> Expr {
    let mut equal = list.iter().map(|element| order(operand, Op::Eq, element));
    let first = equal.next().unwrap_or_else(|| super::predicates::truth(false));
    let any = equal.fold(first, |left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: Op::Or,
        right: Box::new(right),
    });
    Expr::Nested(Box::new(any))
}
