//! Which devices there are, and which are meant.

use std::str::FromStr;

use crate::cache::Cache;
use crate::device::Device;
use crate::driver::{Driver, DriverName, Kind};
use crate::error::{Error, Result};
use crate::{cuda, opencl};

/// All devices, the fastest kind first. A device that two drivers reach is there once, by OpenCL.
///
/// Opens each of them, which takes up to a second with some drivers.
pub fn find() -> Vec<Device> {
    find_with(None)
}

/// As [`find`]; kernels for drivers that keep none themselves are kept in `cache`.
pub fn find_with(cache: Option<&Cache>) -> Vec<Device> {
    let mut devices: Vec<Device> =
        drivers(DriverName::OpenCl).into_iter().map(Device::by).collect();
    let known: Vec<String> = devices.iter().map(|device| device.facts().name.clone()).collect();
    let by_cuda = cuda::find(cache).into_iter().map(Device::by);
    devices.extend(by_cuda.filter(|device| !known.contains(&device.facts().name)));
    // The order within a kind stays the drivers'.
    devices.sort_by_key(|device| device.facts().kind);
    devices
}

/// The devices that one driver reaches, each behind a driver of its own, to be made a
/// [`Device`] by [`Device::by`].
pub fn drivers(by: DriverName) -> Vec<Box<dyn Driver>> {
    match by {
        DriverName::OpenCl => opencl::find(),
        DriverName::Cuda => cuda::find(None),
        DriverName::Other => Vec::new(),
    }
}

/// What `--device` asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wish {
    /// Whatever is fastest, as far as that is known.
    #[default]
    Auto,
    /// The CPU alone.
    Cpu,
    /// One device, by its number in [`find`].
    Gpu(usize),
    /// All of them, and the CPU.
    All,
}

impl Wish {
    /// The devices of `all` that are meant, with their numbers: none for [`Wish::Auto`] and [`Wish::Cpu`]. With
    /// [`Wish::All`], a CPU under OpenCL counts only where there is nothing else: it would work
    /// beside itself.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where it is not there, with what there is.
    pub fn choose(self, all: Vec<Device>) -> Result<Vec<(usize, Device)>> {
        if matches!(self, Wish::Auto | Wish::Cpu) {
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
            Wish::Gpu(index) if index >= all.len() => {
                let names: Vec<String> = all
                    .iter()
                    .enumerate()
                    .map(|(n, device)| format!("gpu:{n} is {}", device.facts()))
                    .collect();
                Err(Error::NoDevice(format!("no device gpu:{index}: {}", names.join(", "))))
            }
            Wish::Gpu(index) => Ok(all.into_iter().enumerate().skip(index).take(1).collect()),
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

impl FromStr for Wish {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| text.strip_prefix("gpu:")?.parse().ok();
        match text {
            "auto" => Ok(Wish::Auto),
            "cpu" => Ok(Wish::Cpu),
            "gpu" => Ok(Wish::Gpu(0)),
            "all" => Ok(Wish::All),
            _ => number(text).map(Wish::Gpu).ok_or_else(|| {
                let there_are = "auto, cpu, gpu, gpu:0, gpu:1 …, all";
                Error::NoDevice(format!("no device '{text}'; there are: {there_are}"))
            }),
        }
    }
}
