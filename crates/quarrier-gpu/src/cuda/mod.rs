//! CUDA: NVIDIA's devices, through the driver and the run-time compiler that the machine has.
//!
//! Compiled everywhere, since both libraries are loaded when devices are searched for; without them
//! there is no device.

mod compile;
mod device;

pub use compile::compile_to_ptx;

use cudarc::driver::{result, sys};

use crate::cache::Cache;
use crate::driver::Driver;

/// All devices, where the driver and the compiler are both there. What is compiled is kept in
/// `cache`.
pub(crate) fn find(cache: Option<&Cache>) -> Vec<Box<dyn Driver>> {
    // Asked first, since every other call panics without the libraries.
    // SAFETY: loading NVIDIA's library runs its initialisers, as it does for every user of it.
    let is_there = unsafe { sys::is_culib_present() } && compile::is_available();
    if !is_there || result::init().is_err() {
        return Vec::new();
    }
    (0..result::device::get_count().unwrap_or(0))
        .filter_map(|ordinal| device::Cuda::open(ordinal, cache.cloned()).ok())
        .map(|driver| Box::new(driver) as Box<dyn Driver>)
        .collect()
}
