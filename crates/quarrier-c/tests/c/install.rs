//! The files that `make install-lib` installs, as pkg-config and CMake find them.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::lab::{archive, crate_folder, run};

/// A prefix with the installed library, created once.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let built = folder.path().join("built");
        std::fs::create_dir(&built).unwrap();
        std::os::unix::fs::symlink(archive(), built.join("libquarrier_c.a")).unwrap();
        let prefix = folder.path().join("prefix");
        let script = crate_folder().join("../../scripts/install-lib.sh");
        run(Command::new(script).arg(&built).arg(&prefix));
        folder
    });
    static PATH: OnceLock<std::path::PathBuf> = OnceLock::new();
    PATH.get_or_init(|| prefix_of(&PREFIX))
}

fn prefix_of(folder: &OnceLock<tempfile::TempDir>) -> std::path::PathBuf {
    folder.get().unwrap().path().join("prefix")
}

fn text(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}

#[test]
fn pkg_config_finds_the_library() {
    let pkg_config = |option: &str| {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")).args([option, "quarrier"]);
        text(&mut command).trim().to_string()
    };
    assert_eq!(pkg_config("--modversion"), env!("CARGO_PKG_VERSION"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let source = crate_folder().join("examples/sparse.c");
    let command = format!(
        "cc -std=c11 '{}' {} {} -o '{}'",
        source.display(),
        pkg_config("--cflags"),
        pkg_config("--libs"),
        program.display()
    );
    run(Command::new("sh").arg("-c").arg(command));
    let printed = text(Command::new(&program).env("LD_LIBRARY_PATH", prefix().join("lib")));
    assert!(printed.ends_with("missing: 5 bytes at 13\n"), "{printed}");
}

#[test]
fn cmake_finds_the_shared_and_the_static_library() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::copy(crate_folder().join("examples/sparse.cpp"), project.join("sparse.cpp")).unwrap();
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(sparse CXX)\nset(CMAKE_CXX_STANDARD 17)\n\
        find_package(quarrier 0.1 REQUIRED)\n\
        add_executable(shared sparse.cpp)\ntarget_link_libraries(shared quarrier::quarrier)\n\
        add_executable(static sparse.cpp)\ntarget_link_libraries(static quarrier::static)\n";
    std::fs::write(project.join("CMakeLists.txt"), lists).unwrap();
    let built = folder.path().join("built");
    let path = format!("-DCMAKE_PREFIX_PATH={}", prefix().display());
    run(Command::new("cmake").arg("-S").arg(&project).arg("-B").arg(&built).arg(path));
    run(Command::new("cmake").arg("--build").arg(&built));
    for program in ["shared", "static"] {
        let printed = text(&mut Command::new(built.join(program)));
        assert!(printed.starts_with("CD\nfetch 6 bytes at 8\n"), "{printed}");
    }
    let linked = text(Command::new("ldd").arg(built.join("static")));
    assert!(!linked.contains("libquarrier"), "{linked}");
}
