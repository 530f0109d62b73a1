//! The latency of dependent loads, over working sets of 4 KiB to 1 GiB.

use super::pages::{NO_HUGE_PAGES, PageKind};
use super::ring::Ring;
use crate::error::Result;
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session};

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
    let given = rings[0].pages().kind();
    let steps = rings[0].steps_in(session.effort.trial)?;
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
