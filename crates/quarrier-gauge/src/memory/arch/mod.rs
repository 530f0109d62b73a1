//! The inner loops over memory, one file per implementation.
//!
//! They are in assembly where possible: a compiler turns a copying loop into a call of `memcpy`, which
//! chooses its own stores, and no compiler option controls that.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::{Operation, Stores};
use crate::processor::Isa;

/// Lengths are multiples of this.
pub(super) const STEP_BYTES: usize = 512;

/// The factor of scale and triad.
pub(super) const FACTOR: f64 = 3.0;

/// Three arrays of equal length. The operation writes `target` and reads `left` and `right`, if it
/// needs them.
#[derive(Clone, Copy)]
pub(super) struct Arrays {
    pub(super) target: *mut f64,
    pub(super) left: *const f64,
    pub(super) right: *const f64,
    /// The length in bytes, a multiple of [`STEP_BYTES`].
    pub(super) bytes: usize,
}

/// Whether this instruction set has streaming stores.
pub(super) fn has_streaming_stores(isa: Isa) -> bool {
    matches!(isa, Isa::Avx2 | Isa::Avx512)
}

/// Runs `operation` once over the arrays. Returns the sum of the values read by
/// [`Operation::Read`], as wrapping integers, else 0.
///
/// # Safety
/// The pointers that the operation uses are valid for `bytes` bytes and aligned to 64 bytes;
/// `target` overlaps no array that the operation reads, and no other thread writes to any of them.
/// `bytes` is a multiple of [`STEP_BYTES`], for [`Operation::ReadFour`] of four times that, and not
/// 0. `isa` is available.
pub(super) unsafe fn run(isa: Isa, operation: Operation, stores: Stores, arrays: Arrays) -> u64 {
    debug_assert!(arrays.bytes.is_multiple_of(STEP_BYTES) && arrays.bytes > 0);
    // SAFETY: the caller promises arrays as the loops need them, and that `isa` is available, which
    // includes FMA and AVX2 for `Avx2`, and AVX-512F too for `Avx512`.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::run_512(operation, stores, arrays),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::run_256(operation, stores, arrays),
            _ => portable::run(operation, stores, arrays),
        }
    }
}
