//! The width of text on a terminal.

use unicode_width::UnicodeWidthStr;

/// The number of terminal cells of escaped text: two for each CJK character, none for combining marks.
pub fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.width(),
    }
}

/// The text, padded with spaces to `cells`.
pub fn padded(text: &str, cells: usize) -> String {
    let blanks = cells.saturating_sub(width(text));
    let mut out = String::with_capacity(text.len() + blanks);
    out.push_str(text);
    out.extend(std::iter::repeat_n(' ', blanks));
    out
}

#[cfg(test)]
mod tests {
    use super::{padded, width};

    #[test]
    fn cells_are_counted_not_characters() {
        for (text, cells) in [
            ("", 0),
            ("abc", 3),
            ("é", 1),
            ("e\u{301}", 1),
            ("日本語", 6),
            ("한국", 4),
            ("ｶﾅ", 2),
            ("Ａ", 2),
            ("ก\u{e33}\u{e49}", 2),
            ("नमस्ते", 4),
        ] {
            assert_eq!(width(text), cells, "{text}");
        }
    }

    #[test]
    fn blanks_fill_cells() {
        assert_eq!(padded("日本", 6), "日本  ");
        assert_eq!(padded("e\u{301}", 2), "e\u{301} ");
        assert_eq!(padded("long", 2), "long");
    }
}
