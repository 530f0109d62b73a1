//! Hidden columns: the position of each message in its source, and its bytes.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use quarrier_core::source::Memory;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::format::xml::Xml;
use quarrier_messages::{
    Field, Format, HiddenColumns, Kind, Load, Loaded, MESSAGE_COLUMN, Packing, Schema, Value,
};

use crate::fix::message;

const ALL: HiddenColumns =
    HiddenColumns { line: true, offset: true, message: true, list_ends: false };

fn load(format: &Format, bytes: &[u8], workers: usize) -> Loaded {
    // Small claims, so that every worker takes some.
    let packing = Packing { claim_bytes: 64, segment_rows: 100, ..Packing::default() };
    let load = Load::new(format.clone()).workers(workers).packing(packing).hidden(ALL);
    load.run(&[&Memory::new("log", bytes.to_vec())]).unwrap()
}

/// Line, offset and bytes of each message.
type Places = Vec<(u64, u64, String)>;

fn places(loaded: &Loaded) -> Places {
    let table = &loaded.table;
    assert_eq!(table.hidden(), ALL);
    let first = table.visible();
    let number = |row, column| match table.value(row, column) {
        Value::Integer(number) => number as u64,
        other => panic!("{other:?}"),
    };
    let text = |row| match table.value(row, first + 2) {
        Value::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    (0..table.rows()).map(|row| (number(row, first), number(row, first + 1), text(row))).collect()
}

/// Like `places`, by counting line feeds before each message.
fn counted(text: &str, messages: &[&str]) -> Places {
    let mut from = 0;
    let place = |message: &&str| {
        let at = from + text[from..].find(message).unwrap();
        from = at + message.len();
        (1 + text[..at].matches('\n').count() as u64, at as u64, message.to_string())
    };
    messages.iter().map(place).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[track_caller]
fn check(format: &Format, text: &str, messages: &[&str]) {
    let expected = counted(text, messages);
    for workers in [1, 3] {
        assert_eq!(places(&load(format, text.as_bytes(), workers)), expected, "{workers} workers");
        let packed = gzip(text.as_bytes());
        assert_eq!(places(&load(format, &packed, workers)), expected, "{workers}, compressed");
    }
}

#[test]
fn positions_refer_to_decompressed_bytes_in_every_format() {
    let json = "\u{feff}{\"a\":1}\nno message\n\n  {\"a\":2,\"b\":\"ü\"}\r\n{\"c\":null}";
    let lines = ["{\"a\":1}", "  {\"a\":2,\"b\":\"ü\"}\r", "{\"c\":null}"];
    check(&Format::Json, json, &lines);
    let csv = "a,b\r\n1,\"x\ny\"\r\n2\r\n03,\r\n";
    check(&Format::Csv(Csv::default()), csv, &["1,\"x\ny\"", "03,"]);
    let xml = "<l>\n <o a='1'>\n  <b/></o><!-- no -->\n<o a=\"2\"/></l>";
    check(&Format::Xml(Xml::default()), xml, &["<o a='1'>\n  <b/></o>", "<o a=\"2\"/>"]);
    let dictionary = Arc::new(Dictionary::builtin());
    let text = |body| String::from_utf8(message(body)).unwrap();
    let (one, two) = (text("35=D|38=5|"), text("35=D|38=6|58=é|"));
    for between in ["", "\n", "\r\n\n"] {
        let log = format!("{one}{between}{two}{between}{one}");
        check(&Format::Fix(Arc::clone(&dictionary)), &log, &[&one, &two, &one]);
    }
    let log = "MsgType=D\u{1}Qty=5\u{1}\n\nMsgType=D\u{1}Qty=6\u{1}\n";
    let lines = ["MsgType=D\u{1}Qty=5\u{1}", "MsgType=D\u{1}Qty=6\u{1}"];
    check(&Format::Nvfix(dictionary), log, &lines);
}

#[test]
fn positions_are_right_across_claims_segments_and_sources() {
    let line = |n: u64| match n % 1_000 {
        998 => "no message\n\n".to_string(),
        999 => format!("{{\"n\":{n},\"late{}\":true}}\n", n / 10_000),
        _ => format!("{{\"n\":{n}}}\n"),
    };
    let log: String = (0..90_000).map(line).collect();
    let messages: Vec<&str> = log.lines().filter(|line| line.starts_with('{')).collect();
    let expected = counted(&log, &messages);
    for workers in [1, 3] {
        assert_eq!(places(&load(&Format::Json, log.as_bytes(), workers)), expected);
    }
    let (one, two) = (Memory::new("1", "\n{\"a\":1}\n"), Memory::new("2", "{\"a\":2}\n{\"b\":3}"));
    let loaded = Load::new(Format::Json).workers(2).hidden(ALL).run(&[&one, &two]).unwrap();
    let places = places(&loaded);
    let places: Vec<_> = places.iter().map(|(line, offset, _)| (*line, *offset)).collect();
    assert_eq!(places, [(2, 1), (1, 0), (2, 8)]);
}

#[test]
fn pieces_count_on() {
    let log: String = (0..60_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let load = Load::new(Format::Json).workers(2).hidden(ALL);
    let (mut all, source) = (Vec::new(), Memory::new("log", log.clone()));
    let rest = load.run_in_pieces(&[&source], 64 << 10, &mut |piece| {
        all.extend(places(&piece));
        Ok(())
    });
    all.extend(places(&rest.unwrap()));
    let mut offset = 0;
    for (row, message) in log.lines().enumerate() {
        assert_eq!(all[row], (row as u64 + 1, offset, message.to_string()));
        offset += message.len() as u64 + 1;
    }
}

#[test]
fn hidden_columns_come_last_and_can_be_removed() {
    let log = "{\"_line\":\"x\",\"a\":1}\n{\"b\":2}\n";
    let loaded = load(&Format::Json, log.as_bytes(), 1);
    let names = |table: &quarrier_messages::Table| -> Vec<String> {
        table.schema().fields.iter().map(|field| field.name.to_string()).collect()
    };
    assert_eq!(names(&loaded.table), ["a", "b", "_line", "_offset", "_message"]);
    assert_eq!(loaded.table.value(0, 2), Value::Integer(1));
    assert_eq!((loaded.refused.count, &*loaded.refused.names[0]), (1, "_line"));
    assert_eq!(names(&loaded.table.without_hidden()), ["a", "b"]);
    let schema = Schema { fields: vec![Field { name: "b".into(), kind: Kind::Float }] };
    let load = Load::new(Format::Json).schema(schema).hidden(ALL);
    let loaded = load.run(&[&Memory::new("log", log)]).unwrap();
    assert_eq!(names(&loaded.table), ["b", "_line", "_offset", "_message"]);
    assert_eq!(loaded.refused.count, 0);
}

#[test]
fn an_empty_result_has_the_columns() {
    for (format, text) in [(Format::Json, ""), (Format::Csv(Csv::default()), "a,b\n")] {
        let loaded = load(&format, text.as_bytes(), 1);
        let first = loaded.table.visible();
        let kinds = loaded.table.schema().fields[first..].iter().map(|field| field.kind);
        assert!(kinds.eq([Kind::Integer, Kind::Integer, Kind::Text]));
        assert_eq!(loaded.table.without_hidden().columns().len(), first);
    }
}

#[test]
fn bytes_that_are_kept_stay_visible() {
    let load = Load::new(Format::Json).keep_bytes(true).hidden(ALL);
    let table = load.run(&[&Memory::new("log", "{\"a\":1}\n")]).unwrap().table;
    assert_eq!(table.hidden(), HiddenColumns { message: false, ..ALL });
    assert_eq!(table.schema().position(MESSAGE_COLUMN), Some(1));
    assert_eq!(table.visible(), 2);
}

/// Returns the ends of the lists of each message; empty if the column has no value or does not
/// exist.
fn list_ends(format: &Format, text: &str, workers: usize) -> Vec<String> {
    let packing = Packing { claim_bytes: 4_096, segment_rows: 100, ..Packing::default() };
    let hidden = HiddenColumns { list_ends: true, ..HiddenColumns::default() };
    let load = Load::new(format.clone()).workers(workers).packing(packing).hidden(hidden);
    let table = load.run(&[&Memory::new("log", text.to_string())]).unwrap().table;
    assert!(table.hidden() == hidden || table.hidden().is_none());
    let column = table.hidden().list_ends.then(|| table.visible());
    let text = |row| match column.map(|column| table.value(row, column)) {
        Some(Value::Text(text)) => text.to_string(),
        _ => String::new(),
    };
    (0..table.rows()).map(text).collect()
}

#[test]
fn lists_that_end_without_a_value_are_kept() {
    let cases = [
        ("{\"leg\":[{\"qty\":1},{\"qty\":null}]}", "\nleg[2]"),
        ("{\"leg\":[{\"qty\":1},{\"qty\":2}]}", ""),
        ("{\"leg\":[{\"qty\":null},{\"qty\":2}]}", ""),
        ("{\"leg\":[{\"qty\":1},{}]}", "\nleg[2]"),
        ("{\"leg\":[{\"qty\":1,\"x\":null},{\"x\":[],\"qty\":7}]}", ""),
        ("{\"leg\":[1,null]}", "\nleg[2]"),
        ("{\"leg\":[null, 1]}", ""),
        ("{\"leg\":[]}", ""),
        ("{\"leg\":null}", ""),
        ("{\"leg\":[false]}", ""),
        ("{\"leg\":[[]]}", "\nleg[1]"),
        ("{\"leg\":[[],[1,null]]}", "\nleg[1][2]"),
        ("{\"leg\":[[null],[1]]}", "\nleg[0][1]"),
        ("{\"a\":{\"leg\":[1,{\"x\":[null]}]},\"b\":1}", "\na.leg[1].x[1]\na.leg[2]"),
        ("{\"a\\nb\":[null]}", "\na\u{2424}b[1]"),
        ("{\"a\":1}", ""),
    ];
    // Each after each, so that templates are learned and tried.
    let pairs = (0..cases.len()).flat_map(|one| (0..cases.len()).flat_map(move |two| [one, two]));
    let order: Vec<usize> = pairs.collect();
    let log: String = order.iter().map(|&at| format!("{}\n", cases[at].0)).collect();
    let expected: Vec<&str> = order.iter().map(|&at| cases[at].1).collect();
    for workers in [1, 3] {
        assert_eq!(list_ends(&Format::Json, &log, workers), expected);
    }
    let without = "{\"leg\":[1]}\n{\"leg\":[1,2]}\n";
    assert_eq!(list_ends(&Format::Json, without, 1), ["", ""]);
    let xml = "<l><o><leg><q>1</q></leg><leg/></o><o><leg/><leg q='1'/></o><o><leg/></o></l>";
    assert_eq!(list_ends(&Format::Xml(Xml::default()), xml, 1), ["\nleg[2]", "", ""]);
}
