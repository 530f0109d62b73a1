//! Options that users of ripgrep, grep and other tools type.

use crate::harness::{Lab, run};

/// Checks that `quarrier search ARGS…` over some files prints `expected`.
#[track_caller]
fn check(args: &[&str], expected: &str) {
    let lab = Lab::with("one two\ntwo_three two\n\ntwo\n");
    lab.put("g", "zwei\n");
    lab.put("h", "two\n");
    assert_eq!(lab.search(args).is_clean().text(), expected, "{args:?}");
}

#[test]
fn files_with_matches_are_named_once() {
    check(&["-l", "two", "f", "g", "h"], "f\nh\n");
    check(&["-l", "two", "f", "--json"], "{\"source\":\"f\"}\n");
    check(&["-l", "drei", "f", "g", "h"], "");
}

#[test]
fn only_matching_bytes_are_printed_as_text() {
    check(&["-o", "-E", "t[a-z]+", "f"], "two\ntwo\nthree\ntwo\ntwo\n");
    let lab = Lab::with(b"<\xC3\xA9\n\xFF\x1b>");
    assert_eq!(lab.search(["-o", "-E", "(?s-u)<.*>", "f"]).text(), "<é\\n\\xff\\x1b>\n");
    lab.search(["-o", "x", "f", "--json"]).refuses(&["-o prints"]);
}

#[test]
fn words_are_whole() {
    check(&["-w", "two", "f", "-c"], "           3  two\n");
    check(&["-w", "-E", "t[a-z]+", "f", "-c"], "           3  t[a-z]+\n");
    check(&["-w", "-i", "TWO", "f", "-c"], "           3  TWO\n");
    check(&["-w", "-e", "e", "-e", "two", "h", "-c"], "           0  e\n           1  two\n");
    check(&["-w", "-o", "\ntwo\n", "f"], "\\ntwo\\n\n");
    Lab::with("a").search(["-w", "-x", "61", "f"]).refuses(&["'61'", "-w"]);
}

#[test]
fn a_literal_is_fixed_with_and_without_saying_so() {
    check(&["-F", "t..", "f"], "");
    check(&["-F", "three", "f"], "f:12: three: three\n");
}

#[test]
fn lines_are_numbered_across_chunks() {
    check(&["-n", "two", "h"], "h:1:0: two: two\n");
    let text: String = (1..=20_000).map(|line| format!("line {line}\n")).collect();
    let lab = Lab::with(&text);
    for more in [&[][..], &["--buffer-size", "4096"], &["--workers", "1"]] {
        let args = ["-n", "-E", "[0-9]*77\\b", "f", "--json"].iter().chain(more);
        let ran = lab.search(args);
        let rows: Vec<serde_json::Value> =
            ran.is_clean().lines().iter().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(rows.len(), 200);
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row["line"], 77 + 100 * index as u64, "{row}");
        }
    }
}

#[test]
fn lines_around_a_finding_stand_with_their_offsets() {
    let expected = "f-0- one two\nf:8: two_: two_three two\nf-22- \n";
    check(&["-C", "1", "two_", "f"], expected);
    check(&["-A", "1", "two_", "f"], "f:8: two_: two_three two\nf-22- \n");
    check(&["-A1", "two_", "f"], "f:8: two_: two_three two\nf-22- \n");
    check(&["-B", "1", "two_", "f"], "f-0- one two\nf:8: two_: two_three two\n");
    check(&["-C", "0", "hre", "f"], "f:13: hre: two_three two\n");
    let lab = Lab::with("a\nb\nc\nd\ne");
    assert_eq!(
        lab.search(["-B1", "-E", "b|e", "f"]).text(),
        "f-0- a\nf:2: b|e: b\n--\nf-6- d\nf:8: b|e: e\n"
    );
}

#[test]
fn numbers_of_findings_and_threads_have_short_options() {
    check(&["-m", "1", "-j", "2", "two", "f"], "f:4: two: two\n");
    check(
        &["-m1", "-j1", "two", "f", "--json"],
        "{\"source\":\"f\",\"offset\":4,\"length\":3,\"pattern\":\"two\",\"name\":null,\"match\":\"two\"}\n",
    );
}

#[test]
fn colours_are_written_where_they_are_asked_for() {
    let lab = Lab::with("abc");
    let coloured = lab.search(["b", "f", "--color", "always"]);
    assert!(coloured.text().contains("\x1b[1m\x1b[31mb"), "{coloured:?}");
    for plain in [&["--color", "never"][..], &["--color=auto"], &["--colour", "never"]] {
        assert_eq!(lab.search(["b", "f"].iter().chain(plain)).text(), "f:1: b: b\n");
    }
    lab.search(["b", "f", "--color", "red"]).refuses(&["red", "always"]);
}

#[test]
fn types_of_files_go_by_their_other_names() {
    let lab = Lab::with(crate::carve::image(10_000, &[(512, &crate::carve::gif("a"))]));
    for types in ["jpeg,gif", "JPEG,tiff,gif"] {
        let ran = run(lab.command(["carve", "f", "--dry-run", "-q", "--types", types]), b"");
        assert_eq!(ran.is_clean().lines().len(), 1, "{ran:?}");
    }
}

#[test]
fn an_unsupported_url_is_not_a_missing_file() {
    let lab = Lab::with("abc");
    lab.search(["b", "file:///tmp/f"]).refuses(&["file:///tmp/f", "without file://"]);
    lab.search(["b", "ftp://host/f"]).refuses(&["ftp://host/f", "https://"]);
    // A file may have such a name.
    std::fs::create_dir_all(lab.path("ftp:")).unwrap();
    lab.put("ftp:/f", "abc");
    assert_eq!(lab.offsets(["b", "ftp://f"]), [1]);
}

#[test]
fn help_is_a_command_too() {
    let lab = Lab::new();
    let help = run(lab.command(["help"]), b"");
    assert_eq!(help.is_clean().text(), run(lab.command(["--help"]), b"").text());
    let help = run(lab.command(["help", "search"]), b"");
    assert_eq!(help.is_clean().text(), lab.search(["--help"]).text());
    run(lab.command(["help", "serach"]), b"").refuses(&["serach"]);
}

#[test]
fn a_typing_error_is_answered_with_a_suggestion() {
    let lab = Lab::with("abc");
    run(lab.command(["serach", "b", "f"]), b"").refuses(&["'search'", "try 'quarrier --help'"]);
    lab.search(["b", "f", "--max-cuont", "2"])
        .refuses(&["'--max-count'", "'quarrier search --help'"]);
    lab.search(["b", "f", "-v"]).refuses(&["'-v'", "NOT"]);
}

#[test]
fn help_fits_into_80_columns() {
    let lab = Lab::new();
    let verbs = ["search", "carve", "filter", "explain", "gauge", "query", "completions"];
    for line in verbs.map(|verb| vec![verb, "--help"]).into_iter().chain([vec!["--help"]]) {
        // 'query' has the help of the second binary, which may be missing.
        let line = if line[0] == "query" { vec!["help", "query"] } else { line };
        let help = run(lab.command(&line), b"");
        let text = help.is_clean().text();
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{line:?}");
    }
}

#[test]
fn completions_and_man_pages_come_from_the_program() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(lab.command(["completions", shell]), b"").is_clean().text().len() > 1000);
    }
    run(lab.command(["completions", "csh"]), b"").refuses(&["csh"]);
    assert_eq!(run(lab.command(["help-man", "man/man1"]), b"").code, Some(0));
    let page = std::fs::read_to_string(lab.path("man/man1/quarrier-search.1")).unwrap();
    assert!(page.contains(".SH EXAMPLES\n.nf\nquarrier search "), "{page}");
    lab.put("file", "");
    run(lab.command(["help-man", "file/man1"]), b"").refuses(&["file/man1"]);
}
