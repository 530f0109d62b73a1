//! Text from input, made safe to show on a terminal.

/// The text with control characters, and those that hide or reorder others, as escapes: what
/// is searched must not steer the terminal of who searches.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Characters without a form of their own: zero-width, and those that turn the direction.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_would_steer_a_terminal_is_escaped() {
        assert_eq!(visible("a\x1b[31mé\u{202E}b"), "a\\u{1b}[31mé\\u{202e}b");
    }
}
