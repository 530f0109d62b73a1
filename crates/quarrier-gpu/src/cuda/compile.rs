//! NVRTC: from a kernel's text to PTX. Needs no device.

use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts, sys};

use crate::driver::Dialect;
use crate::error::{Error, Result};
use crate::program::{Constant, Program};

pub(super) fn is_available() -> bool {
    // SAFETY: loading the library runs its initialisers, as it does for every user of it.
    unsafe { sys::is_culib_present() }
}

/// Compiles a program for compute capability `architecture` (75, 80, 90 …), to PTX. Works
/// without a device.
///
/// # Errors
/// [`Error::NoDevice`] where NVRTC is not on this machine, [`Error::Compile`] with its words.
pub fn compile_to_ptx(
    program: &Program,
    constants: &[Constant],
    architecture: u32,
) -> Result<String> {
    if !is_available() {
        return Err(Error::NoDevice("NVRTC is not on this machine".to_string()));
    }
    ptx(&program.source(Dialect::Cuda, constants), architecture, program.name)
}

pub(super) fn ptx(source: &str, architecture: u32, what: &str) -> Result<String> {
    let options = CompileOptions {
        options: vec![format!("--gpu-architecture=compute_{architecture}")],
        ..CompileOptions::default()
    };
    compile_ptx_with_opts(source, options).map(|ptx| ptx.to_src()).map_err(|error| {
        let log = match error {
            CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
            other => format!("{other:?}"),
        };
        Error::Compile { device: format!("CUDA, {what}"), log }
    })
}
