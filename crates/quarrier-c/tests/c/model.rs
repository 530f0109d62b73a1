//! Programs that compare the library with a model, or with the guarantees of the headers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{THREAD_TOOLCHAINS, TOOLCHAINS, Toolchain, crate_folder, run};

/// Builds a program in a mode, in an empty folder.
fn build(source: &str, toolchain: &Toolchain) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    toolchain.build(&crate_folder().join("tests/c").join(source), &program);
    (folder, program)
}

/// Builds a program in some modes, and runs it in its own folder.
fn holds(source: &str, arguments: &[&str], toolchains: &[Toolchain]) {
    for toolchain in toolchains {
        let (folder, program) = build(source, toolchain);
        run(Command::new(&program).args(arguments).current_dir(folder.path()));
    }
}

/// Runs a model with seed 1, or with QUARRIER_MODEL='SEED OPERATIONS'.
fn agrees_with_a_model(source: &str, operations: u32) {
    let given = std::env::var("QUARRIER_MODEL").unwrap_or_else(|_| format!("1 {operations}"));
    holds(source, &given.split(' ').collect::<Vec<_>>(), &TOOLCHAINS);
}

#[test]
fn random_operations_in_c_agree_with_a_model() {
    agrees_with_a_model("model.c", 60_000);
}

#[test]
fn random_operations_in_cpp_agree_with_a_model() {
    agrees_with_a_model("model.cpp", 30_000);
}

#[test]
fn cpp_throws_stops_shares_and_forks_as_the_header_says() {
    holds("behaviour.cpp", &[], &TOOLCHAINS);
}

#[test]
fn code_written_to_svfsc_works() {
    holds("svfs.cpp", &[], &TOOLCHAINS);
}

/// The program replaces malloc, as the sanitizers do, so it is built without them.
#[test]
fn failed_allocation_is_an_error_or_aborts_with_a_message() {
    holds("memory.c", &["10"], &TOOLCHAINS[..1]);
}

#[test]
fn cpp_that_runs_out_of_memory_throws_and_leaks_nothing() {
    holds("memory.cpp", &[], &TOOLCHAINS);
}

/// Runs a program under ThreadSanitizer, which some versions can only do at fixed addresses.
fn under_thread_sanitizer(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new("setarch");
    if command.args(["-R", "true"]).status().is_ok_and(|status| status.success()) {
        command = Command::new("setarch");
        command.arg("-R").arg(program);
    } else {
        command = Command::new(program);
    }
    // The library is not instrumented, so its locks are invisible.
    command.env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
    command.current_dir(folder);
    command
}

#[test]
fn threads_may_do_what_the_headers_allow() {
    for toolchain in &THREAD_TOOLCHAINS {
        let (folder, program) = build("threads.cpp", toolchain);
        run(&mut under_thread_sanitizer(&program, folder.path()));
        // The sanitizer of clang misses the race in some runs.
        let is_noticed = (0..10).any(|_| {
            let mut racy = under_thread_sanitizer(&program, folder.path());
            let output = racy.arg("racy").output().unwrap();
            String::from_utf8_lossy(&output.stderr).contains("data race")
        });
        assert!(is_noticed, "{toolchain:?} sees no race");
    }
}
