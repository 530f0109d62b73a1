//! Devices run jobs; a machine without a device is normal.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

mod cache;
mod finding;
mod jobs;
mod programs;
mod ptx;

use std::sync::OnceLock;

use quarrier_gpu::Device;

/// Returns the first device of this machine. If there is none, asserts that no driver is installed.
pub(crate) fn device() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    DEVICE
        .get_or_init(|| {
            let first = quarrier_gpu::find().into_iter().next();
            assert_eq!(
                first.is_some(),
                has_driver(),
                "a driver for OpenCL is there: {}",
                has_driver()
            );
            first
        })
        .as_ref()
}

/// Whether an OpenCL driver is installed where its loader would look for it.
fn has_driver() -> bool {
    let entries = std::fs::read_dir("/etc/OpenCL/vendors");
    entries.is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "icd"))
    })
}
