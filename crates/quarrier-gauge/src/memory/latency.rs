//! The latency of dependent loads, over working sets of 4 KiB to 1 GiB.
//!
//! Each line of the working set holds the address of the next one, in a single ring through all lines,
//! in an order that no prefetcher can guess. The order is computed, so the end of a walk is known
//! without walking it.

use std::time::{Duration, Instant};

use super::pages::{NO_HUGE_PAGES, PageKind, Pages};
use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, ThreadWork};

/// The size of a cache line in bytes.
const LINE_BYTES: usize = 64;

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

/// The ring in memory, and the walker's position.
struct Ring {
    pages: Pages,
    order: Order,
    state: u64,
}

impl Ring {
    /// Makes a ring through `bytes` bytes, a power of two of at least two lines.
    fn new(bytes: usize, kind: PageKind) -> Result<Ring> {
        let lines = bytes / LINE_BYTES;
        if !bytes.is_power_of_two() || lines < 2 {
            return Err(Error::BadRequest(format!(
                "a working set of {bytes} bytes cannot be walked; use a power of two from 128 on"
            )));
        }
        let order = Order::new(lines.trailing_zeros());
        let mut pages = Pages::new(bytes, kind)?;
        let base = pages.as_mut_ptr().expose_provenance() as u64;
        let words = pages.words();
        // Touch the pages in address order, so that the kernel allocates them in that order.
        words.fill(0);
        let mut state = 0;
        for _ in 0..lines {
            let next = order.next(state);
            let place = order.line(state) as usize * LINE_BYTES / 8;
            words[place] = base + order.line(next) * LINE_BYTES as u64;
            state = next;
        }
        Ok(Ring { pages, order, state: 0 })
    }

    /// Follows `steps` loads and checks where they end.
    fn walk(&mut self, steps: u64) -> Result<ThreadWork> {
        let base = self.pages.as_mut_ptr();
        let offset = self.order.line(self.state) as usize * LINE_BYTES;
        let mut at = base.wrapping_add(offset).cast::<u64>().cast_const();
        for _ in 0..steps / 16 {
            // SAFETY: `at` is the address of a line of the ring, and `new` has stored the address
            // of another line in the first word of each. The lines lie in `pages`, whose provenance
            // `new` has exposed, and are aligned to 64 bytes.
            at = unsafe { sixteen_loads(at) };
        }
        let walked = steps / 16 * 16;
        self.state = self.order.after(self.state, walked);
        let expected = self.order.line(self.state) as usize * LINE_BYTES;
        if at.addr() - base.addr() != expected {
            let reason = format!("byte {} instead of {expected}", at.addr() - base.addr());
            return Err(Error::wrong("latency", reason));
        }
        Ok(ThreadWork { units: walked as f64, check: expected as u64 })
    }
}

/// # Safety
/// `at` is the address of a readable, aligned word, and each word holds the address of the next
/// such word, with exposed provenance.
#[inline(always)]
unsafe fn sixteen_loads(mut at: *const u64) -> *const u64 {
    for _ in 0..16 {
        // SAFETY: the caller promises that `at` is readable and aligned, and that the word read is
        // the next such address. A volatile read keeps the compiler from removing the load.
        let next = unsafe { std::ptr::read_volatile(at) };
        at = std::ptr::with_exposed_provenance(next as usize);
    }
    at
}

/// Measures the latency of a working set of `bytes` bytes, a power of two.
///
/// # Errors
/// If memory is too small, a walk ends at a wrong place, or the caller stops the run.
pub fn measure(session: &mut Session<'_>, bytes: usize, kind: PageKind) -> Result<()> {
    let parameters = Parameters::new()
        .with("block_bytes", bytes)
        .with("access", "random")
        .with("pages", kind.name())
        .with("threads", 1);
    let subject = Subject::new(Area::Memory, "latency", parameters, Unit::Seconds);
    if !session.wants(&subject) {
        return Ok(());
    }
    let mut rings = session.team.prepare(1, |_| Ring::new(bytes, kind))?;
    let given = rings[0].pages.kind();
    let once = Instant::now();
    let lines = (bytes / LINE_BYTES) as u64;
    rings[0].walk(lines.clamp(1 << 12, 1 << 18))?;
    let steps = steps_in(session.effort.trial, once.elapsed(), lines.clamp(1 << 12, 1 << 18));
    let mut runs = session
        .runs(subject, Needs::Cpu, |team| team.run(&mut rings, |_, ring| ring.walk(steps)))?;
    if kind == PageKind::Huge && given == PageKind::Small {
        runs.notes.push(NO_HUGE_PAGES.to_owned());
    }
    if let Some(cache) = session.machine.caches.iter().find(|cache| bytes as u64 <= cache.bytes) {
        runs.notes.push(format!("fits in the cache of level {}", cache.level));
    }
    session.push(runs);
    Ok(())
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
}
