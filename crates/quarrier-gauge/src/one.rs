//! One measurement by its name, for pairing with another program.

use crate::cpu::{self, Isa, Lane};
use crate::error::Result;
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
