//! The fuel that the candidates of a stride share.

use super::STRIDE_BYTES;

/// Fuel of a candidate in each attempt, in bytes.
pub(super) const FUEL_BYTES: [u64; 4] = [64 << 10, 64 << 20, 1 << 30, u64::MAX];
/// Fuel of all candidates of a stride in each attempt; but at least the fuel of one candidate.
const STRIDE_FUEL_BYTES: u64 = 256 << 20;
/// Minimum cost of a candidate in bytes of fuel, for examining and storing it.
pub(super) const CANDIDATE_BYTES: u64 = 64;
/// Fuel of a stride's second look at candidates for which the first did not suffice. A part of a
/// stride gets its share by bytes.
const AGAIN_BYTES: u64 = 512 << 20;
/// Maximum number of candidates of a stride without fuel whose first bytes are kept.
const HEADERS_MAX: u32 = 256;

/// The remaining fuel. It carries over from part to part of a stride, so that a stride with very many
/// candidates costs no more than one with few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Fuel by attempt, in bytes.
    pub fuel_bytes: [u64; 4],
    /// The number of candidates whose first bytes may still be kept, though no fuel is left for them.
    pub headers_left: u32,
}

impl Allowance {
    /// The allowance of a stride that has not begun.
    pub(super) const WHOLE: Allowance = Allowance {
        fuel_bytes: [STRIDE_FUEL_BYTES, 2 * STRIDE_FUEL_BYTES, FUEL_BYTES[2], FUEL_BYTES[3]],
        headers_left: HEADERS_MAX,
    };

    /// Returns the fuel of a candidate in an attempt.
    pub(super) fn of(&self, attempt: usize) -> u64 {
        FUEL_BYTES[attempt].min(self.fuel_bytes[attempt])
    }

    /// Subtracts the cost of an attempt. A candidate that used all its fuel without coming to an
    /// end gets no further attempt.
    pub(super) fn pay(&mut self, attempt: usize, bytes: u64) {
        let is_last = attempt + 1 == FUEL_BYTES.len();
        let left = self.fuel_bytes[attempt].saturating_sub(bytes.max(CANDIDATE_BYTES));
        self.fuel_bytes[attempt] = if is_last { 0 } else { left };
    }

    /// Returns whether the first bytes of one more candidate without fuel are kept.
    pub(super) fn keeps_one_more(&mut self) -> bool {
        let keeps = self.headers_left > 0;
        self.headers_left = self.headers_left.saturating_sub(1);
        keeps
    }
}

/// Returns the fuel of the second look at the candidates of `bytes` bytes, a stride or a part of
/// one.
pub(super) fn again_bytes(bytes: u64, is_whole: bool) -> u64 {
    if is_whole { AGAIN_BYTES } else { AGAIN_BYTES / STRIDE_BYTES * bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_look_has_a_minimum_cost_and_a_full_read_happens_once() {
        let mut left = Allowance::WHOLE;
        left.pay(0, 1);
        assert_eq!(left.fuel_bytes[0], STRIDE_FUEL_BYTES - CANDIDATE_BYTES);
        assert_eq!(left.of(0), FUEL_BYTES[0]);
        left.pay(3, 1 << 40);
        assert_eq!(left.of(3), 0);
    }
}
