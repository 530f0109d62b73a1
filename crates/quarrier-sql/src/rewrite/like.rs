//! Patterns of LIKE. In statements, only ESCAPE defines an escape character; in DataFusion, it is
//! always the backslash.

use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan};
use quarrier_filter::sql::{in_backslashes, push_literally};

use super::refused;
use crate::Result;
use crate::dialect::call;

/// Converts a DataFusion pattern to one for `ESCAPE '\'`, with backslashes only where necessary.
pub(crate) fn written(engine: &str) -> Option<String> {
    let mut pattern = String::with_capacity(engine.len());
    let mut characters = engine.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(next) => push_literally(next, &mut pattern),
                None => push_literally('\\', &mut pattern),
            },
            plain => pattern.push(plain),
        }
    }
    Some(pattern)
}

/// The value of a string literal.
pub(super) fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        Expr::Nested(inner) => text(inner),
        _ => None,
    }
}

/// The character of ESCAPE.
fn escape_of(value: Option<&ValueWithSpan>) -> Result<Option<char>> {
    let Some(value) = value else { return Ok(None) };
    let text = match &value.value {
        Value::SingleQuotedString(text) => text.as_str(),
        _ => "",
    };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => Ok(Some(only)),
        _ => Err(refused(format!("ESCAPE takes one character, not {value}"))),
    }
}

/// Rewrites LIKE for DataFusion.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let Expr::Like { negated, expr: operand, pattern, escape_char, any: false } = expr else {
        return Ok(());
    };
    let escape = escape_of(escape_char.as_ref())?;
    if let Some(fixed) = text(pattern) {
        let engine = in_backslashes(fixed, escape).map_err(refused)?;
        **pattern = Expr::Value(Value::SingleQuotedString(engine).into());
        *escape_char = None;
        return Ok(());
    }
    let arguments = arguments(operand, pattern, escape);
    *expr = super::predicates::negated(call("sql_like", arguments), *negated);
    Ok(())
}

/// Rewrites SIMILAR TO, which DataFusion does not support.
pub(super) fn similar(expr: &mut Expr) -> Result<()> {
    let Expr::SimilarTo { negated, expr: operand, pattern, escape_char } = expr else {
        return Ok(());
    };
    let arguments = arguments(operand, pattern, escape_of(escape_char.as_ref())?);
    *expr = super::predicates::negated(call("sql_similar", arguments), *negated);
    Ok(())
}

fn arguments(operand: &Expr, pattern: &Expr, escape: Option<char>) -> Vec<Expr> {
    let mut arguments = vec![operand.clone(), pattern.clone()];
    if let Some(escape) = escape {
        arguments.push(Expr::Value(Value::SingleQuotedString(escape.into()).into()));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn backslashes_stay_where_they_are_needed() {
        assert_eq!(written("a\\_b\\\\%").as_deref(), Some("a\\_b\\\\%"));
        assert_eq!(written("a\\b").as_deref(), Some("ab"));
    }
}
