//! CUDA: NVIDIA's devices, through the driver and the run-time compiler installed on the machine.
//!
//! Every build has this module, since it loads both libraries only when it searches for devices.
//! Without them it finds none.

mod compile;
mod device;

pub use compile::compile_to_ptx;

use cudarc::driver::{result, sys};

use crate::cache::Cache;
use crate::driver::Driver;

/// Returns all devices, or none if the driver or the compiler is missing. Compiled kernels go to
/// `cache`.
pub(crate) fn find(cache: Option<&Cache>) -> Vec<Box<dyn Driver>> {
    // Comes first, because without the libraries every other call panics. SAFETY: the call has no
    // condition on its arguments. It loads NVIDIA's library and runs its initialisers, as every
    // process that links the library does.
    let is_there = unsafe { sys::is_culib_present() } && compile::is_available();
    if !is_there || result::init().is_err() {
        return Vec::new();
    }
    (0..result::device::get_count().unwrap_or(0))
        .filter_map(|ordinal| device::Cuda::open(ordinal, cache.cloned()).ok())
        .map(|driver| Box::new(driver) as Box<dyn Driver>)
        .collect()
}
