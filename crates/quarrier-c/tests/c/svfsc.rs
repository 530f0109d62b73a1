//! svfsc's own tests in C++, compiled with the header that replaces its own. Its package lacks them:
//! QUARRIER_SVFSC names a checkout of its repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{crate_folder, library, run, skip};

/// The number of tests of svfsc 0.4.1, without the one that counts them.
const TESTS: usize = 171;

const MAIN: &str = r#"
#include <iostream>
#include "test.h"
#include "test_svf.h"
#include "test_svfs.h"
#include "test_cpp_svfs.h"
int main() {
    SVFS::Test::t_test_results results;
    SVFS::Test::test_svf_all(results);
    SVFS::Test::test_cpp_svfs_all(results);
    SVFS::Test::test_svfs_all(results);
    for (const auto &result : results) {
        if (result.result() != 0) {
            std::cerr << result.function() << ": " << result.test() << ": " << result.error_message() << '\n';
        }
    }
    std::cerr << results.size() << " tests\n";
}
"#;

#[test]
fn tests_of_svfsc_pass() {
    let Some(checkout) = std::env::var_os("QUARRIER_SVFSC").map(PathBuf::from) else {
        return skip("QUARRIER_SVFSC does not name a checkout of svfsc");
    };
    let folder = tempfile::tempdir().unwrap();
    for header in ["svf.h", "svfs.h", "cpp_svfs.h"] {
        let text = "#include <quarrier/svfs.hpp>\n";
        std::fs::write(folder.path().join(header), text).unwrap();
    }
    let main = folder.path().join("main.cpp");
    std::fs::write(&main, MAIN).unwrap();
    let program = folder.path().join("program");
    run(build(&checkout, folder.path()).arg(&main).arg("-o").arg(&program).args([
        "-lquarrier",
        "-pthread",
        &format!("-Wl,-rpath,{}", library().display()),
    ]));
    let output = run(Command::new(&program).current_dir(folder.path()));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(printed, format!("{TESTS} tests\n"));
}

/// The compiler's command with the tests in a checkout, and headers from `folder` first.
fn build(checkout: &Path, folder: &Path) -> Command {
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-O2", "-DSVF_THREAD_SAFE", "-DSVFS_THREAD_SAFE"]);
    command.arg("-I").arg(folder).arg("-I").arg(crate_folder().join("include"));
    for part in ["src/cpp/util", "src/cpp/tests"] {
        command.arg("-I").arg(checkout.join(part));
    }
    for part in ["test.cpp", "test_svf.cpp", "test_svfs.cpp", "test_cpp_svfs.cpp"] {
        command.arg(checkout.join("src/cpp/tests").join(part));
    }
    command.arg("-L").arg(library());
    command
}
