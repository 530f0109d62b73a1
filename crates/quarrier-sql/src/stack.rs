//! The stacks of the threads that read and answer statements.

use quarrier_core::meminfo;
use quarrier_sql::{WORDS_MAX, WORDS_ON_ANY_STACK};

/// Within fewer addresses, large stacks do not fit.
const ADDRESSES_MIN: u64 = 2 << 30;

/// How large stacks are, and what may be asked on them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    pub(crate) bytes: usize,
    /// The most words of a text: as deep as they may nest, so deep goes the stack.
    pub(crate) words_max: usize,
}

/// For statements that nest as deep as they may.
const LARGE: Stack = Stack { bytes: 256 << 20, words_max: WORDS_MAX };

/// For short statements.
const SMALL: Stack = Stack { bytes: 32 << 20, words_max: WORDS_ON_ANY_STACK };

impl Stack {
    /// The stacks that fit within this process's limits of memory.
    pub(crate) fn that_fits() -> Self {
        match meminfo::address_bytes_max() {
            Some(bytes) if bytes < ADDRESSES_MIN => SMALL,
            _ => LARGE,
        }
    }
}
