//! Parses conditions of one shape once: thousands of standing conditions often differ only in their numbers and
//! strings.
//!
//! ```text
//!  text ─→ shape: the text without its literals ─┬─ known:   the shape's tree, with these literals
//!                                                └─ unknown: parsed; the tree is kept for the next one
//! ```
//!
//! Only the tree is kept. Types are checked for each condition, since they depend on its literals.

use std::cell::RefCell;
use std::collections::HashMap;

use sqlparser::ast::{self, ValueWithSpan};

use super::parse;

/// Maximum length in bytes of a condition whose shape is kept.
const TEXT_BYTES_MAX: usize = 1 << 10;
/// Maximum number of shapes for a thread; once there are so many, no more are kept.
const SHAPES_MAX: usize = 256;

/// What takes the place of literals in a shape; a text with such bytes has no shape.
const NUMBER: u8 = 1;
const STRING: u8 = 2;

/// A text without its literals.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape<'t> {
    rest: Vec<u8>,
    literals: Vec<&'t str>,
}

/// The tree of a shape, with empty literals.
struct Tree {
    expr: ast::Expr,
    /// For each literal of the tree, its number in the text.
    order: Vec<usize>,
}

thread_local! {
    /// Trees by shape; `None` for shapes with literals in places that `literals` does not visit.
    static TREES: RefCell<HashMap<Vec<u8>, Option<Tree>>> = RefCell::default();
}

/// Returns the tree of a condition if this thread parses many, and has kept one of its shape. Its positions are
/// those of another text.
pub(super) fn known(text: &str) -> Option<ast::Expr> {
    let shape = Shape::of(text).filter(|_| parse::parses_many())?;
    TREES.with_borrow(|trees| trees.get(&shape.rest)?.as_ref()?.with(&shape.literals))
}

/// Keeps the tree of a condition for others of its shape, if this thread parses many.
pub(super) fn learn(text: &str, expr: &ast::Expr) {
    let Some(shape) = Shape::of(text).filter(|_| parse::parses_many()) else { return };
    TREES.with_borrow_mut(|trees| {
        if trees.len() < SHAPES_MAX && !trees.contains_key(&shape.rest) {
            let tree = Tree::of(expr.clone(), &shape.literals);
            trees.insert(shape.rest, tree);
        }
    });
}

impl<'t> Shape<'t> {
    /// Finds the literals of a text; `None` if it has anything that could be read in more than one way.
    fn of(text: &'t str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut shape = Shape { rest: Vec::with_capacity(bytes.len()), literals: Vec::new() };
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let from = at;
            match byte {
                b'\'' => {
                    at = string_end(bytes, at)?;
                    // Letters before a string change its meaning, as in X'00'.
                    let is_prefixed = shape.rest.last().is_some_and(|&last| is_word(last));
                    shape.rest.push(STRING);
                    shape.literals.push(text.get(from + 1..at - 1).filter(|_| !is_prefixed)?);
                }
                b'0'..=b'9' => {
                    at = number_end(bytes, at)?;
                    let is_part = shape.rest.last().is_some_and(|&last| last == b'.');
                    shape.rest.push(NUMBER);
                    shape.literals.push(text.get(from..at).filter(|_| !is_part)?);
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    at = end_of(bytes, at, is_word);
                    shape.rest.extend_from_slice(&bytes[from..at]);
                }
                b' ' | b'\t' | b',' | b'.' | b'(' | b')' | b'<' | b'>' | b'=' | b'+' | b'*' => {
                    shape.rest.push(byte);
                    at += 1;
                }
                // Two of them begin a comment.
                b'-' if bytes.get(at + 1) != Some(&b'-') => {
                    shape.rest.push(byte);
                    at += 1;
                }
                _ => return None,
            }
        }
        Some(shape)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn end_of(bytes: &[u8], from: usize, is_in: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|&byte| !is_in(byte)).map_or(bytes.len(), |count| from + count)
}

/// Returns the end of a string without escapes that begins here.
fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'\'' && byte != b'\\';
    let end = end_of(bytes, from + 1, is_plain);
    let is_closed = bytes.get(end) == Some(&b'\'');
    let goes_on = bytes.get(end + 1).is_some_and(|&next| next == b'\'' || is_word(next));
    (is_closed && !goes_on).then_some(end + 1)
}

/// Returns the end of a number without an exponent that begins here.
fn number_end(bytes: &[u8], from: usize) -> Option<usize> {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let mut end = end_of(bytes, from, is_digit);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = end_of(bytes, end + 1, is_digit);
    }
    let goes_on =
        bytes.get(end).is_some_and(|&next| is_word(next) || next == b'.' || next == b'\'');
    (!goes_on).then_some(end)
}

impl Tree {
    /// Empties the literals of a tree; `None` unless they are those of the text, which has them in order.
    fn of(mut expr: ast::Expr, texts: &[&str]) -> Option<Self> {
        let mut found = Vec::new();
        literals(&mut expr, &mut found);
        let mut by_place: Vec<usize> = (0..found.len()).collect();
        by_place.sort_by_key(|&at| found[at].span.start);
        let mut order = vec![0; found.len()];
        for (number, &at) in by_place.iter().enumerate() {
            order[at] = number;
        }
        let mut is_same = found.len() == texts.len();
        for (value, number) in found.iter_mut().zip(&order) {
            let text = literal(value)?;
            is_same &= texts.get(*number) == Some(&text.as_str());
            text.clear();
        }
        is_same.then_some(Tree { expr, order })
    }

    /// Returns the tree with other literals.
    fn with(&self, texts: &[&str]) -> Option<ast::Expr> {
        let mut expr = self.expr.clone();
        let mut found = Vec::with_capacity(self.order.len());
        literals(&mut expr, &mut found);
        for (value, &number) in found.into_iter().zip(&self.order) {
            literal(value)?.push_str(texts.get(number)?);
        }
        Some(expr)
    }
}

/// The text of a number or string.
fn literal(value: &mut ValueWithSpan) -> Option<&mut String> {
    match &mut value.value {
        ast::Value::Number(text, _) | ast::Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

fn is_literal(value: &ast::Value) -> bool {
    matches!(value, ast::Value::Number(..) | ast::Value::SingleQuotedString(_))
}

/// Collects the numbers and strings in the most common kinds of conditions.
fn literals<'e>(expr: &'e mut ast::Expr, found: &mut Vec<&'e mut ValueWithSpan>) {
    use ast::Expr;
    match expr {
        Expr::Value(value) if is_literal(&value.value) => found.push(value),
        Expr::BinaryOp { left, right, .. } => {
            literals(left, found);
            literals(right, found);
        }
        Expr::Nested(inner)
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner) => literals(inner, found),
        Expr::Between { expr, low, high, .. } => {
            literals(expr, found);
            literals(low, found);
            literals(high, found);
        }
        Expr::InList { expr, list, .. } => {
            literals(expr, found);
            list.iter_mut().for_each(|item| literals(item, found));
        }
        Expr::Like { expr, pattern, .. } => {
            literals(expr, found);
            literals(pattern, found);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_shape_differ_only_in_literals() {
        let shape = |text| Shape::of(text);
        let one = shape("a > 5 AND b = 'x' OR c<-1.50").expect("it has a shape");
        assert_eq!(one.literals, ["5", "x", "1.50"]);
        let other = shape("a > 17 AND b = 'y é' OR c<-2").expect("it has a shape");
        assert_eq!(one.rest, other.rest);
        for text in ["a > '5' AND b = 'x' OR c<-1.50", "a > 5  AND b = 'x' OR c<-1.50"] {
            assert_ne!(shape(text).expect("it has a shape").rest, one.rest, "{text}");
        }
        for text in [
            "a = 'it''s'",
            "a = 'x",
            "a = X'00'",
            "a = 1e5",
            "a = 1.",
            "a = .5",
            "a = 1.2.3",
            "a -- 5",
            "a /* 5 */ = 5",
            "a = 'x\\'",
            "a = \"b\"",
            "a = 'x'y",
            "a = 5'x'",
            "\u{1} = 5",
            "a = '\u{1}'",
            "a\n= 5",
            "é = 5",
            "a = $1",
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }

    #[test]
    fn a_thread_that_parses_many_parses_each_shape_once() {
        let texts = |thread: &str| {
            let schema = quarrier_messages::Schema::default();
            let learned = "1 + 2 > 3";
            crate::sql::condition(learned, &schema).expect("it is a condition");
            let known = known("10 + 200 > 3.5").map(|expr| expr.to_string());
            (thread.to_string(), known)
        };
        let same = Some("10 + 200 > 3.5".to_string());
        assert_eq!(parse::together(|| texts("many")), ("many".to_string(), same));
        assert_eq!(texts("one"), ("one".to_string(), None));
    }

    #[test]
    fn trees_are_kept_only_where_their_literals_are_those_of_the_text() {
        let kept = |text: &str| {
            let parse = |parser: &mut sqlparser::parser::Parser<'_>| {
                let expr = parse::expression(parser)?;
                let shape = Shape::of(text).unwrap_or_default();
                Ok(Tree::of(expr.clone(), &shape.literals)
                    .and_then(|tree| tree.with(&shape.literals))
                    .map(|again| again == expr))
            };
            parse::parsed(text, parse).expect("it is an expression")
        };
        assert_eq!(kept("a > 5 AND b IN ('x', 'y') OR c BETWEEN 1 AND 2"), Some(true));
        assert_eq!(kept("a LIKE 'x%' AND NOT (b IS NULL)"), Some(true));
        for text in ["a = DATE '2024-12-31'", "a LIKE 'x' ESCAPE '!'", "POSITION('a' IN b) = 1"] {
            assert_eq!(kept(text), None, "{text}");
        }
    }
}
