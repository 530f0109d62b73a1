//! Chooses the place of the next block.

use crate::statistics::SplitMix;

use super::job::Order;

/// The offsets of a thread's blocks: in order, or each once in random order. After the last block it
/// starts over, unless [`Places::once`] forbids it.
pub(super) struct Places {
    order: Order,
    first: u64,
    /// The distance between two neighbouring places.
    step: u64,
    blocks: u64,
    next: u64,
    key: u64,
    once: bool,
}

impl Places {
    /// Creates the offsets of thread `thread` of `threads` in a file of `bytes`: each thread has its
    /// own part. If a part has no block, the file is too small.
    pub(super) fn of(
        order: Order,
        block_bytes: usize,
        bytes: u64,
        thread: usize,
        threads: usize,
    ) -> Option<Places> {
        let block_bytes = block_bytes as u64;
        let blocks = bytes / block_bytes / threads as u64;
        let first = blocks * block_bytes * thread as u64;
        let key = SplitMix(thread as u64).next();
        let step = block_bytes;
        let places = Places { order, first, step, blocks, next: 0, key, once: false };
        (blocks > 0).then_some(places)
    }

    /// Creates the offsets of thread `thread` of `threads` that write or read a file of `bytes` together,
    /// in order: each takes every `threads`-th block. If there are fewer blocks, the file is too small.
    pub(super) fn together(
        block_bytes: usize,
        bytes: u64,
        thread: usize,
        threads: usize,
    ) -> Option<Places> {
        let (block_bytes, threads) = (block_bytes as u64, threads as u64);
        let blocks = bytes / block_bytes / threads;
        let (first, step) = (block_bytes * thread as u64, block_bytes * threads);
        let order = Order::Sequential;
        let places = Places { order, first, step, blocks, next: 0, key: 0, once: false };
        (blocks > 0).then_some(places)
    }

    /// Starts over, and visits each block only once: a second read would hit the page cache.
    pub(super) fn once(&mut self) {
        self.once = true;
        self.next = 0;
        self.key = SplitMix(self.key).next();
    }

    /// Returns the offset of the next block.
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.next == self.blocks {
            if self.once {
                return None;
            }
            self.next = 0;
            self.key = SplitMix(self.key).next();
        }
        let index = match self.order {
            Order::Sequential => self.next,
            Order::Random => shuffled(self.next, self.blocks, self.key),
        };
        self.next += 1;
        Some(self.first + index * self.step)
    }
}

/// Permutes `index` within `0..count` at random, without a table: four rounds of a Feistel network
/// over the next even number of bits, repeated while the result is outside.
fn shuffled(index: u64, count: u64, key: u64) -> u64 {
    let half_bits = (64 - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half_bits) - 1;
    let mut value = index;
    loop {
        let (mut left, mut right) = (value >> half_bits, value & mask);
        for round in 0..4 {
            let mut word = (right + round) ^ key;
            word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
            (left, right) = (right, left ^ ((word ^ (word >> 32)) & mask));
        }
        value = left << half_bits | right;
        if value < count {
            return value;
        }
    }
}
