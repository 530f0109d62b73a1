//! Blocks of 1 byte to 1 GiB of a large array, in order or at random: the memory accesses of a
//! program that does not read sequentially.
//!
//! Every word of the array is its own index, so that the starts of blocks determine the expected
//! sum.

use std::time::{Duration, Instant};

use super::arch::{self, Arrays, STEP_BYTES};
use super::pages::{NO_HUGE_PAGES, PageKind, Pages};
use super::{Operation, Stores};
use crate::error::{Error, Result};
use crate::processor::Isa;
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, ThreadWork};

/// Bytes of a thread's array, unless a block is larger.
const ARRAY_BYTES: usize = 128 << 20;

/// The order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// In order.
    Sequential,
    /// Random blocks, without waiting for the preceding access.
    Random,
}

impl Access {
    /// Both orders.
    pub const ALL: [Access; 2] = [Access::Sequential, Access::Random];

    /// The value of a reading's parameter.
    pub fn name(self) -> &'static str {
        match self {
            Access::Sequential => "sequential",
            Access::Random => "random",
        }
    }

    /// Parses the parameter's value.
    pub fn of(name: &str) -> Option<Access> {
        Access::ALL.into_iter().find(|access| access.name() == name)
    }

    /// Returns the `index`-th of `blocks` blocks, a power of two.
    #[inline(always)]
    fn block(self, index: u64, blocks: u64) -> u64 {
        let place = match self {
            Access::Sequential => index,
            Access::Random => {
                let mixed = (index ^ (index >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
            }
        };
        place & (blocks - 1)
    }
}

/// A thread's array.
struct Field {
    pages: Pages,
    access: Access,
    block_bytes: usize,
    blocks: u64,
    isa: Isa,
    /// The number of blocks processed so far; the next trial continues there.
    next: u64,
}

/// The memory that `measure` needs, in bytes.
pub(super) fn needed_bytes(block_bytes: usize, threads: usize) -> u64 {
    (block_bytes.max(ARRAY_BYTES) * threads) as u64
}

impl Field {
    fn new(access: Access, block_bytes: usize) -> Result<Field> {
        if !block_bytes.is_power_of_two() {
            return Err(Error::BadRequest(format!(
                "blocks of {block_bytes} bytes are not measured; use a power of two"
            )));
        }
        let bytes = block_bytes.max(ARRAY_BYTES);
        let mut pages = Pages::new(bytes, PageKind::Huge)?;
        for (number, word) in pages.words().iter_mut().enumerate() {
            *word = number as u64;
        }
        let blocks = (bytes / block_bytes) as u64;
        Ok(Field { pages, access, block_bytes, blocks, isa: Isa::best(), next: 0 })
    }

    /// The offset of the `index`-th block in bytes.
    #[inline(always)]
    fn start(&self, index: u64) -> usize {
        self.access.block(index, self.blocks) as usize * self.block_bytes
    }

    fn done(&mut self, count: u64, check: u64) -> ThreadWork {
        self.next += count;
        ThreadWork { units: count as f64 * self.block_bytes as f64, check }
    }

    /// Sums up `count` blocks, and checks the sum.
    fn read(&mut self, count: u64) -> Result<ThreadWork> {
        let (sum, expected) = match self.block_bytes {
            1..8 => (self.read_bytes(count), None),
            8..STEP_BYTES => self.read_words(count),
            _ => self.read_vectors(count),
        };
        if expected.is_some_and(|expected| expected != sum) {
            return Err(Error::wrong("block read", format!("{sum} instead of {expected:?}")));
        }
        Ok(self.done(count, sum))
    }

    /// Sums up the bytes of `count` blocks, with one load for each byte.
    fn read_bytes(&self, count: u64) -> u64 {
        let base = self.pages.as_mut_ptr().cast_const();
        let mut sum = 0_u64;
        for index in self.next..self.next + count {
            let start = self.start(index);
            for place in start..start + self.block_bytes {
                // SAFETY: `place` lies in a block, and thus in the array of `pages`. A volatile
                // read makes each byte a separate load.
                sum = sum.wrapping_add(u64::from(unsafe { base.add(place).read_volatile() }));
            }
        }
        sum
    }

    /// Computes the expected result of [`Field::read_bytes`].
    fn expected_bytes(&self, first: u64, count: u64) -> u64 {
        (first..first + count)
            .flat_map(|index| self.start(index)..self.start(index) + self.block_bytes)
            .map(|place| u64::from(((place / 8) as u64).to_ne_bytes()[place % 8]))
            .sum()
    }

    /// Sums up the words of `count` blocks; returns the sum and the expected one.
    fn read_words(&self, count: u64) -> (u64, Option<u64>) {
        let base = self.pages.as_mut_ptr().cast::<u64>().cast_const();
        let words = self.block_bytes / 8;
        let (mut sum, mut starts) = (0_u64, 0_u64);
        for index in self.next..self.next + count {
            let start = self.start(index) / 8;
            starts = starts.wrapping_add(start as u64);
            for word in start..start + words {
                // SAFETY: `word` lies in a block, and thus in the array of `pages`, which begins on
                // a page, so that its words are aligned. A volatile read makes each word a load of
                // its own.
                sum = sum.wrapping_add(unsafe { base.add(word).read_volatile() });
            }
        }
        (sum, Some(self.expected_words(starts, count)))
    }

    /// Sums up blocks of whole steps with the widest loads.
    fn read_vectors(&self, count: u64) -> (u64, Option<u64>) {
        let (mut sum, mut starts) = (0_u64, 0_u64);
        for index in self.next..self.next + count {
            let start = self.start(index);
            starts = starts.wrapping_add(start as u64 / 8);
            // SAFETY: the block lies in the array at a multiple of its own size, which is a multiple of
            // a step; the array begins on a page, so the block is aligned to 64 bytes. The array
            // belongs to this value, which is borrowed, so nobody writes to it. `Isa::best` is
            // available.
            let block = unsafe {
                arch::run(self.isa, Operation::Read, Stores::Ordinary, self.arrays(start))
            };
            sum = sum.wrapping_add(block);
        }
        (sum, Some(self.expected_words(starts, count)))
    }

    /// Computes the sum over blocks whose first words add up to `starts`.
    fn expected_words(&self, starts: u64, count: u64) -> u64 {
        let words = self.block_bytes as u64 / 8;
        let within = words * (words - 1) / 2;
        words.wrapping_mul(starts).wrapping_add(count.wrapping_mul(within))
    }

    fn arrays(&self, start: usize) -> Arrays {
        let block = self.pages.as_mut_ptr().wrapping_add(start);
        let array = block.cast_const().cast();
        Arrays { target: block.cast(), left: array, right: array, bytes: self.block_bytes }
    }

    /// Fills `count` blocks.
    fn write(&mut self, count: u64) -> ThreadWork {
        let base = self.pages.as_mut_ptr();
        let pattern = super::WRITTEN.to_bits();
        for index in self.next..self.next + count {
            let start = self.start(index);
            // SAFETY: the block lies in the array at a multiple of its own size, which is a
            // multiple of a step in the last arm; the array begins on a page, so that words and
            // blocks of whole steps are aligned. The array belongs to this value, which is borrowed
            // mutably, so that nobody else accesses it. `Isa::best` is available. Volatile writes
            // keep the stores separate.
            unsafe {
                match self.block_bytes {
                    1..8 => {
                        for place in start..start + self.block_bytes {
                            base.add(place).write_volatile(pattern.to_ne_bytes()[place % 8]);
                        }
                    }
                    8..STEP_BYTES => {
                        let words = base.cast::<u64>();
                        for word in start / 8..(start + self.block_bytes) / 8 {
                            words.add(word).write_volatile(pattern);
                        }
                    }
                    _ => {
                        arch::run(self.isa, Operation::Write, Stores::Ordinary, self.arrays(start));
                    }
                }
            }
        }
        self.done(count, 0)
    }

    /// Reads back the blocks written since `first`, at most the last 1,024.
    fn check_written(&mut self, first: u64) -> Result<()> {
        let pattern = super::WRITTEN.to_bits().to_ne_bytes();
        let from = first.max(self.next.saturating_sub(1_024));
        for index in from..self.next {
            let start = self.start(index);
            for place in [start, start + self.block_bytes / 2, start + self.block_bytes - 1] {
                // SAFETY: `place` lies in a block, and thus in the array of `pages`.
                let found = unsafe { self.pages.as_mut_ptr().add(place).read() };
                if found != pattern[place % 8] {
                    let reason = format!("byte {place}: {found} instead of {}", pattern[place % 8]);
                    return Err(Error::wrong("block write", reason));
                }
            }
        }
        Ok(())
    }
}

/// Measures blocks of `block_bytes` bytes, a power of two. Each of `threads` threads reads (sums up) or
/// writes (fills) blocks in its own array.
///
/// # Errors
/// If memory is too small, a sum is wrong, or the caller stops the run.
pub fn measure(
    session: &mut Session<'_>,
    writes: bool,
    access: Access,
    block_bytes: usize,
    threads: usize,
) -> Result<()> {
    let name = if writes { "block write" } else { "block read" };
    let parameters = Parameters::new()
        .with("threads", threads)
        .with("block_bytes", block_bytes)
        .with("access", access.name())
        .with("pages", PageKind::Huge.name());
    let subject = Subject::new(Area::Memory, name, parameters, Unit::BytesPerSecond);
    if !session.wants(&subject) {
        return Ok(());
    }
    let mut fields = session.team.prepare(threads, |_| Field::new(access, block_bytes))?;
    let count = count_in(session.effort.trial, &mut fields[0], writes)?;
    let mut runs =
        session.runs(subject, Needs::Cpu, |team| {
            let firsts: Vec<u64> = fields.iter().map(|field| field.next).collect();
            let trial = team.run(&mut fields, |_, field| {
                if writes { Ok(field.write(count)) } else { field.read(count) }
            })?;
            for ((field, first), &check) in fields.iter_mut().zip(firsts).zip(&trial.checks) {
                if writes {
                    field.check_written(first)?;
                } else if block_bytes < 8 && field.expected_bytes(first, count) != check {
                    return Err(Error::wrong(name, "the sum of the bytes is wrong"));
                }
            }
            Ok(trial)
        })?;
    if fields.iter().any(|field| field.pages.kind() == PageKind::Small) {
        runs.notes.push(NO_HUGE_PAGES.to_owned());
    }
    session.push(runs);
    Ok(())
}

/// Returns the number of blocks that take about `time`.
fn count_in(time: Duration, field: &mut Field, writes: bool) -> Result<u64> {
    let mut count = 1;
    loop {
        let start = Instant::now();
        if writes {
            field.write(count);
        } else {
            field.read(count)?;
        }
        let took = start.elapsed();
        if took > time / 8 || took > Duration::from_millis(5) {
            let each = took.as_secs_f64() / count as f64;
            return Ok(((time.as_secs_f64() / each) as u64).max(1));
        }
        count *= 2;
    }
}
