//! The one table of characters that are not shown to people unescaped.

/// First and last of each range, in order: all control characters (`Cc`), line and paragraph separators
/// (`Zl`, `Zp`), default ignorable characters, and format characters (`Cf`) except those of Arabic and
/// Syriac that have a visible form.
const HARMFUL: &[(char, char)] = &[
    ('\0', '\x1f'),
    // DEL, and the C1 controls, among them U+009B, which begins a sequence like ESC [.
    ('\x7f', '\u{9f}'),
    // Soft hyphen.
    ('\u{ad}', '\u{ad}'),
    // Combining grapheme joiner.
    ('\u{34f}', '\u{34f}'),
    // Arabic letter mark.
    ('\u{61c}', '\u{61c}'),
    // Hangul fillers.
    ('\u{115f}', '\u{1160}'),
    // Khmer vowels without a visible form.
    ('\u{17b4}', '\u{17b5}'),
    // Mongolian variation selectors and vowel separator.
    ('\u{180b}', '\u{180f}'),
    // Zero-width space, joiners, directional marks.
    ('\u{200b}', '\u{200f}'),
    // Line and paragraph separators; directional embeddings and overrides.
    ('\u{2028}', '\u{202e}'),
    // Word joiner, invisible operators, isolates.
    ('\u{2060}', '\u{206f}'),
    // Hangul filler.
    ('\u{3164}', '\u{3164}'),
    // Variation selectors: together with those below, 256 of them can carry any byte invisibly.
    ('\u{fe00}', '\u{fe0f}'),
    // Byte order mark.
    ('\u{feff}', '\u{feff}'),
    // Halfwidth Hangul filler.
    ('\u{ffa0}', '\u{ffa0}'),
    // Unassigned but ignorable code points; interlinear annotations.
    ('\u{fff0}', '\u{fffb}'),
    // Controls of Egyptian hieroglyphs.
    ('\u{13430}', '\u{1343f}'),
    // Controls of shorthand.
    ('\u{1bca0}', '\u{1bca3}'),
    // Controls of musical notation.
    ('\u{1d173}', '\u{1d17a}'),
    // Tags, the other variation selectors, and the reserved code points beside them.
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character is invisible itself but controls the terminal, or reorders, hides or forges the
/// text around it.
pub fn is_harmful(c: char) -> bool {
    // Fast path: most text consists of Latin letters.
    if matches!(c, ' '..='~' | '\u{a0}'..='\u{ac}' | '\u{ae}'..='\u{34e}') {
        return false;
    }
    let at = HARMFUL.partition_point(|&(_, last)| last < c);
    HARMFUL.get(at).is_some_and(|&(first, _)| first <= c)
}

#[cfg(test)]
mod tests {
    use super::{HARMFUL, is_harmful};

    #[test]
    fn ranges_are_in_order_and_apart() {
        assert!(HARMFUL.iter().all(|(first, last)| first <= last));
        assert!(HARMFUL.windows(2).all(|two| two[0].1 < two[1].0));
    }

    /// The tables of `regex` are generated from Unicode's own.
    #[test]
    fn the_table_agrees_with_unicode() {
        let class = r"[\p{Cc}\p{Zl}\p{Zp}\p{DI}[\p{Cf}--\p{Prepended_Concatenation_Mark}]]";
        let class = regex::Regex::new(class).unwrap();
        for c in '\0'..=char::MAX {
            let expected = class.is_match(c.encode_utf8(&mut [0; 4]));
            assert_eq!(is_harmful(c), expected, "U+{:04X}", u32::from(c));
        }
    }
}
