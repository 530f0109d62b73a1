//! Plain Rust, as compiled.

use std::hint::black_box;
use std::slice;

use super::{Arrays, FACTOR};
use crate::memory::{Operation, Stores, WRITTEN};

/// The compiler chooses the stores.
///
/// # Safety
/// Those of [`super::run`].
pub(super) unsafe fn run(operation: Operation, _stores: Stores, arrays: Arrays) -> u64 {
    let numbers = arrays.bytes / 8;
    let left = || {
        // SAFETY: the caller promises that `left` is valid for `bytes` bytes, aligned to 64 bytes,
        // and that nobody writes to it; any bits are an `f64`.
        unsafe { slice::from_raw_parts(arrays.left, numbers) }
    };
    let right = || {
        // SAFETY: the caller promises that `right` is valid for `bytes` bytes, aligned to 64 bytes, and
        // that nobody writes to it; any bits are an `f64`.
        unsafe { slice::from_raw_parts(arrays.right, numbers) }
    };
    let target = || {
        // SAFETY: the caller promises that `target` is valid for `bytes` bytes and aligned to 64
        // bytes, that no other thread accesses it, and that it does not overlap the slices of
        // `left` and `right`.
        unsafe { slice::from_raw_parts_mut(arrays.target, numbers) }
    };
    match operation {
        Operation::Read | Operation::ReadFour => {
            return left().iter().fold(0, |sum, number| sum.wrapping_add(number.to_bits()));
        }
        Operation::Write => target().fill(black_box(WRITTEN)),
        Operation::Copy => target().copy_from_slice(left()),
        Operation::Scale => {
            for (to, from) in target().iter_mut().zip(left()) {
                *to = FACTOR * from;
            }
        }
        Operation::Add => {
            for ((to, a), b) in target().iter_mut().zip(left()).zip(right()) {
                *to = a + b;
            }
        }
        Operation::Triad => {
            for ((to, a), b) in target().iter_mut().zip(left()).zip(right()) {
                *to = a + FACTOR * b;
            }
        }
    }
    0
}
