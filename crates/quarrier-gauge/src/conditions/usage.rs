//! The use of the CPUs: the kernel's counters, before and after.

use std::fs;
use std::time::Instant;

use super::During;

/// The counters at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    at: Instant,
    load: f64,
    /// Ticks that all CPUs were busy, the stolen ones left out; and those that were stolen.
    counters: Option<(f64, f64)>,
    /// CPU time of this process in seconds.
    own_seconds: f64,
}

impl Snapshot {
    /// The counters now.
    pub fn take() -> Snapshot {
        Snapshot {
            at: Instant::now(),
            load: load(),
            counters: fs::read_to_string("/proc/stat").ok().and_then(|text| counters(&text)),
            own_seconds: own_seconds(),
        }
    }

    /// Threads that wanted a CPU, on average over the minute before.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Seconds since.
    pub fn seconds(&self) -> f64 {
        self.at.elapsed().as_secs_f64()
    }

    /// The use since then. The kernel counts in hundredths of a second, so it says little about less
    /// than some tenths: up to two ticks per CPU count as nothing.
    pub fn since(&self) -> During {
        let now = Snapshot::take();
        let mut during = During { load: self.load, cpu_share: 1.0, ..During::default() };
        let wall = now.at.duration_since(self.at).as_secs_f64();
        let (Some(before), Some(after)) = (self.counters, now.counters) else { return during };
        if wall <= 0.0 {
            return during;
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let busy = (after.0 - before.0) * tick;
        let stolen = (after.1 - before.1) * tick;
        let own = now.own_seconds - self.own_seconds;
        let slack = 2.0 * tick * cpus;
        during.others = (busy - own - slack).max(0.0) / wall;
        during.steal = (stolen - slack).max(0.0) / (wall * cpus);
        during
    }
}

/// The first line of `/proc/stat`: user, nice, system, idle, waiting, two kinds of interrupts,
/// stolen; guests are in user already.
fn counters(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let &[user, nice, system, _, _, hard, soft, stolen, ..] = ticks.as_slice() else {
        return None;
    };
    Some((user + nice + system + hard + soft, stolen))
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
    use super::counters;

    #[test]
    fn stolen_time_is_told_from_busy_time() {
        let stat = "cpu  10 20 30 4000 500 6 7 80 9 0\ncpu0 1 2 3\n";
        assert_eq!(counters(stat), Some((73.0, 80.0)));
        assert_eq!(counters("cpu  1 2 3\n"), None);
        assert_eq!(counters(""), None);
    }
}
