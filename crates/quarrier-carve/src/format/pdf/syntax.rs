//! Parses words and values of PDF in memory.

/// Whether PDF treats it as white space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !is_delimiter(byte)
}

/// Returns the place of the first byte from `at` on that is neither white space nor in a comment.
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            let rest = &bytes[at..];
            at += memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        } else if is_space(byte) {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// Returns the end of the value that begins at `at`. `None` if it does not end in `bytes`, or is
/// not a value. Of the nesting, it stores only the depth.
pub(super) fn skip_value(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = skip_space(bytes, at);
    let mut depth = 0usize;
    loop {
        at = match *bytes.get(at)? {
            b'(' => skip_text(bytes, at)?,
            b'<' if bytes.get(at + 1) == Some(&b'<') => {
                depth += 1;
                at + 2
            }
            b'<' => at + 1 + memchr::memchr(b'>', &bytes[at..])?,
            b'[' | b'{' => {
                depth += 1;
                at + 1
            }
            b'>' if bytes.get(at + 1)? == &b'>' => {
                depth = depth.checked_sub(1)?;
                at + 2
            }
            b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                at + 1
            }
            b'>' | b')' => return None,
            _ => skip_word(bytes, at)?,
        };
        if depth == 0 {
            return Some(at);
        }
        at = skip_space(bytes, at);
    }
}

/// Returns the end of the string in parentheses that begins at `at`.
fn skip_text(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the end of the name, number or keyword that begins at `at`; that end must be visible.
fn skip_word(bytes: &[u8], at: usize) -> Option<usize> {
    let from = if bytes[at] == b'/' { at + 1 } else { at };
    let length = bytes.get(from..)?.iter().position(|byte| !is_regular(*byte))?;
    (from + length > at).then_some(from + length)
}

/// Returns the value of `name` in the dictionary at the start of `bytes`.
pub(super) fn value_of<'d>(bytes: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    let mut at = skip_space(bytes, 0);
    if !bytes[at..].starts_with(b"<<") {
        return None;
    }
    at = skip_space(bytes, at + 2);
    while bytes.get(at) == Some(&b'/') {
        let named = skip_value(bytes, at)?;
        let key = &bytes[at + 1..named];
        let from = skip_space(bytes, named);
        let mut end = skip_value(bytes, from)?;
        if bytes[from].is_ascii_digit() {
            end = skip_reference(bytes, end).unwrap_or(end);
        }
        if key == name {
            return Some(&bytes[from..end]);
        }
        at = skip_space(bytes, end);
    }
    None
}

/// Returns the end of the rest of a reference, ` 0 R`, that begins at `at`.
fn skip_reference(bytes: &[u8], at: usize) -> Option<usize> {
    let from = skip_space(bytes, at);
    let (_, end) = number(bytes, from)?;
    let letter = skip_space(bytes, end);
    (bytes.get(letter) == Some(&b'R') && !is_regular(*bytes.get(letter + 1)?)).then_some(letter + 1)
}

/// Returns the unsigned number at `at`, and its end.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let digits = bytes.get(at..)?.iter().take(16).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 15 {
        return None;
    }
    let value = bytes[at..at + digits].iter().fold(0, |sum, b| sum * 10 + u64::from(b - b'0'));
    Some((value, at + digits))
}

/// Parses `value` if it is only a number.
pub(super) fn integer(value: &[u8]) -> Option<u64> {
    let (number, end) = number(value, 0)?;
    (end == value.len()).then_some(number)
}

/// Parses the numbers in an array.
pub(super) fn integers(value: &[u8]) -> Vec<u64> {
    let words = value.split(|byte| !byte.is_ascii_digit());
    words.filter(|word| !word.is_empty()).filter_map(integer).collect()
}

/// Returns the number of the object that begins at `at` with `12 0 obj`, and the end of that.
pub(super) fn head(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let (object, end) = number(bytes, at)?;
    let generation = spaces(bytes, end)?;
    let (_, end) = number(bytes, generation)?;
    let word = spaces(bytes, end)?;
    bytes.get(word..)?.starts_with(b"obj").then_some((object, word + 3))
}

/// Skips at least one white-space byte.
fn spaces(bytes: &[u8], at: usize) -> Option<usize> {
    let count = bytes.get(at..)?.iter().take_while(|byte| is_space(**byte)).count();
    (count > 0).then_some(at + count)
}
