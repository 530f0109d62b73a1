//! Prefix tests on strings: `SUBSTRING(column FROM 1 FOR n) IN (…)`.

use quarrier_messages::Value;

use crate::Expr;
use crate::expr::Function;

/// A set of prefixes, one of which a column's strings must have.
#[derive(Debug)]
pub(crate) struct Prefixes {
    pub(crate) column: usize,
    characters: usize,
    /// The prefixes in order.
    strings: Vec<Box<str>>,
    /// The ASCII prefixes that fit a [`word`], in order.
    words: Vec<u64>,
}

/// Maximum number of characters of a word.
const WORD_CHARACTERS: usize = 7;

/// Up to this number, comparing one by one is faster than binary search.
const WORDS_FEW: usize = 16;

impl Prefixes {
    /// Returns `None` if the condition has another form, or the list contains NULL.
    pub(crate) fn of(expr: &Expr) -> Option<Prefixes> {
        let (column, characters, list) = asked(expr)?;
        let mut strings: Vec<Box<str>> = list.iter().filter_map(text_of).map(Box::from).collect();
        strings.sort_unstable();
        // A string of more characters equals no prefix.
        let short = strings.iter().filter(|text| text.len() <= characters);
        let mut words: Vec<u64> = short.filter_map(|text| word(text, characters)).collect();
        words.sort_unstable();
        Some(Prefixes { column, characters, strings, words })
    }

    /// Whether the condition has this form, in which it always has a value.
    pub(crate) fn is(expr: &Expr) -> bool {
        asked(expr).is_some()
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        if let Some(word) = word(text, self.characters) {
            return match self.words.len() {
                0..WORDS_FEW => self.words.contains(&word),
                _ => self.words.binary_search(&word).is_ok(),
            };
        }
        let first = first_characters(text, self.characters);
        self.strings.binary_search_by(|known| (**known).cmp(first)).is_ok()
    }
}

/// Returns the column, the number of characters, and the list.
fn asked(expr: &Expr) -> Option<(usize, usize, &[Expr])> {
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
    let is_of_strings = list.iter().all(|element| text_of(element).is_some());
    is_of_strings.then_some((*column, characters, list))
}

fn text_of(element: &Expr) -> Option<&str> {
    match element {
        Expr::Literal(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// Packs the first characters of a string into a number, with their count in the highest byte.
/// `None` if there may be more than [`WORD_CHARACTERS`], or they are not ASCII.
fn word(text: &str, characters: usize) -> Option<u64> {
    if characters > WORD_CHARACTERS {
        return None;
    }
    let length = text.len().min(characters);
    let bytes = match text.as_bytes().first_chunk::<8>() {
        Some(bytes) => *bytes,
        None => {
            let mut bytes = [0; 8];
            bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
            bytes
        }
    };
    let word = u64::from_le_bytes(bytes) & ((1 << (8 * length)) - 1);
    let is_ascii = word & 0x8080_8080_8080_8080 == 0;
    is_ascii.then_some(word | (length as u64) << 56)
}

/// Returns the first `count` characters of a string, or all if it has fewer.
fn first_characters(text: &str, count: usize) -> &str {
    match text.as_bytes().get(..count) {
        Some(bytes) if bytes.is_ascii() => &text[..count],
        _ => text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end]),
    }
}
