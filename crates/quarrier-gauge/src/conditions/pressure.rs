//! Pressure stall information: how long threads waited for a resource.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Shares of the time (0 to 1) in which at least one thread of the machine waited for a resource, by the
/// kernel's pressure stall information. Threads of the measurement count too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pressure {
    /// The share of waiting for a CPU.
    pub cpu: f64,
    /// The share of waiting for memory: pages had to be reclaimed or read back first.
    pub memory: f64,
    /// The share of waiting for I/O.
    pub io: f64,
}

/// Seconds of waiting since the system started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waited([f64; 3]);

impl Waited {
    /// The counters now; `None` if the kernel has none.
    pub(super) fn now() -> Option<Waited> {
        Waited::of(Path::new("/proc/pressure"))
    }

    fn of(folder: &Path) -> Option<Waited> {
        let seconds = |name: &str| seconds(&fs::read_to_string(folder.join(name)).ok()?);
        Some(Waited([seconds("cpu")?, seconds("memory")?, seconds("io")?]))
    }

    /// The shares of `wall_seconds` spent waiting since `before`.
    pub(super) fn since(self, before: Waited, wall_seconds: f64) -> Pressure {
        let [cpu, memory, io] = [0, 1, 2].map(|place: usize| {
            let share = (self.0[place] - before.0[place]) / wall_seconds;
            if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
        });
        Pressure { cpu, memory, io }
    }
}

/// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, whose total is in microseconds.
fn seconds(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split(' ').find_map(|word| word.strip_prefix("total="))?;
    Some(total.trim().parse::<u64>().ok()? as f64 * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_the_share_of_time_in_which_some_thread_waited() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, total: u64| {
            let text = format!(
                "some avg10=9.0 avg60=0.0 avg300=0.0 total={total}\nfull avg10=0.0 total=7\n"
            );
            fs::write(folder.path().join(name), text).unwrap();
        };
        assert!(Waited::of(folder.path()).is_none());
        for name in ["cpu", "memory", "io"] {
            put(name, 1_000_000);
        }
        let before = Waited::of(folder.path()).unwrap();
        put("cpu", 2_000_000);
        put("io", 9_000_000);
        let after = Waited::of(folder.path()).unwrap();
        let pressure = after.since(before, 4.0);
        assert_eq!(pressure, Pressure { cpu: 0.25, memory: 0.0, io: 1.0 });
        assert_eq!(before.since(after, 0.0), Pressure::default());
        for text in ["", "some", "some total=x", "full total=1"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
