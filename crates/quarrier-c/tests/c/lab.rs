//! Builds the library, and programs that link it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of this crate.
pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The static library that cargo built for this test.
pub(crate) fn archive() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        (name.starts_with("libquarrier_c-") || name == "libquarrier_c.a") && name.ends_with(".a")
    };
    let beside =
        std::fs::read_dir(test.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let newest =
        beside.filter(is_archive).max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.expect("cargo builds the static library with the tests")
}

/// The folder with libquarrier.so and libquarrier.a, created once.
pub(crate) fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libquarrier");
        run(Command::new(crate_folder().join("library.sh")).arg(archive()).arg(&folder));
        folder
    })
}

/// Runs a command, which must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; scripts/setup.sh installs what it needs: scripts/setup.sh c")
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, complaints) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{complaints}", output.status);
    output
}

/// Reports that a test is skipped, and why.
#[expect(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]
pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A compiler with the options of one build mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Toolchain {
    pub(crate) c: &'static str,
    pub(crate) cpp: &'static str,
    pub(crate) options: &'static [&'static str],
}

const SANITIZERS: &[&str] = &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
/// Every mode in which programs are built here.
pub(crate) const TOOLCHAINS: [Toolchain; 3] = [
    Toolchain { c: "gcc", cpp: "g++", options: &["-O2"] },
    Toolchain { c: "gcc", cpp: "g++", options: SANITIZERS },
    Toolchain { c: "clang", cpp: "clang++", options: SANITIZERS },
];

const THREAD_SANITIZER: &[&str] = &["-g", "-O1", "-fsanitize=thread"];
/// The modes in which programs with threads are built, too.
pub(crate) const THREAD_TOOLCHAINS: [Toolchain; 2] = [
    Toolchain { c: "gcc", cpp: "g++", options: THREAD_SANITIZER },
    Toolchain { c: "clang", cpp: "clang++", options: THREAD_SANITIZER },
];

const WARNINGS: [&str; 7] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef", "-Werror"];

impl Toolchain {
    /// Builds a program from one source file against the shared library: C11 or C++17, by extension.
    pub(crate) fn build(&self, source: &Path, program: &Path) {
        self.build_with(source, program, &[])
    }

    /// Like [`Toolchain::build`], with more options.
    pub(crate) fn build_with(&self, source: &Path, program: &Path, more: &[&str]) {
        let is_c = source.extension() == Some(OsStr::new("c"));
        let (compiler, standard) =
            if is_c { (self.c, "-std=c11") } else { (self.cpp, "-std=c++17") };
        let mut command = Command::new(compiler);
        command.arg(standard).args(WARNINGS).args(self.options).args(more);
        command.arg("-I").arg(crate_folder().join("include")).arg(source).arg("-o").arg(program);
        command.arg("-L").arg(library()).arg("-lquarrier").arg("-pthread");
        command.arg(format!("-Wl,-rpath,{}", library().display()));
        run(&mut command);
    }
}
