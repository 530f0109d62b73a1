//! What parsers ask of the bytes ahead, many at once: written once over [`Lanes`], compiled for
//! each instruction set, chosen at run time.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod digits;
mod marks;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use marks::{Ends, MARKED_BYTES_MAX, Marked, Marks};
pub(crate) use portable::Portable;

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    /// AVX-512 with its byte instructions: 64 bytes at a time.
    Avx512,
    /// AVX2: 32 bytes at a time.
    Avx2,
    /// Any machine.
    Portable,
}

impl Isa {
    /// The instruction sets, best first.
    pub(crate) const ALL: [Isa; 3] = [Isa::Avx512, Isa::Avx2, Isa::Portable];

    /// Whether this CPU has it.
    pub(crate) fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::is_available(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512 | Isa::Avx2 => false,
            Isa::Portable => true,
        }
    }

    /// The best one of this CPU.
    pub(crate) fn best() -> Self {
        Isa::ALL.into_iter().find(|isa| isa.is_available()).unwrap_or(Isa::Portable)
    }
}

/// Bytes that must be readable wherever lanes look.
pub(crate) const AHEAD_BYTES: usize = 64;

/// A short text that is compared with the bytes ahead: up to 64 of them.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Short {
    pub(crate) bytes: [u8; AHEAD_BYTES],
    pub(crate) len: usize,
}

impl Short {
    /// `None` where it is too long.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; AHEAD_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Short { bytes, len: text.len() })
    }
}

/// The first bytes of a string's text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    /// Bit i is set where byte i ends plain text: a quote, a backslash or a control character.
    pub(crate) stops: u64,
    /// Bit i is set where byte i is not ASCII.
    pub(crate) wide: u64,
}

/// One instruction set's way of looking at the bytes ahead.
///
/// # Safety
/// Of every function: the instruction set is there, and [`AHEAD_BYTES`] are readable at `p`.
pub(crate) trait Lanes: Copy {
    /// Bytes that [`text`](Lanes::text) looks at.
    const TEXT_BYTES: usize;

    /// Whether the bytes ahead start with `text`.
    unsafe fn starts_with(p: *const u8, text: &Short) -> bool;

    /// Whether [`no_digits`](Lanes::no_digits) and [`value`](Lanes::value) are quicker than a loop.
    const HAS_DIGITS: bool;

    /// Bit i is set where byte i is no decimal digit, for 32 bytes; and beyond.
    unsafe fn no_digits(p: *const u8) -> u64;

    /// The number that `digits` digits ahead make, `whole` of which stand before a byte that is
    /// left out (a point). At most 16 bytes in all.
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64;

    /// Classes of the next [`TEXT_BYTES`](Lanes::TEXT_BYTES) bytes.
    unsafe fn text(p: *const u8) -> Text;
}
