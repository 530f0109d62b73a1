//! Transfers between host and device: the time of one block, and bytes per second.

use quarrier_gpu::kernels::GAUGE;
use quarrier_gpu::{Buffer, Job, Queue};

use super::{Subjects, failed, repeat, timed, times_for};
use crate::error::{Error, Result};
use crate::reading::Unit;
use crate::trial::Session;

/// From one byte to a block that hides all latency.
const BLOCKS_BYTES: [usize; 4] = [1, 1 << 10, 1 << 20, 64 << 20];
const BLOCKS_QUICK_BYTES: [usize; 1] = [64 << 20];
const REPEATS_MAX: u32 = 1000;

pub(super) fn measure(quick: bool, session: &mut Session<'_>, on: &Subjects<'_>) -> Result<()> {
    let blocks = if quick { &BLOCKS_QUICK_BYTES[..] } else { &BLOCKS_BYTES[..] };
    for &bytes in blocks {
        let mut pinned = on.device.pinned(bytes).map_err(failed)?;
        let mut pageable = vec![0u8; bytes];
        for (memory, host) in [("pinned", &mut pinned[..]), ("pageable", &mut pageable[..])] {
            for to_device in [true, false] {
                measure_way(session, on, host, memory, to_device)?;
            }
        }
    }
    Ok(())
}

/// Measures one direction with one type of host memory: its rate, and the time of a block.
fn measure_way(
    session: &mut Session<'_>,
    on: &Subjects<'_>,
    host: &mut [u8],
    memory: &str,
    to_device: bool,
) -> Result<()> {
    let bytes = host.len();
    let mut queue = on.device.queue().map_err(failed)?;
    let buffer = on.device.buffer(bytes).map_err(failed)?;
    host.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 251) as u8 + 1);
    check_way(&mut queue, &buffer, host)?;
    let once = block(&mut queue, &buffer, host, to_device)?;
    let repeats = times_for(session.effort.trial, once, REPEATS_MAX);
    let way = if to_device { "host to device" } else { "device to host" };
    let parameters = || {
        let parameters = on.parameters().with("memory", memory);
        parameters.with("block_bytes", bytes).with("access", "sequential")
    };
    for (name, unit, units) in [
        (way.to_string(), Unit::BytesPerSecond, bytes as f64),
        (format!("{way}, a block"), Unit::Seconds, 1.0),
    ] {
        repeat(session, &name, parameters(), unit, || {
            let mut seconds = 0.0;
            for _ in 0..repeats {
                seconds += block(&mut queue, &buffer, host, to_device)?;
            }
            Ok((units * f64::from(repeats), seconds))
        })?;
    }
    Ok(())
}

/// Copies a block; returns the seconds until it has arrived, by the host's clock.
fn block(queue: &mut Queue, buffer: &Buffer, host: &mut [u8], to_device: bool) -> Result<f64> {
    let mut job = Job::new();
    if to_device {
        job.write(buffer, host);
    } else {
        job.read(buffer, host);
    }
    Ok(timed(queue, job)?.1.as_secs_f64())
}

/// Checks that bytes copied to the device come back unchanged.
fn check_way(queue: &mut Queue, buffer: &Buffer, host: &mut [u8]) -> Result<()> {
    let sent = host.to_vec();
    block(queue, buffer, host, true)?;
    host.fill(0);
    block(queue, buffer, host, false)?;
    match host == sent {
        true => Ok(()),
        false => Err(Error::wrong("host to device", "different bytes came back")),
    }
}

/// Measures the time from the launch of an empty kernel until the host sees its end.
pub(super) fn measure_launch(session: &mut Session<'_>, on: &Subjects<'_>) -> Result<()> {
    let kernels = on.device.compile(&GAUGE, &[]).map_err(failed)?;
    let Some(nothing) = kernels.iter().find(|kernel| kernel.name() == "nothing") else {
        return Ok(());
    };
    let mut queue = on.device.queue().map_err(failed)?;
    let out = on.device.buffer(4).map_err(failed)?;
    let mut launch = || {
        let mut job = Job::new();
        let arguments = nothing.bind().buffer("out", &out).map_err(failed)?;
        // SAFETY: the kernel `nothing` reads no array, and writes only where an item's index equals
        // the group's size, which no index does.
        unsafe { job.launch(nothing, arguments, 1, 1) };
        Ok::<f64, Error>(timed(&mut queue, job)?.1.as_secs_f64())
    };
    let once = launch()?;
    let repeats = times_for(session.effort.trial, once, REPEATS_MAX);
    repeat(session, "kernel launch", on.parameters(), Unit::Seconds, || {
        let mut seconds = 0.0;
        for _ in 0..repeats {
            seconds += launch()?;
        }
        Ok((f64::from(repeats), seconds))
    })
}
