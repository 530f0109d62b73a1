//! A ring of addresses through a working set, for loads that depend on each other.
//!
//! Each line of the working set holds the address of the next one, in a single ring through all lines,
//! in an order that no prefetcher can guess. The order is computed, so the end of a walk is known
//! without walking it.

use std::time::{Duration, Instant};

use super::pages::{PageKind, Pages};
use crate::error::{Error, Result};
use crate::trial::ThreadWork;

/// The size of a cache line in bytes.
pub(super) const LINE_BYTES: usize = 64;

/// The order of the lines: a generator with the full period `2^bits`, whose numbers are mixed so
/// that the low bits are as good as the high ones.
#[derive(Clone, Copy)]
struct Order {
    mask: u64,
    half: u32,
}

impl Order {
    const FACTOR: u64 = 6_364_136_223_846_793_005;
    const SUMMAND: u64 = 1_442_695_040_888_963_407;

    fn new(bits: u32) -> Order {
        Order { mask: (1 << bits) - 1, half: bits.div_ceil(2) }
    }

    /// Returns the number after `state`.
    fn next(self, state: u64) -> u64 {
        state.wrapping_mul(Self::FACTOR).wrapping_add(Self::SUMMAND) & self.mask
    }

    /// Returns the number `steps` after `state`, by repeated squaring of the step's function.
    fn after(self, state: u64, mut steps: u64) -> u64 {
        let (mut factor, mut summand) = (Self::FACTOR, Self::SUMMAND);
        let (mut all_factor, mut all_summand) = (1_u64, 0_u64);
        while steps > 0 {
            if steps & 1 == 1 {
                all_factor = all_factor.wrapping_mul(factor);
                all_summand = all_summand.wrapping_mul(factor).wrapping_add(summand);
            }
            summand = summand.wrapping_mul(factor.wrapping_add(1));
            factor = factor.wrapping_mul(factor);
            steps >>= 1;
        }
        all_factor.wrapping_mul(state).wrapping_add(all_summand) & self.mask
    }

    /// Returns the line of a number. Each operation is invertible, so no two numbers share a line.
    fn line(self, state: u64) -> u64 {
        let mut line = state & self.mask;
        line ^= line >> self.half;
        line = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
        line ^= line >> self.half;
        line
    }
}

/// The ring in memory, and the position of a walker.
pub(super) struct Ring {
    pages: Pages,
    order: Order,
    state: u64,
}

impl Ring {
    /// Makes a ring through `bytes` bytes, a power of two of at least two lines.
    pub(super) fn new(bytes: usize, kind: PageKind) -> Result<Ring> {
        check_size(bytes)?;
        Ok(Ring::through(Pages::new(bytes, kind)?))
    }

    /// Makes a ring through pages of a size that [`check_size`] accepts. The calling thread touches
    /// them.
    pub(super) fn through(mut pages: Pages) -> Ring {
        let base = pages.as_mut_ptr().expose_provenance() as u64;
        let words = pages.words();
        let lines = words.len() * 8 / LINE_BYTES;
        let order = Order::new(lines.trailing_zeros());
        // Touch the pages in address order, so that the kernel allocates them in that order.
        words.fill(0);
        let mut state = 0;
        for _ in 0..lines {
            let next = order.next(state);
            let place = order.line(state) as usize * LINE_BYTES / 8;
            words[place] = base + order.line(next) * LINE_BYTES as u64;
            state = next;
        }
        Ring { pages, order, state: 0 }
    }

    /// The pages of the ring.
    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The number of lines.
    pub(super) fn lines(&self) -> u64 {
        self.order.mask + 1
    }

    /// The number of the line that is `lines` after the first one.
    pub(super) fn number_after(&self, lines: u64) -> u64 {
        self.order.after(0, lines)
    }

    /// Follows `steps` loads from where the last walk ended, and checks where they end.
    pub(super) fn walk(&mut self, steps: u64) -> Result<ThreadWork> {
        let mut numbers = [self.state];
        let work = self.walk_from(&mut numbers, steps)?;
        [self.state] = numbers;
        Ok(work)
    }

    /// Follows `steps` loads in each of `N` chains at once, which begin at the lines with these
    /// numbers, and checks where they end.
    pub(super) fn walk_from<const N: usize>(
        &self,
        numbers: &mut [u64; N],
        steps: u64,
    ) -> Result<ThreadWork> {
        let base = self.pages.as_mut_ptr();
        let offset = |number: u64| self.order.line(number) as usize * LINE_BYTES;
        let mut at =
            numbers.map(|number| base.wrapping_add(offset(number)).cast::<u64>().cast_const());
        for _ in 0..steps / 16 {
            // SAFETY: `at` has addresses of lines of the ring, and `through` has stored the address
            // of another line in the first word of each. The lines lie in `pages`, whose provenance
            // `through` has exposed, and are aligned to 64 bytes.
            at = unsafe { sixteen_loads(at) };
        }
        let walked = steps / 16 * 16;
        let mut check = 0;
        for (number, end) in numbers.iter_mut().zip(at) {
            *number = self.order.after(*number, walked);
            let expected = offset(*number);
            if end.addr() - base.addr() != expected {
                let reason = format!("byte {} instead of {expected}", end.addr() - base.addr());
                return Err(Error::wrong("latency", reason));
            }
            check += expected as u64;
        }
        Ok(ThreadWork { units: (walked * N as u64) as f64, check })
    }

    /// Walks for a moment, and returns the number of steps that take about `time`, a multiple of 16.
    pub(super) fn steps_in(&mut self, time: Duration) -> Result<u64> {
        let tried = self.lines().clamp(1 << 12, 1 << 18);
        let once = Instant::now();
        self.walk(tried)?;
        Ok(steps_in(time, once.elapsed(), tried))
    }
}

/// Refuses sizes that a ring cannot have.
pub(super) fn check_size(bytes: usize) -> Result<()> {
    if !bytes.is_power_of_two() || bytes < 2 * LINE_BYTES {
        return Err(Error::BadRequest(format!(
            "a working set of {bytes} bytes cannot be walked; use a power of two from 128 on"
        )));
    }
    Ok(())
}

/// Loads sixteen times in each chain.
///
/// # Safety
/// `at` has addresses of readable, aligned words, and each word holds the address of the next such
/// word, with exposed provenance.
#[inline(always)]
unsafe fn sixteen_loads<const N: usize>(mut at: [*const u64; N]) -> [*const u64; N] {
    for _ in 0..16 {
        for one in &mut at {
            // SAFETY: the caller promises that `one` is readable and aligned, and that the word read
            // is the next such address. A volatile read keeps the compiler from removing the load.
            let next = unsafe { std::ptr::read_volatile(*one) };
            *one = std::ptr::with_exposed_provenance(next as usize);
        }
    }
    at
}

/// Returns a multiple of 16 steps that takes about `time`, if `tried` steps took `took`.
fn steps_in(time: Duration, took: Duration, tried: u64) -> u64 {
    let each = took.as_secs_f64().max(1e-9) / tried as f64;
    ((time.as_secs_f64() / each) as u64).next_multiple_of(16).max(16)
}

#[cfg(test)]
mod tests {
    use super::{Order, Ring};
    use crate::memory::PageKind;

    #[test]
    fn the_order_visits_every_line_once_and_jumps_as_it_steps() {
        for bits in 1..14 {
            let order = Order::new(bits);
            let mut seen = vec![false; 1 << bits];
            let mut state = 0;
            for step in 0..1_u64 << bits {
                assert_eq!(state, order.after(0, step));
                let line = order.line(state) as usize;
                assert!(!seen[line], "line {line} twice of 2^{bits}");
                seen[line] = true;
                state = order.next(state);
            }
            assert_eq!(state, 0);
        }
    }

    #[test]
    fn a_walk_continues_where_the_last_one_ended() {
        let mut ring = Ring::new(1 << 16, PageKind::Small).unwrap();
        for steps in [16, 160, 4_096, 1_600] {
            assert_eq!(ring.walk(steps).unwrap().units, steps as f64);
        }
    }

    #[test]
    fn a_broken_ring_is_noticed() {
        let mut ring = Ring::new(1 << 12, PageKind::Small).unwrap();
        let base = ring.pages.as_mut_ptr().addr() as u64;
        let start = ring.order.line(0) as usize * 8;
        ring.pages.words()[start] = base + start as u64 * 8;
        // Half a round: after a whole one the walker would be back where it began.
        assert!(ring.walk(32).is_err());
    }

    #[test]
    fn working_sets_that_are_no_power_of_two_are_refused() {
        assert!(Ring::new(12_345, PageKind::Small).is_err());
        assert!(Ring::new(64, PageKind::Small).is_err());
    }

    #[test]
    fn chains_end_where_single_walks_end() {
        let ring = Ring::new(1 << 14, PageKind::Small).unwrap();
        let begin = [0, 64, 128, 192].map(|lines| ring.number_after(lines));
        let mut numbers = begin;
        for _ in 0..3 {
            assert_eq!(ring.walk_from(&mut numbers, 160).unwrap().units, 4.0 * 160.0);
        }
        let alone = begin.map(|number| {
            let mut one = [number];
            ring.walk_from(&mut one, 480).unwrap();
            one[0]
        });
        assert_eq!(numbers, alone);
        assert_eq!(numbers[1], ring.number_after(64 + 480));
    }
}
