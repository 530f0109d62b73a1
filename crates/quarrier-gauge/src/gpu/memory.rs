//! The device's own memory: reads, writes, copies.

use quarrier_gpu::kernels::GAUGE;
use quarrier_gpu::{Arguments, Buffer, Job, Kernel, Queue};

use super::{Subjects, failed, repeat, timed, times_for};
use crate::error::{Error, Result};
use crate::reading::Unit;
use crate::trial::Session;

/// Size of an array, if the device has room: more than its caches hold.
const BYTES: u64 = 256 << 20;
/// An array takes at most one part in this many of the device's memory.
const SHARE: u64 = 8;
const LAUNCHES_MAX: u32 = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Copy,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Copy => "copy",
        }
    }
}

/// Two arrays on the device, and the bytes of the first.
struct Arrays {
    queue: Queue,
    from: Buffer,
    to: Buffer,
    out: Buffer,
    content: Vec<u8>,
}

pub(super) fn measure(session: &mut Session<'_>, on: &Subjects<'_>) -> Result<()> {
    let kernels = on.device.compile(&GAUGE, &[]).map_err(failed)?;
    let bytes = BYTES.min(on.device.facts().memory_bytes / SHARE) as usize & !0xFFFF;
    let mut arrays = Arrays::new(on, bytes)?;
    for operation in [Operation::Read, Operation::Write, Operation::Copy] {
        let name = format!("{}_memory", operation.name());
        let Some(kernel) = kernels.iter().find(|kernel| kernel.name() == name) else { continue };
        let once = arrays.run(on, kernel, operation, 1)?;
        let launches = times_for(session.effort.trial, once, LAUNCHES_MAX);
        // A copied byte counts twice: read and written.
        let moved = if operation == Operation::Copy { 2 * bytes } else { bytes };
        let units = moved as f64 * f64::from(launches);
        let parameters = on.parameters().with("block_bytes", bytes).with("access", "sequential");
        repeat(session, operation.name(), parameters, Unit::BytesPerSecond, || {
            Ok((units, arrays.run(on, kernel, operation, launches)?))
        })?;
    }
    Ok(())
}

impl Arrays {
    fn new(on: &Subjects<'_>, bytes: usize) -> Result<Self> {
        let mut queue = on.device.queue().map_err(failed)?;
        let content: Vec<u8> = (0..bytes / 4)
            .flat_map(|i| (i as u32).wrapping_mul(0x9E37_79B1).to_ne_bytes())
            .collect();
        let from = on.device.buffer_with(&mut queue, &content).map_err(failed)?;
        let to = on.device.buffer(bytes).map_err(failed)?;
        let words = on.groups_all() * on.items_in_order();
        let out = on.device.buffer(4 * words as usize).map_err(failed)?;
        Ok(Arrays { queue, from, to, out, content })
    }

    /// Runs over the arrays; returns the seconds by the device's clock.
    fn run(
        &mut self,
        on: &Subjects<'_>,
        kernel: &Kernel,
        operation: Operation,
        launches: u32,
    ) -> Result<f64> {
        let mut job = Job::new();
        for _ in 0..launches {
            let arguments = bind(kernel, operation, &self.from, &self.to, &self.out);
            let arguments = arguments.map_err(failed)?;
            // SAFETY: `vectors` is the number of whole 16-byte vectors in `from`, and `to` is as
            // large; the kernels limit every index of both to it. `read_memory` writes the word of
            // `out` at each work item's index, and `out` has one for each item of this launch.
            unsafe { job.launch(kernel, arguments, on.groups_all(), on.items_in_order()) };
        }
        let mut seen =
            vec![0u8; if operation == Operation::Read { self.out.bytes() } else { 4096 }];
        let result = if operation == Operation::Read { &self.out } else { &self.to };
        job.read(result, &mut seen);
        let (times, _) = timed(&mut self.queue, job)?;
        self.check(operation, &seen)?;
        Ok(times.kernel.busy.as_secs_f64())
    }

    fn check(&self, operation: Operation, seen: &[u8]) -> Result<()> {
        let is_right = match operation {
            Operation::Read => folded(seen) == folded(&self.content),
            // The first group writes its number, 1.
            Operation::Write => seen.chunks_exact(4).all(|word| word == 1u32.to_ne_bytes()),
            Operation::Copy => seen == &self.content[..seen.len()],
        };
        match is_right {
            true => Ok(()),
            false => Err(Error::wrong(operation.name(), "wrong bytes were read")),
        }
    }
}

fn bind<'b>(
    kernel: &Kernel,
    operation: Operation,
    from: &'b Buffer,
    to: &'b Buffer,
    out: &'b Buffer,
) -> quarrier_gpu::Result<Arguments<'b>> {
    let vectors = (from.bytes() / 16) as u32;
    let bound = kernel.bind().number("vectors", vectors)?;
    match operation {
        Operation::Read => bound.buffer("from", from)?.buffer("out", out),
        Operation::Write => bound.buffer("to", to),
        Operation::Copy => bound.buffer("from", from)?.buffer("to", to),
    }
}

/// XORs all words.
fn folded(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(4).fold(0, |folded, word| {
        folded ^ word.first_chunk::<4>().map_or(0, |word| u32::from_ne_bytes(*word))
    })
}
