//! Rewrites ranges of offsets that may begin before the scope, such as `$a in (filesize - 100 .. filesize)`.
//!
//! YARA searches such a range from the beginning of the scope on. To boreal, no string is in a range
//! whose lower bound is negative, so a scope shorter than 100 bytes would not match.

use std::borrow::Cow;
use std::ops::Range;

use crate::split::tokens;

/// Returns the statement with lower bounds that are never negative. They use the module `math`, so
/// the statement then imports it.
pub(crate) fn with_lower_bounds(text: &str) -> Cow<'_, str> {
    let bounds = lower_bounds(text);
    if bounds.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = "import \"math\"\n".to_string();
    let mut copied = 0;
    for bound in bounds {
        let lower = &text[bound.clone()];
        out.push_str(&text[copied..bound.start]);
        out.push_str(&format!("(({lower}\n) * math.to_number(({lower}\n) >= 0))"));
        copied = bound.end;
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the lower bounds of ranges of offsets of strings that may be negative, in order.
fn lower_bounds(text: &str) -> Vec<Range<usize>> {
    let tokens: Vec<Range<usize>> = tokens(text).collect();
    let word = |place: usize| tokens.get(place).map_or("", |token| &text[token.clone()]);
    let mut bounds = Vec::new();
    for place in 1..tokens.len() {
        // `$a in (…)`, `any of them in (…)`, `any of ($a, $b) in (…)`; not `for any i in (…)`.
        let before = word(place - 1);
        let is_string = before.starts_with('$') || matches!(before, "them" | ")");
        if word(place) != "in" || word(place + 1) != "(" || !is_string {
            continue;
        }
        let start = tokens[place + 1].end;
        let Some(end) = range_dots(&tokens[place + 2..], text) else { continue };
        if may_be_negative(&text[start..end]) {
            bounds.push(start..end);
        }
    }
    bounds
}

/// Returns the offset of the dots of a range, given the tokens after its opening parenthesis.
fn range_dots(tokens: &[Range<usize>], text: &str) -> Option<usize> {
    let mut depth = 0;
    for (token, next) in tokens.iter().zip(tokens.iter().skip(1)) {
        match &text[token.clone()] {
            "(" | "[" => depth += 1,
            ")" | "]" if depth == 0 => return None,
            ")" | "]" => depth -= 1,
            "." if depth == 0 && next.start == token.end && &text[next.clone()] == "." => {
                return Some(token.start);
            }
            _ => {}
        }
    }
    None
}

/// Whether a bound is anything but a number and the length of the scope.
fn may_be_negative(bound: &str) -> bool {
    let bound = bound.trim();
    let is_number = bound.starts_with(|c: char| c.is_ascii_digit())
        && bound.chars().all(|c| c.is_ascii_alphanumeric());
    !is_number && bound != "filesize"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(condition: &str, expected: &[&str]) {
        let text = format!(
            "rule a {{ strings: $a = \"in (-1..2)\" $b = /in (-1..2)/ condition: {condition} }}"
        );
        let found: Vec<&str> = lower_bounds(&text).into_iter().map(|bound| &text[bound]).collect();
        assert_eq!(found, expected, "{condition}");
    }

    #[test]
    fn bounds_that_may_be_negative_are_found() {
        check("$a in (filesize-20..filesize)", &["filesize-20"]);
        check("$a in(-1 .. 2) and not $b in (@a[1] - 4..@a[1])", &["-1 ", "@a[1] - 4"]);
        check("any of them in ((filesize - 1)..filesize)", &["(filesize - 1)"]);
        check("any of ($a, $b*) in (uint32(4)..9)", &["uint32(4)"]);
        check("for any of them : ( $ in (@ - 1..5) )", &["@ - 1"]);
        check("$a in (/* ( */ filesize - 1 // )\n..filesize)", &["/* ( */ filesize - 1 // )\n"]);
    }

    #[test]
    fn other_ranges_are_kept() {
        for condition in [
            "$a in (0..filesize)",
            "$a in (0x10 .. 1KB)",
            "$a in (filesize .. filesize)",
            "#a in (-1..2) == 1",
            "for any i in (-1..2) : ( i == 0 )",
            "for any i in (1, 2) : ( i == 0 )",
            "filename == \"$a in (-1..2)\" // $a in (-1..2)",
            "filename matches /$a in (-1..2)/",
            "$a in (",
            "$a in (-1",
            "$a in (-1)",
        ] {
            check(condition, &[]);
        }
        assert!(matches!(with_lower_bounds("rule a { condition: true }"), Cow::Borrowed(_)));
    }
}
