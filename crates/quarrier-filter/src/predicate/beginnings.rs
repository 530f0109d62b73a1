//! What texts begin with: `SUBSTRING(column FROM 1 FOR n) IN (…)`.

use quarrier_messages::Value;

use crate::Expr;
use crate::expr::Function;

/// Texts, of which the first characters of a column's texts are to be one.
#[derive(Debug)]
pub(crate) struct Beginnings {
    pub(crate) column: usize,
    characters: usize,
    /// In order.
    texts: Vec<Box<str>>,
}

impl Beginnings {
    /// `None` where the condition is something else, or NULL is among the texts.
    pub(crate) fn of(expr: &Expr) -> Option<Beginnings> {
        let Expr::In { operand, list } = expr else { return None };
        let Expr::Call { function: Function::Substring, arguments } = &**operand else {
            return None;
        };
        let [Expr::Column(column), Expr::Literal(Value::Integer(1)), Expr::Literal(characters)] =
            arguments.as_slice()
        else {
            return None;
        };
        let Value::Integer(characters) = characters else { return None };
        let characters = usize::try_from(*characters).ok()?;
        let text = |element: &Expr| match element {
            Expr::Literal(Value::Text(text)) => Some(Box::from(&**text)),
            _ => None,
        };
        let mut texts: Vec<Box<str>> = list.iter().map(text).collect::<Option<_>>()?;
        texts.sort_unstable();
        Some(Beginnings { column: *column, characters, texts })
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        let first = first_characters(text, self.characters);
        self.texts.binary_search_by(|known| (**known).cmp(first)).is_ok()
    }
}

/// As many characters of a text as it has, up to `count`.
fn first_characters(text: &str, count: usize) -> &str {
    match text.as_bytes().get(..count) {
        Some(bytes) if bytes.is_ascii() => &text[..count],
        _ => text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end]),
    }
}
