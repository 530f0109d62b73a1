//! Every command in every poor environment: the same answer, or one line and exit code 2, and no
//! partial output.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::carve::{gif, image, tree};
use crate::failures::FullDisk;
use crate::gauge::report;
use crate::harness::{Lab, Ran, run, skip};
use crate::outputs::FILES;
use crate::surroundings::Surroundings;

/// A user without other processes, which would count for limits.
const USER: u32 = 4_000_000_125;

/// Every command, with its output in `out`.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["search", "--list-engines"],
    &["search", "GIF", "f"],
    &["search", "GIF", "f", "--workers", "8", "--access", "uring", "--format", "json"],
    &["search", "-f", "patterns", "f", "-c", "--report", "out/r.html", "--stats", "out/s.json"],
    &["carve", "f", "--dry-run", "--format", "json"],
    &["carve", "f", "-o", "out/carved", "--stats", "out/s.json"],
    &["filter", "a > 10", "m.ndjson", "-c", "--workers", "8"],
    &["filter", "a > 990", "r.ndjson", "--rejects", "out/rejects", "--stats", "out/s.json"],
    &["filter", "--many", "conditions", "m.ndjson", "--format", "json"],
    &["explain", "a > 10", "m.ndjson", "--format", "json", "--stats", "out/s.json"],
    &["gauge", "--from", "report.json", "--json", "out/g.json", "--html", "out/g.html"],
    &["gauge", "cpu", "--quick", "--runs", "1", "--json", "out/g.json", "--html", "out/g.html"],
];

fn lab() -> Lab {
    let lab = Lab::with(image(1 << 20, &[(0, &gif("a")), (700_000, &gif("b"))]));
    let lines: String = (0..1_000).map(|a| format!("{{\"a\":{a}}}\n")).collect();
    lab.put("m.ndjson", &lines);
    lab.put("r.ndjson", format!("{lines}no message\n"));
    lab.put("patterns", "GIF\nre:GIF8[79]a\nhex:FF D8 FF E0\n");
    lab.put("conditions", "a > 0\na > 500\n");
    lab.put("report.json", report(50e9, "host"));
    fs::set_permissions(lab.path(""), Permissions::from_mode(0o755)).unwrap();
    lab
}

/// The answer of a command, and its output files.
struct Answer {
    ran: Ran,
    files: BTreeMap<String, Vec<u8>>,
}

fn answer(lab: &Lab, arguments: &[&str], surroundings: Option<Surroundings>) -> Answer {
    let out = lab.path("out");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, Permissions::from_mode(0o777)).unwrap();
    let mut command = lab.command(arguments);
    command.env("XDG_CACHE_HOME", lab.path("out/cache"));
    if let Some(surroundings) = surroundings {
        surroundings.around(&mut command);
    }
    let ran = run(command, b"");
    let _ = fs::remove_dir_all(out.join("cache"));
    Answer { ran, files: tree(&out) }
}

/// The exit code, the output and the files, without measurements.
fn gist(answer: &Answer, arguments: &[&str]) -> (Option<i32>, String, Vec<String>) {
    let is_measured = arguments.starts_with(&["gauge", "cpu"]);
    let keep = |line: &&str| !line.contains("\"workers\"") && !is_measured;
    let text = answer.ran.text().lines().filter(keep).collect::<Vec<_>>().join("\n");
    // A notice about an unknown resource is not an error.
    (answer.ran.code, text, answer.files.keys().cloned().collect())
}

/// Checks for at most one line, which states the error.
#[track_caller]
fn check_line(ran: &Ran, at: &str) {
    assert_eq!(ran.signal, None, "{at}: {ran:?}");
    assert!(matches!(ran.code, Some(0..=3)), "{at}: {ran:?}");
    // A line about rejected messages is a notice.
    let lines = ran.stderr.lines().filter(|line| !line.contains(" left out, the first at line "));
    assert!(lines.count() <= 1 || ran.code == Some(0), "{at}: {}", ran.stderr);
    assert!(ran.stderr.lines().all(|line| line.starts_with("quarrier: ")), "{at}: {ran:?}");
    assert!(!ran.stderr.contains("internal error"), "{at}: {ran:?}");
}

/// Checks that every file is complete: JSON parses, a page has its end, a carved file is one of
/// `whole`.
#[track_caller]
fn check_files(files: &BTreeMap<String, Vec<u8>>, whole: &BTreeMap<String, Vec<u8>>, at: &str) {
    // The state for `--resume` is not a result.
    for (name, bytes) in files.iter().filter(|(name, _)| !name.contains(".carving/")) {
        let text = String::from_utf8_lossy(bytes);
        let is_whole = match Path::new(name).extension().and_then(|ending| ending.to_str()) {
            Some("json") => serde_json::from_str::<serde_json::Value>(&text).is_ok(),
            Some("html") => text.trim_end().ends_with("</html>"),
            Some("dfxml") => text.trim_end().ends_with("</dfxml>"),
            _ if name == "rejects" || name.ends_with(".jsonl") => {
                text.split_inclusive('\n').all(|line| {
                    line.ends_with('\n') && serde_json::from_str::<serde_json::Value>(line).is_ok()
                })
            }
            _ => whole.get(name) == Some(bytes),
        };
        assert!(is_whole, "{at}: {name} is half-written: {}", text.escape_debug());
    }
}

#[test]
fn every_command_answers_in_poor_surroundings_as_it_does_in_others() {
    let all = [
        Surroundings::OneThread(USER),
        Surroundings::FewFiles,
        Surroundings::NoProc,
        Surroundings::LittleMemory,
    ];
    let lab = lab();
    let free: Vec<Answer> = COMMANDS.iter().map(|command| answer(&lab, command, None)).collect();
    for surroundings in all {
        if !surroundings.can_be_made() {
            skip(&format!("{surroundings:?} cannot be made here"));
            continue;
        }
        for (arguments, free) in COMMANDS.iter().zip(&free) {
            let at = format!("{surroundings:?}: {arguments:?}");
            let poor = answer(&lab, arguments, Some(surroundings));
            check_line(&poor.ran, &at);
            check_files(&poor.files, &free.files, &at);
            // One thread cannot measure several together.
            let needs_threads = arguments.starts_with(&["gauge", "cpu"]);
            if needs_threads && matches!(surroundings, Surroundings::OneThread(_)) {
                poor.ran.refuses(&["the system refuses a thread"]);
                assert!(poor.files.is_empty(), "{at}: {:?}", poor.files.keys());
                continue;
            }
            assert_eq!(gist(&poor, arguments), gist(free, arguments), "{at}: {:?}", poor.ran);
        }
    }
}

/// The command of the table with another target for `sealed` and `sealed/x`.
fn with_target<'a>(arguments: &[&'a str], target: &'a str) -> Vec<&'a str> {
    let change = |word: &&'a str| match *word {
        "m.ndjson" if arguments.contains(&"--rejects") => "r.ndjson",
        word if word.starts_with("sealed") => target,
        word => word,
    };
    arguments.iter().map(change).collect()
}

#[test]
fn an_unwritable_file_is_one_error_line_without_leftovers() {
    let lab = lab();
    // A fifo or device cannot be the output folder, and was reported.
    for (target, words) in [("/dev/full", ["/dev/full", "No space left"]), ("f/x", ["f/x", ""])] {
        for arguments in FILES {
            let is_folder = arguments.contains(&"-o");
            let before = lab.names();
            let ran = run(lab.command(with_target(arguments, target)), b"");
            let at = format!("{target}: {arguments:?}");
            check_line(&ran, &at);
            assert_eq!(ran.code, Some(2), "{at}: {ran:?}");
            let said = |word: &&str| is_folder || ran.stderr.contains(*word);
            assert!(words.iter().all(said), "{at}: {ran:?}");
            assert_eq!(lab.names(), before, "{at}");
        }
    }
}

#[test]
fn a_file_over_the_size_limit_is_one_error_line_without_leftovers() {
    let lab = lab();
    for arguments in FILES.iter().filter(|arguments| !arguments.contains(&"-o")) {
        let before = lab.names();
        let mut command = lab.command(with_target(arguments, "x"));
        Surroundings::ShortFiles(16).around(&mut command);
        let ran = run(command, b"");
        let at = format!("{arguments:?}");
        check_line(&ran, &at);
        assert_eq!(ran.code, Some(2), "{at}: {ran:?}");
        assert!(ran.stderr.contains("File too large"), "{at}: {ran:?}");
        assert_eq!(lab.names(), before, "{at}");
    }
}

/// An image of pictures that fill a small disk.
fn pictures() -> Vec<u8> {
    let picture = gif(&"w".repeat(40_000));
    let at = |place: usize| (place * 50_000, &picture[..]);
    image(500_000, &[at(0), at(1), at(2), at(3), at(4), at(5)])
}

#[test]
fn carved_files_on_a_full_disk_are_complete_or_absent() {
    let lab = Lab::with(pictures());
    let Some(disk) = FullDisk::of_free_bytes(&lab.path("disk"), 160 << 10) else {
        return skip("a tmpfs cannot be mounted here");
    };
    let whole = answer(&lab, &["carve", "f", "-o", "out/carved"], None);
    assert_eq!(whole.ran.code, Some(0), "{:?}", whole.ran);
    let ran = run(lab.command(["carve", "f", "-o", "disk/carved"]), b"");
    check_line(&ran, "a small disk");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("No space left"), "{ran:?}");
    let files = tree(disk.path());
    assert!(files.keys().any(|name| name.ends_with(".gif")), "{:?}", files.keys());
    check_files(&files, &whole.files, "a small disk");
}

#[test]
fn carved_files_over_the_size_limit_are_complete_or_absent() {
    let lab = Lab::with(pictures());
    let whole = answer(&lab, &["carve", "f", "-o", "out/carved"], None);
    let short = Some(Surroundings::ShortFiles(30_000));
    let cut = answer(&lab, &["carve", "f", "-o", "out/carved"], short);
    check_line(&cut.ran, "short files");
    assert_eq!(cut.ran.code, Some(2), "{:?}", cut.ran);
    assert!(cut.ran.stderr.contains("File too large"), "{:?}", cut.ran);
    check_files(&cut.files, &whole.files, "short files");
    let resumed = run(lab.command(["carve", "f", "-o", "out/carved", "--resume"]), b"");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(tree(&lab.path("out")) == whole.files, "not as if nothing had happened");
}
