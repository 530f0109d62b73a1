//! Without further threads, or with hardly any memory: fewer threads do the same work, or one line says
//! what is missing. Nothing panics or hangs.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::carve::{gif, image};
use crate::harness::{Lab, Ran, run};

const COMMANDS: &[&[&str]] = &[
    &["search", "GIF", "f", "--workers", "8"],
    &["search", "GIF", "f", "--workers", "8", "--access", "queue"],
    &["search", "GIF", "f", "--workers", "8", "--access", "uring"],
    &["search", "GIF", "f", "--workers", "8", "--access", "read"],
    &["search", "-E", "GIF8[79]a", "f", "--workers", "8"],
    &["carve", "f", "--dry-run", "--workers", "8"],
    &["filter", "a > 10", "m.ndjson", "-c", "--workers", "8"],
    &["explain", "a > 10", "m.ndjson", "--workers", "8", "--format", "json"],
];

fn lab() -> Lab {
    let lab = Lab::with(image(1 << 20, &[(0, &gif("a")), (700_000, &gif("b"))]));
    let lines: String = (0..200_000).map(|a| format!("{{\"a\":{a}}}\n")).collect();
    lab.put("m.ndjson", lines);
    lab
}

/// The command under a kernel limit, as a user to whom it applies.
fn limited(lab: &Lab, arguments: &[&str], limit: libc::__rlimit_resource_t, most: u64) -> Command {
    let mut command = lab.command(arguments);
    let as_user = limit == libc::RLIMIT_NPROC;
    let limits = move || {
        let value = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: setrlimit only reads `value`, which outlives the call.
        let done = unsafe { libc::setrlimit(limit, &value) };
        // Process limits do not apply to root. An unused id has no other processes.
        // SAFETY: geteuid takes no arguments and cannot fail.
        let changed = if as_user && unsafe { libc::geteuid() } == 0 {
            // SAFETY: setresuid takes no pointers.
            unsafe { libc::setresuid(4_000_000_123, 4_000_000_123, 4_000_000_123) }
        } else {
            0
        };
        match done == 0 && changed == 0 {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec `limits` makes only system calls; it takes no lock and
    // allocates nothing.
    unsafe { command.pre_exec(limits) };
    command
}

/// The relevant part of an answer, without the workers that found each row.
fn gist(ran: &Ran) -> (Option<i32>, String) {
    let keep = |line: &&str| !line.contains("\"workers\"");
    (ran.code, ran.text().lines().filter(keep).collect::<Vec<_>>().join("\n"))
}

fn check(limit: libc::__rlimit_resource_t, most: u64) {
    let lab = lab();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(lab.path(""), open).unwrap();
    for arguments in COMMANDS {
        let free = run(lab.command(*arguments), b"");
        let ran = run(limited(&lab, arguments, limit, most), b"");
        assert_eq!(ran.signal, None, "{arguments:?} within {most}: {ran:?}");
        // A condition is parsed on a separate stack.
        let may_fail = limit == libc::RLIMIT_AS || matches!(arguments[0], "filter" | "explain");
        if may_fail && ran.code == Some(2) {
            ran.says(2, &[]);
            assert!(!ran.stderr.contains("internal error"), "{arguments:?}: {ran:?}");
        } else {
            assert_eq!(gist(&ran), gist(&free), "{arguments:?} within {most}");
        }
    }
}

#[test]
fn few_processes_give_the_same_answers() {
    for most in [1, 2, 3, 5, 8] {
        check(libc::RLIMIT_NPROC, most);
    }
}

#[test]
fn little_address_space_gives_the_same_answers_or_one_line() {
    for most in [400, 500, 600] {
        check(libc::RLIMIT_AS, most << 20);
    }
}
