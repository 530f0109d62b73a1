//! Names of OpenCL's error codes.

use cl3::error_codes::{
    CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, error_text,
};

use crate::error::Error;

/// The error of an OpenCL call; `what` is its purpose.
pub(super) fn failure(device: &str, what: &str, code: i32) -> Error {
    let what = format!("{what}: {} ({code})", error_text(code));
    let device = device.to_string();
    match code {
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY => {
            Error::OutOfMemory { device, what }
        }
        _ => Error::Failed { device, what },
    }
}
