//! Statements under every kind of resource limit: the same answer, or one line and exit code 2, and
//! never a partial output file.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::harness::{Folder, text};
use crate::surroundings::Surroundings;

/// A user without other processes, since the limit counts processes of the user.
const USER: u32 = 4_000_000_126;

const JOIN: &str = "SELECT count(*), max(x.a) FROM 'm.ndjson' x JOIN 'm.parquet' y ON x.a = y.a \
                    WHERE x.a + y.a > 9";

const GROUPS: &str = "SELECT a % 7 AS g, count(*) FROM 'm.ndjson' GROUP BY g ORDER BY g";

/// The commands, which write to `out`.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["explain", "a > 10", "m.ndjson", "--format", "json"],
    &["SELECT 1 AS one", "--format", "csv"],
    &["SELECT count(*) FROM 'm.ndjson'", "--format", "json", "--stats", "out/s.json"],
    &["SELECT a FROM 'r.ndjson' WHERE a > 990", "--rejects", "out/rejects", "--quiet"],
    &[GROUPS, "--format", "csv"],
    &[JOIN, "--format", "csv", "--workers", "4"],
    &["SELECT * FROM search('m.ndjson', '\"a\":99')", "--format", "csv"],
    &["COPY (SELECT * FROM 'm.ndjson') TO 'out/copy.parquet'"],
    &["COPY (SELECT * FROM 'm.ndjson') TO 'out/copy.ndjson'"],
    &["COPY (SELECT * FROM 'm.ndjson') TO 'out/copy.csv'"],
    &["COPY (SELECT * FROM 'm.ndjson') TO 'out/copy.arrow'"],
    &["--concurrent", "q.sql", "--quiet", "--format", "json"],
];

fn folder() -> Folder {
    let folder = Folder::new();
    let lines: String = (0..2_000).map(|a| format!("{{\"a\":{a},\"t\":\"text {a}\"}}\n")).collect();
    folder.file("m.ndjson", &lines);
    folder.file("r.ndjson", &format!("{lines}no message\n"));
    folder.file("q.sql", "SELECT count(*) FROM 'm.ndjson';\nSELECT max(a) FROM 'm.ndjson';\n");
    let copied = folder.run(&["COPY (SELECT * FROM 'm.ndjson') TO 'm.parquet'"]);
    assert!(copied.status.success(), "{copied:?}");
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).unwrap();
    folder
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"));
    command.current_dir(folder.path("")).args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command with an empty folder `out`. Returns the output, and the files in the folder
/// afterwards.
fn answer(
    folder: &Folder,
    arguments: &[&str],
    surroundings: Option<Surroundings>,
) -> (Output, Vec<(String, Vec<u8>)>) {
    let out = folder.path("out");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, Permissions::from_mode(0o777)).unwrap();
    let mut command = command(folder, arguments);
    if let Some(surroundings) = surroundings {
        surroundings.around(&mut command);
    }
    let output = command.output().unwrap();
    let files = fs::read_dir(&out).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(&path).unwrap())
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    (output, files)
}

/// The output without times.
fn printed(output: &Output) -> String {
    let is_measured = |line: &&str| line.contains("\"seconds\"") || line.contains("\"workers\"");
    text(&output.stdout).lines().filter(|line| !is_measured(line)).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check_refusal(output: &Output, at: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{at}: {output:?}");
    assert_eq!(said.lines().count(), 1, "{at}: {said}");
    assert!(said.starts_with("quarrier: ") && !said.contains("internal error"), "{at}: {said}");
}

#[test]
fn resource_limits_give_the_same_answer_or_one_line() {
    let folder = folder();
    let free: Vec<_> = COMMANDS.iter().map(|arguments| answer(&folder, arguments, None)).collect();
    let all = [
        Surroundings::OneThread(USER),
        Surroundings::FewFiles,
        Surroundings::NoProc,
        Surroundings::LittleMemory,
    ];
    for surroundings in all.into_iter().filter(|surroundings| surroundings.can_be_made()) {
        // Statements run on threads.
        let may_refuse = matches!(surroundings, Surroundings::OneThread(_));
        for (arguments, (free, free_files)) in COMMANDS.iter().zip(&free) {
            let at = format!("{surroundings:?}: {arguments:?}");
            assert!(free.status.success(), "{at}: {free:?}");
            let (poor, files) = answer(&folder, arguments, Some(surroundings));
            if may_refuse && !poor.status.success() {
                check_refusal(&poor, &at);
                assert!(files.is_empty(), "{at}: {files:?}");
                continue;
            }
            assert!(poor.status.success(), "{at}: {poor:?}");
            assert_eq!(printed(&poor), printed(free), "{at}");
            for ((name, bytes), (free_name, free_bytes)) in files.iter().zip(free_files) {
                // The size of batches depends on the memory.
                let is_cut =
                    name == "s.json" || [".arrow", ".parquet"].iter().any(|e| name.ends_with(e));
                let is_same = name == free_name && (bytes == free_bytes || is_cut);
                assert!(is_same, "{at}: {name} differs from {free_name}");
            }
            assert_eq!(files.len(), free_files.len(), "{at}");
            for (name, _) in files.iter().filter(|(name, _)| name.starts_with("copy.")) {
                let count =
                    folder.run(&[&format!("SELECT count(a) FROM 'out/{name}'"), "--format", "csv"]);
                assert!(text(&count.stdout).ends_with("\n2000\n"), "{at}: {count:?}");
            }
        }
    }
}

#[test]
fn failed_writes_are_one_line_and_leave_no_file() {
    let folder = folder();
    let formats = ["parquet", "ndjson", "csv", "arrow", "txt"];
    let copy = |target: &str, format: &str| {
        format!("COPY (SELECT * FROM 'm.ndjson') TO '{target}' STORED AS {format}")
    };
    for (target, short, word) in [
        ("/dev/full", None, "No space left"),
        ("m.ndjson/x", None, "Not a directory"),
        ("out/x", Some(Surroundings::ShortFiles(100)), "File too large"),
    ] {
        let mut all: Vec<Vec<String>> =
            formats.iter().map(|format| vec![copy(target, format)]).collect();
        for option in ["--rejects", "--stats"] {
            let asked = ["SELECT max(a) FROM 'r.ndjson'", "--quiet", option, target];
            all.push(asked.map(ToString::to_string).to_vec());
        }
        for arguments in &all {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let at = format!("{target}: {arguments:?}");
            let (output, files) = answer(&folder, &arguments, short);
            check_refusal(&output, &at);
            assert!(text(&output.stderr).contains(word), "{at}: {output:?}");
            assert!(files.is_empty(), "{at}: {files:?}");
        }
    }
    let is_special = |name: &str| OpenOptions::new().write(true).open(name).is_ok();
    assert!(is_special("/dev/full"), "a device was replaced by a file");
}
