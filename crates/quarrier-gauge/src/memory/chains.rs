//! Many loads in flight: independent chains of dependent loads, all on one core.
//!
//! A core waits for a chain, but not for each chain in turn: the rate rises with the number of chains
//! until all requests that it can have in flight are used (memory-level parallelism).

use super::pages::{NO_HUGE_PAGES, PageKind};
use super::ring::{Ring, check_size};
use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, ThreadWork};

/// The numbers of chains that can be measured.
pub const CHAINS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The name of the measurement.
const LOADS_IN_FLIGHT: &str = "loads in flight";

/// Chains through one ring, at equal distances, so that none loads what another has just loaded.
struct Chains {
    ring: Ring,
    /// The number of the line that each chain has reached.
    numbers: Vec<u64>,
}

impl Chains {
    /// Begins with `count` chains.
    fn begin(&mut self, count: usize) {
        let apart = self.ring.lines() / count as u64;
        let numbers = (0..count as u64).map(|chain| self.ring.number_after(chain * apart));
        self.numbers = numbers.collect();
    }

    fn walk(&mut self, steps: u64) -> Result<ThreadWork> {
        match self.numbers.len() {
            1 => self.walk_in::<1>(steps),
            2 => self.walk_in::<2>(steps),
            4 => self.walk_in::<4>(steps),
            8 => self.walk_in::<8>(steps),
            16 => self.walk_in::<16>(steps),
            32 => self.walk_in::<32>(steps),
            other => Err(unknown(other)),
        }
    }

    fn walk_in<const N: usize>(&mut self, steps: u64) -> Result<ThreadWork> {
        let mut numbers = [0; N];
        numbers.copy_from_slice(&self.numbers);
        let work = self.ring.walk_from(&mut numbers, steps)?;
        self.numbers.copy_from_slice(&numbers);
        Ok(work)
    }
}

fn unknown(chains: usize) -> Error {
    let known = CHAINS.map(|count| count.to_string()).join(", ");
    Error::BadRequest(format!("{chains} chains are not measured; use one of {known}"))
}

/// Measures the loads per second of each of these numbers of chains, over a working set of `bytes` bytes.
///
/// # Errors
/// If a number of chains is not one of [`CHAINS`], the size is not a power of two, memory is too small, a
/// chain ends at a wrong place, or the caller stops the run.
pub fn measure(
    session: &mut Session<'_>,
    bytes: usize,
    kind: PageKind,
    counts: &[usize],
) -> Result<()> {
    check_size(bytes)?;
    if let Some(&count) = counts.iter().find(|count| !CHAINS.contains(count)) {
        return Err(unknown(count));
    }
    let subject = |count: usize| {
        let parameters = Parameters::new()
            .with("chains", count)
            .with("block_bytes", bytes)
            .with("access", "random")
            .with("pages", kind.name())
            .with("threads", 1);
        Subject::new(Area::Memory, LOADS_IN_FLIGHT, parameters, Unit::OpPerSecond)
    };
    let wanted: Vec<usize> =
        counts.iter().copied().filter(|&count| session.wants(&subject(count))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let make = |_| Ok(Chains { ring: Ring::new(bytes, kind)?, numbers: Vec::new() });
    let mut chains = session.team.prepare(1, make)?;
    let given = chains[0].ring.pages().kind();
    // Several chains together take about as long for a step as one does.
    let steps = chains[0].ring.steps_in(session.effort.trial)?;
    for count in wanted {
        chains[0].begin(count);
        let mut runs = session.runs(subject(count), Needs::Cpu, |team| {
            team.run(&mut chains, |_, chains| chains.walk(steps))
        })?;
        if kind == PageKind::Huge && given == PageKind::Small {
            runs.notes.push(NO_HUGE_PAGES.to_owned());
        }
        session.push(runs);
    }
    Ok(())
}
