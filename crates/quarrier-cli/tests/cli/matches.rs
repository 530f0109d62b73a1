//! Histograms of matches, stop lists and alert lists.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::StreamReader;

use crate::harness::{Lab, noise};

/// Mail addresses: `b@y` three times, one of them in UTF-16, `a@x` twice, `c@\xFF` once.
fn lab() -> Lab {
    let mut bytes = b"<a@x> <b@y> <b@y> <c@\xFF> [a@x] ".to_vec();
    bytes.extend("b@y".encode_utf16().flat_map(u16::to_le_bytes));
    let lab = Lab::with(bytes);
    lab.put("p", "mail = re:[a-z]@[^ >\\]\\x00]\nb@y\n");
    lab
}

#[test]
fn a_histogram_has_a_row_for_each_pattern_and_distinct_match() {
    let lab = lab();
    let asked = |format| {
        let ran = lab.search(["-f", "p", "--utf16", "f", "--histogram", "--format", format]);
        ran.is_clean();
        ran
    };
    assert_eq!(
        asked("csv").lines(),
        [
            "pattern,name,match,count",
            "b@y,,b@y,3",
            "[a-z]@[^ >\\]\\x00],mail,a@x,2",
            "[a-z]@[^ >\\]\\x00],mail,b@y,2",
            "[a-z]@[^ >\\]\\x00],mail,c@\\xff,1",
        ]
    );
    assert_eq!(
        asked("json").lines()[0],
        r#"{"pattern":"b@y","name":null,"match":"b@y","count":3}"#
    );
    let text = asked("text");
    assert_eq!(text.lines()[3].trim(), "1  mail: c@\\xff");
    let arrow = asked("arrow");
    let batch = StreamReader::try_new(&arrow.stdout[..], None).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column(2).as_binary::<i32>().value(3), b"c@\xFF");
    assert_eq!(batch.column(3).as_primitive::<UInt64Type>().values(), &[3, 2, 2, 1]);
}

#[test]
fn a_histogram_counts_the_matches_of_rows() {
    let lab = Lab::new();
    lab.put("f", noise(300_000, 3));
    lab.put("g", noise(50_000, 4));
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in lab.find(["-E", "[a-d]{2}", "f", "g"]) {
        *counts.entry(row.found).or_default() += 1;
    }
    let ran = lab.search(["-E", "[a-d]{2}", "f", "g", "--histogram", "--format", "csv"]);
    let rows = ran.is_clean().lines();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[2].to_string(), fields[3].parse::<u64>().unwrap())
    };
    let ranked: Vec<_> = rows[1..].iter().map(|line| row(line)).collect();
    assert!(ranked.is_sorted_by(|a, b| (b.1, &a.0) < (a.1, &b.0)), "{ranked:?}");
    assert_eq!(ranked.into_iter().collect::<BTreeMap<_, _>>(), counts);
}

#[test]
fn a_full_histogram_reports_the_number_of_missing_findings() {
    let lab = Lab::with((0..20_000).map(|n| format!("n{n:06} ")).collect::<String>());
    let ran = lab.search(["-E", "n[0-9]{6}", "f", "--histogram", "--histogram-memory", "1M"]);
    ran.says(3, &["the histogram is full", "--histogram-memory"]);
    let left_out: usize = ran.stderr.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert_eq!(ran.lines().len() + left_out, 20_000);
}

#[test]
fn a_stop_list_leaves_matches_out_of_rows_counts_and_limits() {
    let lab = lab();
    lab.put("stop", "# of the office\nb@y\n");
    let offsets = |arguments: &[&str]| lab.offsets(arguments.iter().chain(&["-f", "p", "f"]));
    assert_eq!(offsets(&["--stop-list", "stop"]), [1, 19, 25]);
    assert_eq!(offsets(&["--stop-list", "stop", "--max-count", "2"]), [1, 19]);
    lab.put("features", "0\ta@x\t[a@x]\n25\tc@\\xFF\t\n");
    assert_eq!(offsets(&["--stop-list", "stop", "--stop-list", "features"]), [1]);
    let ran = lab.search(["-f", "p", "f", "-c", "--stop-list", "stop", "--format", "csv"]);
    assert_eq!(ran.is_clean().lines()[1..], ["[a-z]@[^ >\\]\\x00],mail,3", "b@y,,0"]);
    lab.put("all", "*");
    assert_eq!(lab.search(["-f", "p", "f", "--stop-list", "all"]).code, Some(1));
}

#[test]
fn an_alert_list_keeps_its_matches_only() {
    let lab = lab();
    lab.put("alert", "n=5\ta@x\nnobody@z\n");
    assert_eq!(lab.offsets(["-f", "p", "f", "--alert-list", "alert"]), [1, 25]);
    lab.search(["x", "f", "--alert-list", "none"]).refuses(&["none", "No such file"]);
    lab.search(["x", "f", "--histogram", "-c"]).refuses(&["--histogram"]);
}
