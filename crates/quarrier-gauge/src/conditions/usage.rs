//! CPU usage, from the kernel's counters before and after.

use std::fs;
use std::time::Instant;

use super::groups::{Groups, Throttled};
use super::pressure::Waited;
use super::{During, allowed_cpus};

/// The counters of the CPUs that this process may use.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counters {
    /// The number of CPUs.
    cpus: usize,
    /// Busy ticks, without stolen ones.
    busy: f64,
    /// Stolen ticks.
    stolen: f64,
}

/// The counters at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    at: Instant,
    load: f64,
    counters: Option<Counters>,
    throttled: Throttled,
    waited: Option<Waited>,
    /// CPU time of this process in seconds.
    own_seconds: f64,
}

impl Snapshot {
    /// The counters now.
    pub fn take() -> Snapshot {
        Snapshot {
            at: Instant::now(),
            load: load(),
            counters: fs::read_to_string("/proc/stat")
                .ok()
                .and_then(|text| counters(&text, &allowed_cpus().unwrap_or_default())),
            throttled: Groups::of_process().throttled(),
            waited: Waited::now(),
            own_seconds: own_seconds(),
        }
    }

    /// The load average over the minute before: threads that wanted a CPU.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Seconds since the snapshot.
    pub fn seconds(&self) -> f64 {
        self.at.elapsed().as_secs_f64()
    }

    /// The usage since the snapshot. The kernel counts in hundredths of a second, which is imprecise
    /// below a few tenths: up to two ticks per CPU count as nothing.
    pub fn since(&self) -> During {
        let now = Snapshot::take();
        let mut during = During { load: self.load, cpu_share: 1.0, ..During::default() };
        let wall = now.at.duration_since(self.at).as_secs_f64();
        if wall <= 0.0 {
            return during;
        }
        during.throttled_periods = now.throttled.periods.saturating_sub(self.throttled.periods);
        during.throttled_seconds = (now.throttled.seconds - self.throttled.seconds).max(0.0);
        during.pressure = now.waited.zip(self.waited).map(|(now, before)| now.since(before, wall));
        let (Some(before), Some(after)) = (self.counters, now.counters) else { return during };
        let cpus = after.cpus as f64;
        let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let busy = (after.busy - before.busy) * tick;
        let stolen = (after.stolen - before.stolen) * tick;
        let own = now.own_seconds - self.own_seconds;
        let slack = 2.0 * tick * cpus;
        during.others = (busy - own - slack).max(0.0) / wall;
        during.steal = (stolen - slack).max(0.0) / (wall * cpus);
        during
    }
}

/// Sums the lines of `/proc/stat` of the `allowed` CPUs. Fields: user, nice, system, idle, waiting, two
/// kinds of interrupts, stolen; user includes guests. Other CPUs are ignored, since a large host always
/// has a busy one. Without such lines, the first line counts, which sums all CPUs.
fn counters(stat: &str, allowed: &[usize]) -> Option<Counters> {
    let of_line = |line: &str| -> Option<(Option<usize>, f64, f64)> {
        let mut words = line.strip_prefix("cpu")?.split(' ').filter(|word| !word.is_empty());
        let number = if line.starts_with("cpu ") { None } else { words.next()?.parse().ok() };
        let ticks: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
        let &[user, nice, system, _, _, hard, soft, stolen, ..] = ticks.as_slice() else {
            return None;
        };
        Some((number, user + nice + system + hard + soft, stolen))
    };
    let lines: Vec<_> = stat.lines().map_while(of_line).collect();
    let of_allowed = lines
        .iter()
        .filter(|(number, ..)| number.is_some_and(|number| allowed.binary_search(&number).is_ok()));
    let none = Counters { cpus: 0, busy: 0.0, stolen: 0.0 };
    let sum = of_allowed.fold(none, |sum, (_, busy, stolen)| Counters {
        cpus: sum.cpus + 1,
        busy: sum.busy + busy,
        stolen: sum.stolen + stolen,
    });
    let &(_, busy, stolen) = lines.first()?;
    let cpus = lines.len().saturating_sub(1).max(1);
    Some(if sum.cpus > 0 { sum } else { Counters { cpus, busy, stolen } })
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// CPU time of all threads of this process, in seconds.
fn own_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::{Counters, counters};

    #[test]
    fn stolen_time_is_distinguished_from_busy_time_on_the_allowed_cpus() {
        let stat = "cpu  10 20 30 4000 500 6 7 80 9 0\n\
                    cpu0 1 2 3 4 5 6 7 8 9 0\n\
                    cpu1 10 20 30 40 50 60 70 80 90 0\n\
                    intr 123\ncpu2 1 1 1 1 1 1 1 1\n";
        let of = |cpus, busy, stolen| Some(Counters { cpus, busy, stolen });
        assert_eq!(counters(stat, &[0]), of(1, 19.0, 8.0));
        assert_eq!(counters(stat, &[0, 1]), of(2, 209.0, 88.0));
        assert_eq!(counters(stat, &[7]), of(2, 73.0, 80.0));
        assert_eq!(counters("cpu  10 20 30 4000 500 6 7 80\n", &[0]), of(1, 73.0, 80.0));
        assert_eq!(counters("cpu  1 2 3\n", &[0]), None);
        assert_eq!(counters("", &[0]), None);
    }
}
