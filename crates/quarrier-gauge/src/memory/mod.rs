//! Caches and main memory: their bandwidth, and the latency of a load.

mod arch;
mod blocks;
mod chains;
mod latency;
mod loaded;
mod nodes;
mod operation;
mod pages;
mod reader;
mod ring;
mod stream;
mod transfer;

pub use blocks::{Access, measure as measure_blocks};
pub use chains::{CHAINS, measure as measure_chains};
pub use latency::measure as measure_latency;
pub use loaded::measure as measure_loaded;
pub use nodes::{Way, measure as measure_nodes};
pub use operation::{Operation, Stores};
pub use pages::PageKind;
pub use stream::{Sweep, measure as measure_stream};
pub use transfer::measure as measure_transfer;

pub(crate) use loaded::{LATENCY_UNDER_LOAD, LOAD};

use crate::Request;
use crate::conditions::{free_memory_bytes, nodes as nodes_of_machine};
use crate::error::Result;
use crate::trial::Session;

/// The value written by operations that read nothing. No byte of it is 0, since processors may treat
/// zeros specially.
pub(crate) const WRITTEN: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);

/// Size of an array that exceeds every cache by far: four times the last cache, and at least 128 MiB.
///
/// If the process may use too little memory for three such arrays, they are smaller. The rates then
/// include what the caches hold of them, and the readings say so.
pub fn beyond_caches_bytes(session: &Session<'_>) -> usize {
    session.beyond_caches_bytes
}

/// Measures the area.
///
/// # Errors
/// If a result is wrong, or the caller stops the run.
pub(crate) fn measure(request: &Request, session: &mut Session<'_>) -> Result<()> {
    if request.quick {
        return measure_quick(request, session);
    }
    for &threads in &request.threads {
        streams(session, threads)?;
    }
    // More threads than CPUs take turns; the streams above show what that costs.
    let cpus = session.team.cpus();
    for &threads in request.threads.iter().filter(|&&threads| threads <= cpus) {
        caches(session, threads)?;
        blocks(session, threads)?;
    }
    for pages in PageKind::ALL {
        for bytes in working_sets(1 << 30).filter(|&bytes| has_room(bytes)) {
            measure_latency(session, bytes, pages)?;
        }
    }
    let bytes = beyond_caches_bytes(session);
    measure_chains(session, bytes, PageKind::Huge, &CHAINS)?;
    several_cpus(session, bytes)
}

/// What only several CPUs show: the latency under load, the transfers between cores, and NUMA nodes. A quota
/// for less than two CPUs leaves nothing to measure.
fn several_cpus(session: &mut Session<'_>, bytes: usize) -> Result<()> {
    let threads = session.team.cpus();
    if threads < 2 {
        return Ok(());
    }
    measure_loaded(session, bytes, PageKind::Huge, threads, &loaded::PAUSES_NS)?;
    for (from, to) in transfer::pairs(session.team.cpu_numbers()) {
        measure_transfer(session, from, to)?;
    }
    let nodes = nodes_of_machine(session.team.cpu_numbers());
    if nodes.len() < 2 {
        return Ok(());
    }
    for from in nodes.iter().filter(|node| !node.cpus.is_empty()) {
        for to in &nodes {
            measure_nodes(session, bytes, Way { from, to })?;
        }
    }
    Ok(())
}

/// The measurements for the profile: the ceilings of main memory, and the sizes of the caches.
fn measure_quick(request: &Request, session: &mut Session<'_>) -> Result<()> {
    let bytes = beyond_caches_bytes(session);
    for &threads in &request.threads {
        for operation in [Operation::Read, Operation::ReadFour, Operation::Copy, Operation::Triad] {
            measure_stream(session, Sweep::new(operation, threads).beyond_caches(bytes))?;
        }
        let sweep = Sweep { stores: Stores::Streaming, ..Sweep::new(Operation::Copy, threads) };
        measure_stream(session, sweep.beyond_caches(bytes))?;
    }
    for bytes in [16 << 10, 512 << 10, 64 << 20].into_iter().filter(|&bytes| has_room(bytes)) {
        measure_latency(session, bytes, PageKind::Huge)?;
    }
    Ok(())
}

/// All operations beyond the caches, with both types of stores and of pages.
fn streams(session: &mut Session<'_>, threads: usize) -> Result<()> {
    let bytes = beyond_caches_bytes(session);
    for pages in PageKind::ALL {
        for operation in Operation::ALL {
            for stores in Stores::ALL {
                if operation.writes() || stores == Stores::Ordinary {
                    let sweep = Sweep { stores, pages, ..Sweep::new(operation, threads) };
                    measure_stream(session, sweep.beyond_caches(bytes))?;
                }
            }
        }
    }
    Ok(())
}

/// Reading and copying over working sets from the first cache on.
fn caches(session: &mut Session<'_>, threads: usize) -> Result<()> {
    // That size is already measured in all variants.
    let beyond = beyond_caches_bytes(session);
    let fits = |bytes: &usize| *bytes >= threads * 4096 && *bytes != beyond;
    for operation in [Operation::Read, Operation::Copy] {
        for bytes in working_sets(1 << 30).filter(fits) {
            let wanted_bytes = bytes * operation.arrays();
            if (wanted_bytes as u64) < free_memory_bytes() / 2 {
                measure_stream(session, Sweep { bytes, ..Sweep::new(operation, threads) })?;
            }
        }
    }
    Ok(())
}

/// Blocks from 1 byte to 1 GiB, in order and at random over the array.
fn blocks(session: &mut Session<'_>, threads: usize) -> Result<()> {
    for writes in [false, true] {
        for access in Access::ALL {
            for power in (0..=30).step_by(3) {
                let block_bytes = 1 << power;
                if blocks::needed_bytes(block_bytes, threads) < free_memory_bytes() / 2 {
                    measure_blocks(session, writes, access, block_bytes, threads)?;
                }
            }
        }
    }
    Ok(())
}

/// Whether this many bytes are less than half of the free memory.
fn has_room(bytes: usize) -> bool {
    let free_bytes = free_memory_bytes();
    free_bytes == 0 || (bytes as u64) < free_bytes / 2
}

/// 4 KiB, 16 KiB … up to `most_bytes`.
fn working_sets(most_bytes: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(4096), |bytes| Some(bytes * 4)).take_while(move |&b| b <= most_bytes)
}
