//! Signatures in the format of `foremost.conf` and `scalpel.conf`: one per line, with extension,
//! case, size, header, footer, and the meaning of the footer.

use super::Fault;
use super::format::{End, Rules};
use super::masked::Masked;

/// Parses all signatures; returns each with its line.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<(usize, Rules)>, Fault> {
    let mut wildcard = b'?';
    let mut all = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let words: Vec<&[u8]> =
            line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] => {}
            [first, ..] if first.starts_with(b"#") => {}
            [b"wildcard", word, ..] => {
                let decoded = decode(word).map_err(|what| Fault::new(number, what))?;
                let [byte] = decoded[..] else {
                    return Err(Fault::new(number, "the wildcard is one character"));
                };
                wildcard = byte;
            }
            words => {
                let rules = rules(words, wildcard).map_err(|what| Fault::new(number, what))?;
                all.push((number, rules));
            }
        }
    }
    Ok(all)
}

fn rules(words: &[&[u8]], wildcard: u8) -> Result<Rules, String> {
    let [extension, case, size, header, rest @ ..] = words else {
        return Err("needs extension, y or n, size and header".to_string());
    };
    let is_any_case = match *case {
        b"y" | b"Y" => false,
        b"n" | b"N" => true,
        _ => return Err(format!("{:?} is not y or n", shown(case))),
    };
    let (size_bytes_min, size_bytes_max) = sizes(size)?;
    let (footer, options) = match rest {
        [first, ..] if option(first).is_some() => (Masked::default(), rest),
        [first, options @ ..] => (masked(first, wildcard, is_any_case)?, options),
        [] => (Masked::default(), rest),
    };
    let mut end = End::First;
    for word in options.iter().take_while(|word| !word.starts_with(b"#")) {
        end = option(word).ok_or_else(|| {
            format!("{:?} is not FORWARD, FORWARD_NEXT, NEXT or REVERSE", shown(word))
        })?;
    }
    let name = match *extension {
        b"NONE" => "none".to_string(),
        extension => shown(extension),
    };
    Ok(Rules {
        extension: if name == "none" { "bin".to_string() } else { name.clone() },
        name,
        header: masked(header, wildcard, is_any_case)?,
        offset: 0,
        size_bytes_min,
        size_bytes_max,
        length: None,
        footer,
        end,
    })
}

fn option(word: &[u8]) -> Option<End> {
    match word {
        b"REVERSE" => Some(End::Last),
        b"NEXT" => Some(End::Before),
        b"FORWARD" | b"FORWARD_NEXT" => Some(End::First),
        _ => None,
    }
}

/// Parses the maximum size, or the minimum and the maximum: `1000:500000`.
fn sizes(word: &[u8]) -> Result<(u64, u64), String> {
    let text = shown(word);
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a size"));
    match text.split_once(':') {
        Some((least, most)) => Ok((number(least)?, number(most)?)),
        None => Ok((0, number(&text)?)),
    }
}

fn masked(word: &[u8], wildcard: u8, is_any_case: bool) -> Result<Masked, String> {
    if word.len() > 2 && word.starts_with(b"/") && word.ends_with(b"/") {
        return Err("regular expressions are not read; write bytes".to_string());
    }
    let mut masked = Masked::default();
    for byte in decode(word)? {
        // As in both programs, the wildcard's own byte is always a wildcard, however it is written.
        masked.push(byte, if byte == wildcard { 0 } else { 0xFF });
    }
    Ok(if is_any_case { masked.in_any_case() } else { masked })
}

/// Decodes the escapes in a word.
fn decode(word: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = word.get(at) {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let digits = |from: usize, count: usize, radix: u32| {
            let digits = word.get(from..from + count)?;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
        };
        let fault = || format!("{:?} has an invalid escape", shown(word));
        let (byte, taken) = match word.get(at).copied().ok_or_else(fault)? {
            b'x' | b'X' => (digits(at + 1, 2, 16).ok_or_else(fault)?, 3),
            b'0'..=b'7' => (digits(at, 3, 8).ok_or_else(fault)?, 3),
            b's' => (b' ', 1),
            b'n' => (b'\n', 1),
            b'r' => (b'\r', 1),
            b't' => (b'\t', 1),
            b'a' => (7, 1),
            b'b' => (8, 1),
            b'f' => (12, 1),
            b'v' => (11, 1),
            other @ (b'\\' | b'"' | b'\'' | b'?') => (other, 1),
            _ => return Err(fault()),
        };
        bytes.push(byte);
        at += taken;
    }
    Ok(bytes)
}

fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}
