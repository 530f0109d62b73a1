//! The messages' original bytes as a column.

use std::sync::Arc;

use quarrier_core::source::Memory;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::format::xml::Xml;
use quarrier_messages::{Field, Format, Kind, Limits, Load, Loaded, MESSAGE_COLUMN, Schema, Value};

use crate::fix::message;

fn load(format: &Format, bytes: impl AsRef<[u8]>, workers: usize) -> Loaded {
    let load = Load::new(format.clone()).workers(workers).keep_bytes(true);
    load.run(&[&Memory::new("log", bytes.as_ref().to_vec())]).unwrap()
}

/// Returns the original bytes of each row.
fn messages(loaded: &Loaded) -> Vec<String> {
    let table = &loaded.table;
    let column = table.schema().position(MESSAGE_COLUMN).unwrap();
    assert_eq!(table.schema().fields[column].kind, Kind::Text);
    let text = |row| match table.value(row, column) {
        Value::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    (0..table.rows()).map(text).collect()
}

#[track_caller]
fn check(format: &Format, bytes: &str, expected: &[&str]) {
    for workers in [1, 3] {
        assert_eq!(messages(&load(format, bytes, workers)), expected, "{workers} workers");
    }
}

#[test]
fn messages_of_every_format_are_kept_verbatim() {
    let json = "{ \"a\" : 1.50}\nno message\n\n{\"a\":2,\"b\":\"ü\\n\"}\r\n{\"c\":null}";
    let expected = ["{ \"a\" : 1.50}", "{\"a\":2,\"b\":\"ü\\n\"}\r", "{\"c\":null}"];
    check(&Format::Json, json, &expected);
    let csv = "a,b\r\n1,\"x\ny\"\r\n2\r\n03,\r\n";
    check(&Format::Csv(Csv::default()), csv, &["1,\"x\ny\"", "03,"]);
    let xml = "<l>\n <o a='1'>\n  <b/></o><!-- no -->\n<o a=\"2\"/></l>";
    check(&Format::Xml(Xml::default()), xml, &["<o a='1'>\n  <b/></o>", "<o a=\"2\"/>"]);
    let dictionary = Arc::new(Dictionary::builtin());
    let text = |body| String::from_utf8(message(body)).unwrap();
    let (one, two) = (text("35=D|38=5|"), text("35=D|38=6|58=é|"));
    for between in ["", "\n"] {
        let log = format!("{one}{between}{two}{between}");
        check(&Format::Fix(Arc::clone(&dictionary)), &log, &[&one, &two]);
    }
    let log = "MsgType=D\u{1}Qty=5\u{1}\nMsgType=D\u{1}Qty=6\u{1}\n";
    check(&Format::Nvfix(dictionary), log, &log.lines().collect::<Vec<_>>());
}

#[test]
fn bytes_are_kept_only_on_request() {
    let log = Memory::new("log", "{\"a\":1}\n");
    let loaded = Load::new(Format::Json).run(&[&log]).unwrap();
    assert_eq!(loaded.table.schema().position(MESSAGE_COLUMN), None);
}

#[test]
fn bytes_stay_with_their_message_over_segments_workers_and_new_fields() {
    let line = |n: u64| match n % 50_000 {
        49_999 => format!("{{\"n\":{n},\"late{}\":true}}", n / 50_000),
        _ => format!("{{\"n\":{n}}}"),
    };
    let log: String = (0..200_000).map(|n| line(n) + "\n").collect();
    for workers in [1, 3] {
        let loaded = load(&Format::Json, &log, workers);
        let number = loaded.table.schema().position("n").unwrap();
        for (row, message) in messages(&loaded).into_iter().enumerate() {
            assert_eq!(message, line(row as u64));
            assert_eq!(loaded.table.value(row as u64, number), Value::Integer(row as i64));
        }
    }
}

#[test]
fn long_messages_need_no_segment_of_all_rows() {
    // 200 MB in segments of 64 MiB; 65,536 rows per segment would take more.
    let text = "x".repeat(2_000_000);
    let log: String = (0..100).map(|n| format!("{{\"n\":{n},\"t\":\"{text}\"}}\n")).collect();
    let loaded = load(&Format::Json, log, 1);
    assert_eq!(loaded.table.rows(), 100);
    assert!(messages(&loaded).iter().all(|message| message.len() > 2_000_000));
}

#[test]
fn a_field_with_the_name_of_the_column_is_replaced_and_reported() {
    let log = "{\"a\":1,\"_message\":\"x\",\"b\":2}\n{\"b\":3}\n";
    let loaded = load(&Format::Json, log, 1);
    assert_eq!(messages(&loaded), log.lines().collect::<Vec<_>>());
    let names: Vec<_> = loaded.table.schema().fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["a", "b", MESSAGE_COLUMN]);
    assert_eq!(loaded.table.value(1, 1), Value::Integer(3));
    assert_eq!((&*loaded.refused.names[0], loaded.refused.count), (MESSAGE_COLUMN, 1));
}

#[test]
fn bytes_are_kept_next_to_declared_columns() {
    let schema = Schema { fields: vec![Field { name: "b".into(), kind: Kind::Float }] };
    let load = Load::new(Format::Json).schema(schema).keep_bytes(true).limits(Limits::default());
    let log = Memory::new("log", "{\"a\":1}\n{\"b\":2}\n");
    let loaded = load.run_stream("log", &mut &b"{\"a\":1}\n{\"b\":2}\n"[..]).unwrap();
    assert_eq!(messages(&loaded), ["{\"a\":1}", "{\"b\":2}"]);
    let loaded = load.run(&[&log]).unwrap();
    assert_eq!(messages(&loaded), ["{\"a\":1}", "{\"b\":2}"]);
    assert_eq!(loaded.table.schema().fields.len(), 2);
}

#[test]
fn columns_have_no_bytes_of_messages() {
    for format in [Format::Arrow, Format::Parquet] {
        let load = Load::new(format).keep_bytes(true);
        let error = load.run(&[&Memory::new("p", "PAR1")]).unwrap_err();
        assert!(error.to_string().starts_with("p: it is columnar"), "{error}");
    }
}
