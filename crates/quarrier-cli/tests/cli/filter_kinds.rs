//! Columns that change their type after the sample: every form of `quarrier filter` answers like a
//! table, whose columns have one type for all messages.

use std::process::Command;

use quarrier_core::source::Memory;
use quarrier_filter::{Query, Scan, Select, sql};
use quarrier_messages::{Format, Load};

use crate::filter::{filter, filter_input};
use crate::harness::{Lab, Ran};

/// More than a sample of similar messages, then different ones.
fn late(alike: &str, others: &[&str]) -> String {
    let mut text = format!("{alike}\n").repeat((3 << 19) / (alike.len() + 1));
    others.iter().for_each(|other| text += &format!("{other}\n"));
    text
}

/// The messages and the number of matches; `None` if the condition is invalid for such a table.
fn expected(text: &str, condition: &str) -> Option<(String, usize)> {
    let loaded = Load::new(Format::Json).run(&[&Memory::new("f", text.as_bytes())]).unwrap();
    let condition = Some(sql::condition(condition, loaded.table.schema()).ok()?);
    let select = Select::Rows(Vec::new());
    let query = Query { select, condition, order: Vec::new(), limit: None, offset: 0 };
    let answers = Scan::new(&loaded.table, &[query]).run();
    let rows = answers.into_iter().next()?.unwrap().rows;
    let lines: Vec<&str> = text.lines().collect();
    let found: String = rows.iter().map(|&row| format!("{}\n", lines[row as usize])).collect();
    Some((found, rows.len()))
}

#[track_caller]
fn is_right(ran: &Ran, expected: Option<&str>, context: &str) {
    match expected {
        Some(text) => {
            assert!(ran.text() == text, "{context}: {} bytes: {}", ran.text().len(), ran.stderr);
            let found = text.trim() != "0" && !text.trim_start().starts_with("0 ");
            let code = i32::from(text.is_empty() || !found);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{context}");
        }
        None => assert_eq!(ran.code, Some(2), "{context}: {}", ran.stderr),
    }
}

/// Asks in every form.
fn check(text: &str, conditions: &[&str]) {
    let lab = Lab::with(text);
    let is_packed = Command::new("gzip").args(["-k", "-1"]).arg(lab.path("f")).status().is_ok();
    for &condition in conditions {
        let known = expected(text, condition);
        let rows = known.as_ref().map(|(rows, _)| rows.as_str());
        let count = known.as_ref().map(|(_, count)| format!("{count}\n"));
        let many = known.as_ref().map(|(_, count)| format!("{count:>12}  {condition}\n"));
        lab.put("many.sql", condition);
        for workers in ["1", "3"] {
            let with = |args: &[&'static str]| {
                let args = [args, &["--workers", workers]].concat();
                filter(
                    &lab,
                    args.iter().map(|&arg| if arg == "CONDITION" { condition } else { arg }),
                )
            };
            let context = format!("{condition}, {workers} workers");
            is_right(&with(&["CONDITION", "f"]), rows, &context);
            is_right(&with(&["-c", "CONDITION", "f"]), count.as_deref(), &context);
            is_right(&with(&["--many", "many.sql", "f"]), many.as_deref(), &context);
            if is_packed {
                is_right(&with(&["-c", "CONDITION", "f.gz"]), count.as_deref(), &context);
            }
        }
        let ran = filter_input(&lab, text.as_bytes(), ["-c", condition, "-"]);
        is_right(&ran, count.as_deref(), &format!("{condition} of a pipe"));
        let ran = filter_input(&lab, text.as_bytes(), [condition, "-"]);
        is_right(&ran, rows, &format!("{condition} of a pipe"));
    }
}

#[test]
fn numbers_that_become_text_are_text() {
    let text = late(r#"{"w":5,"k":1}"#, &[r#"{"w":"w1"}"#, r#"{"w":"5"}"#, r#"{"w":null}"#]);
    check(
        &text,
        &["w LIKE 'w%'", "w = '5'", "w = 5", "w IS NULL", "w IS NOT NULL AND k = 1", "w + 1 > 2"],
    );
}

#[test]
fn numbers_widen_to_exact_and_floating_ones() {
    let text =
        late(r#"{"w":5,"k":9007199254740993}"#, &[r#"{"w":1.5}"#, r#"{"w":2.25,"k":1e300}"#]);
    check(&text, &["w > 4", "w / 2 = 2.5", "k = 9007199254740992e0", "k = 1e300", "w LIKE '5'"]);
}

#[test]
fn dates_that_become_text_are_text() {
    let other = [r#"{"d":"soon"}"#, r#"{"d":"2024-05-31T12:00:00Z"}"#];
    let text = late(r#"{"d":"2024-05-31"}"#, &other);
    check(&text, &["d = 'soon'", "d LIKE '2024-05-31%'", "d > DATE '2024-01-01'", "d IS NULL"]);
    let text = late(r#"{"d":"2024-05-31"}"#, &other[1..]);
    check(&text, &["d > TIMESTAMP '2024-05-31 00:00:00'", "d LIKE '2024%'"]);
}

#[test]
fn late_columns_have_the_type_of_all_their_values() {
    let text = late(
        r#"{"k":1,"n":null}"#,
        &[
            r#"{"u":"2024-05-31","n":1,"m":1.5}"#,
            r#"{"u":"x","n":2,"m":2.25}"#,
            r#"{"u":"2024-05-31T00:00:00Z","n":1.5,"m":"m"}"#,
        ],
    );
    check(
        &text,
        &[
            "u LIKE '2024%'",
            "u = 'x'",
            "u > DATE '2024-01-01'",
            "u > 7",
            "n > 1",
            "n * 2 = 3",
            "n LIKE '1%'",
            "m LIKE '%5'",
            "m > 2",
            "u IS NULL AND n IS NULL",
            "nope = 1",
        ],
    );
}

#[test]
fn invalid_conditions_are_refused_at_once() {
    let lab = Lab::with(late(r#"{"w":5}"#, &[]));
    for condition in ["w = 5 AND", "NOSUCH(w) = 1"] {
        filter(&lab, ["-c", condition, "f"]).refuses(&["condition: "]);
    }
}

/// Several chunks of similar messages, then a different one.
fn many_alike(other: &str) -> String {
    "{\"w\":5}\n".repeat(1_300_000) + other + "\n"
}

#[test]
fn rows_are_written_once_where_a_source_is_read_again() {
    let text = many_alike("{\"w\":\"x\"}");
    let lab = Lab::with(&text);
    for workers in ["1", "2"] {
        let ran = filter(&lab, ["w IS NOT NULL", "f", "--workers", workers]);
        assert!(ran.is_clean().text() == text);
        let ran = filter(&lab, ["w IS NOT NULL", "f", "--format", "csv", "--workers", workers]);
        assert!(ran.is_clean().text() == format!("w\n{}x\n", "5\n".repeat(1_300_000)));
        let ran = filter(&lab, ["w IS NOT NULL", "f", "--limit", "1200000", "--workers", workers]);
        assert!(ran.is_clean().text() == "{\"w\":5}\n".repeat(1_200_000));
    }
    // The first rows are not in the answer for a column of exact numbers.
    let lab = Lab::with(many_alike("{\"w\":1.5}"));
    let ran = filter(&lab, ["w / 2 = 2", "f"]);
    ran.says(2, &["f: a column has values of several types", "`quarrier query`"]);
    assert_eq!(filter(&lab, ["-c", "w / 2 = 2.5", "f"]).is_clean().text(), "1300000\n");
}

#[test]
fn rejects_are_listed_once_where_a_source_is_read_again() {
    let lab = Lab::with(format!("damaged\n{}", late(r#"{"w":5}"#, &["lines", r#"{"w":"x"}"#])));
    let ran = filter(&lab, ["-c", "w = 'x'", "f", "f", "--rejects", "out"]);
    assert_eq!((ran.code, ran.text()), (Some(0), "2\n"), "{}", ran.stderr);
    let listed = std::fs::read_to_string(lab.path("out")).unwrap();
    assert_eq!(listed.lines().count(), 4);
}

#[test]
fn a_long_pipe_cannot_be_read_again_and_says_so() {
    let lab = Lab::new();
    let text = "{\"w\":5}\n".repeat(5 << 20) + "{\"w\":\"x\"}\n";
    let ran = filter_input(&lab, text.as_bytes(), ["-c", "w > 4", "-"]);
    ran.says(2, &["-: line 5242881, byte 41943040: 'w' is text here", "save it in a file"]);
    assert_eq!(ran.text(), "");
}
