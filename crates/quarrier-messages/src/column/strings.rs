//! Many strings in one allocation, and sorted lists of them.

use std::ops::Deref;

use super::zone::bytes_key;

/// Maximum bytes of one [`Strings`], so that Arrow's 32-bit offsets reach all of them.
pub const STRINGS_BYTES_MAX: usize = i32::MAX as usize;

/// Strings end to end: string `i` is `bytes[ends[i - 1]..ends[i]]`. Takes 4 bytes per string
/// besides its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    /// Makes an empty list.
    pub fn new() -> Self {
        Strings::default()
    }

    /// Makes a list of strings with these ends. Checks every byte.
    ///
    /// # Panics
    ///
    /// If `ends` decreases or does not end with `bytes`, if a string is not UTF-8, or if the
    /// strings exceed [`STRINGS_BYTES_MAX`]. Parsers pass only valid strings.
    pub fn from_parts(ends: Vec<u32>, bytes: Vec<u8>) -> Self {
        let wrong = wrong(&ends, &bytes);
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
        Strings { ends, bytes }
    }

    /// Like [`from_parts`](Self::from_parts), for untrusted parts; `None` if they are invalid.
    pub(crate) fn checked(ends: Vec<u32>, bytes: Vec<u8>) -> Option<Self> {
        wrong(&ends, &bytes).is_none().then_some(Strings { ends, bytes })
    }

    /// Appends a string and returns its number; `None`, without a change, if the
    /// strings would exceed [`STRINGS_BYTES_MAX`].
    pub fn push(&mut self, text: &str) -> Option<u32> {
        let end = self.bytes.len() + text.len();
        if end > STRINGS_BYTES_MAX || self.ends.len() >= u32::MAX as usize {
            return None;
        }
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(end as u32);
        Some((self.ends.len() - 1) as u32)
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns string number `index`.
    ///
    /// # Panics
    ///
    /// If there is no string with this number.
    #[inline]
    pub fn get(&self, index: usize) -> &str {
        let end = self.ends[index] as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        // SAFETY: `checked` and `from_parts` keep only parts for which `wrong` found that the bytes
        // are UTF-8 and that each end is a character boundary; `push` appends whole strings.
        // Nothing else changes the fields.
        unsafe { std::str::from_utf8_unchecked(&self.bytes[start..end]) }
    }

    /// Returns the first eight bytes of a string as a number: see [`text_key`].
    ///
    /// [`text_key`]: crate::column::zone::text_key
    #[inline]
    pub(crate) fn key(&self, index: usize) -> i64 {
        let end = self.ends[index] as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        match self.bytes[start..].first_chunk() {
            Some(&eight) => {
                let others = u64::MAX.checked_shr(8 * (end - start).min(8) as u32).unwrap_or(0);
                ((u64::from_be_bytes(eight) & !others) ^ (1 << 63)) as i64
            }
            None => bytes_key(&self.bytes[start..end]),
        }
    }

    /// Yields all strings, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Returns the end of each string in [`bytes`](Self::bytes); ascending, and at most the number
    /// of bytes.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Returns the bytes of all strings, without separators.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes of memory.
    pub fn nbytes(&self) -> usize {
        4 * self.ends.capacity() + self.bytes.capacity()
    }
}

/// Returns the reason if these parts are invalid.
fn wrong(ends: &[u32], bytes: &[u8]) -> Option<String> {
    if bytes.len() > STRINGS_BYTES_MAX {
        return Some(format!("strings of {} bytes are too long", bytes.len()));
    }
    if ends.last().map_or(0, |&end| end as usize) != bytes.len() {
        return Some("the last string does not end with the bytes".to_string());
    }
    let Ok(whole) = std::str::from_utf8(bytes) else {
        return Some("strings must be UTF-8".to_string());
    };
    let is_ascii = whole.is_ascii();
    let mut start = 0;
    for &end in ends {
        let is_border = is_ascii || whole.is_char_boundary(end as usize);
        if start > end || !is_border {
            return Some(format!("a string that ends at byte {end} cuts a character"));
        }
        start = end;
    }
    None
}

impl<'t> FromIterator<&'t str> for Strings {
    /// # Panics
    ///
    /// If the strings exceed [`STRINGS_BYTES_MAX`].
    fn from_iter<I: IntoIterator<Item = &'t str>>(all: I) -> Self {
        let mut strings = Strings::new();
        for text in all {
            strings.push(text).expect("the strings are not too long");
        }
        strings
    }
}

/// The distinct strings of a column in the order of their bytes, so that codes compare like strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dictionary {
    strings: Strings,
}

impl Dictionary {
    /// # Panics
    ///
    /// If `strings` are not in strictly ascending order.
    pub fn from_sorted(strings: Strings) -> Self {
        let sorted = Dictionary::checked(strings);
        assert!(sorted.is_some(), "a dictionary is sorted, with each string once");
        sorted.unwrap_or_default()
    }

    /// Like [`from_sorted`](Self::from_sorted), for untrusted strings; `None` if they are not in
    /// strictly ascending order.
    pub(crate) fn checked(strings: Strings) -> Option<Self> {
        let is_rising = (1..strings.len()).all(|at| strings.get(at - 1) < strings.get(at));
        is_rising.then_some(Dictionary { strings })
    }

    /// Returns the code of `text`, or the code of the first greater string as `Err`. A binary
    /// search.
    ///
    /// # Errors
    ///
    /// If the string is not in the dictionary; the code may be the dictionary's length.
    pub fn code_of(&self, text: &str) -> Result<u32, u32> {
        let (mut low, mut high) = (0, self.strings.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.strings.get(middle).cmp(text) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle as u32),
            }
        }
        Err(low as u32)
    }
}

impl Deref for Dictionary {
    type Target = Strings;

    fn deref(&self) -> &Strings {
        &self.strings
    }
}

#[cfg(test)]
mod tests {
    use super::super::zone::text_key;
    use super::Strings;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_string_key_does_not_depend_on_neighbours(
            strings in proptest::collection::vec("[a\u{0}é]{0,12}", 0..20),
        ) {
            let all: Strings = strings.iter().map(String::as_str).collect();
            for (at, text) in strings.iter().enumerate() {
                prop_assert_eq!(all.key(at), text_key(text), "{:?}", text);
            }
        }
    }
}
