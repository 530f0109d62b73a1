//! `quarrier filter` by the position and the bytes of messages: `_line`, `_offset`, `_message`.

use crate::filter::{filter, filter_input};
use crate::harness::Lab;

const JSON: &str = "{\"a\":1,\"b\":\"x\"}\nno message\n\n{\"a\":2}\n{\"a\":3,\"b\":\"ü\"}";

#[test]
fn conditions_and_columns_name_them() {
    let lab = Lab::with(JSON);
    for (args, expected) in [
        (&["_line = 4"][..], "{\"a\":2}\n"),
        (&["_LINE > 1 AND a > 2"], "{\"a\":3,\"b\":\"ü\"}\n"),
        (&["_offset < 28"], "{\"a\":1,\"b\":\"x\"}\n"),
        (&["_message LIKE '%ü%'"], "{\"a\":3,\"b\":\"ü\"}\n"),
        (&["_message = '{\"a\":2}'"], "{\"a\":2}\n"),
        (&["_line = a + 2"], "{\"a\":2}\n{\"a\":3,\"b\":\"ü\"}\n"),
        (&["-c", "_line BETWEEN 2 AND 9"], "2\n"),
        (
            &["a > 0", "--columns", "_line,_offset,a", "--format", "csv"],
            "_line,_offset,a\n1,0,1\n4,28,2\n5,36,3\n",
        ),
        (
            &["a = 2", "--columns", "a,_message", "--format", "json"],
            "{\"a\":2,\"_message\":\"{\\\"a\\\":2}\"}\n",
        ),
        (&["_line > 3", "--format", "csv"], "a,b\n2,\n3,ü\n"),
        (&["_line > 3", "--format", "json"], "{\"a\":2}\n{\"a\":3,\"b\":\"ü\"}\n"),
        (&["b = '_line' OR a = 2"], "{\"a\":2}\n"),
    ] {
        for input in ["f", "-"] {
            let args: Vec<&str> = args.iter().copied().chain([input, "-q"]).collect();
            let ran = filter_input(&lab, JSON.as_bytes(), args.iter().copied());
            assert_eq!(ran.text(), expected, "{args:?}");
        }
    }
    lab.put("many", "_line = 1\n_offset = 28\n_message LIKE '{\"a\":_}'\na = 3\n");
    let ran = filter(&lab, ["--many", "many", "f", "-q", "--format", "csv"]);
    let counts: Vec<&str> =
        ran.text().lines().skip(1).filter_map(|line| line.rsplit(',').next()).collect();
    assert_eq!(counts, ["1", "1", "1", "1"]);
}

#[test]
fn lines_and_offsets_are_those_of_the_whole_source_however_it_is_cut() {
    // Several chunks of 4 MiB, with messages across their borders, rejects and blank lines.
    let line = |n: usize| match n % 1_000 {
        7 => "no message\n\n".to_string(),
        _ => format!("{{\"n\":{n},\"t\":\"{}\"}}\n", "x".repeat(n % 160)),
    };
    let log: String = (0..120_000).map(line).collect();
    assert!(log.len() > 9 << 20);
    let lab = Lab::with(&log);
    let mut expected = String::from("_line,_offset,n\n");
    let (mut number, mut offset) = (0, 0);
    for line in log.lines() {
        number += 1;
        if let Some(n) = line.strip_prefix("{\"n\":").and_then(|rest| rest.split(',').next()) {
            expected += &format!("{number},{offset},{n}\n");
        }
        offset += line.len() + 1;
    }
    for workers in ["1", "3"] {
        for input in ["f", "-"] {
            let columns = ["n >= 0", "--columns", "_line,_offset,n", "--format", "csv", "-q"];
            let args = columns.into_iter().chain([input, "--workers", workers]);
            let ran = filter_input(&lab, log.as_bytes(), args);
            assert!(ran.text() == expected, "{workers} {input}");
        }
        let condition = "_line > 60000 AND _line <= 60010 AND _offset > 1000";
        let ran = filter(&lab, [condition, "f", "-q", "--workers", workers]);
        let lines: Vec<&str> = log.lines().skip(60_000).take(10).collect();
        assert_eq!(ran.text().lines().collect::<Vec<_>>(), lines);
    }
}

#[test]
fn every_format_has_them() {
    let lab = Lab::new();
    lab.put("f.csv", "a,b\n1,\"x\ny\"\n2,z\n");
    lab.put("f.xml", "<l>\n <o a='1'/>\n <o a='2'/></l>");
    lab.put("f.nvfix", "a=1\u{1}\n\na=2\u{1}\n");
    for (file, places) in [
        ("f.csv", ["2,4,1", "4,12,2"]),
        ("f.xml", ["2,5,1", "3,17,2"]),
        ("f.nvfix", ["1,0,1", "3,6,2"]),
    ] {
        let columns = ["--columns", "_line,_offset,a", "--format", "csv"];
        let ran = filter(&lab, ["a > 0", file].into_iter().chain(columns));
        assert_eq!(ran.is_clean().text().lines().skip(1).collect::<Vec<_>>(), places, "{file}");
        let place = places[1].split(',').collect::<Vec<_>>();
        let condition = format!("_line = {} AND _offset = {}", place[0], place[1]);
        let ran = filter(&lab, [&*condition, file, "-c"]);
        assert_eq!(ran.is_clean().text(), "1\n", "{file}");
    }
}

#[test]
fn a_field_of_such_a_name_gives_way_where_it_is_named() {
    let lab = Lab::with("{\"_line\":\"x\",\"a\":1}\n{\"_line\":80.5,\"a\":2}\n");
    let ran = filter(&lab, ["_line = 2", "f"]);
    assert_eq!(ran.is_clean().text(), "{\"_line\":80.5,\"a\":2}\n");
    let ran = filter(&lab, ["a > 0", "f", "--columns", "a,_line", "--format", "csv"]);
    assert_eq!(ran.is_clean().text(), "a,_line\n1,1\n2,2\n");
    let ran = filter(&lab, ["a > 1", "f", "--format", "json"]);
    assert_eq!(ran.is_clean().text(), "{\"_line\":80.5,\"a\":2}\n");
}

#[test]
fn a_message_that_is_too_long_is_one_line() {
    let long = "x".repeat(17 << 20);
    let log = format!("{{\"a\":1}}\n{long}\n{{\"a\":2}}\n");
    let lab = Lab::with(&log);
    let ran = filter(&lab, ["_line = 3", "f", "-q"]);
    assert_eq!(ran.text(), "{\"a\":2}\n");
    let ran = filter(&lab, ["a > 1", "f", "-q", "--columns", "_line,_offset", "--format", "csv"]);
    assert_eq!(ran.text(), format!("_line,_offset\n3,{}\n", 8 + long.len() + 1));
}
