//! Properties of a device, as OpenCL reports them.

use cl3::device::{
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_LOCAL_MEM_SIZE,
    CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_NAME, CL_DEVICE_TYPE,
    CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_VERSION, CL_DRIVER_VERSION, get_device_data,
};
use cl3::types::cl_device_id;

use crate::driver::{DriverName, Facts, Kind};

/// Queries the properties; 0 or empty where the driver reports none.
pub(super) fn of(id: cl_device_id) -> Facts {
    let kinds = number(id, CL_DEVICE_TYPE);
    let kind = if kinds & CL_DEVICE_TYPE_GPU != 0 {
        Kind::Gpu
    } else if kinds & CL_DEVICE_TYPE_CPU != 0 {
        Kind::Cpu
    } else {
        Kind::Accelerator
    };
    Facts {
        name: text(id, CL_DEVICE_NAME),
        driver: DriverName::OpenCl,
        version: format!("{} {}", text(id, CL_DEVICE_VERSION), text(id, CL_DRIVER_VERSION)),
        kind,
        units: number(id, CL_DEVICE_MAX_COMPUTE_UNITS).clamp(1, 1 << 16) as u32,
        memory_bytes: number(id, CL_DEVICE_GLOBAL_MEM_SIZE),
        local_bytes: number(id, CL_DEVICE_LOCAL_MEM_SIZE),
        items_max: number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE).clamp(1, 1 << 16) as u32,
        is_unified: kind == Kind::Cpu || number(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0,
    }
}

fn text(id: cl_device_id, what: u32) -> String {
    let bytes = get_device_data(id, what).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_string()
}

/// A number of 4 or 8 bytes.
fn number(id: cl_device_id, what: u32) -> u64 {
    let bytes = get_device_data(id, what).unwrap_or_default();
    match *bytes.as_slice() {
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}
