//! Runs many jobs on a few threads.

use std::sync::Mutex;

use quarrier_core::parallel::planned_workers;
use quarrier_core::sync::lock;
use quarrier_core::threads;

/// Runs all `jobs` on at most `workers` threads (0: one per CPU), including this one, in the order
/// of their numbers; returns the results in that order.
pub(in crate::table) fn in_parallel<J: Send, R: Send>(
    jobs: Vec<J>,
    workers: usize,
    job: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    in_parallel_with(jobs, workers, || (), |(), next| job(next))
}

/// Like [`in_parallel`], with a value for each thread, such as scratch memory.
pub(super) fn in_parallel_with<J: Send, R: Send, O>(
    jobs: Vec<J>,
    workers: usize,
    own: impl Fn() -> O + Sync,
    job: impl Fn(&mut O, J) -> R + Sync,
) -> Vec<R> {
    let workers = planned_workers(workers).min(jobs.len());
    if workers <= 1 {
        let mut own = own();
        return jobs.into_iter().map(|next| job(&mut own, next)).collect();
    }
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let work = || {
        let (mut own, mut done) = (own(), Vec::new());
        loop {
            // Jobs run outside the lock, so a panic cannot have broken its data.
            let next = lock(&queue).next();
            let Some((number, next)) = next else { return done };
            done.push((number, job(&mut own, next)));
        }
    };
    let mut done = threads::team(0..workers, |_| work()).into_iter().flatten().collect::<Vec<_>>();
    done.sort_unstable_by_key(|&(number, _)| number);
    done.into_iter().map(|(_, result)| result).collect()
}
