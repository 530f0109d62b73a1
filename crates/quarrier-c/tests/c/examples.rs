//! The examples compile without a warning, run without a complaint of the sanitizers, and print the output
//! in their last comment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{TOOLCHAINS, crate_folder, run};

fn sources(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(crate_folder().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| matches!(path.extension().and_then(OsStr::to_str), Some("c" | "cpp")));
    paths.sort();
    paths
}

/// The expected output of a program, from its last comment.
fn expected(source: &Path) -> String {
    let text = std::fs::read_to_string(source).unwrap();
    let start = text.rfind("/* Prints:\n").expect("its last comment begins with 'Prints:'");
    let comment = text[start..].trim_end().strip_suffix("*/").expect("nothing follows it");
    comment
        .lines()
        .skip(1)
        .map(|line| format!("{}\n", line.trim_start_matches(" *").trim()))
        .collect::<String>()
        .trim()
        .to_string()
}

#[test]
fn examples_print_their_last_comment() {
    let sources = sources("examples");
    assert!(sources.len() >= 2);
    for source in &sources {
        for toolchain in &TOOLCHAINS {
            let folder = tempfile::tempdir().unwrap();
            let program = folder.path().join("program");
            toolchain.build(source, &program);
            let output = run(Command::new(&program).current_dir(folder.path()));
            let printed = String::from_utf8(output.stdout).unwrap();
            let place = format!("{}, {toolchain:?}", source.display());
            assert_eq!(printed.trim(), expected(source), "{place}");
        }
    }
}

/// The headers compile alone, also as newer C and C++ and without a single warning.
#[test]
fn headers_compile_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (header, ending, standards) in [
        ("quarrier.h", "c", &["-std=c11", "-std=c2x"][..]),
        ("quarrier.h", "cpp", &["-std=c++11", "-std=c++20"]),
        ("quarrier.hpp", "cpp", &["-std=c++17", "-std=c++20"]),
        ("quarrier/svfs.hpp", "cpp", &["-std=c++17", "-std=c++20"]),
    ] {
        let source = folder.path().join(format!("{}.{ending}", header.replace('/', "-")));
        std::fs::write(
            &source,
            format!(
                "#include \"{header}\"\n#include \"{header}\"\nint main(void) {{ return 0; }}\n"
            ),
        )
        .unwrap();
        // One mode of each compiler, without linking.
        for toolchain in [&TOOLCHAINS[0], &TOOLCHAINS[2]] {
            for standard in standards {
                let options = [standard, "-fsyntax-only", "-Wno-unused-command-line-argument"];
                toolchain.build_with(&source, &folder.path().join("program"), &options);
            }
        }
    }
}
