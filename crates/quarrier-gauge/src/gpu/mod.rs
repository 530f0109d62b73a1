//! GPUs and other devices: their arithmetic, their memory, transfers to and from the host, and the time
//! to launch a kernel.
//!
//! Results, reads and copies of a device are compared with the values that the host expects.

mod arithmetic;
mod memory;
mod transfer;

use std::time::{Duration, Instant};

use quarrier_gpu::{Device, Job, Kind, Queue, Times};

use crate::Request;
use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, Trial};

/// Number of work items in a group, if the device supports it.
const ITEMS: u32 = 256;
/// Groups per compute unit that keep a device busy.
const GROUPS_A_UNIT: u32 = 8;

/// Measures the area, on every device. A CPU that runs kernels is measured only if no other area is
/// requested, since the CPU has its own area.
///
/// # Errors
/// If there is no device and no other area is requested, a result is wrong, or the caller stops the
/// run.
pub(crate) fn measure(request: &Request, session: &mut Session<'_>) -> Result<()> {
    let is_alone = request.areas == [Area::Gpu];
    let devices: Vec<Device> = quarrier_gpu::find()
        .into_iter()
        .filter(|device| is_alone || device.facts().kind != Kind::Cpu)
        .collect();
    if devices.is_empty() && is_alone {
        return Err(Error::BadRequest(
            "no GPU device: neither OpenCL nor CUDA found one; install its driver".to_owned(),
        ));
    }
    for (index, device) in devices.iter().enumerate() {
        // Two devices of the same model need different names.
        let same = |other: &Device| other.facts().name == device.facts().name;
        let name = match devices.iter().filter(|other| same(other)).count() {
            1 => device.facts().name.clone(),
            _ => format!("{} gpu:{index}", device.facts().name),
        };
        measure_device(request.quick, session, &Subjects { device, name })?;
    }
    Ok(())
}

fn measure_device(quick: bool, session: &mut Session<'_>, on: &Subjects<'_>) -> Result<()> {
    arithmetic::measure(quick, session, on)?;
    memory::measure(session, on)?;
    transfer::measure(quick, session, on)?;
    transfer::measure_launch(session, on)
}

/// A device with the names of its readings.
struct Subjects<'d> {
    device: &'d Device,
    name: String,
}

impl Subjects<'_> {
    fn parameters(&self) -> Parameters {
        let driver = self.device.facts().driver.name();
        Parameters::new().with("device", self.name.clone()).with("driver", driver)
    }

    fn items(&self) -> u32 {
        ITEMS.min(self.device.facts().items_max)
    }

    /// The number of work items of a group that runs over memory. It is one on a CPU, since a CPU would
    /// let each item run over all of the memory in steps.
    fn items_in_order(&self) -> u32 {
        match self.device.facts().kind {
            Kind::Cpu => 1,
            _ => self.items(),
        }
    }

    /// The number of groups that keeps all units busy.
    fn groups_all(&self) -> u32 {
        GROUPS_A_UNIT * self.device.facts().units
    }
}

/// Repeats `run`, which returns units and seconds.
fn repeat(
    session: &mut Session<'_>,
    measurement: &str,
    parameters: Parameters,
    unit: Unit,
    mut run: impl FnMut() -> Result<(f64, f64)>,
) -> Result<()> {
    let subject = Subject::new(Area::Gpu, measurement.to_owned(), parameters, unit);
    session.measure(subject, Needs::Answers, |_| {
        let (units, seconds) = run()?;
        Ok(Trial { seconds, units, cpu_share: 1.0, overlap: 1.0, ..Trial::default() })
    })
}

/// Runs a job; returns its times by the device's clock and its duration by the host's.
fn timed(queue: &mut Queue, job: Job<'_>) -> Result<(Times, Duration)> {
    let start = Instant::now();
    let times = queue.run(job).map_err(failed)?;
    Ok((times, start.elapsed()))
}

/// Returns how many repeats fill `time`, if one took `once` seconds.
fn times_for(time: Duration, once: f64, most: u32) -> u32 {
    ((time.as_secs_f64() / once.max(1e-9)) as u32).clamp(1, most)
}

fn failed(error: quarrier_gpu::Error) -> Error {
    Error::Device(error)
}
