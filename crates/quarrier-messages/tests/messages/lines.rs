//! Line numbers of messages and rejects, compared with a count of the line feeds before them.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use quarrier_core::source::Memory;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::format::xml::Xml;
use quarrier_messages::{Format, HiddenColumns, Limits, Load, Packing, Value};

use crate::fix::message;

/// A long message exceeds the limit, and many claims.
const LONG: usize = 700;

struct Random(u64);

impl Random {
    fn of<'p>(&mut self, pieces: &'p [String]) -> &'p str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        &pieces[(self.0 >> 33) as usize % pieces.len()]
    }
}

/// Checks the lines of everything that a load finds in a text.
fn check(format: &Format, text: &str) {
    let limits = Limits { message_bytes_max: 300, rejects_max: 100_000, ..Limits::default() };
    let packing = Packing { claim_bytes: 64, segment_rows: 100, ..Packing::default() };
    let hidden = HiddenColumns { line: true, offset: true, ..HiddenColumns::default() };
    let right = |offset: u64| 1 + text[..offset as usize].matches('\n').count() as u64;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    for bytes in [text.as_bytes().to_vec(), packed.finish().unwrap()] {
        for workers in [1, 3] {
            let load = Load::new(format.clone()).workers(workers).limits(limits.clone());
            let load = load.packing(packing).hidden(hidden);
            let loaded = load.run(&[&Memory::new("log", bytes.clone())]).unwrap();
            for reject in &loaded.rejects {
                assert_eq!(reject.line, right(reject.offset), "{reject:?} of {text:?}");
            }
            let table = &loaded.table;
            let number = |row, column| match table.value(row, table.visible() + column) {
                Value::Integer(number) => number as u64,
                other => panic!("{other:?}"),
            };
            for row in 0..table.rows() {
                assert_eq!(number(row, 0), right(number(row, 1)), "{row} of {text:?}");
            }
        }
    }
}

/// Checks texts of random pieces between a beginning and an end.
fn check_random(format: &Format, (start, end): (&str, &str), pieces: &[String], between: &[&str]) {
    let between: Vec<String> = between.iter().map(|between| between.to_string()).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for count in 1..40 {
        let mut text = start.to_string();
        for _ in 0..count {
            text += random.of(pieces);
            text += random.of(&between);
        }
        check(format, &(text + end));
    }
}

#[test]
fn lines_are_counted_in_every_format() {
    let long = "x".repeat(LONG);
    let strings =
        |strings: &[&str]| strings.iter().map(|text| text.to_string()).collect::<Vec<_>>();
    let json =
        strings(&["{\"a\":1}", "no", "", " ", &format!("{{\"a\":\"{long}\"}}"), "{\"b\":2}\r"]);
    check_random(&Format::Json, ("", ""), &json, &["\n"]);
    let fix = |body: &str| String::from_utf8(message(body)).unwrap();
    let mut pieces = strings(&["garbage", "8=FIX.4.4\u{1}9=5\u{1}35=D\u{1}broken", &long]);
    let bodies = ["35=D|38=5|", "35=D|58=a\nb|", &format!("35=D|58={long}|")];
    pieces.extend(bodies.map(fix));
    pieces.push(fix(&format!("35=D|58={long}\n\n{long}|")));
    let dictionary = Arc::new(Dictionary::builtin());
    let fix = Format::Fix(Arc::clone(&dictionary));
    check_random(&fix, ("", ""), &pieces, &["", "\n", "\n", "\r\n", "\n\n\n"]);
    let long_line = format!("MsgType=D\u{1}Text={long}\u{1}");
    let pieces =
        strings(&["MsgType=D\u{1}Qty=5\u{1}", "no", &long_line, "MsgType=D\u{1}Qty=6\u{1}"]);
    check_random(&Format::Nvfix(dictionary), ("", ""), &pieces, &["\n", "\n\n", "\r\n"]);
    let quoted = format!("\"{long}\n{long}\",1");
    let pieces = strings(&["1,2", "\"x\ny\",2", "3", "4,5,6", &format!("{long},1"), &quoted]);
    for header in ["a,b\n", "\"a\nz\",b\n", "\n\na,b\r\n"] {
        let csv = Format::Csv(Csv::default());
        check_random(&csv, (header, ""), &pieces, &["\n", "\r\n", "\n\n"]);
    }
    let long = format!("<o a='{long}'/>");
    let pieces = strings(&["<o a='1'/>", "<o>\n<b/></o>", "<o a=1/>", "<!--\n-->", &long]);
    let ends = ("<?xml version='1.0'?>\n<l>\n", "</l>");
    check_random(&Format::Xml(Xml::default()), ends, &pieces, &["", "\n", "\n\n"]);
}
