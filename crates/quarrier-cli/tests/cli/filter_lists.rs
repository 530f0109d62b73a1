//! `quarrier filter` by the elements of lists: `5 < ANY (leg[*].qty)`.

use crate::filter::{filter, filter_input};
use crate::harness::Lab;

const JSON: &str = "{\"id\":1,\"leg\":[{\"qty\":3,\"px\":1.5},{\"qty\":7}],\"tag\":[\"a\",\"b\"]}\n\
    {\"id\":2,\"leg\":[{\"qty\":9,\"px\":2}]}\n{\"id\":3,\"leg\":[]}\n{\"id\":4,\"tag\":[\"c\"]}\n\
    {\"id\":5,\"leg\":[{\"px\":2},{\"qty\":null,\"px\":3},{\"qty\":1}]}\n";

#[test]
fn any_and_all_compare_each_element() {
    let lab = Lab::with(JSON);
    for (condition, ids) in [
        ("5 < ANY (leg[*].qty)", &["1", "2"][..]),
        ("9 = SOME (leg[*].qty)", &["2"]),
        ("5 < ALL (leg[*].qty)", &["2", "3", "4"]),
        ("NOT 5 < ANY (leg[*].qty)", &["3", "4"]),
        ("(5 < ANY (leg[*].qty)) IS UNKNOWN", &["5"]),
        ("3 <> ALL (leg[*].qty)", &["2", "3", "4"]),
        ("1 >= ANY (LEG[*].QTY)", &["5"]),
        ("'b' = ANY (tag[*])", &["1"]),
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

#[test]
fn elements_that_come_late_take_part() {
    let mut log: String =
        (0..60_000).map(|n| format!("{{\"id\":{n},\"leg\":[{{\"qty\":1}}]}}\n")).collect();
    assert!(log.len() > 1 << 20);
    log += "{\"id\":60000,\"leg\":[{\"qty\":1},{\"qty\":8}]}\n";
    let lab = Lab::with(&log);
    let ran = filter(&lab, ["5 < ANY (leg[*].qty)", "f"]);
    assert_eq!(ran.is_clean().text(), "{\"id\":60000,\"leg\":[{\"qty\":1},{\"qty\":8}]}\n");
    let ran = filter(&lab, ["1 < ANY (leg[*].px)", "f"]);
    ran.says(2, &["leg[*].px"]);
    let ran = filter(&lab, ["1 < ANY (leg[*].qty)", "f", "--follow"]);
    ran.says(2, &["without --follow"]);
}
