//! Columns of strings: few or many distinct ones, short or long, changing in the middle.

use std::sync::Arc;

use crate::draw::Draw;
use crate::value::Value;

/// The characters of strings: letters of every width in UTF-8, and those special to LIKE or quoting.
const ALPHABET: [&str; 14] =
    ["a", "b", "c", "u", "A", "_", "%", "!", "'", "\\", "é", "ß", "日", "😀"];

/// The kind of strings in a stretch of rows.
#[derive(Debug, Clone, Copy)]
enum Stretch {
    /// A few distinct strings.
    Few { distinct: usize, bytes: usize },
    /// Mostly distinct strings.
    Many { bytes: usize },
    /// Up to three characters.
    Short,
}

/// A word that begins with a letter, so that no column of words looks like numbers.
fn word(draw: &mut Draw, bytes: usize) -> Arc<str> {
    let mut text = String::from(*draw.of(&["a", "b", "u", "é", "Z"]));
    while text.len() < bytes {
        text += *draw.of(&ALPHABET);
    }
    text.into()
}

/// A word that is a function of the number.
fn numbered(prefix: &str, number: usize, bytes: usize) -> Arc<str> {
    let mut text = format!("{prefix}{number}");
    while text.len() < bytes {
        text.push(char::from(b'a' + (number + text.len()) as u8 % 26));
    }
    text.into()
}

/// Strings with up to `bytes_max` bytes in total.
pub(super) fn strings(draw: &mut Draw, rows: usize, bytes_max: usize) -> Vec<Value> {
    let room = (bytes_max / rows).max(4);
    let stretches = *draw.of(&[1, 1, 2, 3]);
    let mut values = Vec::with_capacity(rows);
    let few = (1 + draw.below(4), draw.magnitude(1, 5_000.min(room)));
    for _ in 0..stretches {
        let stretch = match draw.below(6) {
            0 | 1 => Stretch::Few { distinct: few.0, bytes: few.1 },
            2 => Stretch::Few { distinct: draw.magnitude(1, 5_000), bytes: 8.min(room) },
            3 | 4 => Stretch::Many { bytes: draw.magnitude(8, 2_000).min(room.max(9)) },
            _ => Stretch::Short,
        };
        let until = (values.len() + rows.div_ceil(stretches)).min(rows);
        let prefix = *draw.of(&["u", "v", "note "]);
        let run = *draw.of(&[1, 1, 1, 300]);
        while values.len() < until {
            let text = drawn(draw, stretch, prefix);
            let again = (values.len() + run).min(until);
            values.resize(again, Value::Text(text));
        }
    }
    values
}

fn drawn(draw: &mut Draw, stretch: Stretch, prefix: &str) -> Arc<str> {
    match stretch {
        Stretch::Few { distinct, bytes } => numbered(prefix, draw.below(distinct), bytes),
        Stretch::Many { bytes } => numbered(prefix, draw.below(1 << 30), bytes),
        Stretch::Short if draw.chance(10) => "".into(),
        Stretch::Short => {
            let bytes = 1 + draw.below(3);
            word(draw, bytes)
        }
    }
}

/// The digits of integers, and words from some row on.
pub(super) fn late(draw: &mut Draw, rows: usize) -> Vec<Value> {
    let from = draw.below(rows);
    let text = |draw: &mut Draw, row: usize| {
        if row >= from && draw.chance(50) {
            word(draw, 4)
        } else {
            draw.between(-20, 2_000).to_string().into()
        }
    };
    (0..rows).map(|row| Value::Text(text(draw, row))).collect()
}
