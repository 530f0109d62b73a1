//! The jobs of a report, and those for the profile.

use super::job::{Action, Cache, Job, Order};
use crate::Request;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const DEEP: usize = 32;
/// These may exceed the CPUs, since threads that wait for a disk need none.
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// All jobs except the offered ones, which depend on the rates of the others.
pub(super) fn jobs(request: &Request) -> Vec<Job> {
    let mut jobs = if request.quick { quick(&request.threads) } else { full() };
    let mut seen: Vec<Job> = Vec::new();
    jobs.retain(|job| {
        let new = !seen.contains(job);
        seen.push(job.clone());
        new
    });
    jobs
}

fn quick(threads: &[usize]) -> Vec<Job> {
    let direct = |order, block_bytes, depth| Job { depth, ..Job::read(order, block_bytes) };
    let mut jobs = vec![
        direct(Order::Sequential, MIB, 1),
        direct(Order::Sequential, MIB, DEEP),
        direct(Order::Sequential, 128 * KIB, DEEP),
        direct(Order::Random, 4 * KIB, 1),
        direct(Order::Random, 4 * KIB, DEEP),
        Job { depth: 4, ..Job::write(Order::Sequential, MIB) },
        Job { cache: Cache::Cold, ..Job::read(Order::Sequential, MIB) },
    ];
    let most = threads.iter().copied().max().unwrap_or(1);
    for (block_bytes, threads) in [(64 * KIB, 1), (MIB, 1), (64 * KIB, most), (MIB, most)] {
        jobs.push(Job { cache: Cache::Warm, threads, ..Job::read(Order::Sequential, block_bytes) });
    }
    jobs
}

fn full() -> Vec<Job> {
    let mut jobs = Vec::new();
    for action in [Action::Read, Action::Write] {
        for order in [Order::Sequential, Order::Random] {
            direct(&mut jobs, &Job { action, ..Job::read(order, MIB) });
            buffered(&mut jobs, &Job { action, ..Job::read(order, MIB) });
        }
    }
    jobs
}

/// Sweeps over block size at two depths, over depth, and over threads.
fn direct(jobs: &mut Vec<Job>, base: &Job) {
    for block_bytes in [512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB] {
        for depth in [1, DEEP] {
            // Larger depths would only use memory.
            if depth * block_bytes <= 64 * MIB {
                jobs.push(Job { block_bytes, depth, ..base.clone() });
            }
        }
    }
    let block_bytes = if base.order == Order::Sequential { MIB } else { 4 * KIB };
    for depth in [1, 2, 4, 8, 16, DEEP, 64] {
        jobs.push(Job { block_bytes, depth, ..base.clone() });
    }
    for threads in THREADS {
        jobs.push(Job { block_bytes, threads, ..base.clone() });
    }
}

/// Sweeps over block size from one byte on, warm and cold, and over threads.
fn buffered(jobs: &mut Vec<Job>, base: &Job) {
    let caches: &[Cache] = match base.action {
        Action::Read => &[Cache::Warm, Cache::Cold],
        Action::Write => &[Cache::Cold],
    };
    for &cache in caches {
        for block_bytes in [1, 16, 512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB] {
            jobs.push(Job { block_bytes, cache, ..base.clone() });
        }
    }
    for threads in THREADS {
        let cache = caches[0];
        jobs.push(Job { block_bytes: 64 * KIB, cache, threads, ..base.clone() });
        jobs.push(Job { block_bytes: MIB, cache, threads, ..base.clone() });
    }
}
