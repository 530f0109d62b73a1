//! Codes of strings that differ only in a number at the end.
//!
//! Accounts, customers and orders often have such names: `ACC082752`. If the numbers are dense, a
//! table indexed by number yields the code at once: no hash, no copy that waits for its lookup, and
//! four bytes of cache per string instead of thirty. A form is derived from an actual string: its
//! length, its prefix, and the number of digits after the prefix. No two strings of one form have
//! the same number.

use super::interner::{NO_CODE, SHORT_BYTES};

/// Maximum length of a string that may have a form.
const BYTES_MAX: usize = 16;

/// Maximum number of digits; earlier digits belong to the prefix.
const DIGITS_MAX: usize = 7;
/// With fewer digits the strings are so few that the hash table is as fast.
const DIGITS_MIN: usize = 2;

/// Maximum number of table entries per string of the dictionary.
const PLACES_A_TEXT: usize = 4;

/// Number of lookups of strings of other forms after which another form is tried, if few had this
/// one.
const OTHERS_MAX: u32 = 1_024;
const TRIES: u32 = 8;

/// Codes by number, for strings of one form.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    form: Form,
    /// Codes by number; [`NO_CODE`] for unknown ones.
    codes: Vec<u32>,
    /// Counts of strings of the form, learned or too sparse, and of strings of other forms.
    own: u32,
    others: u32,
    tries: u32,
}

/// The common form of strings; the empty one at first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Form {
    len: usize,
    /// The bytes before the digits, to compare under `mask`.
    first: u128,
    mask: u128,
    /// A mask of the digits among the last eight bytes.
    digits: u64,
}

impl Form {
    /// Returns the form of a string, if it has one.
    fn of(text: &[u8]) -> Option<Form> {
        let all = padded(text)?;
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let digits = text.iter().rev().take(DIGITS_MAX).take_while(is_digit).count();
        if digits < DIGITS_MIN {
            return None;
        }
        let others = 8 * (BYTES_MAX - (text.len() - digits)) as u32;
        let mask = u128::MAX.checked_shr(others).unwrap_or(0);
        let digits = !(u64::MAX >> (8 * digits));
        Some(Form { len: text.len(), first: all & mask, mask, digits })
    }

    /// Returns the number of the string in the first `len` bytes of `ahead`; `None` if it has
    /// another form.
    #[inline(always)]
    fn number(&self, ahead: u128) -> Option<usize> {
        const ZEROS: u64 = 0x3030_3030_3030_3030;
        const ABOVE_NINE: u64 = 0x7676_7676_7676_7676;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        // The last eight bytes, the last digit in the highest byte.
        let last = (ahead << (8 * (BYTES_MAX - self.len) % 128) >> 64) as u64;
        let values = (last ^ ZEROS) & self.digits;
        let is_number = (values.wrapping_add(ABOVE_NINE) | values) & HIGH == 0;
        (is_number && ahead & self.mask == self.first).then(|| joined(values))
    }
}

/// Combines eight digits, the first in the lowest byte, into a number.
#[inline(always)]
fn joined(values: u64) -> usize {
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let high = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let low = (pairs >> 16 & PAIRS).wrapping_mul(1 + (10_000 << 32));
    (high.wrapping_add(low) >> 32) as usize
}

/// Returns the bytes of a string, padded with zeros; `None` if it is too long.
#[inline]
fn padded(text: &[u8]) -> Option<u128> {
    let mut bytes = [0; BYTES_MAX];
    bytes.get_mut(..text.len())?.copy_from_slice(text);
    Some(u128::from_le_bytes(bytes))
}

impl Numbered {
    /// Returns the code of the string in the first `len` bytes of `ahead`, if it is known.
    #[inline(always)]
    pub(super) fn code_ahead(&self, ahead: &[u8; SHORT_BYTES], len: usize) -> Option<u32> {
        if len != self.form.len {
            return None;
        }
        let ahead = u128::from_le_bytes(*ahead.first_chunk()?);
        self.known(self.form.number(ahead)?)
    }

    /// Like [`code_ahead`](Self::code_ahead), for a string after which no bytes may be read.
    #[inline]
    pub(super) fn code(&self, text: &[u8]) -> Option<u32> {
        if text.len() != self.form.len {
            return None;
        }
        self.known(self.form.number(padded(text)?)?)
    }

    #[inline(always)]
    fn known(&self, number: usize) -> Option<u32> {
        self.codes.get(number).copied().filter(|&code| code != NO_CODE)
    }

    /// Learns a string of the dictionary, which has `strings` strings, if it is of the form. If there
    /// is no form yet, or few strings have it, the form of this string replaces it.
    #[inline]
    pub(super) fn learn(&mut self, text: &[u8], code: u32, strings: usize) {
        if text.len() > BYTES_MAX {
            return;
        }
        let number = match text.len() == self.form.len {
            true => padded(text).and_then(|ahead| self.form.number(ahead)),
            false => None,
        };
        let Some(number) = number else { return self.another(text) };
        self.own = self.own.saturating_add(1);
        if number >= self.codes.len() {
            if number >= PLACES_A_TEXT * strings {
                return;
            }
            self.codes.resize((number + 1).next_power_of_two(), NO_CODE);
        }
        if let Some(known) = self.codes.get_mut(number) {
            *known = code;
        }
    }

    /// Counts a string of another form that is short enough to have one.
    fn another(&mut self, text: &[u8]) {
        self.others = self.others.saturating_add(1);
        let is_given_up = self.others >= OTHERS_MAX && self.own < self.others / 4;
        if (self.form == Form::default() || is_given_up)
            && self.tries < TRIES
            && let Some(form) = Form::of(text)
        {
            *self = Numbered { form, tries: self.tries + 1, ..Numbered::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Numbered, PLACES_A_TEXT, SHORT_BYTES};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn ahead(text: &[u8], padding: u8) -> [u8; SHORT_BYTES] {
        let mut ahead = [padding; SHORT_BYTES];
        ahead[..text.len()].copy_from_slice(text);
        ahead
    }

    #[test]
    fn a_number_is_found_between_any_bytes() {
        for before in ["", "A", "ACC", "ACCOUNT", "1", "0012é", "ABCDEFGHI"] {
            for digits in 2..=(BYTES_MAX - before.len()).min(9) {
                let mut numbered = Numbered::default();
                let strings: Vec<String> =
                    (0..100).map(|number| format!("{before}{number:0digits$}")).collect();
                for (code, text) in strings.iter().enumerate() {
                    numbered.learn(text.as_bytes(), code as u32, 1 << 20);
                    numbered.learn(text.as_bytes(), code as u32, 1 << 20);
                }
                for (code, text) in strings.iter().enumerate() {
                    for padding in [0, b'0', b'9', 0xff] {
                        let ahead = ahead(text.as_bytes(), padding);
                        let found = numbered.code_ahead(&ahead, text.len());
                        assert_eq!(found, Some(code as u32), "{text}");
                    }
                    assert_eq!(numbered.code(text.as_bytes()), Some(code as u32), "{text}");
                }
            }
        }
    }

    #[test]
    fn numbers_far_apart_take_no_memory() {
        let mut numbered = Numbered::default();
        for number in (0..1000).rev() {
            numbered.learn(format!("A{:07}", number * 9_999).as_bytes(), number, 1000);
        }
        assert!(numbered.codes.len() <= 2 * PLACES_A_TEXT * 1000);
    }

    proptest! {
        #[test]
        fn a_known_code_belongs_to_its_string(
            strings in proptest::collection::vec("(A|B|ac)?[0-9]{0,4}|[0-9a:/\u{0}é]{0,9}", 0..3000),
        ) {
            let (mut numbered, mut codes) = (Numbered::default(), HashMap::new());
            for text in &strings {
                let known = numbered.code(text.as_bytes());
                if text.len() <= BYTES_MAX {
                    let ahead = ahead(text.as_bytes(), b'7');
                    prop_assert_eq!(known, numbered.code_ahead(&ahead, text.len()));
                }
                match known {
                    Some(code) => prop_assert_eq!(Some(&code), codes.get(text)),
                    None => {
                        let next = codes.len() as u32;
                        let code = *codes.entry(text).or_insert(next);
                        numbered.learn(text.as_bytes(), code, codes.len());
                    }
                }
            }
        }
    }
}
