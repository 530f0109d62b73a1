//! Keys, tokens and GPS positions.

use super::Seen;

pub(super) fn jwt(seen: &Seen<'_>) -> Option<usize> {
    let header = seen.found.split(|&byte| byte == b'.').next()?;
    let header: serde_json::Value = serde_json::from_slice(&base64_url(header)?).ok()?;
    header.get("alg").filter(|alg| alg.is_string()).map(|_| seen.found.len())
}

/// Decodes base64 in the URL alphabet, without padding.
fn base64_url(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// Requires that the first and the last line name the same type of key.
pub(super) fn private_key(seen: &Seen<'_>) -> Option<usize> {
    let text = std::str::from_utf8(seen.found).ok()?;
    let (first, rest) = text.strip_prefix("-----BEGIN ")?.split_once("-----")?;
    let (_, last) = rest.rsplit_once("-----END ")?;
    (last.strip_suffix("-----") == Some(first)).then_some(seen.found.len())
}

/// The checksum is the XOR of all bytes between `$` and `*`.
pub(super) fn gps(seen: &Seen<'_>) -> Option<usize> {
    let text = std::str::from_utf8(seen.found).ok()?;
    let (sentence, sum) = text.strip_prefix('$')?.rsplit_once('*')?;
    let expected = u8::from_str_radix(sum, 16).ok()?;
    (sentence.bytes().fold(0, |sum, byte| sum ^ byte) == expected).then_some(seen.found.len())
}
