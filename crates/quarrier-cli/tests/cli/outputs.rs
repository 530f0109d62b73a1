//! Every command, in every format, with an output that cannot be written: a full disk is a failure
//! reported in one line, a closed pipe is success, a folder without permission is a failure that names
//! it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::carve::{gif, image};
use crate::gauge::report;
use crate::harness::{Lab, Ran, drain, skip, wait};

/// Commands that print rows, without the format.
const ROWS: &[&[&str]] = &[
    &["search", "a", "f"],
    &["search", "a", "f", "-c"],
    &["search", "a", "f", "--max-count", "1"],
    &["carve", "f", "--dry-run"],
    &["carve", "f", "--dry-run", "--embedded"],
    &["carve", "f", "-o", "out"],
    &["filter", "a > 0", "m.ndjson"],
    &["filter", "a > 0", "m.ndjson", "-c"],
    &["filter", "a > 0", "m.ndjson", "--columns", "a"],
    &["filter", "--many", "conditions", "m.ndjson"],
    &["gauge", "--from", "report.json"],
];

/// Commands with other output.
const TEXTS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["help-markdown"],
    &["search", "--list-engines"],
    &["explain", "a > 0", "m.ndjson"],
    &["explain", "a > 0", "m.ndjson", "--format", "json"],
    &["search", "--help"],
    &["carve", "--help"],
    &["filter", "--help"],
    &["explain", "--help"],
    &["gauge", "--help"],
    &["gauge", "--from", "report.json", "--compare", "report.json"],
];

fn lab() -> Lab {
    let lab = Lab::with(image(10_000, &[(0, &gif("a")), (5001, &gif("b"))]));
    lab.put("m.ndjson", "{\"a\":1}\n{\"a\":2}\n");
    lab.put("conditions", "a > 0\na > 1\n");
    lab.put("report.json", report(50e9, "host"));
    lab
}

/// All commands of the table, each in each of its formats.
fn all() -> Vec<Vec<&'static str>> {
    let formats = ["text", "json", "csv", "arrow"];
    let rows = ROWS
        .iter()
        .flat_map(|row| formats.map(|format| [row, &["--quiet", "--format", format][..]].concat()));
    rows.chain(TEXTS.iter().map(|text| text.to_vec())).collect()
}

fn run_into(mut command: Command, stdout: impl Into<Stdio>) -> Ran {
    let mut child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = drain(child.stderr.take().unwrap());
    Ran::new(wait(&mut child), Vec::new(), &stderr)
}

#[test]
fn a_full_disk_under_standard_output_is_a_failure_of_every_command() {
    let lab = lab();
    for arguments in all() {
        let full: File = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let _ = fs::remove_dir_all(lab.path("out"));
        let ran = run_into(lab.command(&arguments), full);
        // With --quiet and a folder, no text for people is printed, so no write can fail.
        if arguments.starts_with(&["carve", "f", "-o"]) && arguments.ends_with(&["text"]) {
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
            continue;
        }
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        ran.refuses(&["standard output", "No space left"]);
    }
}

#[test]
fn a_closed_pipe_under_standard_output_is_success_of_every_command() {
    let lab = lab();
    for arguments in all() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let _ = fs::remove_dir_all(lab.path("out"));
        let ran = run_into(lab.command(&arguments), writer);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// Options that name an output file, with a command that takes them.
pub(crate) const FILES: &[&[&str]] = &[
    &["search", "a", "f", "--stats", "sealed/x"],
    &["search", "a", "f", "--report", "sealed/x"],
    &["carve", "f", "--dry-run", "--stats", "sealed/x"],
    &["carve", "f", "--dry-run", "--report", "sealed/x"],
    &["carve", "f", "-o", "sealed/x"],
    &["carve", "f", "-o", "sealed"],
    &["filter", "a > 0", "m.ndjson", "--stats", "sealed/x"],
    &["filter", "a > 0", "m.ndjson", "--rejects", "sealed/x"],
    &["explain", "a > 0", "m.ndjson", "--stats", "sealed/x"],
    &["gauge", "--from", "report.json", "--json", "sealed/x"],
    &["gauge", "--from", "report.json", "--html", "sealed/x"],
    &["gauge", "--from", "report.json", "--stats", "sealed/x"],
];

#[test]
fn a_folder_that_cannot_be_written_is_a_failure_that_names_it() {
    let lab = lab();
    lab.put("m.ndjson", "{\"a\":1}\nno message\n");
    fs::create_dir(lab.path("sealed")).unwrap();
    fs::set_permissions(lab.path("sealed"), Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(lab.path(""), Permissions::from_mode(0o755)).unwrap();
    let is_root = File::create(lab.path("sealed/probe")).is_ok();
    let _ = fs::remove_file(lab.path("sealed/probe"));
    // Permissions do not apply to root, so the command runs as nobody.
    let as_user = |mut command: Command| {
        if is_root {
            command.uid(65534).gid(65534);
        }
        command
    };
    if as_user(lab.command(["--version"])).stdout(Stdio::null()).status().is_err() {
        return skip("nobody may not run the binary where it lies");
    }
    for arguments in FILES {
        let ran = run_into(as_user(lab.command(*arguments)), Stdio::null());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        let words = ["sealed", "Permission denied"];
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.lines().all(|line| line.starts_with("quarrier: ")), "{ran:?}");
    }
}
