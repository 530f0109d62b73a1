//! Hostile sources: none of their contents controls the terminal or the report.

use std::fs;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

use quarrier_report::is_harmful;

use crate::harness::{Lab, run, wait};

/// Fails if text for people contains a harmful character other than line ends.
#[track_caller]
fn check(text: &str) {
    assert!(!text.contains(|c| is_harmful(c) && c != '\n'), "{text:?}");
}

/// The output of a run on a terminal.
fn on_terminal(mut command: Command) -> String {
    let (mut ours, mut its) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: `ours` and `its` are writable ints. The name, the settings and the size are null,
    // which openpty allows.
    let done = unsafe { libc::openpty(&mut ours, &mut its, none, none.cast(), none.cast()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty has just opened both descriptors, and nothing else owns them.
    let (mut ours, its) = unsafe { (fs::File::from_raw_fd(ours), OwnedFd::from_raw_fd(its)) };
    let mut child = command
        .env("NO_COLOR", "1")
        .stdout(Stdio::from(its.try_clone().unwrap()))
        .stderr(Stdio::from(its))
        .spawn()
        .unwrap();
    // The command holds the other end of the terminal, which would keep it open for ever.
    drop(command);
    let mut shown = Vec::new();
    // When nobody has the other end any more, reading fails.
    let _ = ours.read_to_end(&mut shown);
    wait(&mut child);
    // A terminal's driver writes a carriage return before each line feed.
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_terminal_gets_no_rows_that_are_no_text() {
    let lab = Lab::with("{\"a\":1}\n");
    for args in [
        &["search", "a", "f", "--format", "arrow"][..],
        &["filter", "a = 1", "f", "--format", "arrow"],
        &["carve", "f", "--dry-run", "--format", "arrow"],
    ] {
        let shown = on_terminal(lab.command(args));
        assert!(shown.contains("refusing to write binary to a terminal"), "{shown:?}");
        assert_eq!(shown.lines().count(), 1, "{shown:?}");
    }
}

/// A file name, and its escaped form.
const NAMES: [(&str, &str); 12] = [
    ("\x1b[31mred", "\\x1b[31mred"),
    ("two\nlines", "two\\nlines"),
    ("back\x08space", "back\\x08space"),
    ("bell\x07", "bell\\x07"),
    ("csi\u{9b}31m", "csi\\u{9b}31m"),
    ("tab\t", "tab\\t"),
    ("a\u{202e}gpj.exe", "a\\u{202e}gpj.exe"),
    ("mark\u{61c}", "mark\\u{61c}"),
    ("soft\u{ad}", "soft\\u{ad}"),
    ("line\u{2028}", "line\\u{2028}"),
    ("zero\u{200b}", "zero\\u{200b}"),
    ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
];

#[test]
fn harmful_characters_of_file_names_do_not_reach_the_terminal() {
    let lab = Lab::new();
    for (name, expected) in NAMES {
        lab.put(name, "abc");
        let ran = lab.search(["b", name]);
        check(ran.is_clean().text());
        assert!(ran.text().starts_with(&format!("{expected}:")), "{ran:?}");
        assert_eq!(ran.lines().len(), 1, "{name:?}");
        // Output for programs keeps the name unchanged.
        assert_eq!(lab.find(["b", name])[0].source, name);
    }
}

#[test]
fn harmful_characters_of_patterns_and_names_do_not_reach_the_terminal() {
    let lab = Lab::with("x\x1b[31my\nz\x07a\u{202e}\u{e0041}");
    lab.put("p", "\x1b[31m\n");
    lab.put("q", "a\u{202e}\u{e0041}\n");
    for args in
        [["-e", "\x1b[31m"], ["-e", "y\nz\x07"], ["-E", "\x1b\\[31m"], ["-f", "p"], ["-f", "q"]]
    {
        for more in [&["f"][..], &["f", "-c"], &["f", "--context", "5"], &["f", "--explain"]] {
            let ran = lab.search(args.iter().chain(more));
            assert_eq!((ran.code, ran.lines().len()), (Some(0), 1), "{ran:?}");
            check(ran.text());
            check(&ran.stderr);
        }
    }
}

#[test]
fn bytes_that_were_found_are_shown_as_dots_where_they_are_not_printable() {
    let lab = Lab::with(b"\x00\x1b[2J\xFF\xC3\xA9\x7F~");
    let ran = lab.search(["-x", "5B", "f", "--context", "20"]);
    assert_eq!(ran.is_clean().text(), "f:2: 5B: ..[2J....~\n");
}

#[test]
fn a_hostile_name_is_harmless_in_the_report() {
    let lab = Lab::with("<script>alert(1)</script>");
    let name = "\"><img src=x onerror=alert(2)>";
    lab.put(name, "<script>");
    lab.put("p", "a/b = </title><script>\n<script>alert(1)</script>\n");
    let args = ["-f", "p", "-e", "<script>", "f", name, "--report", "out.html"];
    assert_eq!(lab.search(args).is_clean().code, Some(0));
    let page = fs::read_to_string(lab.path("out.html")).unwrap();
    assert_eq!(page.matches("<script").count(), 0);
    assert!(!page.contains("</title><script") && !page.contains("<img"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn errors_show_no_harmful_character() {
    let lab = Lab::with("{\"a\":1}\n");
    let evil = "a\x1b]0;t\x07\u{202e}\u{61c}\u{e0041}\n";
    let condition = format!("\"{}\" = 1", evil.trim_end());
    for args in [
        &["search", "x", evil][..],
        &["search", "-f", evil, "f"],
        &["carve", evil, "-o", "out"],
        &["carve", "f", "-o", "out", "--types", evil],
        &["filter", "a = 1", evil],
        &["filter", &condition, "f"],
        &["filter", "a = 1", "f", "--columns", evil],
        &["explain", &condition, "f"],
        &["gauge", "--compare", evil],
        &["gauge", evil],
        &["search", "x", "f", "--engine", evil],
    ] {
        let ran = run(lab.command(args), b"");
        check(ran.says(2, &["202e"]).text());
        check(&ran.stderr);
    }
}

#[test]
fn explain_shows_no_harmful_character() {
    let lab = Lab::with("{\"a\":\"x\",\"b\u{202e}\":\"y\"}\n{\"a\":\"z\"}\n");
    let condition = "a = '\x1b]0;t\x07\n\u{202e}' OR \"b\u{202e}\" LIKE '%\u{61c}\u{e0041}%'";
    let shown = "a = '\\x1b]0;t\\x07\\n\\u{202e}' OR \"b\\u{202e}\" LIKE '%\\u{61c}\\u{e0041}%'";
    let ran = run(lab.command(["explain", condition, "f"]), b"");
    check(ran.is_clean().text());
    assert!(ran.lines().contains(&shown), "{ran:?}");
    // Output for programs keeps the condition unchanged.
    let ran = run(lab.command(["explain", condition, "f", "--format", "json"]), b"");
    let line: serde_json::Value = serde_json::from_str(ran.is_clean().lines()[0]).unwrap();
    assert_eq!(line["condition"], condition);
    check(&on_terminal(lab.command(["explain", condition, "f", "--format", "json"])));
}

#[test]
fn conditions_and_rows_of_filter_show_no_harmful_character() {
    let lab = Lab::with("{\"a\":\"\u{202e}x\u{61c}\u{e0041}\u{9b}\"}\n");
    lab.put("many", "a = '\u{202e}'\n");
    for args in [["--many", "many", "f"], ["a IS NOT NULL", "f", "--columns=a"]] {
        let ran = run(lab.command(["filter"].iter().chain(&args)), b"");
        check(ran.text());
        assert!(ran.text().contains("\\u{202e}"), "{ran:?}");
    }
}

#[test]
fn rows_are_harmless_on_a_terminal_and_exact_in_a_pipe() {
    let value = "\u{202e}x\u{61c}\u{e0041}\u{9b}31m";
    let lab = Lab::with(format!("{{\"a\":\"{value}\"}}\n"));
    let name = "n\u{202e}";
    lab.put(name, "abc");
    let filter = |format: &str| lab.command(["filter", "a IS NOT NULL", "f", "--format", format]);
    let lines = lab.command(["filter", "a IS NOT NULL", "f"]);
    let search = |format: &str| lab.command(["search", "b", name, "--format", format]);
    for (command, again, exact) in [
        (lines, lab.command(["filter", "a IS NOT NULL", "f"]), value),
        (filter("csv"), filter("csv"), value),
        (filter("json"), filter("json"), value),
        (search("csv"), search("csv"), name),
        (search("json"), search("json"), name),
    ] {
        let ran = run(command, b"");
        assert!(ran.text().contains(exact), "{ran:?}");
        let shown = on_terminal(again);
        check(&shown);
        assert!(shown.contains("202e"), "{shown:?}");
    }
    // JSON stays JSON, with the same values.
    let shown = on_terminal(filter("json"));
    let row: serde_json::Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(row["a"], value);
}
