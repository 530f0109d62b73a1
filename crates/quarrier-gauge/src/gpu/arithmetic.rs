//! Operations per second by the number of work groups: from one compute unit to all.

use quarrier_gpu::kernels::{GAUGE, GAUGE_F64, GAUGE_STEPS};
use quarrier_gpu::{Buffer, Job, Kernel, Queue};

use super::{Subjects, failed, repeat, timed, times_for};
use crate::error::{Error, Result};
use crate::reading::Unit;
use crate::trial::Session;

/// Rounds of the first, short run, which determines the length of later ones.
const ROUNDS_TRIED: u32 = 16;
const ROUNDS_MAX: u32 = 1 << 20;

/// The expected result. Floats converge to one and stay positive, which the kernel reports; integers
/// are known exactly.
enum Expected {
    One,
    Sums,
}

pub(super) fn measure(quick: bool, session: &mut Session<'_>, on: &Subjects<'_>) -> Result<()> {
    let plain = on.device.compile(&GAUGE, &[]).map_err(failed)?;
    let find = |name: &str| plain.iter().find(|kernel| kernel.name() == name);
    let mut kinds = Vec::new();
    kinds.extend(find("multiply_f32").map(|kernel| (kernel, "f32", Expected::One)));
    // A device without doubles cannot compile this kernel and is skipped.
    let wide = on.device.compile(&GAUGE_F64, &[("WANTS_F64", 1)]).unwrap_or_default();
    kinds.extend(wide.first().map(|kernel| (kernel, "f64", Expected::One)));
    kinds.extend(find("multiply_i32").map(|kernel| (kernel, "i32", Expected::Sums)));
    for (kernel, kind, expected) in &kinds {
        for groups in groups(quick, on) {
            measure_one(session, on, kernel, kind, expected, groups)?;
        }
    }
    Ok(())
}

/// Returns 1, 2, 4 … up to the number of units, and the number that keeps all of them busy.
fn groups(quick: bool, on: &Subjects<'_>) -> Vec<u32> {
    let all = on.groups_all();
    if quick {
        return vec![all];
    }
    let units = on.device.facts().units;
    let powers = std::iter::successors(Some(1u32), |groups| groups.checked_mul(2));
    let mut groups: Vec<u32> = powers.take_while(|groups| *groups < units).collect();
    groups.extend([units, all]);
    groups
}

fn measure_one(
    session: &mut Session<'_>,
    on: &Subjects<'_>,
    kernel: &Kernel,
    kind: &str,
    expected: &Expected,
    groups: u32,
) -> Result<()> {
    let items = on.items();
    let count = (groups * items) as usize;
    let mut queue = on.device.queue().map_err(failed)?;
    let out = on.device.buffer(4 * count).map_err(failed)?;
    let mut host = vec![0u8; 4 * count];
    let mut run = |rounds: u32| {
        run_once(&mut queue, kernel, &out, &mut host, (groups, items), rounds, expected)
    };
    run(ROUNDS_TRIED)?;
    let once = run(ROUNDS_TRIED)? / f64::from(ROUNDS_TRIED);
    let rounds = times_for(session.effort.trial, once, ROUNDS_MAX);
    let unit = if kind == "i32" { Unit::OpPerSecond } else { Unit::FlopPerSecond };
    let parameters = on.parameters().with("type", kind).with("groups", groups).with("items", items);
    // A multiplication and an addition each.
    let operations = 2.0 * f64::from(GAUGE_STEPS) * f64::from(rounds) * count as f64;
    repeat(session, "multiply-add", parameters, unit, || Ok((operations, run(rounds)?)))
}

/// Runs the kernel; returns its duration in seconds.
fn run_once(
    queue: &mut Queue,
    kernel: &Kernel,
    out: &Buffer,
    host: &mut [u8],
    (groups, items): (u32, u32),
    rounds: u32,
    expected: &Expected,
) -> Result<f64> {
    let arguments = kernel.bind().buffer("out", out).and_then(|a| a.number("rounds", rounds));
    let mut job = Job::new();
    // SAFETY: each work item of the kernel writes only the word of `out` at its own index, and
    // `out` has `groups` times `items` words; the kernel reads no array.
    unsafe { job.launch(kernel, arguments.map_err(failed)?, groups, items) };
    job.read(out, host);
    let (times, _) = timed(queue, job)?;
    let sums = |item: u32| match expected {
        Expected::One => 1,
        Expected::Sums => sum_of(item, rounds),
    };
    // All groups compute the same values. These are checked at the first, the middle and the last
    // item of each group.
    let known: Vec<u32> = [0, items / 2, items - 1].map(sums).into();
    for (index, word) in host.chunks_exact(4).enumerate() {
        let found = word.first_chunk::<4>().map_or(0, |word| u32::from_ne_bytes(*word));
        let item = index as u32 % items;
        let place = [0, items / 2, items - 1].iter().position(|known| *known == item);
        if let Some(place) = place
            && found != known[place]
        {
            let wrong = format!("work item {index}: {found} instead of {}", known[place]);
            return Err(Error::wrong("multiply-add", wrong));
        }
    }
    Ok(times.kernel.busy.as_secs_f64())
}

/// The expected result of the integer kernel: eight chains of x ← 1664525 x + 1013904223.
fn sum_of(item: u32, rounds: u32) -> u32 {
    const FACTOR: u32 = 1_664_525;
    const ADDEND: u32 = 1_013_904_223;
    // 8 · rounds steps are again one step of this form, found by squaring.
    let (mut factor, mut addend) = (1u32, 0u32);
    let (mut power, mut more) = (FACTOR, ADDEND);
    let mut left = 8 * u64::from(rounds);
    while left > 0 {
        if left & 1 == 1 {
            addend = addend.wrapping_mul(power).wrapping_add(more);
            factor = factor.wrapping_mul(power);
        }
        more = more.wrapping_mul(power).wrapping_add(more);
        power = power.wrapping_mul(power);
        left >>= 1;
    }
    let start = |chain: u32| (item + 1).wrapping_add(ADDEND.wrapping_mul(chain));
    (0..8).fold(0u32, |sum, chain| {
        sum.wrapping_add(start(chain).wrapping_mul(factor).wrapping_add(addend))
    })
}
