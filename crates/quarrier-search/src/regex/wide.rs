//! Regexes over text in UTF-16: each character of the regex becomes its two or four bytes.

use std::collections::BTreeMap;

use regex_automata::util::look::Look as Assertion;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, Hir, HirKind, Look, Repetition,
};
use regex_syntax::try_is_word_character;

use crate::pattern::Utf16;

/// A range of byte values, both ends included.
type Bytes = (u8, u8);

/// Returns the regex over bytes that matches in UTF-16 the text that `hir` matches in UTF-8. Its
/// assertions are about characters of UTF-16, for which [`holds`] decides.
///
/// # Errors
/// Returns the reason if there is no such regex.
pub(super) fn in_utf16(hir: &Hir, order: Utf16) -> Result<Hir, &'static str> {
    let one = |hir: &Hir| in_utf16(hir, order);
    let all = |subs: &[Hir]| subs.iter().map(one).collect::<Result<Vec<Hir>, _>>();
    Ok(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => {
            let text =
                std::str::from_utf8(&literal.0).map_err(|_| "has bytes that are not text")?;
            Hir::literal(
                text.encode_utf16().flat_map(|unit| order.bytes(unit)).collect::<Vec<u8>>(),
            )
        }
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges().iter();
            characters(ranges.map(|range| (range.start().into(), range.end().into())), order)
        }
        HirKind::Class(Class::Bytes(class)) => {
            let ranges = class.ranges().iter();
            characters(ranges.map(|range| (range.start().into(), range.end().into())), order)
        }
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let sub = Box::new(one(sub)?);
            Hir::repetition(Repetition { min: *min, max: *max, greedy: *greedy, sub })
        }
        HirKind::Capture(Capture { sub, .. }) => one(sub)?,
        HirKind::Concat(subs) => Hir::concat(all(subs)?),
        HirKind::Alternation(subs) => Hir::alternation(all(subs)?),
    })
}

/// Whether a regex has assertions that [`without_assertions`] removes.
pub(super) fn has_assertions(hir: &Hir) -> bool {
    let looks = hir.properties().look_set();
    !looks.remove(Look::Start).remove(Look::End).is_empty()
}

/// Returns a regex that matches wherever `hir` does, and perhaps elsewhere: it lacks the assertions about
/// the characters before and after, except `^` and `$` of the whole text.
pub(super) fn without_assertions(hir: &Hir) -> Hir {
    let all = |subs: &[Hir]| subs.iter().map(without_assertions).collect::<Vec<Hir>>();
    let sub = |sub: &Hir| Box::new(without_assertions(sub));
    match hir.kind() {
        HirKind::Look(Look::Start | Look::End) => hir.clone(),
        HirKind::Look(_) => Hir::empty(),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Repetition(repetition) => {
            Hir::repetition(Repetition { sub: sub(&repetition.sub), ..repetition.clone() })
        }
        HirKind::Capture(capture) => {
            Hir::capture(Capture { sub: sub(&capture.sub), ..capture.clone() })
        }
        HirKind::Concat(subs) => Hir::concat(all(subs)),
        HirKind::Alternation(subs) => Hir::alternation(all(subs)),
    }
}

/// Whether an assertion holds at `at`, by the characters that end and begin there.
pub(super) fn holds(look: Assertion, text: &[u8], at: usize, order: Utf16) -> bool {
    let (before, after) = (character_before(text, at, order), character_at(text, at, order));
    let is_word = |character: Option<char>| {
        character.is_some_and(|character| try_is_word_character(character).unwrap_or(false))
    };
    let is_ascii = |character: Option<char>| {
        character.is_some_and(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    let (is_start, is_end) = (at == 0, at == text.len());
    let (newline, carriage) = (Some('\n'), Some('\r'));
    match look {
        Assertion::Start => is_start,
        Assertion::End => is_end,
        Assertion::StartLF => is_start || before == newline,
        Assertion::EndLF => is_end || after == newline,
        Assertion::StartCRLF => {
            is_start || before == newline || before == carriage && after != newline
        }
        Assertion::EndCRLF => is_end || after == carriage || after == newline && before != carriage,
        Assertion::WordAscii => is_ascii(before) != is_ascii(after),
        Assertion::WordAsciiNegate => is_ascii(before) == is_ascii(after),
        Assertion::WordStartAscii => !is_ascii(before) && is_ascii(after),
        Assertion::WordEndAscii => is_ascii(before) && !is_ascii(after),
        Assertion::WordStartHalfAscii => !is_ascii(before),
        Assertion::WordEndHalfAscii => !is_ascii(after),
        Assertion::WordUnicode => is_word(before) != is_word(after),
        Assertion::WordUnicodeNegate => is_word(before) == is_word(after),
        Assertion::WordStartUnicode => !is_word(before) && is_word(after),
        Assertion::WordEndUnicode => is_word(before) && !is_word(after),
        Assertion::WordStartHalfUnicode => !is_word(before),
        Assertion::WordEndHalfUnicode => !is_word(after),
    }
}

fn unit(text: &[u8], at: usize, order: Utf16) -> Option<u16> {
    text.get(at..)?.first_chunk().map(|unit| order.unit(*unit))
}

/// The character that begins at `at`; `None` at the end, and for half of a pair of surrogates.
fn character_at(text: &[u8], at: usize, order: Utf16) -> Option<char> {
    let units = [unit(text, at, order)?, unit(text, at + 2, order).unwrap_or(0)];
    char::decode_utf16(units).next()?.ok()
}

/// The character that ends at `at`.
fn character_before(text: &[u8], at: usize, order: Utf16) -> Option<char> {
    let last = unit(text, at.checked_sub(2)?, order)?;
    let first = at.checked_sub(4).and_then(|at| unit(text, at, order)).unwrap_or(0);
    match char::decode_utf16([last]).next()? {
        Ok(character) => Some(character),
        Err(_) => char::decode_utf16([first, last]).next()?.ok(),
    }
}

/// A regex for one character in these ranges.
fn characters(ranges: impl Iterator<Item = (u32, u32)>, order: Utf16) -> Hir {
    let mut sequences = Sequences::new(order);
    for (start, end) in ranges {
        // The gap between these ranges holds surrogates, which are not characters.
        for (first, last) in [(0, 0xD7FF), (0xE000, 0xFFFF)] {
            let (start, end) = (start.max(first), end.min(last));
            if start <= end {
                for unit in units(start as u16, end as u16) {
                    sequences.add_unit(unit);
                }
            }
        }
        if end >= 0x1_0000 {
            sequences.add_pairs(start.max(0x1_0000) - 0x1_0000, end - 0x1_0000);
        }
    }
    sequences.hir()
}

/// Splits a range of units into pairs of low and high bytes that combine freely.
fn units(start: u16, end: u16) -> Vec<(Bytes, Bytes)> {
    let split = split(u32::from(start), u32::from(end), 8);
    let byte = |value: u32| value as u8;
    split
        .into_iter()
        .map(|(high, low)| ((byte(low.0), byte(low.1)), (byte(high.0), byte(high.1))))
        .collect()
}

/// Splits a range of numbers into pairs of ranges, of the upper part and of the lower `bits`, that
/// combine freely.
fn split(start: u32, end: u32, bits: u32) -> Vec<((u32, u32), (u32, u32))> {
    let most = (1 << bits) - 1;
    let (mut first, mut last) = (start >> bits, end >> bits);
    if first == last {
        return vec![((first, first), (start & most, end & most))];
    }
    let mut parts = Vec::new();
    if start & most != 0 {
        parts.push(((first, first), (start & most, most)));
        first += 1;
    }
    let tail = (end & most != most).then(|| {
        last -= 1;
        ((last + 1, last + 1), (0, end & most))
    });
    if first <= last {
        parts.push(((first, last), (0, most)));
    }
    parts.extend(tail);
    parts
}

/// The byte sequences of characters.
struct Sequences {
    order: Utf16,
    /// The low bytes of units, by the range of their high bytes.
    units: BTreeMap<Bytes, Vec<Bytes>>,
    /// Pairs of surrogates.
    pairs: Vec<Hir>,
}

impl Sequences {
    fn new(order: Utf16) -> Self {
        Sequences { order, units: BTreeMap::new(), pairs: Vec::new() }
    }

    fn add_unit(&mut self, (low, high): (Bytes, Bytes)) {
        self.units.entry(high).or_default().push(low);
    }

    /// Characters beyond the first plane, counted from its end.
    fn add_pairs(&mut self, start: u32, end: u32) {
        for ((high_start, high_end), (low_start, low_end)) in split(start, end, 10) {
            let unit = |base: u32, start: u32, end: u32| {
                let mut sequences = Sequences::new(self.order);
                units((base + start) as u16, (base + end) as u16)
                    .into_iter()
                    .for_each(|unit| sequences.add_unit(unit));
                sequences.hir()
            };
            let pair = [unit(0xD800, high_start, high_end), unit(0xDC00, low_start, low_end)];
            self.pairs.push(Hir::concat(pair.into()));
        }
    }

    fn hir(self) -> Hir {
        let class = |ranges: &[Bytes]| {
            let ranges = ranges.iter().map(|&(start, end)| ClassBytesRange::new(start, end));
            Hir::class(Class::Bytes(ClassBytes::new(ranges)))
        };
        let mut all: Vec<Hir> = Vec::new();
        for (high, low) in &self.units {
            let (high, low) = (class(&[*high]), class(low));
            all.push(Hir::concat(match self.order {
                Utf16::Little => vec![low, high],
                Utf16::Big => vec![high, low],
            }));
        }
        all.extend(self.pairs);
        match all.is_empty() {
            // A class without characters.
            true => Hir::fail(),
            false => Hir::alternation(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [Utf16; 2] = [Utf16::Little, Utf16::Big];

    /// Whether a regex matches a character in UTF-16.
    fn is_in(regex: &regex_automata::meta::Regex, character: char, order: Utf16) -> bool {
        let mut units = [0; 2];
        let bytes: Vec<u8> =
            character.encode_utf16(&mut units).iter().flat_map(|unit| order.bytes(*unit)).collect();
        regex.find(&bytes).is_some_and(|found| found.range() == (0..bytes.len()))
    }

    #[test]
    fn a_class_has_the_same_characters_in_utf16() {
        for text in [
            "[a-z]",
            "[^a-z]",
            ".",
            r"\w",
            r"[^\w]",
            "é",
            "[à-ÿ]",
            "[\u{100}-\u{2FF}]",
            "[\u{1FF}-\u{501}]",
            "[\u{D7FF}-\u{E000}]",
            "[\u{FFFF}-\u{10000}]",
            "[\u{10000}-\u{103FF}]",
            "[\u{103FF}-\u{10400}]",
            "[\u{12345}-\u{6789A}]",
            "[\u{10FFFF}]",
            r"\p{Greek}",
            r"(?i)ß",
            r"(?-u:\d)",
        ] {
            let hir = regex_syntax::parse(text).unwrap();
            let expected = regex_automata::meta::Regex::new(&format!("^(?:{text})$")).unwrap();
            let config = regex_automata::meta::Regex::config().utf8_empty(false);
            let builder = regex_automata::meta::Regex::builder().configure(config).clone();
            let wide = ORDERS.map(|order| {
                (order, builder.build_from_hir(&in_utf16(&hir, order).unwrap()).unwrap())
            });
            let edges =
                [0, 0x7F, 0x80, 0xFF, 0x100, 0x7FF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF];
            let near = edges.into_iter().flat_map(|edge: u32| edge.saturating_sub(3)..edge + 4);
            for code in near.chain((0..0x11_0000).step_by(251)) {
                let Some(character) = char::from_u32(code) else { continue };
                let is_expected = expected.is_match(character.encode_utf8(&mut [0; 4]).as_bytes());
                for (order, wide) in &wide {
                    let found = is_in(wide, character, *order);
                    assert_eq!(found, is_expected, "{text} and {code:x}, {order:?}");
                }
            }
        }
    }

    #[test]
    fn assertions_hold_where_they_do_in_utf8() {
        let looks = [
            Assertion::StartLF,
            Assertion::EndLF,
            Assertion::StartCRLF,
            Assertion::EndCRLF,
            Assertion::WordAscii,
            Assertion::WordAsciiNegate,
            Assertion::WordStartAscii,
            Assertion::WordEndAscii,
            Assertion::WordStartHalfAscii,
            Assertion::WordEndHalfAscii,
            Assertion::WordUnicode,
            Assertion::WordUnicodeNegate,
            Assertion::WordStartUnicode,
            Assertion::WordEndUnicode,
            Assertion::WordStartHalfUnicode,
            Assertion::WordEndHalfUnicode,
            Assertion::Start,
            Assertion::End,
        ];
        let characters = ["", "a", "_", "é", "\n", "\r", " ", "\u{161}", "\u{1F600}", "\u{10400}"];
        let matcher = regex_automata::util::look::LookMatcher::new();
        for before in characters {
            for after in characters {
                let text = format!("{before}{after}");
                let at = 2 * before.encode_utf16().count();
                for (look, order) in
                    looks.into_iter().flat_map(|look| ORDERS.map(|order| (look, order)))
                {
                    let bytes: Vec<u8> =
                        text.encode_utf16().flat_map(|unit| order.bytes(unit)).collect();
                    let expected = matcher.matches(look, text.as_bytes(), before.len());
                    let found = holds(look, &bytes, at, order);
                    assert_eq!(found, expected, "{look:?} in {text:?} at {at}, {order:?}");
                }
            }
        }
        // Half of a surrogate pair is not a word character.
        let half = [0x00, 0xD8, b'a', 0];
        assert!(
            holds(Assertion::WordUnicode, &half, 2, Utf16::Little)
                && !holds(Assertion::WordUnicode, &half, 0, Utf16::Little)
        );
    }
}
