//! Programs that compare the library with a model, or with the guarantees of the headers.

use std::process::Command;

use crate::lab::{TOOLCHAINS, crate_folder, run};

/// Builds a program in every mode, and runs it in its own folder.
fn holds(source: &str, arguments: &[&str]) {
    for toolchain in &TOOLCHAINS {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        toolchain.build(&crate_folder().join("tests/c").join(source), &program);
        run(Command::new(&program).args(arguments).current_dir(folder.path()));
    }
}

#[test]
fn random_operations_in_c_agree_with_a_model() {
    holds("model.c", &["1", "60000"]);
}

#[test]
fn cpp_throws_stops_shares_and_forks_as_the_header_says() {
    holds("behaviour.cpp", &[]);
}

#[test]
fn code_written_to_svfsc_works() {
    holds("svfs.cpp", &[]);
}
