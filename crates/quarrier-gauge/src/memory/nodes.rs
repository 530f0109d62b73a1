//! The memory of each NUMA node from the CPUs of each node: latency of a load, and rate of reads.

use std::time::{Duration, Instant};

use super::pages::{NO_HUGE_PAGES, PageKind, Pages};
use super::reader::{BLOCK_BYTES, Reader};
use super::ring::{Ring, check_size};
use crate::conditions::Node;
use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, ThreadWork};

/// Blocks between looks at the clock.
const BLOCKS: usize = 16;

/// Memory counts as that of a node if this share of its pages is there.
const SHARE_MIN: f64 = 0.9;

/// The names of the measurements.
const NODE_LATENCY: &str = "node latency";
const NODE_READ: &str = "node read";

/// The CPUs of one node, and the memory of one.
#[derive(Clone, Copy)]
pub struct Way<'n> {
    /// The node whose CPUs load; it has at least one.
    pub from: &'n Node,
    /// The node whose memory they load from.
    pub to: &'n Node,
}

impl Way<'_> {
    fn subject(self, name: &'static str, unit: Unit, threads: usize, bytes: usize) -> Subject {
        let access = if name == NODE_LATENCY { "random" } else { "sequential" };
        let parameters = Parameters::new()
            .with("from_node", self.from.number)
            .with("to_node", self.to.number)
            .with("block_bytes", bytes)
            .with("access", access)
            .with("pages", PageKind::Huge.name())
            .with("threads", threads);
        Subject::new(Area::Memory, name, parameters, unit)
    }

    /// The CPUs that touch the memory first: if the system refuses to bind it to a node, it places it
    /// where it is first touched.
    fn touching(&self) -> &[usize] {
        if self.to.cpus.is_empty() { &self.from.cpus } else { &self.to.cpus }
    }

    /// Untouched memory of the node; `None` if the system cannot place memory there.
    fn pages(self, bytes: usize) -> Result<Option<Pages>> {
        let pages = Pages::new(bytes, PageKind::Huge)?;
        let is_bound = pages.bind(self.to.number);
        Ok((is_bound || !self.to.cpus.is_empty()).then_some(pages))
    }

    /// Notes on touched memory that is not as requested.
    fn notes(self, pages: &Pages) -> Vec<String> {
        let mut notes = Vec::new();
        if pages.kind() == PageKind::Small {
            notes.push(NO_HUGE_PAGES.to_owned());
        }
        if pages.share_on(self.to.number).is_some_and(|share| share < SHARE_MIN) {
            notes.push(format!("a part of the memory is not on node {}", self.to.number));
        }
        notes
    }
}

/// Measures the latency of a load over `bytes` bytes of a node, a power of two, and the rate at which all
/// CPUs of the other node read them, or as many as a quota allows. Nothing is measured if the system places
/// no memory on the node.
///
/// # Errors
/// If the first node has no CPU, memory is too small, a result is wrong, or the caller stops the run.
pub fn measure(session: &mut Session<'_>, bytes: usize, way: Way<'_>) -> Result<()> {
    check_size(bytes)?;
    if way.from.cpus.is_empty() {
        let reason = format!("this process may use no CPU of node {}", way.from.number);
        return Err(Error::BadRequest(reason));
    }
    latency(session, bytes, way)?;
    let threads = way.from.cpus.len().min(session.team.cpus());
    read(session, bytes, way, threads)
}

fn latency(session: &mut Session<'_>, bytes: usize, way: Way<'_>) -> Result<()> {
    let subject = way.subject(NODE_LATENCY, Unit::Seconds, 1, bytes);
    if !session.wants(&subject) {
        return Ok(());
    }
    let made =
        session.team.prepare_on(way.touching(), 1, |_| Ok(way.pages(bytes)?.map(Ring::through)))?;
    let Some(mut rings) = made.into_iter().collect::<Option<Vec<Ring>>>() else { return Ok(()) };
    let steps = rings[0].steps_in(session.effort.trial)?;
    let mut runs = session.runs(subject, Needs::Cpu, |team| {
        team.run_on(&way.from.cpus, &mut rings, |_, ring| ring.walk(steps))
    })?;
    runs.notes.extend(way.notes(rings[0].pages()));
    session.push(runs);
    Ok(())
}

fn read(session: &mut Session<'_>, bytes: usize, way: Way<'_>, threads: usize) -> Result<()> {
    let subject = way.subject(NODE_READ, Unit::BytesPerSecond, threads, bytes);
    if !session.wants(&subject) {
        return Ok(());
    }
    let each_bytes = (bytes / threads).max(BLOCK_BYTES);
    let made = session
        .team
        .prepare_on(way.touching(), threads, |_| Ok(way.pages(each_bytes)?.map(Reader::over)))?;
    let Some(mut readers) = made.into_iter().collect::<Option<Vec<Reader>>>() else {
        return Ok(());
    };
    let time = session.effort.trial;
    let mut runs = session.runs(subject, Needs::Cpu, |team| {
        team.run_on(&way.from.cpus, &mut readers, |_, reader| read_for(reader, time))
    })?;
    runs.notes.extend(way.notes(readers[0].pages()));
    session.push(runs);
    Ok(())
}

fn read_for(reader: &mut Reader, time: Duration) -> Result<ThreadWork> {
    let start = Instant::now();
    let mut bytes = 0;
    while bytes == 0 || start.elapsed() < time {
        for _ in 0..BLOCKS {
            bytes += reader.read_block()?;
        }
    }
    Ok(ThreadWork { units: bytes as f64, check: bytes })
}
