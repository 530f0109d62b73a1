//! `quarrier filter` over sources that fail in part, URLs, and the formats besides JSON lines.

use std::ffi::OsStr;

use crate::filter::{filter, filter_input};
use crate::harness::{Lab, Ran, run, skip, works};
use crate::remote::Server;

/// Runs a filter for which the reads of `f` with these numbers fail, counted for each thread, with `f`
/// not in the page cache.
fn filter_failing(lab: &Lab, failing: &str, args: &[&str]) -> Option<Ran> {
    if !works("strace", &["-qq", "-o", "/dev/null", "true"].map(OsStr::new)) {
        skip("there is no strace, or it may not trace");
        return None;
    }
    let inject = format!("inject=pread64:error=EIO:when={failing}");
    let path = lab.path("f").canonicalize().unwrap();
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64,preadv2", "-e", &inject]);
    command.args(["-e", "inject=preadv2:error=EAGAIN", "-P"]).arg(path);
    command.arg(env!("CARGO_BIN_EXE_quarrier")).arg("filter").args(args);
    command.current_dir(lab.path(""));
    Some(run(command, b""))
}

/// The ranges reported as unreadable.
fn unreadable(ran: &Ran) -> Vec<std::ops::Range<usize>> {
    let range = |line: &str| {
        let (_, range) = line.strip_suffix(" could not be read")?.split_once("f: bytes ")?;
        let (start, end) = range.split_once("..")?;
        Some(start.parse().ok()?..end.parse().ok()?)
    };
    ran.stderr.lines().filter_map(range).collect()
}

#[test]
fn messages_around_bad_sectors_are_found_and_the_ranges_listed() {
    let line = |n: usize| format!("{{\"n\":1{n:08}.5}}\n");
    let messages: String = (0..60_000).map(line).collect();
    let lab = Lab::with(&messages);
    let args = ["n >= 0", "f", "--rejects", "rejects"];
    let Some(ran) = filter_failing(&lab, "4..9", &args) else { return };
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let bad = unreadable(&ran);
    assert!(!bad.is_empty(), "{ran:?}");
    let is_whole = |n: &usize| {
        let place = n * line(0).len()..(n + 1) * line(0).len();
        // The preceding line feed is needed, too.
        !bad.iter().any(|bad| bad.start < place.end && place.start <= bad.end)
    };
    let expected: String = (0..60_000).filter(is_whole).map(line).collect();
    assert!(ran.text() == expected, "what is whole is found, and nothing else");
    let rejects = std::fs::read_to_string(lab.path("rejects")).unwrap();
    assert!(rejects.lines().all(|line| line.contains("could not be read")), "{rejects}");
}

#[test]
fn a_file_that_cannot_be_read_at_all_is_one_range() {
    let lab = Lab::with("{\"a\":1}\n".repeat(100));
    let Some(ran) = filter_failing(&lab, "1+", &["-c", "a > 0", "f"]) else { return };
    assert_eq!((ran.code, ran.text()), (Some(3), "0\n"), "{ran:?}");
    assert_eq!(unreadable(&ran).first(), Some(&(0..800)), "{ran:?}");
}

#[test]
fn a_failing_file_does_not_hide_the_others() {
    let lab = Lab::with("{\"a\":1}\n");
    lab.put("g", "{\"a\":2}\n");
    let ran = filter(&lab, ["a > 0", "f", "missing", "g"]);
    ran.says(2, &["missing: cannot open"]);
    assert_eq!(ran.text(), "{\"a\":1}\n{\"a\":2}\n");
}

#[test]
fn messages_at_a_url_are_filtered() {
    let messages: String = (0..100_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let server = Server::well(messages.into_bytes());
    let ran = filter(&Lab::new(), ["n % 50000 = 1", &server.url]);
    assert_eq!(ran.is_clean().text(), "{\"n\":1}\n{\"n\":50001}\n");
    let lab = Lab::with("{\"n\":1}\n");
    let ran = filter(&lab, ["-c", "n = 1", "f", "http://127.0.0.1:9/nothing"]);
    ran.says(2, &["http://127.0.0.1:9/nothing"]);
    assert_eq!(ran.text(), "1\n");
}

#[test]
fn nvfix_is_filtered_with_and_without_its_envelope() {
    let head = "BeginString=FIX.4.4\u{1}BodyLength=21\u{1}MsgType=D\u{1}Symbol=ABC\u{1}";
    let sum = head.bytes().map(u32::from).sum::<u32>() % 256;
    let whole = format!("{head}CheckSum={sum:03}\u{1}\n");
    let lab = Lab::with(format!("{whole}{}", whole.replace("ABC", "ABD")));
    let ran = filter(&lab, ["Symbol LIKE 'AB_'", "f"]);
    assert_eq!(ran.text(), whole);
    ran.says(0, &["1 of 2 messages was left out", "line 2", "CheckSum"]);
    lab.put("f.nvfix", "Symbol=ABC\u{1}Price=1.5\u{1}\nSymbol=D\u{1}Price=2\u{1}\n");
    let ran = filter(&lab, ["Price > 1.5", "f.nvfix"]);
    assert_eq!(ran.is_clean().text(), "Symbol=D\u{1}Price=2\u{1}\n");
    let ran = filter_input(
        &lab,
        b"Symbol=ABC\x01Symbol=D\x01\n",
        ["\"Symbol[1]\" = 'D'", "-", "--input-format", "nvfix", "--format", "json"],
    );
    assert_eq!(ran.is_clean().text(), "{\"Symbol\":\"ABC\",\"Symbol[1]\":\"D\"}\n");
}

#[test]
fn xml_is_filtered_in_a_list_and_by_itself() {
    let log = "<?xml version='1.0'?>\n<l>\n <o id='1'><leg qty='5'/><leg qty='6'/></o>\n \
               <!-- <o id='9'/> --><o id='2'>\n  <leg qty='7'/><leg qty='8'/></o>\n</l>\n";
    let lab = Lab::new();
    lab.put("f.xml", log);
    let ran = filter(&lab, ["leg[1].qty > 6", "f.xml"]);
    assert_eq!(ran.is_clean().text(), "<o id='2'>\n  <leg qty='7'/><leg qty='8'/></o>\n");
    let ran = filter(&lab, ["id < 5", "f.xml", "--columns", "id,leg[0].qty", "--format", "csv"]);
    assert_eq!(ran.is_clean().text(), "id,leg[0].qty\n1,5\n2,7\n");
    let many: String = (0..50_000).map(|n| format!("<e n='{n}'/>\n")).collect();
    let ran = filter_input(&lab, many.as_bytes(), ["n % 25000 = 3", "-"]);
    assert_eq!(ran.is_clean().text(), "<e n='3'/>\n<e n='25003'/>\n");
    let ran = filter_input(&lab, b"<e n='1'/><e n='2' n='3'/><e n='4'/>", ["-c", "n > 0", "-"]);
    assert_eq!(ran.text(), "2\n");
    ran.says(0, &["1 of 3 messages was left out", "attributes"]);
}

#[test]
fn columns_are_refused_in_one_line_from_a_stream_too() {
    let lab = Lab::new();
    for (head, kind) in [(&b"PAR1"[..], "Parquet"), (b"ARROW1\0\0", "Arrow")] {
        let stream = [head, &[0; 3_000_000]].concat();
        let ran = filter_input(&lab, &stream, ["a > 1", "-"]);
        let why = format!("-: {kind} has columns and no messages to print; ask for rows of it");
        ran.refuses(&[&why, "`quarrier query`"]);
    }
}

#[test]
fn a_repeated_field_counts_as_in_a_table() {
    let lab = Lab::with("{\"a\":1,\"a\":2}\n{\"a\":2,\"a\":1}\n{\"a\":3,\"a\":null}\n");
    assert_eq!(filter(&lab, ["a = 2", "f"]).is_clean().text(), "{\"a\":1,\"a\":2}\n");
    assert_eq!(filter(&lab, ["a IS NULL", "f"]).is_clean().text(), "{\"a\":3,\"a\":null}\n");
}

#[test]
fn csv_with_line_feeds_in_quotes_does_not_depend_on_workers_and_borders() {
    // Strings that look like records, quotes that are never closed, and lines of any length.
    let record = |n: usize| match n % 11 {
        0 => format!("{n},\"{}\"", "7,x\n8,y\n".repeat(n % 700)),
        1 => format!("{n},\"a \"\"b\"\"\n{}\"", "c".repeat(n % 90)),
        2 => format!("{n},\"\"\"\n\"\"\""),
        3 => format!("{n},a\"b"),
        4 => format!("{n},\n\n"),
        _ => format!("{n},{}", "d".repeat(n % 50)),
    };
    let all: String = (0..40_000).map(|n| record(n) + "\r\n").collect();
    let lab = Lab::new();
    lab.put("f.csv", format!("n,text\r\n{all}"));
    let kept: String = (0..40_000).map(|n| record(n).trim_end().to_string() + "\n").collect();
    for workers in ["1", "2", "5"] {
        let ran = filter(&lab, ["n >= 0", "f.csv", "--workers", workers]);
        assert!(ran.is_clean().text() == kept, "{workers}");
    }
    // An unclosed quote is an error of its line, even if records seem to follow.
    let torn = format!("n,text\n{all}1,\"open\n{}", "2,x\n".repeat(5_000_000));
    let ran = filter_input(&lab, torn.as_bytes(), ["-c", "n >= 0", "-", "--workers", "3"]);
    assert_eq!(ran.text(), "5040000\n");
    ran.says(0, &["1 of 5040001 messages was left out", "an unclosed quote"]);
}

#[test]
fn a_notice_of_the_source_is_printed_once() {
    let lab = Lab::new();
    lab.put("packed.csv", "LZIP\u{1},a\n1,1\n2,2\n");
    for form in [&[][..], &["-c"], &["--format", "json"], &["--columns", "a"], &["--limit", "1"]] {
        let ran = filter(&lab, [&["a > 0", "packed.csv"][..], form].concat());
        assert_eq!(ran.code, Some(0), "{form:?}: {ran:?}");
        let line = "quarrier: packed.csv: is compressed by lzip";
        assert_eq!(ran.stderr.matches(line).count(), 1, "{form:?}: {ran:?}");
    }
}
