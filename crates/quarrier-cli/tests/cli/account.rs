//! The account of a run: statistics, report, explanation, help.

use std::fs;

use serde_json::Value;

use crate::harness::{Lab, noise, run};
use crate::remote::Server;

/// The keys of an object, in the order written.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

/// Whether statistics of any command have every field that the contract requires.
pub(crate) fn has_every_key(stats: &Value) -> bool {
    let keys = "command bytes seconds bytes_per_second findings workers buffers buffer_bytes engine \
                device stages ceiling limited_by";
    let stages = ["read", "work", "sink"].map(|stage| &stats["stages"][stage]);
    keys.split(' ').all(|key| stats.get(key).is_some())
        && stages.iter().all(|of| of["busy_seconds"].is_f64() && of["waiting_seconds"].is_f64())
}

/// The statistics, checked against the contract and for consistency.
#[track_caller]
fn check_stats(text: &[u8], bytes: u64, findings: u64) -> Value {
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
    let stats: Value = serde_json::from_slice(text).unwrap();
    assert!(has_every_key(&stats), "{stats}");
    assert_eq!(stats["command"], "search");
    assert_eq!(stats["bytes"], bytes);
    assert_eq!(stats["findings"], findings);
    assert_eq!(stats["device"], "cpu");
    assert!(!stats["engine"].as_str().unwrap().is_empty());
    let (seconds, rate) = (number(&stats, "/seconds"), number(&stats, "/bytes_per_second"));
    assert!(seconds > 0.0);
    assert!((rate * seconds - bytes as f64).abs() <= 0.01 * bytes as f64, "{stats}");
    for stage in ["read", "work", "sink"] {
        let of_stage = &stats["stages"][stage];
        assert_eq!(keys(of_stage), ["busy_seconds", "waiting_seconds"]);
        assert!(number(of_stage, "/busy_seconds") >= 0.0);
        assert!(number(of_stage, "/waiting_seconds") >= 0.0);
    }
    // The busy time of a stage cannot exceed the time of all its threads.
    let workers = number(&stats, "/workers");
    assert!(workers >= 1.0 && number(&stats, "/buffers") >= 1.0);
    assert!(number(&stats, "/stages/work/busy_seconds") <= 1.05 * seconds * workers + 0.001);
    assert!(number(&stats, "/stages/sink/busy_seconds") <= 1.05 * seconds * workers + 0.001);
    assert!(["read", "work", "sink"].contains(&stats["limited_by"].as_str().unwrap()));
    let ceiling = &stats["ceiling"];
    if !ceiling.is_null() {
        let known = ["disk read", "memory read", "cpu", "gpu copy", "network"];
        assert!(known.contains(&ceiling["of"].as_str().unwrap()));
        assert!(number(ceiling, "/share") > 0.0);
        let share = rate / number(ceiling, "/bytes_per_second");
        let all_data = stats["hole_bytes"] == 0;
        assert!(!all_data || (share / number(ceiling, "/share") - 1.0).abs() < 0.01, "{stats}");
    }
    stats
}

#[test]
fn statistics_have_every_key_and_add_up() {
    let lab = Lab::with(noise(4 << 20, 1));
    let found = lab.offsets(["-x", "00 01", "f"]).len() as u64;
    for access in ["auto", "window", "read", "queue", "uring"] {
        let args = ["-c", "-x", "00 01", "f", "--stats", "stats", "--access", access];
        assert_eq!(lab.search(args).is_clean().code, Some(0));
        let stats = check_stats(&fs::read(lab.path("stats")).unwrap(), 4 << 20, found);
        assert!(!stats["ceiling"].is_null() || !["window", "read"].contains(&access));
    }
}

#[test]
fn statistics_tell_the_settings_that_were_asked_for() {
    let lab = Lab::with(noise(100_000, 1));
    let wishes =
        "-c -x 0001 f --stats stats --workers 3 --buffers 5 --buffer-size 8K --engine gram";
    assert_eq!(lab.search(wishes.split(' ')).code, Some(0));
    let stats = check_stats(
        &fs::read(lab.path("stats")).unwrap(),
        100_000,
        lab.offsets(["-x", "0001", "f"]).len() as u64,
    );
    assert_eq!((&stats["workers"], &stats["buffers"]), (&3.into(), &5.into()));
    assert_eq!((&stats["buffer_bytes"], &stats["engine"]), (&8192.into(), &"gram".into()));
}

#[test]
fn statistics_count_the_range_and_all_sources() {
    let lab = Lab::with("abc".repeat(10_000));
    lab.put("g", "abc");
    let stats = |args: &[&str]| {
        assert_eq!(lab.search(args.iter().chain(&["--stats", "stats"])).code, Some(0));
        fs::read(lab.path("stats")).unwrap()
    };
    check_stats(&stats(&["abc", "f", "--range", "300..600"]), 300, 100);
    check_stats(&stats(&["abc", "f", "g"]), 30_003, 10_001);
}

#[test]
fn statistics_of_a_stream_count_its_bytes() {
    let lab = Lab::new();
    let ran = lab.search_input(&[b'a'; 50_000], ["-c", "a", "-", "--stats", "stats"]);
    assert_eq!(ran.is_clean().code, Some(0));
    check_stats(&fs::read(lab.path("stats")).unwrap(), 50_000, 50_000);
}

#[test]
fn statistics_may_go_to_standard_error() {
    let ran = Lab::with("xxabcxx").search(["abc", "f", "--stats", "-"]);
    assert_eq!((ran.code, ran.text()), (Some(0), "f:2: abc: abc\n"));
    check_stats(ran.stderr.as_bytes(), 7, 1);
}

#[test]
fn statistics_and_report_replace_older_ones_without_leftovers() {
    let lab = Lab::with("xxabcxx");
    for _ in 0..2 {
        let args = ["abc", "f", "--stats", "stats", "--report", "report.html"];
        assert_eq!(lab.search(args).is_clean().code, Some(0));
    }
    check_stats(&fs::read(lab.path("stats")).unwrap(), 7, 1);
    assert_eq!(lab.names().len(), 3);
}

/// A page that loads nothing.
#[track_caller]
fn check_page(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    let lower = page.to_lowercase();
    for loads in ["src=", "<link", "<iframe", "@import", "url(", "http://", "https://", "//cdn"] {
        assert!(!lower.contains(loads), "the page holds {loads}");
    }
    for (at, _) in lower.match_indices("href=") {
        assert!(lower[at..].starts_with("href=\"#"), "{}", &page[at..at + 40]);
    }
    assert!(lower.contains("default-src 'none'"));
}

#[test]
fn the_report_is_one_page_that_loads_nothing() {
    let lab = Lab::with(noise(3 << 20, 9));
    lab.put("g", "abc");
    let args = ["-c", "-x", "61 62", "-e", "abc", "f", "g", "--report", "report.html"];
    assert_eq!(lab.search(args).is_clean().code, Some(0));
    let page = fs::read_to_string(lab.path("report.html")).unwrap();
    check_page(&page);
    for word in ["61 62", "abc", "limited by", "engine", "workers", "read", "sink"] {
        assert!(page.contains(word), "no {word}");
    }
}

#[test]
fn the_report_is_written_even_for_trivial_runs() {
    let lab = Lab::with("");
    lab.put_sparse("holes", 1 << 40, &[]);
    for args in [&["abc", "f"][..], &["abc", "holes"], &["abc", "holes", "--range", "5..5"]] {
        let ran = lab.search(args.iter().chain(&["--report", "report.html"]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
        check_page(&fs::read_to_string(lab.path("report.html")).unwrap());
    }
    let ran = lab.search_input(b"abc", ["abc", "-", "--report", "report.html"]);
    assert_eq!(ran.is_clean().code, Some(0));
    check_page(&fs::read_to_string(lab.path("report.html")).unwrap());
}

#[test]
fn the_explanation_names_an_engine_for_every_kind_of_pattern_and_the_plan() {
    let lab = Lab::with("xxabcxx");
    let explained = |args: &[&str]| {
        let ran = lab.search(args.iter().chain(&["f", "--explain"]));
        assert_eq!(ran.text(), "f:2: abc: abc\n");
        ran.stderr
    };
    let auto = explained(&["abc"]);
    assert!(["packed", "gram", "memmem"].iter().any(|engine| auto.contains(engine)), "{auto}");
    assert!(explained(&["abc", "--engine", "gram"]).contains("gram: requested"));
    let both = explained(&["-e", "abc", "-E", "zz[0-9]"]);
    assert!(both.contains("regex") && both.lines().count() == 4, "{both}");
    assert!(both.contains("zz[0-9]: gated by z{2}[0-9], 0 bytes from the start"), "{both}");
    assert!(both.contains("f: window (the source is in memory or page cache), "), "{both}");
    assert!(explained(&["abc", "--readers", "3"]).contains("3 readers"));
}

#[test]
fn quiet_prints_only_findings() {
    let lab = Lab::with("xxabcxx");
    for quiet in ["--quiet", "-q"] {
        let ran = lab.search(["abc", "f", quiet]);
        assert_eq!(ran.is_clean().text(), "f:2: abc: abc\n");
    }
    // --quiet does not suppress errors.
    lab.search(["abc", "missing", "--quiet"]).refuses(&["missing"]);
}

#[test]
fn help_names_every_option_of_the_contract_and_has_examples() {
    let lab = Lab::new();
    let ran = lab.search(["--help"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for option in [
        "-e",
        "--pattern",
        "-x",
        "--hex",
        "-E",
        "--regex",
        "-f",
        "--patterns",
        "-i",
        "--ignore-case",
        "--utf16",
        "-c",
        "--count",
        "--max-count",
        "--range",
        "--aligned",
        "--context",
        "--workers",
        "--buffers",
        "--buffer-size",
        "--device",
        "--engine",
        "--report",
        "--regex-max-length",
        "--format",
        "--quiet",
        "--stats",
    ] {
        assert!(ran.text().contains(option), "no {option}");
    }
    let examples = ran.text().split("Examples:").nth(1).unwrap();
    assert!(examples.matches("quarrier search").count() >= 4);
    let main = run(lab.command(["--help"]), b"");
    assert!(main.code == Some(0) && main.text().contains("search"));
    let number = env!("CARGO_PKG_VERSION");
    let version = run(lab.command(["-V"]), b"");
    assert_eq!(version.text(), format!("quarrier {number}\n"));
    // Scripts read the second word.
    let version = run(lab.command(["--version"]), b"");
    assert_eq!(version.text().split_whitespace().nth(1), Some(number));
    assert!(version.text().contains("\nfeatures: "), "{version:?}");
}

#[test]
fn the_examples_of_the_help_can_be_typed() {
    let help = Lab::new().search(["--help"]);
    let examples = help.text().split("Examples:").nth(1).unwrap();
    let lines = examples.lines().filter_map(|line| line.trim().split_once("quarrier search "));
    for (before, example) in lines {
        let lab = Lab::with("invoice 2026 password 1234-5678 \n");
        for name in ["disk.img", "image.001", "dump.bin"] {
            fs::copy(lab.path("f"), lab.path(name)).unwrap();
        }
        lab.put("patterns.txt", "invoice\n");
        lab.put("malware.yar", "rule dropper { condition: true }\n");
        fs::create_dir(lab.path("images")).unwrap();
        fs::copy(lab.path("f"), lab.path("images/a.dd")).unwrap();
        let server = Server::well(fs::read(lab.path("f")).unwrap());
        let line = example
            .split(" | ")
            .next()
            .unwrap()
            .replace("/dev/sdb", "disk.img")
            .replace("~/.cache/quarrier", "cache")
            .replace("https://example.org/disk.img", &server.url);
        let binary = env!("CARGO_BIN_EXE_quarrier");
        let input = if before.is_empty() { "" } else { "cat f | " };
        let mut command = std::process::Command::new("sh");
        let script = format!("{input}'{binary}' search {line}");
        command.args(["-c", &script]).current_dir(lab.path(""));
        let ran = run(command, b"");
        let has_none = ran.stderr.contains("no file system");
        if line.contains("--unallocated") {
            assert!(ran.code == Some(2) && has_none, "{script}: {ran:?}");
            continue;
        }
        let says_more = line.contains("--where") && has_none;
        let is_quiet = ran.stderr.is_empty() || says_more;
        assert!(matches!(ran.code, Some(0 | 1)) && is_quiet, "{script}: {ran:?}");
    }
}

#[test]
fn the_hidden_markdown_holds_the_help_of_search() {
    let ran = run(Lab::new().command(["help-markdown"]), b"");
    assert!(ran.is_clean().text().starts_with("# The command line\n"));
    assert!(ran.text().contains("\n## quarrier search\n") && ran.text().contains("--max-count"));
}
