//! Hostile values, headings and statements cannot control the terminal.

use std::io::Read;
use std::process::{Command, Stdio};

use quarrier_report::{is_harmful, width};

use crate::harness::{Folder, terminal, text};

/// Fails if text output contains a harmful character other than line ends.
#[track_caller]
fn check(text: &str) {
    assert!(!text.contains(|c| is_harmful(c) && c != '\n'), "{text:?}");
}

/// The output of a run on a pseudo-terminal.
fn on_terminal(folder: &Folder, arguments: &[&str]) -> String {
    let (mut ours, its) = terminal();
    let mut child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
        .args(arguments)
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::from(its.try_clone().unwrap()))
        .stderr(Stdio::from(its))
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    // Reading fails once the other end is closed.
    let _ = ours.read_to_end(&mut shown);
    child.wait().unwrap();
    // The terminal driver writes a carriage return before each line feed.
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

/// A control sequence, a change of text direction, and an invisible character.
const EVIL: &str = "x\u{9b}31m\u{202e}\u{61c}\u{ad}\u{200b}\u{2028}\u{e0041}";
const SHOWN: &str = "x\\u{9b}31m\\u{202e}\\u{61c}\\u{ad}\\u{200b}\\u{2028}\\u{e0041}";

/// Writes a file with such a column name and value. Returns a statement that reads it.
fn hostile(folder: &Folder) -> &'static str {
    folder.file("m.ndjson", &format!("{{\"{EVIL}\":\"{EVIL}\\u001b[2J\"}}\n"));
    "SELECT * FROM 'm.ndjson'"
}

#[test]
fn values_and_headings_of_a_table_are_escaped() {
    let folder = Folder::new();
    let output = folder.run(&[hostile(&folder)]);
    let said = text(&output.stdout);
    check(&said);
    let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
    assert_eq!([lines[0], lines[2]], [SHOWN, &format!("{SHOWN}\\x1b[2J")], "{output:?}");
}

#[test]
fn rows_are_harmless_on_a_terminal_and_exact_in_a_pipe() {
    let folder = Folder::new();
    let sql = hostile(&folder);
    for format in ["csv", "json"] {
        let arguments = [sql, "--format", format];
        let exact = text(&folder.run(&arguments).stdout);
        assert_eq!(exact.matches(EVIL).count(), 2, "{exact:?}");
        let shown = on_terminal(&folder, &arguments);
        check(&shown);
        assert_eq!(shown.matches("202e").count(), 2, "{shown:?}");
        if format == "json" {
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&shown), read(&exact));
        }
    }
}

#[test]
fn plans_errors_and_concurrent_statements_are_escaped() {
    let folder = Folder::new();
    hostile(&folder);
    let condition = format!("\"{EVIL}\" = '\x1b]0;t\x07\u{202e}'");
    let plan = format!("EXPLAIN SELECT * FROM 'm.ndjson' WHERE {condition}");
    let said = text(&folder.run(&[&plan]).stdout);
    check(&said);
    assert!(said.contains("\\u{202e}"), "{said}");
    for wrong in [
        "SELECT * FROM 'no\x1b\u{202e}\u{61c}such'",
        "SELECT \"no\x1b\u{202e}\u{61c}\" FROM 'm.ndjson'",
        "SELECT \u{202e}\x1b FROM 'm.ndjson'",
        "SELECT CAST('\x1b\u{202e}' AS BIGINT)",
        "SELECT 1; SELECT * FROM 'no\x1b\u{202e}'",
    ] {
        let output = folder.run(&[wrong]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        check(&text(&output.stderr));
    }
    folder.file("q.sql", "SELECT '\x1b\u{202e}' AS a;\nSELECT \"\x1b\u{202e}\" FROM 'm.ndjson';\n");
    let output = folder.run(&["--concurrent", "q.sql"]);
    check(&text(&output.stdout));
    check(&text(&output.stderr));
    assert!(text(&output.stdout).contains("\\x1b\\u{202e}"), "{output:?}");
    check(&on_terminal(&folder, &["--concurrent", "q.sql", "--format", "json"]));
}

#[test]
fn columns_align_in_any_script() {
    let folder = Folder::new();
    folder.file("m.csv", "名,b\nabc,1\n日本語,2\ne\u{301}e\u{301},3\n한국\u{202e},4\n");
    let output = folder.run(&["SELECT 名, b FROM 'm.csv'"]);
    let said = text(&output.stdout);
    // The last column has one cell, so that all lines are as wide as the first two columns.
    let widths: Vec<usize> = said.lines().map(width).collect();
    assert_eq!(widths, [15; 6], "{said}");
}
