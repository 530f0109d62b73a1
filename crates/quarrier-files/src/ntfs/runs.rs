//! Run lists: runs of clusters in a variable-length encoding.

/// Iterates over the runs of an encoded run list: the first cluster, `None` for a hole, and the number
/// of clusters.
pub(crate) struct Runs<'a> {
    bytes: &'a [u8],
    /// The cluster that the next run's offset is relative to.
    at: i64,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Runs { bytes, at: 0 }
    }
}

impl Iterator for Runs<'_> {
    type Item = (Option<u64>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let (&head, rest) = self.bytes.split_first()?;
        let (length_bytes, place_bytes) = (usize::from(head & 15), usize::from(head >> 4));
        if length_bytes == 0 || length_bytes > 8 || place_bytes > 8 {
            return None;
        }
        let length = number(rest.get(..length_bytes)?, false).cast_unsigned();
        let place = number(rest.get(length_bytes..length_bytes + place_bytes)?, true);
        self.bytes = &rest[length_bytes + place_bytes..];
        if place_bytes == 0 {
            return Some((None, length));
        }
        self.at = self.at.checked_add(place)?;
        Some((Some(u64::try_from(self.at).ok()?), length))
    }
}

/// A number of up to eight bytes, little-endian.
fn number(bytes: &[u8], is_signed: bool) -> i64 {
    let is_negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xFF } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}
