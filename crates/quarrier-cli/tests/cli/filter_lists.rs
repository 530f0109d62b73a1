//! `quarrier filter` by the elements of lists: `5 < ANY (leg[*].qty)`.

use crate::filter::{filter, filter_input};
use crate::harness::Lab;

const JSON: &str = "{\"id\":1,\"leg\":[{\"qty\":3,\"px\":1.5},{\"qty\":7}],\"tag\":[\"a\",\"b\"]}\n\
    {\"id\":2,\"leg\":[{\"qty\":9,\"px\":2}]}\n{\"id\":3,\"leg\":[]}\n{\"id\":4,\"tag\":[\"c\"]}\n\
    {\"id\":5,\"leg\":[{\"px\":2},{\"qty\":null,\"px\":3},{\"qty\":1}]}\n\
    {\"id\":6,\"leg\":[{\"qty\":1},{\"qty\":null}],\"tag\":[\"b\",null]}\n\
    {\"id\":7,\"leg\":[{\"qty\":9},{}],\"tag\":[null]}\n";

#[test]
fn any_and_all_compare_each_element() {
    let lab = Lab::with(JSON);
    for (condition, ids) in [
        ("5 < ANY (leg[*].qty)", &["1", "2", "7"][..]),
        ("9 = SOME (leg[*].qty)", &["2", "7"]),
        ("5 < ALL (leg[*].qty)", &["2", "3", "4"]),
        ("NOT 5 < ANY (leg[*].qty)", &["3", "4"]),
        ("(5 < ANY (leg[*].qty)) IS UNKNOWN", &["5", "6"]),
        ("(0 < ALL (leg[*].qty)) IS UNKNOWN", &["5", "6", "7"]),
        ("('a' = ANY (tag[*])) IS UNKNOWN", &["6", "7"]),
        ("(id = ANY (leg[ * ].QTY)) IS UNKNOWN", &["5", "6", "7"]),
        ("3 <> ALL (leg[*].qty)", &["2", "3", "4"]),
        ("1 >= ANY (LEG[*].QTY)", &["5", "6"]),
        ("'b' = ANY (tag[*])", &["1", "6"]),
        ("'a' <= ALL (tag[*]) AND id > 3", &["4", "5"]),
        ("id = ANY (leg[*].px)", &["2"]),
        ("leg[1].qty = 7", &["1"]),
    ] {
        for input in ["f", "-"] {
            let args = [condition, input, "--columns", "id", "--format", "csv"];
            let ran = filter_input(&lab, JSON.as_bytes(), args);
            let found: Vec<&str> = ran.is_clean().text().lines().skip(1).collect();
            assert_eq!(found, ids, "{condition}");
        }
    }
}

/// A log that is longer than the sample, and whose last messages have longer lists.
fn log_with_late_elements(padding: &str) -> String {
    let line = |n: usize| format!("{{\"id\":{n},\"leg\":[{{\"qty\":1}}],\"pad\":\"{padding}\"}}\n");
    let count = (1 << 20) / line(0).len() + 2;
    let mut log: String = (1..=count).map(line).collect();
    let legs = |count: usize, last: &str| "{\"qty\":1},".repeat(count) + last;
    log += &format!("{{\"id\":-1,\"leg\":[{}]}}\n", legs(1, "{\"qty\":8}"));
    log += &format!("{{\"id\":-2,\"leg\":[{}]}}\n", legs(900, "{\"qty\":8}"));
    log += &format!("{{\"id\":-3,\"leg\":[{}]}}\n", legs(900, "{\"qty\":null}"));
    log += &format!("{{\"id\":-4,\"leg\":[{}],\"late\":[1.5,8]}}\n", legs(70, "{\"qty\":7.5}"));
    log
}

#[test]
fn elements_that_come_late_take_part_in_one_pass() {
    let log = log_with_late_elements("x");
    let lab = Lab::with(&log);
    for (condition, ids) in [
        ("5 < ANY (leg[*].qty)", "-1\n-2\n-4\n"),
        ("(5 < ANY (leg[*].qty)) IS UNKNOWN", "-3\n"),
        ("NOT 1 >= ALL (LEG[*].QTY) AND id < -1", "-2\n-4\n"),
        ("8 = ANY (late[*])", "-4\n"),
        ("1.5 = ANY (LATE[*]) OR leg[900].qty = 8", "-2\n-4\n"),
        ("1 < ANY (leg[*].qty) AND 1 < ANY (late[*])", "-4\n"),
    ] {
        for input in ["f", "-"] {
            let args = [condition, input, "--columns", "id", "--stats", "s"];
            let ran = filter_input(&lab, log.as_bytes(), args);
            assert_eq!(ran.is_clean().text(), ids, "{condition}");
            let stats = std::fs::read_to_string(lab.path("s")).unwrap();
            let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
            assert_eq!(stats["bytes"], log.len(), "{condition}");
        }
    }
    filter(&lab, ["1 < ANY (leg[*].px)", "f"]).says(2, &["leg[*].px"]);
    filter(&lab, ["'a' < ANY (leg[*].qty)", "f"]).says(2, &["compare"]);
}

#[test]
fn a_pipe_of_any_length_may_have_late_elements() {
    // Longer than the part of a stream that is kept to read it again.
    let log = log_with_late_elements(&"x".repeat(300 << 10)).repeat(36);
    assert!(log.len() > 33 << 20);
    let lab = Lab::new();
    let ran = filter_input(&lab, log.as_bytes(), ["7 < ANY (leg[*].qty)", "-", "-c"]);
    assert_eq!(ran.is_clean().text().trim(), "108");
}
