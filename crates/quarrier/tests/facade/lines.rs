//! Line numbers of filtered and of rejected messages, compared with a count of the line feeds
//! before them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::filter::{Conditions, Form, Rows};
use quarrier::{Filter, Sources};
use quarrier_messages::{Format, Limits};
use serde_json::Value;

use crate::doors::opener;

/// Filters a text. Returns the offset and line of each rejected message, and the offset of each
/// other message, with its line if `has_lines`.
fn places(folder: &Path, text: &str, format: &str, has_lines: bool) -> Vec<(u64, Option<u64>)> {
    let (log, list) = (folder.join("log"), folder.join("rejects"));
    fs::write(&log, text).unwrap();
    let columns = if has_lines { &["_offset", "_line"][..] } else { &["_offset"] };
    let filter = Filter::new(Conditions::one("1 = 1"))
        .format(Format::named(format).unwrap())
        .form(Form::Json)
        .columns(Some(columns.iter().map(|name| name.to_string()).collect()))
        .limits(Limits { message_bytes_max: 3_000, ..Limits::default() })
        .workers(2)
        .rejects(Some(list.clone()));
    let stop = Arc::new(AtomicBool::new(false));
    let mut lines = Vec::new();
    let mut take = |rows: &Rows<'_>| {
        lines.extend_from_slice(rows.text());
        Ok(())
    };
    filter.run(&Sources::of([&log]), &opener(false), &stop, &mut take).unwrap();
    let number = |row: &Value, name: &str| row[name].as_u64();
    let rows = String::from_utf8(lines).unwrap();
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
    let mut all: Vec<_> =
        rows.map(|row| (number(&row, "_offset").unwrap(), number(&row, "_line"))).collect();
    let rejects = fs::read_to_string(&list).unwrap();
    let rejects = rejects.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
    all.extend(rejects.map(|row| (number(&row, "offset").unwrap(), number(&row, "line"))));
    all.sort_unstable();
    all
}

/// Repeats pieces to several chunks, with long messages in between that cross the borders of some.
fn log(start: &str, pieces: &[&str], long: &dyn Fn(usize) -> String) -> String {
    let mut text = start.to_string();
    for length in [5_000, 900_000, 2_500_000, 40, 1_100_000] {
        while text.len() % 700_000 < 699_000 {
            pieces.iter().for_each(|piece| text += piece);
        }
        text += &long(length);
    }
    text
}

#[test]
fn lines_are_counted_over_messages_that_are_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let pad = "p".repeat(200);
    let json = format!("{{\"a\":1,\"p\":\"{pad}\"}}\n");
    let json =
        log("", &[&json, "no\n\n"], &|length| format!("{{\"a\":\"{}\"}}\n", "x".repeat(length)));
    let line = format!("MsgType=D\u{1}Text={pad}\u{1}\n");
    let nvfix = log("", &[&line, "\n", "no\n", &line], &|length| {
        format!("MsgType=D\u{1}Text={}\u{1}\n\n", "x".repeat(length))
    });
    let (plain, quoted) = (format!("1,{pad}\n"), format!("\"x\n{pad}\ny\",2\n"));
    let csv = log("\"a\nz\",b\n", &[&plain, &quoted, "3\n\n"], &|length| {
        format!("{},1\n", "x".repeat(length))
    });
    let quoted = log("a,b\n", &[&plain, "3\n"], &|length| {
        format!("\"{0}\n{0}\",1\n", "x".repeat(length / 2))
    });
    let logs = [("json", json), ("nvfix", nvfix), ("csv", csv), ("csv", quoted)];
    for (format, text) in logs {
        for has_lines in [false, true] {
            let (mut at, mut right) = (0, 1);
            let places = places(folder.path(), &text, format, has_lines);
            assert!(places.len() > 1_000);
            for (offset, line) in places {
                let offset = offset as usize;
                right += text.as_bytes()[at..offset].iter().filter(|&&byte| byte == b'\n').count();
                at = offset;
                assert!(
                    line.is_none_or(|line| line == right as u64),
                    "{format}, byte {offset}: {line:?}, not {right}"
                );
            }
        }
    }
}
