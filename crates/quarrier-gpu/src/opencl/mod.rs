//! OpenCL: any vendor's devices, through the loader installed on the machine.

mod device;
mod events;
mod facts;
mod names;

use std::sync::Mutex;

use cl3::device::{CL_DEVICE_TYPE_ALL, get_device_ids};
use cl3::platform::get_platform_ids;
use quarrier_core::sync::lock;

use crate::driver::Driver;

/// Returns all devices of all platforms; none if there is no loader, platform or device.
pub(crate) fn find() -> Vec<Box<dyn Driver>> {
    open_all().into_iter().map(|driver| Box::new(driver) as Box<dyn Driver>).collect()
}

fn open_all() -> Vec<device::OpenCl> {
    // PoCL 3.1 ends the process if two threads make its first query at the same time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = lock(&ONE_AT_A_TIME);
    // A missing loader is an error like any other.
    let platforms = get_platform_ids().unwrap_or_default();
    platforms
        .into_iter()
        .flat_map(|platform| get_device_ids(platform, CL_DEVICE_TYPE_ALL).unwrap_or_default())
        .filter_map(|id| device::OpenCl::open(id).ok())
        .collect()
}
