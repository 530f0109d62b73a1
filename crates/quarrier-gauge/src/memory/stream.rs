//! Arrays that are read, written, copied and computed with, from one end to the other.
//!
//! Copy, scale, add and triad count bytes as the benchmark STREAM does. Each thread has a part of
//! each array, which it touched first.

use std::time::{Duration, Instant};

use super::arch::{self, Arrays, STEP_BYTES};
use super::pages::{NO_HUGE_PAGES, PageKind, Pages};
use super::{Operation, Stores};
use crate::error::{Error, Result};
use crate::processor::Isa;
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::statistics::SplitMix;
use crate::trial::{Needs, Session, ThreadWork};

/// Arrays must not begin at the same offset of a page, or a processor mistakes a load for one that must
/// wait for a store. The distance is a page and a bit, as between static arrays: with the page, triad
/// is a tenth faster than with the bit alone (Zen 4, huge pages), since it uses other banks of the
/// memory.
const STAGGER_BYTES: usize = 4096 + 1024;

/// The minimum part of an array for a thread, in bytes.
const PART_MIN_BYTES: usize = 4 * STEP_BYTES;

/// Numbers compared after each trial.
const SAMPLES: usize = 1_024;

/// One way to run over arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// The operation.
    pub operation: Operation,
    /// Size of each array in bytes, over all threads; at least 2 KiB per thread.
    pub bytes: usize,
    /// The number of threads that share the work.
    pub threads: usize,
    /// The type of stores.
    pub stores: Stores,
    /// The type of the arrays' pages.
    pub pages: PageKind,
    /// The instruction set.
    pub isa: Isa,
}

impl Sweep {
    /// Creates a sweep with ordinary stores over huge pages, with the widest instructions. The caller
    /// has to set the size.
    pub fn new(operation: Operation, threads: usize) -> Sweep {
        let (stores, pages) = (Stores::Ordinary, PageKind::Huge);
        Sweep { operation, bytes: 0, threads, stores, pages, isa: Isa::best() }
    }

    /// The same sweep over arrays of `bytes` bytes in main memory. Ordinary stores then have at most
    /// 256 bits: add reached 0.95 of plain C that way, and 0.83 with 512 bits (a core of Zen 4).
    #[must_use]
    pub fn beyond_caches(mut self, bytes: usize) -> Sweep {
        let is_narrow = self.operation.writes() && self.stores == Stores::Ordinary;
        let fits = |isa: &Isa| !(is_narrow && *isa == Isa::Avx512);
        self.isa = Isa::available().filter(fits).last().unwrap_or(Isa::Portable);
        self.bytes = bytes;
        self
    }

    fn subject(&self) -> Subject {
        let mut parameters =
            Parameters::new().with("threads", self.threads).with("block_bytes", self.bytes);
        parameters = parameters.with("access", "sequential");
        if self.operation.writes() {
            parameters = parameters.with("stores", self.stores.name());
        }
        parameters = parameters.with("pages", self.pages.name()).with("isa", self.isa.name());
        Subject::new(Area::Memory, self.operation.name(), parameters, Unit::BytesPerSecond)
    }
}

/// A thread's part of the arrays.
struct Part {
    arrays: Arrays,
    sweep: Sweep,
    /// The expected result of [`Operation::Read`].
    sum: u64,
    pages: Pages,
}

// SAFETY: the pointers lead into `pages`, which this value owns and which may move to another
// thread.
unsafe impl Send for Part {}

impl Part {
    fn new(sweep: &Sweep, thread: usize) -> Result<Part> {
        let bytes = sweep.bytes / sweep.threads / PART_MIN_BYTES * PART_MIN_BYTES;
        if bytes == 0 {
            return Err(Error::BadRequest(format!(
                "{} bytes are too few for {} threads; give each {PART_MIN_BYTES}",
                sweep.bytes, sweep.threads
            )));
        }
        let place = bytes.next_multiple_of(4096) + STAGGER_BYTES;
        let mut pages = Pages::new(place * sweep.operation.arrays(), sweep.pages)?;
        let mut random = SplitMix(thread as u64);
        // Integers from 1 on make all results exact, in any order.
        pages.words().fill_with(|| ((random.next() >> 44) as f64 + 1.0).to_bits());
        let base = pages.as_mut_ptr();
        let array =
            |index: usize| base.wrapping_add(index.min(sweep.operation.arrays() - 1) * place);
        let first = usize::from(sweep.operation.writes());
        let arrays = Arrays {
            target: array(0).cast(),
            left: array(first).cast_const().cast(),
            right: array(first + 1).cast_const().cast(),
            bytes,
        };
        let mut part = Part { arrays, sweep: *sweep, sum: 0, pages };
        part.sum = part
            .numbers(arrays.left)
            .iter()
            .fold(0, |sum, number| sum.wrapping_add(number.to_bits()));
        Ok(part)
    }

    fn numbers(&self, array: *const f64) -> &[f64] {
        // SAFETY: callers pass a pointer of `arrays`. `new` made each of them lead to `bytes` bytes
        // within `pages`, aligned to 64 bytes and initialised by `words`. `pages` lives as long as
        // `self`, and writes need `&mut self`.
        unsafe { std::slice::from_raw_parts(array, self.arrays.bytes / 8) }
    }

    /// Runs over the arrays `times` times.
    fn work(&mut self, times: u32) -> Result<ThreadWork> {
        let Sweep { isa, operation, stores, .. } = self.sweep;
        let mut sum = 0_u64;
        for _ in 0..times {
            // SAFETY: `new` made arrays of `bytes` bytes within `pages`, aligned to 64 bytes, and
            // distinct where the operation writes; `bytes` is a multiple of four steps and not 0.
            // `&mut self` excludes other accesses. `measure` has checked that `isa` is available.
            let once = unsafe { arch::run(isa, operation, stores, self.arrays) };
            sum = sum.wrapping_add(once);
        }
        let expected = self.sum.wrapping_mul(u64::from(times));
        if !self.sweep.operation.writes() && sum != expected {
            let reason = format!("a sum of {sum} instead of {expected}");
            return Err(Error::wrong(self.sweep.operation.name(), reason));
        }
        let bytes = self.sweep.operation.arrays() * self.arrays.bytes;
        Ok(ThreadWork { units: bytes as f64 * f64::from(times), check: sum })
    }

    /// The indices of the samples: both ends, and equal steps between.
    fn samples(&self) -> impl Iterator<Item = usize> + use<> {
        let last = self.arrays.bytes / 8 - 1;
        (0..SAMPLES).map(move |index| last * index / (SAMPLES - 1))
    }

    /// Makes the samples of the target wrong.
    fn spoil(&mut self) {
        if self.sweep.operation.writes() {
            for index in self.samples() {
                // SAFETY: `index` is less than the length of the target, which `&mut self` borrows
                // alone.
                unsafe { self.arrays.target.add(index).write(f64::NAN) };
            }
        }
    }

    /// Compares the samples of the target with the expected values.
    fn check(&self, places: impl Iterator<Item = usize>) -> Result<()> {
        if !self.sweep.operation.writes() {
            return Ok(());
        }
        let target = self.numbers(self.arrays.target);
        let (left, right) = (self.numbers(self.arrays.left), self.numbers(self.arrays.right));
        for index in places {
            let expected = self.sweep.operation.of_one(left[index], right[index]);
            if target[index] != expected {
                let reason = format!("number {index}: {} instead of {expected}", target[index]);
                return Err(Error::wrong(self.sweep.operation.name(), reason));
            }
        }
        Ok(())
    }
}

/// Measures one sweep. If streaming stores do not exist, ordinary ones are used, and the reading says
/// so.
///
/// # Errors
/// If memory is too small, a number is wrong, or the caller stops the run.
pub fn measure(session: &mut Session<'_>, sweep: Sweep) -> Result<()> {
    if !sweep.isa.is_available() {
        let name = sweep.isa.name();
        return Err(Error::BadRequest(format!("{name} is not available on this machine")));
    }
    if !session.wants(&sweep.subject()) {
        return Ok(());
    }
    let mut parts = session.team.prepare(sweep.threads, |thread| Part::new(&sweep, thread))?;
    let times = times_in(session.effort.trial, &mut parts[0], sweep.threads)?;
    for part in &mut parts {
        part.spoil();
        part.work(1)?;
        part.check(0..part.arrays.bytes / 8)?;
    }
    let mut runs = session.runs(sweep.subject(), Needs::Cpu, |team| {
        parts.iter_mut().for_each(Part::spoil);
        let trial = team.run(&mut parts, |_, part| part.work(times))?;
        for part in &parts {
            part.check(part.samples())?;
        }
        Ok(trial)
    })?;
    runs.notes.extend(notes(&sweep, &parts));
    runs.notes.extend(small_arrays(session, &sweep));
    session.push(runs);
    Ok(())
}

fn notes(sweep: &Sweep, parts: &[Part]) -> Vec<String> {
    let mut notes = Vec::new();
    let streaming = sweep.stores == Stores::Streaming;
    if streaming && !arch::has_streaming_stores(sweep.isa) {
        notes.push("no streaming stores here: ordinary ones".to_owned());
    }
    let is_small = parts.iter().any(|part| part.pages.kind() == PageKind::Small);
    if sweep.pages == PageKind::Huge && is_small && sweep.bytes >= sweep.threads << 21 {
        notes.push(NO_HUGE_PAGES.to_owned());
    }
    let arrays = sweep.operation.arrays();
    if sweep.operation.writes() && !streaming {
        notes.push(format!(
            "beyond the caches, {} bytes move for each {arrays} counted",
            arrays + 1
        ));
    }
    notes
}

/// Why these arrays are smaller than they should be beyond the caches, if memory does not suffice.
fn small_arrays(session: &Session<'_>, sweep: &Sweep) -> Option<String> {
    let is_small = session.beyond_caches_bytes < crate::array_bytes::wanted_bytes(&session.machine);
    (is_small && sweep.bytes == session.beyond_caches_bytes).then(|| {
        "too little memory for arrays beyond the caches: the caches hold a part of them".to_owned()
    })
}

/// Returns how many passes over a part take about `time`, if all threads run.
fn times_in(time: Duration, part: &mut Part, threads: usize) -> Result<u32> {
    part.work(1)?;
    let start = Instant::now();
    let mut tried = 0;
    while start.elapsed() < Duration::from_micros(500) {
        part.work(1)?;
        tried += 1;
    }
    let each = start.elapsed().as_secs_f64() / f64::from(tried);
    let sharing = threads.div_ceil(crate::trial::Team::here()?.cpus()) as f64;
    Ok(((time.as_secs_f64() / each / sharing) as u32).max(1))
}
