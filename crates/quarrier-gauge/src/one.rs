//! One measurement by its name, for pairing with another program.

use crate::conditions::nodes;
use crate::cpu::{self, Isa, Lane};
use crate::error::{Error, Result};
use crate::memory;
use crate::named::{size, threads, unknown, word};
use crate::reading::{Area, Parameters};
use crate::trial::Session;
use crate::{disk, network};

/// Measures `measurement` of `area` with `parameters`, named as in a [`crate::Reading`]; missing
/// parameters take the first value of a full report.
///
/// # Errors
/// If the measurement or a parameter's value is unknown, or the measurement fails.
pub fn measure_one(
    session: &mut Session<'_>,
    area: Area,
    measurement: &str,
    parameters: &Parameters,
) -> Result<()> {
    match (area, measurement) {
        (Area::Cpu, "dependent add") => cpu::measure_clock(session),
        (Area::Cpu, "multiply-add" | "add") => {
            let kind = if measurement == "add" { "i64" } else { "f64" };
            let lane = word(parameters, "type", kind, Lane::of)?;
            let isa = word(parameters, "isa", Isa::best().name(), Isa::of)?;
            cpu::measure_peak(session, isa, lane, threads(parameters))
        }
        (Area::Cpu, "matrix product") => {
            let lane = word(parameters, "type", "f64", Lane::of)?;
            let order = size(parameters, "order", 1024);
            cpu::measure_product(session, lane, order, threads(parameters))
        }
        (Area::Memory, "latency") => {
            let pages = word(parameters, "pages", "small", memory::PageKind::of)?;
            memory::measure_latency(session, size(parameters, "block_bytes", 64 << 20), pages)
        }
        (Area::Memory, "block read" | "block write") => {
            let access = word(parameters, "access", "random", memory::Access::of)?;
            let block_bytes = size(parameters, "block_bytes", 4096);
            let writes = measurement == "block write";
            memory::measure_blocks(session, writes, access, block_bytes, threads(parameters))
        }
        (Area::Memory, "loads in flight" | "latency under load" | "core to core")
        | (Area::Memory, "node latency" | "node read") => shared(session, measurement, parameters),
        (Area::Memory, name) => {
            let beyond_caches_bytes = memory::beyond_caches_bytes(session);
            let sweep = memory::Sweep {
                operation: memory::Operation::of(name).ok_or_else(|| unknown(area, name))?,
                bytes: size(parameters, "block_bytes", beyond_caches_bytes),
                threads: threads(parameters),
                stores: word(parameters, "stores", "ordinary", memory::Stores::of)?,
                pages: word(parameters, "pages", "small", memory::PageKind::of)?,
                isa: word(parameters, "isa", Isa::best().name(), Isa::of)?,
            };
            // Use the instructions of the sweeps if the caller names none.
            let is_open = parameters.get("isa").is_none() && sweep.bytes >= beyond_caches_bytes;
            let sweep = if is_open { sweep.beyond_caches(sweep.bytes) } else { sweep };
            memory::measure_stream(session, sweep)
        }
        (Area::Disk, _) => disk::measure_named(session, measurement, parameters),
        (Area::Network, _) => network::measure_named(session, measurement, parameters),
        _ => Err(unknown(area, measurement)),
    }
}

/// Measures what cores share: the requests that one can have in flight, lines, and the memory that the
/// others or another node use.
fn shared(session: &mut Session<'_>, measurement: &str, parameters: &Parameters) -> Result<()> {
    let pages = word(parameters, "pages", "huge", memory::PageKind::of)?;
    let bytes = size(parameters, "block_bytes", memory::beyond_caches_bytes(session));
    match measurement {
        "loads in flight" => {
            memory::measure_chains(session, bytes, pages, &[size(parameters, "chains", 1)])
        }
        "latency under load" => {
            let threads = size(parameters, "threads", session.team.cpus());
            let pause = parameters.integer("pause_ns").unwrap_or(0);
            memory::measure_loaded(session, bytes, pages, threads, &[pause])
        }
        "core to core" => {
            let cpus = session.team.cpu_numbers().to_vec();
            let cpu = |name, place: usize| {
                size(parameters, name, cpus.get(place).copied().unwrap_or_default())
            };
            memory::measure_transfer(session, cpu("from_cpu", 0), cpu("to_cpu", 1))
        }
        _ => {
            let nodes = nodes(session.team.cpu_numbers());
            let node = |name: &str| {
                let number = parameters.integer(name).unwrap_or(0);
                let found = nodes.iter().find(|node| u64::from(node.number) == number);
                found.ok_or_else(|| Error::BadRequest(format!("there is no node {number}")))
            };
            let way = memory::Way { from: node("from_node")?, to: node("to_node")? };
            memory::measure_nodes(session, bytes, way)
        }
    }
}
