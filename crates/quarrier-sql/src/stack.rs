//! The stack sizes of threads that parse and run statements.

use crate::{WORDS_MAX, WORDS_ON_ANY_STACK};
use quarrier_core::meminfo;

/// With a smaller limit on the address space, large stacks do not fit.
const ADDRESSES_MIN: u64 = 2 << 30;

/// The size of stacks, and the longest statement that they can process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    pub(crate) bytes: usize,
    /// Maximum number of tokens in a text. Trees may be that deep, and so may the recursion over
    /// them.
    pub(crate) words_max: usize,
}

/// For statements of the maximum depth.
const LARGE: Stack = Stack { bytes: 256 << 20, words_max: WORDS_MAX };

/// For short statements.
const SMALL: Stack = Stack { bytes: 32 << 20, words_max: WORDS_ON_ANY_STACK };

impl Stack {
    /// The largest stacks that fit in this process's address space.
    pub(crate) fn that_fits() -> Self {
        match meminfo::address_bytes_max() {
            Some(bytes) if bytes < ADDRESSES_MIN => SMALL,
            _ => LARGE,
        }
    }
}
