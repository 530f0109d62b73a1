//! Text for a page.

use crate::is_harmful;
use crate::visible::push_escape;

/// `text` for HTML, as content or as a quoted attribute, with harmful characters as
/// [`visible`](crate::visible) writes them.
pub fn escape(text: &str) -> String {
    escape_cut(text, usize::MAX)
}

/// As [`escape`], and cut with an ellipsis after `chars_max` characters.
pub fn escape_cut(text: &str, chars_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(chars_max) + 8);
    for (number, c) in text.chars().enumerate() {
        if number == chars_max {
            out.push('…');
            break;
        }
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if is_harmful(c) => push_escape(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{escape, escape_cut};

    #[test]
    fn markup_and_harmful_characters_are_escaped() {
        let evil = "</title><a href='\"'>&\n\x1b\u{202e}日";
        let harmless = "&lt;/title&gt;&lt;a href=&#39;&quot;&#39;&gt;&amp;\\n\\x1b\\u{202e}日";
        assert_eq!(escape(evil), harmless);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(escape_cut("<<<<", 2), "&lt;&lt;…");
        assert_eq!(escape_cut("ab", 2), "ab");
    }
}
