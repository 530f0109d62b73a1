//! Escapes every harmful character of a string.

use std::borrow::Cow;
use std::fmt::Write;

use crate::is_harmful;

/// The string on one line, with every harmful character as an escape: `\n`, `\x1b`, `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, |_| false)
}

/// Like [`visible`], but line ends stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |c| c == '\n')
}

fn written_out(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let is_escaped = |c: char| is_harmful(c) && !is_kept(c);
    let Some(first) = text.find(is_escaped) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_escaped(c) { push_escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Appends the replacement for a harmful character.
pub(crate) fn push_escape(out: &mut String, c: char) {
    // Writing to a string does not fail.
    let _ = match c {
        '\n' | '\r' | '\t' => write!(out, "{}", c.escape_default()),
        '\0'..='\x7f' => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "{}", c.escape_unicode()),
    };
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{visible, visible_lines};

    #[test]
    fn harmful_characters_are_written_out() {
        for (text, expected) in [
            ("", ""),
            ("plain ~", "plain ~"),
            ("Müller 日本 e\u{301} \u{a0}", "Müller 日本 e\u{301} \u{a0}"),
            ("\x1b[31mred", "\\x1b[31mred"),
            ("a\nb\r\tc\0\x07\x7f", "a\\nb\\r\\tc\\x00\\x07\\x7f"),
            ("csi\u{9b}31m", "csi\\u{9b}31m"),
            ("\u{ad}\u{61c}\u{180e}", "\\u{ad}\\u{61c}\\u{180e}"),
            ("é\u{202e}gpj.exe", "é\\u{202e}gpj.exe"),
            (
                "\u{200b}\u{200f}\u{2028}\u{2029}\u{2066}",
                "\\u{200b}\\u{200f}\\u{2028}\\u{2029}\\u{2066}",
            ),
            ("\u{fe0f}\u{feff}\u{fff9}\u{fffb}", "\\u{fe0f}\\u{feff}\\u{fff9}\\u{fffb}"),
            ("a\u{e0001}\u{e0041}\u{e007f}", "a\\u{e0001}\\u{e0041}\\u{e007f}"),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(visible(expected), expected, "a second time changes nothing");
        }
    }

    #[test]
    fn harmless_text_is_not_copied() {
        for text in ["", "plain", "日本語 é"] {
            assert!(matches!(visible(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(visible_lines("a\n\x1b[2J\r\n\tb"), "a\n\\x1b[2J\\r\n\\tb");
    }
}
