//! SIMD tests of a parser's upcoming bytes: written once over [`Lanes`], compiled for each
//! instruction set, chosen at run time.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod digits;
mod marks;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use marks::{Ends, MARKED_BYTES_MAX, Marked, Marks};
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use portable::Portable;

/// Number of upcoming bytes to examine together.
pub(crate) const AHEAD_BYTES: usize = 64;

/// A short string to compare with the upcoming bytes: at most 64 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Short {
    pub(crate) bytes: [u8; AHEAD_BYTES],
    pub(crate) len: usize,
}

impl Short {
    /// Makes a short string; `None` if it is too long.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; AHEAD_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Short { bytes, len: text.len() })
    }

    /// Returns the string.
    pub(crate) fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The first bytes of a string's contents, classified.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    /// Bit i is set if byte i ends plain text: a quote, a backslash or a control character.
    pub(crate) stops: u64,
    /// Bit i is set if byte i is not ASCII.
    pub(crate) wide: u64,
}

/// One instruction set's operations on the upcoming bytes.
///
/// # Safety
/// For every function, the instruction set is available. The pointer given to [`look`](Lanes::look)
/// points to [`AHEAD_BYTES`], and to twice as many if [`text`](Lanes::text) skips some; the bytes
/// stay valid as long as its result is used. [`value`](Lanes::value) gets a pointer to 17 bytes.
/// `skip` is less than [`AHEAD_BYTES`].
pub(crate) trait Lanes: Copy {
    /// The upcoming bytes, loaded once for several tests.
    type Ahead: Copy;

    /// Bytes that [`text`](Lanes::text) examines if none is skipped.
    const TEXT_BYTES: usize;

    /// Loads the upcoming bytes.
    unsafe fn look(p: *const u8) -> Self::Ahead;

    /// Returns whether they start with `text`.
    unsafe fn starts_with(ahead: Self::Ahead, text: &Short) -> bool;

    /// Returns whether the bytes at `p` start with `text`.
    #[inline(always)]
    unsafe fn is_at(p: *const u8, text: &Short) -> bool {
        // SAFETY: the caller promises that the instruction set is available, and that `p` points to
        // AHEAD_BYTES.
        unsafe { Self::starts_with(Self::look(p), text) }
    }

    /// Bit i is set if byte i at `p` is not a decimal digit.
    #[inline(always)]
    unsafe fn no_digits(p: *const u8) -> u64 {
        // SAFETY: the caller promises that the instruction set is available, and that `p` points to
        // AHEAD_BYTES; the skip of 0 is less than AHEAD_BYTES.
        unsafe { !Self::digits(Self::look(p), 0) }
    }

    /// Whether [`digits`](Lanes::digits) and [`value`](Lanes::value) are faster than a loop.
    const HAS_DIGITS: bool;

    /// Bit i is set if byte `skip` + i of [`AHEAD_BYTES`] is a decimal digit; bits past the end are
    /// 0.
    unsafe fn digits(ahead: Self::Ahead, skip: usize) -> u64;

    /// Returns the number that `digits` digits at `p` form, of which `whole` precede a byte to skip
    /// (a point). The digits and that byte are at most 16 bytes.
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64;

    /// Parses the first `len` bytes at `p`, at most 16, as a number; `None` if one of them is not a decimal
    /// digit.
    #[inline(always)]
    unsafe fn checked(p: *const u8, len: usize) -> Option<u64> {
        // SAFETY: the caller promises that the instruction set is available, and that `p` points to
        // AHEAD_BYTES, of which `value` needs 17.
        unsafe {
            let are_digits = Self::no_digits(p).trailing_zeros() as usize >= len;
            if are_digits { Some(Self::value(p, len, len)) } else { None }
        }
    }

    /// Classifies the bytes from `skip` on: bit i is byte `skip` + i.
    unsafe fn text(ahead: Self::Ahead, skip: usize) -> Text;
}
