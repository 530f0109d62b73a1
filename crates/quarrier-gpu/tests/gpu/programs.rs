//! Kernels as source text: signature and arguments come from the same table.

use quarrier_gpu::kernels::{GAUGE, GAUGE_F64, SEARCH, SEARCH_CONSTANTS};
use quarrier_gpu::{Dialect, Parameter, Program, Signature};

use super::device;

const DOUBLE: Program = Program {
    name: "double",
    text: "KERNEL(twice) { if (GID * LSZ + LID < count) { \
           to[GID * LSZ + LID] = FACTOR * from[GID * LSZ + LID]; } }",
    kernels: &[Signature {
        name: "twice",
        parameters: &[
            Parameter::In("from", "u32"),
            Parameter::Out("to", "u32"),
            Parameter::Number("count"),
        ],
    }],
};

#[test]
fn a_signature_is_written_from_the_table() {
    let source = DOUBLE.source(Dialect::OpenCl, &[("FACTOR", 2)]);
    assert!(source.starts_with("#define FACTOR 2u\n"));
    let expected =
        "#define PARAMETERS_twice GLOBAL const u32 *from, GLOBAL u32 *to, const u32 count\n";
    assert!(source.contains(expected), "{source}");
}

#[test]
fn the_shipped_programs_compile() {
    let Some(device) = device() else { return };
    assert_eq!(device.compile(&SEARCH, SEARCH_CONSTANTS).unwrap().len(), 1);
    assert_eq!(device.compile(&GAUGE, &[]).unwrap().len(), GAUGE.kernels.len());
    assert_eq!(device.compile(&GAUGE_F64, &[("WANTS_F64", 1)]).unwrap().len(), 1);
}

#[test]
fn compile_errors_include_the_compilers_log() {
    let Some(device) = device() else { return };
    let error = device.compile(&DOUBLE, &[]).unwrap_err().to_string();
    assert!(error.contains("FACTOR"), "{error}");
}

#[test]
fn arguments_are_checked_against_the_table() {
    let Some(device) = device() else { return };
    let kernels = device.compile(&DOUBLE, &[("FACTOR", 2)]).unwrap();
    let kernel = &kernels[0];
    let buffer = device.buffer(64).unwrap();
    assert!(kernel.bind().number("counts", 1).is_err());
    assert!(kernel.bind().buffer("count", &buffer).is_err());
    assert!(kernel.bind().number("from", 1).is_err());
    // Arguments bind in any order, and the kernel runs.
    let mut queue = device.queue().unwrap();
    let from: Vec<u8> = (0..10u32).flat_map(u32::to_ne_bytes).collect();
    let mut to = [0u8; 40];
    let mut job = quarrier_gpu::Job::new();
    job.input(&from);
    let half = kernel.bind().number("count", 10).unwrap();
    let bound = half.clone().buffer("to", &buffer).unwrap().input("from").unwrap();
    // SAFETY: `to` has room for 16 numbers, and 10 are written.
    unsafe { job.launch(kernel, bound, 1, 16) };
    job.read(&buffer, &mut to);
    queue.run(job).unwrap();
    let doubled: Vec<u8> = (0..10u32).flat_map(|n| (2 * n).to_ne_bytes()).collect();
    assert_eq!(to, *doubled);
    // The error names the missing argument.
    let mut job = quarrier_gpu::Job::new();
    // SAFETY: nothing runs, since arguments are missing.
    unsafe { job.launch(kernel, half, 1, 16) };
    let error = queue.run(job).unwrap_err().to_string();
    assert!(error.contains("'from' is not bound"), "{error}");
}
