//! The oracle: compares literals and hex patterns as values under masks at every position. Written
//! from the documentation, with no code of quarrier.

use quarrier_search::Finding;

/// A byte `t` matches `(value, mask)` if `t & mask == value`.
pub type Masked = (u8, u8);

/// An expected form: the index of a pattern, and one of its forms.
pub type Needle = (u32, Vec<Masked>);

/// Returns exactly these bytes or, if case is ignored, these up to the case of ASCII letters.
pub fn bytes(bytes: &[u8], ignore_case: bool) -> Vec<Masked> {
    bytes.iter().map(|&byte| masked(byte, ignore_case && byte.is_ascii_alphabetic())).collect()
}

/// Returns the UTF-16LE form of `text`. A character beyond ASCII has no case, whatever its bytes.
pub fn utf16(text: &str, ignore_case: bool) -> Vec<Masked> {
    let mut all = Vec::new();
    for unit in text.encode_utf16() {
        let [low, high] = unit.to_le_bytes();
        let is_letter = high == 0 && low.is_ascii_alphabetic();
        all.push(masked(low, ignore_case && is_letter));
        all.push(masked(high, false));
    }
    all
}

fn masked(byte: u8, without_case: bool) -> Masked {
    let mask = if without_case { !0x20 } else { !0 };
    (byte & mask, mask)
}

/// Finds all positions of all needles, in order.
pub fn find(needles: &[Needle], text: &[u8]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (pattern, needle) in needles {
        for (offset, there) in text.windows(needle.len()).enumerate() {
            if there.iter().zip(needle).all(|(byte, (value, mask))| byte & mask == *value) {
                let (offset, length) = (offset as u64, needle.len() as u32);
                found.push(Finding { offset, pattern: *pattern, length });
            }
        }
    }
    found.sort_unstable();
    found
}
