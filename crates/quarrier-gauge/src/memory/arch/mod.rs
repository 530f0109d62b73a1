//! The inner loops over memory, one file for each way of running them.
//!
//! In assembly where possible: a compiler turns a loop that copies into a call of `memcpy`, which
//! chooses its stores by itself, and no compiler option says which.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::{Operation, Stores};
use crate::processor::Isa;

/// Lengths are whole multiples of this.
pub(super) const STEP_BYTES: usize = 512;

/// By what scale and triad multiply.
pub(super) const FACTOR: f64 = 3.0;

/// Three arrays of one length, and their use: `target` is written, `left` and `right` are read, as far
/// as the operation does.
#[derive(Clone, Copy)]
pub(super) struct Arrays {
    pub(super) target: *mut f64,
    pub(super) left: *const f64,
    pub(super) right: *const f64,
    /// A multiple of [`STEP_BYTES`].
    pub(super) bytes: usize,
}

/// Whether stores that pass the caches can be had here.
pub(super) fn has_streaming_stores(isa: Isa) -> bool {
    matches!(isa, Isa::Avx2 | Isa::Avx512)
}

/// Runs `operation` once over the arrays. Returns the sum of the values read by [`Operation::Read`], as
/// wrapping integers, else 0.
///
/// # Safety
/// The pointers that the operation uses are valid for `bytes` bytes, aligned to 64 bytes, and no
/// other thread writes there; `bytes` is a multiple of [`STEP_BYTES`]; `isa` is available.
pub(super) unsafe fn run(isa: Isa, operation: Operation, stores: Stores, arrays: Arrays) -> u64 {
    debug_assert!(arrays.bytes.is_multiple_of(STEP_BYTES) && arrays.bytes > 0);
    // SAFETY: as the caller promised.
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
