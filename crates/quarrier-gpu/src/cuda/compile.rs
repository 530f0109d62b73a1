//! NVRTC: compiles the source text of a kernel to PTX. Needs no device.

use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts, sys};

use crate::cache::Cache;
use crate::driver::Dialect;
use crate::error::{Error, Result};
use crate::program::{Constant, Program};

pub(super) fn is_available() -> bool {
    // SAFETY: the call has no condition on its arguments. It loads NVRTC and runs the library's
    // initialisers, as every process that links NVRTC does.
    unsafe { sys::is_culib_present() }
}

/// Compiles a program for compute capability `architecture` (75, 80, 90 …), to PTX, or returns it
/// from `cache`. Works without a device.
///
/// # Errors
/// [`Error::NoDevice`] if NVRTC is not installed, [`Error::Compile`] with its log.
pub fn compile_to_ptx(
    program: &Program,
    constants: &[Constant],
    architecture: u32,
    cache: Option<&Cache>,
) -> Result<String> {
    if !is_available() {
        return Err(Error::NoDevice("NVRTC is not installed on this machine".to_string()));
    }
    ptx(&program.source(Dialect::Cuda, constants), architecture, program.name, cache)
}

pub(super) fn ptx(
    source: &str,
    architecture: u32,
    what: &str,
    cache: Option<&Cache>,
) -> Result<String> {
    let option = format!("--gpu-architecture=compute_{architecture}");
    let make = || compile(source, &option, what);
    match (cache, version()) {
        (Some(cache), Some((major, minor))) => {
            cache.get_or(&format!("NVRTC {major}.{minor} {option}\n{source}"), make)
        }
        _ => make(),
    }
}

fn compile(source: &str, option: &str, what: &str) -> Result<String> {
    let options = CompileOptions { options: vec![option.to_string()], ..CompileOptions::default() };
    compile_ptx_with_opts(source, options).map(|ptx| ptx.to_src()).map_err(|error| {
        let log = match error {
            CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
            other => format!("{other:?}"),
        };
        Error::Compile { device: format!("CUDA, {what}"), log }
    })
}

/// The compiler's own version.
fn version() -> Option<(i32, i32)> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: NVRTC is loaded, since the callers check `is_available` first. Both pointers come
    // from `&raw mut` of live local variables, so each is aligned and valid for writing an `i32`.
    let result = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    result.result().ok().map(|()| (major, minor))
}
