//! A limit on the number of threads: the same answers with fewer workers, or an error in one line.
//! A statement that waited for a thread that never starts would wait forever.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use crate::harness::{Folder, text};

/// A user without other processes, since the limit counts processes of the user.
const USER: u32 = 4_000_000_124;

/// Runs the program with at most `most` threads, as a user that the limit applies to.
fn within(folder: &Folder, arguments: &[&str], most: u64) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"));
    command.current_dir(folder.path("")).args(arguments).stdin(Stdio::null());
    let limit = move || {
        let value = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: setrlimit only reads `value`, which outlives the call.
        let done = unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &value) };
        // SAFETY: geteuid takes no arguments and cannot fail.
        let is_root = unsafe { libc::geteuid() } == 0;
        // SAFETY: setresuid takes no pointers.
        let changed = if is_root { unsafe { libc::setresuid(USER, USER, USER) } } else { 0 };
        match done == 0 && changed == 0 {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec `limit` makes only system calls; it takes no lock and allocates
    // nothing.
    unsafe { command.pre_exec(limit) };
    command.output().unwrap()
}

#[test]
fn few_threads_give_the_same_answers_or_one_line() {
    let folder = Folder::new();
    let lines: String = (0..50_000).map(|a| format!("{{\"a\":{a}}}\n")).collect();
    folder.file("m.ndjson", &lines);
    let copied = folder.run(&["COPY (SELECT * FROM 'm.ndjson') TO 'm.parquet'"]);
    assert!(copied.status.success(), "{copied:?}");
    std::fs::set_permissions(folder.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    for sql in [
        "SELECT count(*) FROM 'm.ndjson'",
        "SELECT count(*), max(x.a) FROM 'm.ndjson' x JOIN 'm.parquet' y ON x.a = y.a WHERE x.a + y.a > 9",
    ] {
        let arguments = [sql, "--format", "csv", "--workers", "4"];
        let free = folder.run(&arguments);
        let mut answered = 0;
        for most in [1, 2, 3, 5, 6, 7, 8, 12] {
            let output = within(&folder, &arguments, most);
            let said = text(&output.stderr);
            if output.status.success() {
                assert_eq!(output.stdout, free.stdout, "{sql} within {most}: {said}");
                answered += 1;
            } else {
                assert_eq!(output.status.code(), Some(2), "{sql} within {most}: {output:?}");
                assert_eq!(said.lines().count(), 1, "{sql} within {most}: {said}");
                assert!(said.contains("thread"), "{sql} within {most}: {said}");
            }
        }
        assert!(answered > 0, "{sql}: never answered");
    }
}
