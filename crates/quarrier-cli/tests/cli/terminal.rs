//! What is searched may be hostile: nothing of it steers the terminal or the report.

use std::fs;

use crate::harness::Lab;

/// Fails where text for people carries a control character other than the line's end.
#[track_caller]
fn check(text: &str) {
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(steers), "{text:?}");
}

#[test]
fn control_characters_of_file_names_do_not_reach_the_terminal() {
    let lab = Lab::new();
    for name in ["\x1b[31mred", "two\nlines", "back\x08space", "bell\x07", "csi\u{9b}31m", "tab\t"]
    {
        lab.put(name, "abc");
        let ran = lab.search(["b", name]);
        check(ran.is_clean().text());
        assert_eq!(ran.lines().len(), 1, "{name:?}");
        // For programs the name stays as it is.
        assert_eq!(lab.find(["b", name])[0].source, name);
    }
}

#[test]
fn control_characters_of_patterns_and_names_do_not_reach_the_terminal() {
    let lab = Lab::with("x\x1b[31my\nz\x07");
    lab.put("p", "\x1b[31m\n");
    for args in [["-e", "\x1b[31m"], ["-e", "y\nz\x07"], ["-E", "\x1b\\[31m"], ["-f", "p"]] {
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
    assert_eq!(page.matches("<script").count(), 1, "its own and no other");
    assert!(!page.contains("</title><script") && !page.contains("<img"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}
