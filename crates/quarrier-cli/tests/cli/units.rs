//! A search unit by unit prints the output of one plain search, for any distribution of units and any kills.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::harness::{Lab, Ran, noise, run, send, skip, until_it_handles_interrupts, wait, works};

/// The first six have no regexes.
const PATTERNS: [&str; 10] =
    ["-i", "--utf16", "-e", "needle", "-x", "6E [1-3] 65", "-E", "[a-z]+", "-E", "(?s:.){7}"];

/// A lab with two sources, with matches across the borders of units.
fn lab() -> Lab {
    let lab = Lab::new();
    for (name, length, seed) in [("one", 70_000, 3), ("two", 31_000, 4)] {
        let mut bytes = noise(length, seed);
        for at in (0..length - 40).step_by(4093) {
            bytes[at..at + 12].copy_from_slice(b"<NeedleNeed>");
            bytes[at + 20..at + 32].copy_from_slice(b"n\0e\0e\0d\0l\0e\0");
        }
        bytes[20_000..21_001].fill(b'z');
        lab.put(name, bytes);
    }
    lab
}

fn search(lab: &Lab, more: &[&str]) -> Ran {
    lab.search([&PATTERNS[..], &["one", "two"], more].concat())
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn shards_in_any_order_then_the_join_print_what_a_plain_search_prints() {
    let lab = lab();
    let to = ["--to", "found", "--unit-size", "4K"];
    for shard in ["2/3", "0/3", "2/3", "1/3"] {
        let ran = search(&lab, &[&to[..], &["--shard", shard]].concat());
        assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(0), "", ""));
    }
    let objects = files(&lab.path("found"));
    assert_eq!(objects.len(), 70_000usize.div_ceil(4096) + 31_000usize.div_ceil(4096));
    let times = |paths: &[PathBuf]| -> Vec<_> {
        paths.iter().map(|path| fs::metadata(path).unwrap().modified().unwrap()).collect()
    };
    let before = times(&objects);
    for format in ["text", "json", "csv", "arrow"] {
        let plain = search(&lab, &["--format", format]);
        plain.is_clean();
        let joined = search(&lab, &[&to[..], &["--format", format]].concat());
        assert_eq!(joined.is_clean().stdout, plain.stdout, "{format}");
    }
    let counts = search(&lab, &[&to[..], &["-c"]].concat());
    assert_eq!(counts.is_clean().text(), search(&lab, &["-c"]).text());
    assert_eq!(times(&files(&lab.path("found"))), before, "nothing was run again");
    fs::remove_file(&objects[3]).unwrap();
    fs::write(&objects[5], &fs::read(&objects[5]).unwrap()[..700]).unwrap();
    let again = search(&lab, &to);
    assert_eq!((again.code, again.text()), (Some(0), search(&lab, &[]).text()));
    again.says(0, &["is damaged", "run again"]);
    assert_eq!(files(&lab.path("found")), objects);
}

#[test]
fn shards_without_a_folder_print_each_row_once() {
    let lab = lab();
    let sorted = |lines: Vec<&str>| {
        let mut lines: Vec<String> = lines.into_iter().map(str::to_string).collect();
        lines.sort();
        lines
    };
    for patterns in [&PATTERNS[..6], &PATTERNS[..10]] {
        let plain = lab.search([patterns, &["one", "two"]].concat());
        let mut lines = Vec::new();
        let shards: Vec<Ran> = ["0/3", "1/3", "2/3"]
            .map(|shard| {
                let shard = ["one", "two", "--unit-size", "3000", "--shard", shard];
                lab.search([patterns, &shard].concat())
            })
            .into();
        shards.iter().for_each(|ran| lines.extend(ran.lines()));
        assert_eq!(sorted(lines), sorted(plain.lines()));
    }
}

#[test]
fn a_plan_counts_units_and_runs_none() {
    let lab = lab();
    let plan = |more: &[&str]| -> serde_json::Value {
        let to = ["--to", "found", "--unit-size", "4K", "--rate", "1K", "--plan"];
        let ran = search(&lab, &[&to[..], &["--format", "json"], more].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        serde_json::from_slice(&ran.stdout).unwrap()
    };
    let all = plan(&[]);
    let numbers = ["units", "bytes", "units_done"].map(|name| all[name].as_u64().unwrap());
    assert_eq!(numbers, [26, 101_000, 0]);
    assert!((all["seconds"].as_f64().unwrap() - 101_000.0 / 1024.0).abs() < 0.01, "{all}");
    assert!(!lab.path("found").exists());
    let of_one = plan(&["--shard", "1/4"]);
    assert_eq!(of_one["units"], 7);
    search(&lab, &["--to", "found", "--unit-size", "4K", "--shard", "1/4"]);
    assert_eq!(plan(&[])["units_done"], 7);
    assert_eq!(plan(&["--shard", "1/4"])["seconds"].as_f64(), Some(0.0));
    let text = search(&lab, &["--plan", "--unit-size", "64K", "--rate", "101000"]);
    assert!(text.text().starts_with("3 units, ") && text.text().contains("; about 1"), "{text:?}");
    assert!(search(&lab, &["--plan"]).text().contains("/s"));
}

#[test]
fn a_plan_is_simulated_on_several_nodes() {
    let lab = lab();
    let plan = |more: &[&str]| -> serde_json::Value {
        let to = ["--plan", "--unit-size", "10100", "--rate", "10100", "--nodes"];
        let ran = search(&lab, &[&to[..], more, &["--format", "json"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        serde_json::from_slice(&ran.stdout).unwrap()
    };
    let is = |plan: serde_json::Value, seconds: f64, limit: &str| {
        let simulated = plan["simulated_seconds"].as_f64().unwrap();
        assert!((simulated - seconds).abs() < 0.1, "{plan}");
        assert_eq!(plan["limited_by"], limit, "{plan}");
    };
    let units = plan(&["1"])["units"].as_f64().unwrap();
    is(plan(&["1"]), 101_000.0 / 10_100.0, "nodes");
    is(plan(&["1000"]), 1.0, "units");
    is(plan(&["1000", "--store-rate", "10100"]), 101_000.0 / 10_100.0, "store");
    is(plan(&["1000", "--dispatch", "2"]), (units - 1.0) * 2.0, "scheduler");
    let text = search(&lab, &["--plan", "--rate", "4K", "--nodes", "3"]);
    assert!(text.text().contains("; simulated on 3 nodes: "), "{text:?}");
    let check = |more: &[&str], words: &[&str]| search(&lab, more).refuses(words);
    check(&["--nodes", "3"], &["--plan"]);
    check(&["--plan", "--store-rate", "3"], &["--nodes"]);
    check(&["--plan", "--nodes", "0"], &["--nodes"]);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let lab = lab();
    let check = |more: &[&str], words: &[&str]| search(&lab, more).refuses(words);
    check(&["--shard", "3/3"], &["3", "counted from 0"]);
    check(&["--shard", "1"], &["0/8"]);
    check(&["--unit-size", "4K"], &["--to"]);
    check(&["--rate", "4K"], &["--plan"]);
    check(&["--to", "https://lab/found"], &["https://lab/found", "s3://"]);
    check(&["--to", "found", "--histogram"], &["--histogram"]);
    check(&["--to", "found", "-m", "3"], &["--max-count"]);
    check(&["--to", "found", "--unit-size", "0"], &["--unit-size"]);
    lab.search(["a", ".", "--to", "found"]).refuses(&["found", "is searched"]);
    lab.search(["a", "-", "--to", "found"]).refuses(&["-", "sequentially"]);
    lab.search(["a", "missing", "--to", "found"]).refuses(&["missing", "No such file"]);
    lab.search(["a", "one", "--to", "two"]).says(2, &["two"]);
    assert_eq!(lab.names().into_iter().collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn exit_codes_distinguish_nothing_found_from_nothing_to_search() {
    let lab = lab();
    lab.put("empty", "");
    assert_eq!(
        lab.search(["nowhere to be found", "one", "--to", "found"]).is_clean().code,
        Some(1)
    );
    assert_eq!(lab.search(["a", "empty", "--to", "found"]).is_clean().code, Some(1));
    let shard = ["a", "empty", "--to", "found", "--shard", "0/2"];
    let ran = lab.search(shard);
    assert_eq!((ran.code, ran.text(), &*ran.stderr), (Some(0), "", ""));
}

#[test]
fn a_match_that_is_too_long_is_the_error_of_a_plain_search() {
    let lab = Lab::with([&noise(3000, 1)[..], b"<", &[b'x'; 9000], b">"].concat());
    let args = ["-E", "<[^>]*>", "-e", "x", "--regex-max-length", "2000", "f"];
    let plain = lab.search(args);
    plain.says(2, &["matches more than 2000 bytes"]);
    for _ in 0..2 {
        let joined = lab.search([&args[..], &["--to", "found", "--unit-size", "1000"]].concat());
        assert_eq!(joined.says(2, &["matches more than 2000 bytes"]).stdout, plain.stdout);
        assert_eq!(joined.stderr, plain.stderr);
    }
}

#[test]
fn killed_processes_lose_no_row_and_double_none() {
    let lab = Lab::new();
    let mut bytes = noise(3 << 20, 9);
    for at in (0..bytes.len() - 20).step_by(997) {
        bytes[at..at + 6].copy_from_slice(b"needle");
    }
    lab.put("f", bytes);
    let args = ["-e", "needle", "-E", "[a-z]{2,}", "f", "--format", "json"];
    let plain = lab.search(args);
    for round in 0..6u64 {
        let to = format!("found{}", round % 2);
        let cut = ["--to", &to, "--unit-size", "64K"];
        let mut shards: Vec<_> = ["0/2", "1/2"]
            .map(|shard| {
                let mut command =
                    lab.search_command([&args[..], &cut, &["--shard", shard]].concat());
                command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
            })
            .into();
        thread::sleep(Duration::from_millis(10 + 17 * round));
        for child in &mut shards {
            // It may have ended already.
            let _ = child.kill();
            child.wait().unwrap();
        }
        // Objects are complete or absent.
        let joined = lab.search([&args[..], &cut].concat());
        assert_eq!(joined.is_clean().stdout, plain.stdout, "round {round}");
        assert!(files(&lab.path(&to)).iter().all(|path| path.extension().unwrap() == "arrow"));
        if round % 2 == 1 {
            fs::remove_dir_all(lab.path(&to)).unwrap();
        }
    }
}

#[test]
fn ctrl_c_ends_after_whole_units_and_the_same_command_continues() {
    let lab = Lab::new();
    lab.put_sparse("f", 1 << 40, &[(10, b"needle"), (1 << 39, b"needle")]);
    let args = ["-x", "00 00 6E", "f", "--to", "found", "--unit-size", "1M", "--shard", "0/1"];
    let mut command = lab.search_command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_handles_interrupts(&child);
    while files(&lab.path("found")).len() < 3 {
        thread::sleep(Duration::from_millis(1));
    }
    send("INT", &child);
    let status = wait(&mut child);
    assert_eq!(status.code(), Some(130));
    assert!(files(&lab.path("found")).iter().all(|path| path.extension().unwrap() == "arrow"));
}

#[test]
fn unreadable_ranges_are_listed_for_any_process() {
    if !works("strace", &["-qq", "-o", "/dev/null", "true"].map(AsRef::as_ref)) {
        return skip("there is no strace, or it may not trace");
    }
    let lab = Lab::with(vec![b'-'; 300_000]);
    let path = lab.path("f").canonicalize().unwrap();
    let args = ["search", "-e", "-------", "f", "-c", "--to", "found", "--unit-size", "1M"];
    let more = ["--workers", "1", "--buffer-size", "64K", "--access", "read", "--engine", "gram"];
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64"]);
    command.args(["-e", "inject=pread64:error=EIO:when=7..11", "-P"]).arg(path);
    command.arg(env!("CARGO_BIN_EXE_quarrier")).args(args).args(more);
    command.current_dir(lab.path(""));
    let first = run(command, b"");
    first.says(3, &["f: bytes ", "could not be read"]);
    let again = lab.command(args.into_iter().chain(more));
    let again = run(again, b"");
    assert_eq!((again.code, &again.stderr), (Some(3), &first.stderr));
    assert_eq!(again.text(), first.text());
}

#[test]
fn a_notice_of_the_source_is_printed_once() {
    let lab = Lab::new();
    lab.put("packed", "LZIP\u{1} an invoice");
    for how in [&["--shard", "0/1"][..], &["--to", "found"], &["--to", "found", "--shard", "0/2"]] {
        let ran = lab.search([&["invoice", "packed"][..], how].concat());
        let line = "quarrier: packed: is compressed by lzip";
        assert_eq!(ran.stderr.matches(line).count(), 1, "{how:?}: {ran:?}");
    }
}
