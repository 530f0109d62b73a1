//! `quarrier filter`: the matching messages, and their output.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use serde_json::json;

use crate::harness::{Lab, Ran, run, skip};

/// Four orders, one of them nested, and an invalid line.
const ORDERS: &str = r#"{"id":1,"status":"NEW","price":99.5,"qty":100,"note":"a, \"b\"\tc"}
{"id":2,"status":"REJECTED","price":100.25,"qty":100}
{"id":3,"status":"REJECTED","price":101,"qty":600,"leg":[{"ratio":2}]}
no message
{"id":4,"status":null,"price":1e2,"qty":-5}
"#;

pub(crate) fn filter<'a>(lab: &Lab, args: impl IntoIterator<Item = &'a str>) -> Ran {
    let mut command = lab.command(["filter"]);
    command.args(args);
    run(command, b"")
}

pub(crate) fn filter_input<'a>(
    lab: &Lab,
    input: &[u8],
    args: impl IntoIterator<Item = &'a str>,
) -> Ran {
    let mut command = lab.command(["filter"]);
    command.args(args).stdin(Stdio::piped());
    run(command, input)
}

/// The numbers of the matching orders.
#[track_caller]
fn check(condition: &str, expected: &[i64]) {
    let lab = Lab::with(ORDERS);
    let ran = filter(&lab, [condition, "f", "--columns", "id"]);
    let found: Vec<i64> = ran.lines().iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found, expected, "{condition}: {ran:?}");
    assert_eq!(ran.code, Some(i32::from(expected.is_empty())), "{condition}: {ran:?}");
}

#[test]
fn messages_for_which_the_condition_is_true_are_found() {
    check("status = 'REJECTED'", &[2, 3]);
    check("status = 'REJECTED' AND price > 100 AND qty BETWEEN 100 AND 500", &[2]);
    check("price = 100", &[4]);
    check("price >= 100.25", &[2, 3]);
    check("price <> 101 AND NOT qty = 100", &[4]);
    check("status IS NULL", &[4]);
    check("status <> 'NEW' IS UNKNOWN", &[4]);
    check("note IS NOT NULL", &[1]);
    check("note LIKE 'a%b%'", &[1]);
    check("note LIKE_REGEX '^a, .b'", &[1]);
    check("status IN ('NEW', 'FILLED', NULL)", &[1]);
    check("status NOT IN ('NEW', NULL)", &[]);
    check("price * qty > 10000", &[2, 3]);
    check("leg[0].ratio = 2", &[3]);
    check("UPPER(status) = 'NEW' OR id % 2 = 0", &[1, 2, 4]);
    check("qty < 0 OR 1 = 1", &[1, 2, 3, 4]);
    check("1 = 0", &[]);
}

#[test]
fn messages_are_printed_verbatim() {
    let lab = Lab::with(ORDERS);
    let ran = filter(&lab, ["qty = 100", "f"]);
    assert_eq!(ran.lines(), ORDERS.lines().take(2).collect::<Vec<_>>());
    ran.says(0, &["f: 1 of 5 messages was left out", "line 4", "--rejects"]);
}

#[test]
fn a_last_line_without_its_end_is_a_message() {
    let lab = Lab::with("{\"a\":1}\n\n \t\n{\"a\":2}");
    assert_eq!(filter(&lab, ["a > 1", "f"]).is_clean().text(), "{\"a\":2}\n");
}

#[test]
fn a_count_is_one_number_of_all_files() {
    let lab = Lab::with("{\"a\":1}\n{\"a\":2}\n");
    lab.put("g", "{\"a\":3}\n");
    assert_eq!(filter(&lab, ["-c", "a > 1", "f", "g"]).is_clean().text(), "2\n");
    let ran = filter(&lab, ["-c", "a > 1", "f", "g", "--format", "json"]);
    assert_eq!(ran.is_clean().text(), "{\"count\":2}\n");
    let ran = filter(&lab, ["-c", "a > 1", "f", "g", "--format", "csv"]);
    assert_eq!(ran.is_clean().text(), "count\n2\n");
    let none = filter(&lab, ["-c", "a > 7", "f", "g"]);
    assert_eq!((none.code, none.text(), none.stderr.as_str()), (Some(1), "0\n", ""));
}

#[test]
fn many_conditions_are_counted_in_one_pass() {
    let lab = Lab::with("{\"a\":1,\"b\":\"x\"}\n{\"a\":2}\n{\"a\":3,\"b\":\"x\"}\n");
    lab.put("many.sql", "a > 1\n\n-- a comment\n  b = 'x' ;\na > 7\n");
    let ran = filter(&lab, ["--many", "many.sql", "f"]);
    let text = "           2  a > 1\n           2  b = 'x'\n           0  a > 7\n";
    assert_eq!(ran.is_clean().text(), text);
    let ran = filter(&lab, ["--many", "many.sql", "f", "--format", "json"]);
    let row = |condition: &str, count: u64| json!({"condition": condition, "count": count});
    assert_eq!(rows(&ran), [row("a > 1", 2), row("b = 'x'", 2), row("a > 7", 0)]);
    lab.put("many.sql", "a > 1\na >\n");
    filter(&lab, ["--many", "many.sql", "f"]).refuses(&["many.sql:2", "line 1"]);
    lab.put("many.sql", "-- nothing\n");
    filter(&lab, ["--many", "many.sql", "f"]).refuses(&["many.sql", "no conditions"]);
}

fn rows(ran: &Ran) -> Vec<serde_json::Value> {
    ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_limit_stops_after_so_many_messages() {
    let messages: String = (0..100_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let lab = Lab::with(&messages);
    for format in ["text", "json"] {
        let ran = filter(&lab, ["n > 5", "f", "--limit", "3", "--format", format]);
        assert_eq!(ran.is_clean().text(), "{\"n\":6}\n{\"n\":7}\n{\"n\":8}\n");
    }
    lab.put("g", &messages);
    let ran = filter(&lab, ["n = 99999", "f", "g", "f", "--limit", "2", "--columns", "n"]);
    assert_eq!(ran.is_clean().text(), "99999\n99999\n");
}

#[test]
fn json_rows_have_the_fields_of_each_message_by_their_paths() {
    let lab = Lab::with(ORDERS);
    let ran = filter(&lab, ["1 = 1", "f", "--format", "json"]);
    assert_eq!(
        ran.lines(),
        [
            r#"{"id":1,"status":"NEW","price":99.5,"qty":100,"note":"a, \"b\"\tc"}"#,
            r#"{"id":2,"status":"REJECTED","price":100.25,"qty":100}"#,
            r#"{"id":3,"status":"REJECTED","price":101,"qty":600,"leg[0].ratio":2}"#,
            r#"{"id":4,"status":null,"price":100.0,"qty":-5}"#,
        ]
    );
}

#[test]
fn json_rows_of_fix_have_the_fields_in_the_order_of_each_message() {
    let message = "8=FIX.4.4\x019=15\x0135=D\x0149=A\x0138=7\x0110=180\x01\n";
    // The first messages of a type are parsed differently from later ones with the same beginning.
    let lab = Lab::with(message.repeat(8));
    let ran = filter(&lab, ["OrderQty = 7", "f", "--format", "json"]);
    let row = "{\"BeginString\":\"FIX.4.4\",\"BodyLength\":15,\"MsgType\":\"D\",\"SenderCompID\":\"A\",\
               \"OrderQty\":7,\"CheckSum\":\"180\"}\n";
    assert_eq!(ran.is_clean().text(), row.repeat(8));
}

#[test]
fn columns_are_shown_in_the_order_asked_for_and_null_where_they_are_not() {
    let lab = Lab::with(ORDERS);
    let with = |format: &str| {
        let columns = "note,PRICE,leg[0].ratio";
        filter(&lab, ["id < 4", "f", "--columns", columns, "--format", format]).text().to_string()
    };
    assert_eq!(with("text"), "a, \"b\"\\tc\t99.5\t\n\t100.25\t\n\t101\t2\n");
    let header = "note,price,leg[0].ratio\n";
    assert_eq!(with("csv"), format!("{header}\"a, \"\"b\"\"\tc\",99.5,\n,100.25,\n,101,2\n"));
    let json = with("json");
    let first = json.lines().nth(1).unwrap();
    assert_eq!(first, r#"{"note":null,"price":100.25,"leg[0].ratio":null}"#);
}

#[test]
fn exact_numbers_stay_exact() {
    let lab = Lab::with("{\"a\":0.1,\"b\":9007199254740993,\"c\":-12345678901234.5678}\n");
    let ran = filter(&lab, ["a = 0.1 AND b = 9007199254740993", "f", "--format", "json"]);
    let text = "{\"a\":0.1,\"b\":9007199254740993,\"c\":-12345678901234.5678}\n";
    assert_eq!(ran.is_clean().text(), text);
}

#[test]
fn numbers_beyond_64_bits_stay_exact() {
    let all = ["18446744073709551615", "18446744073709551614", "3.0000000001", "7"];
    let line = |number: &str| format!("{{\"u\":{number}}}\n");
    let lines: String = all.iter().map(|number| line(number)).collect();
    // In the sample, and long after it.
    for lab in [Lab::with(&lines), Lab::with(&(line("1").repeat(200_000) + &lines))] {
        for (condition, expected) in [
            ("u = 18446744073709551614", &all[1..2]),
            ("u * 2 > 36893488147419103228", &all[..1]),
            ("u > 3 AND u < 18446744073709551615", &all[1..]),
            ("u IN (18446744073709551615, 3.0000000001)", &[all[0], all[2]]),
        ] {
            let ran = filter(&lab, [condition, "f", "--format", "json"]);
            let expected: String = expected.iter().map(|number| line(number)).collect();
            assert_eq!(ran.is_clean().text(), expected, "{condition}");
        }
    }
}

fn batches(ran: &Ran) -> Vec<RecordBatch> {
    StreamReader::try_new(ran.stdout.as_slice(), None).unwrap().map(Result::unwrap).collect()
}

#[test]
fn arrow_has_columns_of_the_kinds_found() {
    let lab =
        Lab::with("{\"a\":1,\"b\":\"x\",\"c\":1.25}\n{\"a\":2}\n{\"a\":3,\"c\":7,\"b\":\"y\"}\n");
    let ran = filter(&lab, ["a <> 2", "f", "--format", "arrow"]);
    let [batch] = batches(ran.is_clean()).try_into().unwrap();
    let types: Vec<DataType> =
        batch.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    assert_eq!(types, [DataType::Int64, DataType::Utf8, DataType::Decimal128(38, 2)]);
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1, 3]);
    assert_eq!(batch.column(2).as_primitive::<Decimal128Type>().values(), &[125, 700]);
    assert_eq!(batch.column(1).as_string::<i32>().value(1), "y");
    let none = filter(&lab, ["a > 9", "f", "--format", "arrow"]);
    assert_eq!((none.code, batches(&none).len()), (Some(1), 0));
}

#[test]
fn an_arrow_number_that_does_not_fit_its_column_is_rejected_and_reported() {
    let mut messages = "{\"a\":1}\n".repeat(200_000);
    messages.push_str("{\"a\":1.5}\n");
    let lab = Lab::with(messages);
    let ran = filter(&lab, ["a > 1", "f", "--format", "arrow"]);
    ran.says(1, &["1 of 200001 messages was left out", "line 200001", "'a' is an exact number"]);
}

#[test]
fn standard_input_and_compressed_files_are_read() {
    let lab = Lab::new();
    let messages: String = (0..50_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let ran = filter_input(&lab, messages.as_bytes(), ["n > 49997", "-"]);
    assert_eq!(ran.is_clean().text(), "{\"n\":49998}\n{\"n\":49999}\n");
    lab.put("f", &messages);
    let zipped = Command::new("gzip").arg("-c").arg(lab.path("f")).output();
    let Ok(zipped) = zipped else { return skip("there is no gzip") };
    lab.put("f.gz", zipped.stdout);
    assert_eq!(filter(&lab, ["n > 49998", "f.gz"]).is_clean().text(), "{\"n\":49999}\n");
}

#[test]
fn rejects_are_listed_with_line_offset_reason_and_bytes() {
    let lab = Lab::with(b"{\"a\":1}\n{\"a\":\n\n{\"a\":\"\xFF\"}\n{\"a\":2}\n");
    let ran = filter(&lab, ["a > 1", "f", "--rejects", "out"]);
    ran.says(0, &["2 of 4 messages were left out", "line 2"]);
    let listed = std::fs::read_to_string(lab.path("out")).unwrap();
    let listed: Vec<serde_json::Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[0]["line"], &listed[0]["offset"]), (&json!(2), &json!(8)));
    assert_eq!(listed[0]["bytes"], json!("{\"a\":"));
    assert_eq!((&listed[1]["line"], &listed[1]["offset"]), (&json!(4), &json!(15)));
    assert_eq!(listed[1]["bytes"], json!("{\\\"a\\\":\\\"\\xff\\\"}"));
    assert!(listed[1]["reason"].as_str().unwrap().contains("UTF-8"));
}

#[test]
fn the_account_of_a_condition_that_is_wrong_has_no_time_below_zero() {
    let lab = Lab::with("{\"a\":1}\n");
    filter(&lab, ["a >", "f", "--stats", "s"]);
    filter(&lab, ["nothing > 1", "f", "--stats", "t"]);
    for name in ["s", "t"] {
        if let Ok(stats) = std::fs::read_to_string(lab.path(name)) {
            assert!(stats.contains("\"seconds\":") && !stats.contains("-0.0"), "{stats}");
        }
    }
    assert!(lab.path("s").exists() || lab.path("t").exists());
}

#[test]
fn rejects_and_statistics_never_replace_a_file_that_is_read() {
    for option in ["--rejects", "--stats"] {
        let lab = Lab::with("{\"a\":1}\n");
        filter(&lab, ["a = 1", "f", option, "f"]).refuses(&["f", "overwritten"]);
        assert_eq!(std::fs::read(lab.path("f")).unwrap(), b"{\"a\":1}\n");
    }
}

#[test]
fn an_invalid_condition_is_reported_with_its_place_and_advice() {
    let lab = Lab::with(ORDERS);
    filter(&lab, ["status = 'NEW' AND", "f"]).refuses(&["condition: "]);
    filter(&lab, ["pricee > 1", "f"]).refuses(&[
        "line 1, column 1",
        "pricee",
        "did you mean price?",
    ]);
    filter(&lab, ["'10' < 9", "f"]).refuses(&["condition: line 1"]);
    filter(&lab, ["id", "f"]).refuses(&["condition"]);
    filter(&lab, ["f"]).refuses(&["no condition"]);
    filter(&lab, []).refuses(&["no condition"]);
    filter(&lab, ["id = 1"]).refuses(&["no file"]);
    filter(&lab, ["id = 1", "nosuch"]).refuses(&["nosuch", "No such file"]);
    filter(&lab, ["id = 1", "f", "--columns", "idd"]).refuses(&["--columns", "did you mean id?"]);
    filter(&lab, ["id = 1", "f", "--columns", "id", "-c"]).refuses(&["--columns", "-c"]);
    filter(&lab, ["id = 1", "f", "--bogus"]).refuses(&["--bogus", "quarrier filter --help"]);
    filter(&lab, ["id = 1", "f", "--format", "xml"]).refuses(&["xml", "json, csv, arrow"]);
    filter(&lab, ["id = 1", "f", "--input-format", "x"]).refuses(&["'x'", "auto, "]);
}

#[test]
fn a_condition_without_a_value_for_a_message_ends_the_run_there() {
    let lab = Lab::with("{\"a\":1,\"b\":1}\n{\"a\":1,\"b\":0}\n{\"a\":1,\"b\":1}\n");
    let ran = filter(&lab, ["a / b = 1", "f"]);
    ran.says(2, &["f: line 2, byte 14", "division by zero", "NULLIF"]);
    assert_eq!(ran.text(), "{\"a\":1,\"b\":1}\n");
    // If the result does not depend on it, it is not an error.
    let ran = filter(&lab, ["-c", "b <> 0 AND a / b = 1", "f"]);
    assert_eq!(ran.is_clean().text(), "2\n");
}

/// Enough lines to put the rest after the first chunks.
fn ones() -> String {
    "{\"a\":1}\n".repeat(200_000)
}

#[test]
fn a_column_that_comes_late_is_a_column() {
    let late = ones() + "{\"a\":1,\"Late\":{\"x\":2}}\n";
    let lab = Lab::with(&late);
    let ran = filter(&lab, ["late.x = 2", "f"]);
    assert_eq!(ran.is_clean().text(), "{\"a\":1,\"Late\":{\"x\":2}}\n");
    let ran = filter(&lab, ["-c", "late.x IS NULL", "f"]);
    assert_eq!(ran.is_clean().text(), "200000\n");
    // A missing column is reported when the end is known.
    let ran = filter(&lab, ["latex = 2", "f"]);
    ran.refuses(&["latex"]);
    let ran = filter(&lab, ["a = 1", "f", "--columns", "Late.x,latex"]);
    ran.says(2, &["latex"]);
}

#[test]
fn a_value_of_another_kind_than_those_before_widens_its_column() {
    let other = ones() + "{\"a\":1.5}\n{\"a\":1e300}\n{\"a\":\"x\"}\n{\"a\":null}\n{\"b\":true}\n";
    let lab = Lab::with(&other);
    // All of them are then strings, as in `quarrier query`.
    filter(&lab, ["a > 1", "f"]).refuses(&["condition: line 1"]);
    let ran = filter(&lab, ["a > '1' AND a LIKE '%x'", "f"]);
    assert_eq!(ran.is_clean().text(), "{\"a\":\"x\"}\n");
    let ran = filter(&lab, ["-c", "a IS NULL", "f"]);
    assert_eq!(ran.is_clean().text(), "2\n");
    let ran = filter(&lab, ["-c", "a IS NOT NULL", "f"]);
    assert_eq!(ran.is_clean().text(), "200003\n");
}

#[test]
fn findings_do_not_depend_on_workers_and_borders() {
    let messages: String = (0..300_000)
        .map(|n| match n % 7 {
            0 => format!("{{\"n\":{n},\"pad\":\"{}\"}}\n", "x".repeat(n % 300)),
            1 => format!("{{\"n\":{n}.5}}\r\n"),
            2 => "broken\n".to_string(),
            _ => format!("{{\"n\":{n}}}\n"),
        })
        .collect();
    let lab = Lab::with(&messages);
    let kept: String =
        messages.split_inclusive('\n').filter(|line| !line.contains("broken")).collect();
    for workers in ["1", "2", "5"] {
        let ran = filter(&lab, ["n >= 0", "f", "--workers", workers]);
        assert!(ran.text() == kept, "{workers}");
        ran.says(0, &["42857 of 300000 messages were left out, the first at line 3"]);
    }
}

#[test]
fn a_message_longer_than_allowed_is_left_out_in_bounded_memory() {
    let mut messages = b"{\"a\":1}\n{\"a\":\"".to_vec();
    messages.resize(40 << 20, b'x');
    messages.extend_from_slice(b"\"}\n{\"a\":2}\n");
    let lab = Lab::with(&messages);
    let ran = filter(&lab, ["-c", "a > 0", "f"]);
    assert_eq!(ran.text(), "2\n");
    ran.says(0, &["1 of 3 messages was left out", "line 2", "longer than"]);
    let ran = filter_input(&lab, &messages, ["a = 2", "-"]);
    assert_eq!(ran.text(), "{\"a\":2}\n");
}

#[test]
fn a_closed_pipe_is_success_and_a_full_disk_is_reported() {
    let lab = Lab::with("{\"a\":1}\n".repeat(1_000_000));
    let mut command = lab.command(["filter", "a = 1", "f"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let status = crate::harness::wait(&mut child);
    assert_eq!(status.code(), Some(0));
    for format in ["text", "json", "csv", "arrow"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = lab.command(["filter", "a = 1", "f", "--limit", "9", "--format", format]);
        let mut child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = crate::harness::drain(child.stderr.take().unwrap());
        let ran = Ran::new(crate::harness::wait(&mut child), Vec::new(), &stderr);
        ran.refuses(&["standard output", "No space left"]);
    }
}

#[test]
fn ctrl_c_leaves_whole_messages_and_says_where_it_stopped() {
    let lab = Lab::new();
    let mut command = lab.command(["filter", "a >= 0", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        let mut number = 0;
        while stdin.write_all(format!("{{\"a\":{number}}}\n").repeat(1_000).as_bytes()).is_ok() {
            number += 1;
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    let mut out = child.stdout.take().unwrap();
    let mut stdout = vec![0; 100];
    out.read_exact(&mut stdout).unwrap();
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    stdout.extend(crate::harness::drain(out));
    let stderr = crate::harness::drain(child.stderr.take().unwrap());
    let ran = Ran::new(crate::harness::wait(&mut child), stdout, &stderr);
    feeder.join().unwrap();
    ran.says(130, &["-: interrupted at byte"]);
    let end = ran.stderr.split("at byte ").nth(1).unwrap();
    let end: usize = end[..end.find(';').unwrap()].parse().unwrap();
    // All messages match, so the output equals the bytes read.
    assert_eq!(ran.stdout.len(), end);
    assert!(ran.text().ends_with("}\n"));
}

#[test]
fn statistics_have_the_fields_agreed() {
    let lab = Lab::with(ORDERS);
    filter(&lab, ["id > 2", "f", "-c", "--stats", "s"]);
    let stats: serde_json::Value =
        serde_json::from_slice(&std::fs::read(lab.path("s")).unwrap()).unwrap();
    assert_eq!(stats["command"], "filter");
    assert_eq!(stats["bytes"], ORDERS.len());
    assert_eq!(stats["findings"], 2);
    assert_eq!(stats["messages"], 4);
    assert_eq!(stats["rejected"], 1);
    for stage in ["read", "work", "sink"] {
        assert!(stats["stages"][stage]["busy_seconds"].is_number());
    }
    assert!(["read", "work", "sink"].contains(&stats["limited_by"].as_str().unwrap()));
}

#[test]
fn other_formats_are_known_by_content_and_ending() {
    let lab = Lab::new();
    lab.put("f.csv", "id,side,note\n1,B,\"two\nlines\"\n2,S,\n3,B,x\n");
    let ran = filter(&lab, ["side = 'B' AND note <> 'x'", "f.csv"]);
    assert_eq!(ran.is_clean().text(), "1,B,\"two\nlines\"\n");
    let ran = filter(&lab, ["id > 1", "f.csv", "--format", "json"]);
    let text =
        "{\"id\":2,\"side\":\"S\",\"note\":null}\n{\"id\":3,\"side\":\"B\",\"note\":\"x\"}\n";
    assert_eq!(ran.is_clean().text(), text);
    let fix = "8=FIX.4.4\u{1}9=10\u{1}35=D\u{1}38=5\u{1}10=199\u{1}";
    let sum: u32 = fix[..fix.len() - 7].bytes().map(u32::from).sum();
    let fix = fix.replace("10=199", &format!("10={:03}", sum % 256));
    lab.put("f", format!("{fix}\n{fix}\n"));
    let ran = filter(&lab, ["-c", "OrderQty = 5 AND MsgType = 'D'", "f"]);
    assert_eq!(ran.is_clean().text(), "2\n");
    lab.put("p", "PAR1");
    filter(&lab, ["a = 1", "p"]).refuses(&["p: Parquet"]);
}

#[test]
fn an_empty_file_has_nothing_and_is_no_error() {
    let lab = Lab::with("");
    filter(&lab, ["a = 1", "f"]).is_clean();
}

#[test]
fn a_missing_column_prints_only_its_error() {
    let lab = Lab::new();
    // More than the sample that determines the columns.
    let mut lines = String::new();
    while lines.len() < 3 << 20 {
        lines.push_str("{\"id\":1,\"note\":\"a note that takes its place\"}\n");
    }
    lab.put("many.ndjson", lines.as_bytes());
    lab.put("many.sql", b"nope = 1\nid = 1\n");
    for args in [
        &["nope = 1", "many.ndjson", "-c"][..],
        &["nope IS NULL", "many.ndjson"],
        &["--many", "many.sql", "many.ndjson"],
        &["id = 1", "many.ndjson", "--columns", "nope"],
        &["id = 1", "many.ndjson", "--columns", "nope", "--format", "csv"],
    ] {
        let ran = filter(&lab, args.iter().copied());
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.text(), "", "{args:?}");
        let said = "did you mean note? There are: ";
        assert!(
            ran.stderr.contains("no column 'nope'") && ran.stderr.contains(said),
            "{}",
            ran.stderr
        );
    }
    // The column occurs late: everything is printed verbatim.
    lines.push_str("{\"id\":2,\"nope\":1}\n");
    lab.put("late.ndjson", lines.as_bytes());
    let ran = filter(&lab, ["nope IS NULL OR id = 2", "late.ndjson"]);
    assert!(ran.code == Some(0) && ran.text() == lines, "{}", ran.stderr);
}

#[test]
fn quiet_prints_only_failures() {
    let lab = Lab::new();
    lab.put("f", "{\"a\":1}\nno message\n");
    let ran = run(lab.command(["filter", "a = 1", "f", "--quiet"]), b"");
    assert_eq!(ran.is_clean().text(), "{\"a\":1}\n");
    run(lab.command(["filter", "a = 1", "f"]), b"").says(0, &["1 of 2 messages was left out"]);
}
