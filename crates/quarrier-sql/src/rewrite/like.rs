//! Patterns of LIKE: with the escape character that is named, or none, here; always with the
//! backslash in the engine.

use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan};

use super::refused;
use crate::Result;
use crate::dialect::call;

/// A pattern in the engine's words.
///
/// # Errors
/// Where the escape character stands before anything but `%`, `_` and itself.
fn for_engine(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut engine = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            match characters.next() {
                Some(next) if matches!(next, '%' | '_' | '\\') || Some(next) == escape => {
                    if matches!(next, '\\') && Some(next) != escape {
                        return Err(wrong(pattern, character));
                    }
                    push_literally(next, &mut engine);
                }
                _ => return Err(wrong(pattern, character)),
            }
        } else if matches!(character, '%' | '_') {
            engine.push(character);
        } else {
            push_literally(character, &mut engine);
        }
    }
    Ok(engine)
}

fn push_literally(character: char, engine: &mut String) {
    if matches!(character, '%' | '_' | '\\') {
        engine.push('\\');
    }
    engine.push(character);
}

fn wrong(pattern: &str, escape: char) -> crate::Error {
    refused(format!(
        "the pattern '{pattern}' has its escape character {escape} before something other than \
         %, _ and {escape}"
    ))
}

/// A pattern of the engine with the backslash only where it is needed, as `ESCAPE '\'` has it.
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

/// The text of a literal.
pub(super) fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        Expr::Nested(inner) => text(inner),
        _ => None,
    }
}

/// The one character of ESCAPE.
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

/// LIKE, in the engine's words.
pub(super) fn meant(expr: &mut Expr) -> Result<()> {
    let Expr::Like { negated, expr: operand, pattern, escape_char, any: false } = expr else {
        return Ok(());
    };
    let escape = escape_of(escape_char.as_ref())?;
    if let Some(fixed) = text(pattern) {
        let engine = for_engine(fixed, escape)?;
        **pattern = Expr::Value(Value::SingleQuotedString(engine).into());
        *escape_char = None;
        return Ok(());
    }
    let arguments = arguments(operand, pattern, escape);
    *expr = super::predicates::negated(call("sql_like", arguments), *negated);
    Ok(())
}

/// SIMILAR TO, which is not the engine's.
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
    use super::{for_engine, written};

    #[test]
    fn patterns_have_backslashes_in_the_engine_alone() {
        let engine = |pattern, escape| for_engine(pattern, escape).ok();
        assert_eq!(engine("a!_b", Some('!')).as_deref(), Some("a\\_b"));
        assert_eq!(engine("a\\b", None).as_deref(), Some("a\\\\b"));
        assert_eq!(engine("a!!_", Some('!')).as_deref(), Some("a!_"));
        assert_eq!(engine("a\\%", Some('\\')).as_deref(), Some("a\\%"));
        assert_eq!(engine("a!b", Some('!')), None);
        assert_eq!(engine("a!", Some('!')), None);
        assert_eq!(written("a\\_b\\\\%").as_deref(), Some("a\\_b\\\\%"));
        assert_eq!(written("a\\b").as_deref(), Some("ab"));
    }
}
