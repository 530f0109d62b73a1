//! Sets of byte values.

/// A set of byte values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ByteSet([u64; 4]);

impl std::fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(char::from)).finish()
    }
}

/// Formats the set as a regex: the byte itself, or a class.
impl std::fmt::Display for ByteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |byte: u8| byte.escape_ascii().to_string();
        match (self.len(), self.iter().next()) {
            (1, Some(byte)) => return f.write_str(&show(byte)),
            (256, _) => return f.write_str("[^]"),
            _ => {}
        }
        f.write_str("[")?;
        let mut from = 0u16;
        while from < 256 {
            let has = |byte: u16| byte < 256 && self.contains(byte as u8);
            if !has(from) {
                from += 1;
                continue;
            }
            let mut to = from;
            while has(to + 1) {
                to += 1;
            }
            f.write_str(&show(from as u8))?;
            if to > from {
                let between = if to > from + 1 { "-" } else { "" };
                write!(f, "{between}{}", show(to as u8))?;
            }
            from = to + 1;
        }
        f.write_str("]")
    }
}

impl ByteSet {
    pub(crate) const EMPTY: ByteSet = ByteSet([0; 4]);
    pub(crate) const ALL: ByteSet = ByteSet([!0; 4]);

    pub(crate) fn one(byte: u8) -> Self {
        let mut set = Self::EMPTY;
        set.insert_range(byte, byte);
        set
    }

    pub(crate) fn insert_range(&mut self, from: u8, to: u8) {
        (from..=to).for_each(|b| self.0[b as usize / 64] |= 1 << (b % 64));
    }

    #[inline(always)]
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[byte as usize / 64] >> (byte % 64) & 1 != 0
    }

    pub(crate) fn union(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Its bytes in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> {
        let words = self.0;
        (0..4u8).flat_map(move |index| {
            let mut left = words[usize::from(index)];
            std::iter::from_fn(move || {
                let bit = (left != 0).then_some(left.trailing_zeros() as u8)?;
                left &= left - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// Whether all bytes are ASCII letters, digits or underscores, the word characters of `\b`.
    pub(crate) fn is_word(&self) -> bool {
        *self != Self::EMPTY && self.iter().all(is_word_byte)
    }

    /// Returns the most specific value and mask that match all of its bytes: exact for one byte,
    /// and for a letter in either case.
    pub(crate) fn cover(&self) -> (u8, u8) {
        let (all, any) = self.iter().fold((!0, 0), |(all, any), byte| (all & byte, any | byte));
        let mask = !(any & !all);
        (all & mask, mask)
    }

    /// Whether value and mask of [`cover`](Self::cover) match no other bytes.
    pub(crate) fn is_fixed(&self) -> bool {
        let (_, mask) = self.cover();
        mask == 0xFF || (mask == 0xDF && self.len() == 2)
    }
}

#[inline(always)]
pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
