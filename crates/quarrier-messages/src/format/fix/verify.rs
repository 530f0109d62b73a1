//! Checksum templates: verifies the envelope of a message in one pass. If this pass cannot,
//! [`Keys`] examines the message again.

use super::SEPARATOR;
use super::envelope::Keys;
use crate::arch::{AHEAD_BYTES, Ends, MARKED_BYTES_MAX, Marked, Marks, Short};

/// The keys of the fields around a message, in the form that vectors compare.
#[derive(Debug)]
pub(super) struct ChecksumTemplates {
    begin: Short,
    length: Short,
    check: Short,
    /// The sum of the bytes of `check`.
    check_sum: u8,
}

/// A message that arrived intact.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verified {
    /// The offset after BodyLength.
    pub(super) body: usize,
    /// BodyLength.
    pub(super) length: usize,
    /// The offset after the last separator.
    pub(super) end: usize,
    pub(super) is_ascii: bool,
    pub(super) line_feeds: u32,
}

/// Maximum bytes of BeginString, BodyLength and its separator; longer ones are rare, and the
/// general parser verifies them.
const HEAD_BYTES: usize = AHEAD_BYTES;
const LENGTH_DIGITS_MAX: usize = 9;

impl ChecksumTemplates {
    /// Returns `None` if a key is too long.
    pub(super) fn new(keys: &Keys) -> Option<Self> {
        Some(ChecksumTemplates {
            begin: Short::new(keys.begin)?,
            length: Short::new(keys.length)?,
            check: Short::new(keys.check)?,
            check_sum: keys.check.iter().fold(0, |sum, &byte| sum.wrapping_add(byte)),
        })
    }

    /// Verifies the message at the start of `bytes`, and finds the ends of its fields. `None` if it
    /// is invalid, too long for one pass, or so near the end of the bytes that vectors cannot read
    /// it. If it returns a message, AHEAD_BYTES of `bytes` follow that message.
    ///
    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    pub(super) unsafe fn verify<L: Marks>(
        &self,
        bytes: &[u8],
        ends: &mut Ends,
    ) -> Option<Verified> {
        if bytes.len() < HEAD_BYTES + 2 * AHEAD_BYTES {
            return None;
        }
        let p = bytes.as_ptr();
        // SAFETY: the caller promises the instruction set. All pointers are at offsets of at most
        // HEAD_BYTES: `is_head` is evaluated first, and `digits` is below `body`. There are
        // HEAD_BYTES + 2 * AHEAD_BYTES bytes, so the AHEAD_BYTES that each call reads, and the 17
        // of `value`, are readable.
        let (body, length) = unsafe {
            let separators = L::separators(p);
            let begin_end = separators.trailing_zeros() as usize;
            let body = (separators & separators.wrapping_sub(1)).trailing_zeros() as usize + 1;
            let is_head = body <= HEAD_BYTES
                && L::is_at(p, &self.begin)
                && L::is_at(p.add(begin_end + 1), &self.length);
            let digits = begin_end + 1 + self.length.len;
            if !is_head || digits >= body {
                return None;
            }
            let count = body - 1 - digits;
            let is_number = (1..=LENGTH_DIGITS_MAX).contains(&count)
                && L::no_digits(p.add(digits)).trailing_zeros() as usize == count;
            if !is_number {
                return None;
            }
            (body, L::value(p.add(digits), count, count) as usize)
        };
        let check = body + length;
        let end = check + self.check.len + 4;
        if end > MARKED_BYTES_MAX || end + AHEAD_BYTES > bytes.len() {
            return None;
        }
        let [a, b, c, last] = *bytes[end - 4..].first_chunk()?;
        let [a, b, c] = [a, b, c].map(|digit| digit.wrapping_sub(b'0'));
        // SAFETY: the caller promises the instruction set. `end` is at most MARKED_BYTES_MAX, and
        // `end + AHEAD_BYTES` at most the length of `bytes`, as `mark` requires; `check` is below
        // `end`, so AHEAD_BYTES are readable there, too.
        let (is_check, marked) =
            unsafe { (L::is_at(p.add(check), &self.check), L::mark(p, end, ends)) };
        let said = u32::from(a) * 100 + u32::from(b) * 10 + u32::from(c);
        // The sum includes CheckSum itself.
        let own = [a, b, c]
            .iter()
            .fold(self.check_sum, |sum, digit| sum.wrapping_add(digit.wrapping_add(b'0')));
        let sum = marked.sum.wrapping_sub(own.wrapping_add(SEPARATOR));
        let is_right = is_check
            && bytes[check - 1] == SEPARATOR
            && last == SEPARATOR
            && a.max(b).max(c) <= 9
            && said == u32::from(sum);
        let Marked { is_ascii, line_feeds, .. } = marked;
        is_right.then_some(Verified { body, length, end, is_ascii, line_feeds })
    }
}
