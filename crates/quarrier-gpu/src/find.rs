//! Searches for devices, and chooses the requested ones.

use std::str::FromStr;

use crate::cache::Cache;
use crate::device::Device;
use crate::driver::{Driver, DriverName, Kind};
use crate::error::{Error, Result};
use crate::{cuda, opencl};

/// Returns all devices, the fastest type first. A device that both drivers reach is listed once, by
/// OpenCL.
///
/// Opens each device, which takes up to a second with some drivers.
pub fn find() -> Vec<Device> {
    find_with(None)
}

/// Searches as [`find`] does, and uses `cache` for drivers that cache no kernels themselves.
pub fn find_with(cache: Option<&Cache>) -> Vec<Device> {
    let mut devices: Vec<Device> =
        drivers(DriverName::OpenCl).into_iter().map(Device::by).collect();
    let known: Vec<String> = devices.iter().map(|device| device.facts().name.clone()).collect();
    let by_cuda = cuda::find(cache).into_iter().map(Device::by);
    devices.extend(by_cuda.filter(|device| !known.contains(&device.facts().name)));
    // The sort is stable: within a type the order is the drivers'.
    devices.sort_by_key(|device| device.facts().kind);
    devices
}

/// Returns the devices of one driver API, each with its own driver; [`Device::by`] makes a
/// [`Device`] of one.
pub fn drivers(by: DriverName) -> Vec<Box<dyn Driver>> {
    match by {
        DriverName::OpenCl => opencl::find(),
        DriverName::Cuda => cuda::find(None),
        DriverName::Other => Vec::new(),
    }
}

/// The devices that `--device` requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The fastest device, according to the machine profile.
    #[default]
    Auto,
    /// The CPU alone.
    Cpu,
    /// One device, by its number in [`find`].
    Gpu(usize),
    /// All devices, and the CPU.
    All,
}

impl DeviceChoice {
    /// Returns the requested devices of `all`, with their numbers; none for [`DeviceChoice::Auto`]
    /// and [`DeviceChoice::Cpu`]. [`DeviceChoice::All`] takes a CPU under OpenCL only if there is
    /// no other device, because it would compete with the CPU workers.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if the device does not exist; the error lists those that do.
    pub fn choose(self, all: Vec<Device>) -> Result<Vec<(usize, Device)>> {
        if matches!(self, DeviceChoice::Auto | DeviceChoice::Cpu) {
            return Ok(Vec::new());
        }
        if all.is_empty() {
            return Err(Error::NoDevice(
                "no GPU device: neither OpenCL nor CUDA found one; install its driver, or use \
                 --device cpu"
                    .to_string(),
            ));
        }
        match self {
            DeviceChoice::Gpu(index) if index >= all.len() => {
                let names: Vec<String> = all
                    .iter()
                    .enumerate()
                    .map(|(n, device)| format!("gpu:{n} is {}", device.facts()))
                    .collect();
                Err(Error::NoDevice(format!("no device gpu:{index}: {}", names.join(", "))))
            }
            DeviceChoice::Gpu(index) => {
                Ok(all.into_iter().enumerate().skip(index).take(1).collect())
            }
            _ => {
                let is_cpu = |device: &Device| device.facts().kind == Kind::Cpu;
                let has_other = !all.iter().all(is_cpu);
                let is_meant = |device: &Device| !(has_other && is_cpu(device));
                let meant = all.into_iter().enumerate();
                Ok(meant.filter(|(_, device)| is_meant(device)).collect())
            }
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| text.strip_prefix("gpu:")?.parse().ok();
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "gpu" => Ok(DeviceChoice::Gpu(0)),
            "all" => Ok(DeviceChoice::All),
            _ => number(text).map(DeviceChoice::Gpu).ok_or_else(|| {
                let there_are = "auto, cpu, gpu, gpu:0, gpu:1 …, all";
                Error::NoDevice(format!("no device '{text}'; there are: {there_are}"))
            }),
        }
    }
}
