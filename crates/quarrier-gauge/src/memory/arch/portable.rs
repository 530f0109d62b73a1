//! Plain Rust, as the compiler translates it.

use std::hint::black_box;
use std::slice;

use super::{Arrays, FACTOR};
use crate::memory::{Operation, Stores, WRITTEN};

/// Which stores it takes is the compiler's choice.
///
/// # Safety
/// As for [`super::run`].
pub(super) unsafe fn run(operation: Operation, _stores: Stores, arrays: Arrays) -> u64 {
    let numbers = arrays.bytes / 8;
    let left = || {
        // SAFETY: the caller promised that many numbers to read.
        unsafe { slice::from_raw_parts(arrays.left, numbers) }
    };
    let right = || {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(arrays.right, numbers) }
    };
    let target = || {
        // SAFETY: the caller promised that many numbers to write, which nobody else touches.
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
