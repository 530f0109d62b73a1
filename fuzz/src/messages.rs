//! Any bytes as JSON lines: messages that serde_json accepts are loaded, others are listed, and
//! neither workers, nor instruction sets, nor earlier messages affect the result.

use quarrier_core::source::Memory;
use quarrier_messages::build::RowBuilder;
use quarrier_messages::format::json::JsonParser;
use quarrier_messages::frame::{Chunk, Lines, Reader, Rejected, Step, Taker};
use quarrier_messages::{Format, Limits, Load, Loaded, Value};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "messages", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"",
    b"{\"id\":1,\"price\":2.50,\"note\":null}\n{\"id\":2,\"price\":1e3,\"note\":\"a\\u00e9\"}\n\n{\"id\":\n",
    b"[1,[true,{}],\"2024-05-31T12:00:00Z\"]\r\n[1,[false,{}],\"2024-05-31\"]\n7",
    b"{\"a\":{\"b\":[{\"c\":-0.001},{\"c\":9223372036854775808}]},\"a\":\"\xF0\x9F\x98\x80\"}\n\xFF\n{\"a\":\"\\ud834\\udd1e\"}",
    b"{\"s\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}\n{\"s\":\"\"}\n{\"s\":\"012345678901234567890123456789012345678901234567890123456789012\\\\\"}\n",
];

const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\"",
    b"\\",
    b"\n",
    b"\r\n",
    b" ",
    b"\\u",
    b"\\ud800",
    b"\\n",
    b"null",
    b"true",
    b"false",
    b"-",
    b"0",
    b"1",
    b".",
    b"e",
    b"E+",
    b"{\"id\":",
    b",\"note\":\"",
    b"\"a\":",
    b"1234567890123456",
    b"9223372036854775807",
    b"1e309",
    b"2024-01-01",
    b"T00:00:00Z",
    b"\xC3\xA9",
    b"\xED\xA0\x80",
    b"\xEF\xBB\xBF",
    b"\0",
    b"\t",
    b"\x1F",
];

const INPUT_BYTES_MAX: usize = 64 * 1024;
/// serde_json, which has its own depth limit, rejects deeper ones.
const DEPTH_MAX: usize = 100;

/// Loads `bytes` in every way and compares.
///
/// # Panics
/// If two ways differ, or differ from serde_json.
pub fn run(bytes: &[u8]) -> Verdict {
    if bytes.len() > INPUT_BYTES_MAX {
        return Verdict::Skipped;
    }
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    let messages = lines.iter().filter(|line| !line.iter().all(|b| b" \t\r".contains(b)));
    let messages: Vec<&[u8]> = messages.copied().collect();
    if messages.iter().any(|line| line.iter().filter(|b| b"{[".contains(b)).count() > DEPTH_MAX) {
        return Verdict::Skipped;
    }
    let is_right = |line: &&&[u8]| serde_json::from_slice::<serde_json::Value>(line).is_ok();
    let right = messages.iter().filter(is_right).count() as u64;
    let wrong = messages.len() as u64 - right;

    let source = Memory::new("fuzz", bytes);
    let load = Load::new(Format::Json).workers(1);
    let loaded = load.run(&[&source]).expect("memory is read");
    assert_eq!((loaded.table.rows(), loaded.rejected), (right, wrong));
    let twice = Load::new(Format::Json).workers(2);
    let streamed = twice.run_stream("fuzz", &mut &*bytes).expect("memory is read");
    assert_eq!(values(&streamed), values(&loaded));
    assert_eq!(streamed.rejects, loaded.rejects);
    for parser in JsonParser::all(&Limits::default()) {
        assert_eq!(counted(parser, text), (right, wrong));
    }
    Verdict::Checked
}

fn values(loaded: &Loaded) -> Vec<Vec<Value>> {
    let columns = loaded.table.schema().fields.len();
    let value = |row| (0..columns).map(move |column| loaded.table.value(row, column)).collect();
    (0..loaded.table.rows()).map(value).collect()
}

/// Counts messages and rejects.
struct Count {
    rows: RowBuilder,
    right: u64,
    wrong: u64,
}

impl Taker for Count {
    type Row = RowBuilder;

    fn row(&mut self) -> &mut RowBuilder {
        &mut self.rows
    }

    fn commit(&mut self, _message: &[u8], _at: usize, _line: u64) {
        self.right += 1;
        self.rows.commit();
        if self.rows.is_full() {
            self.rows.finish_segment(|_, _| ());
        }
    }

    fn reject(&mut self, _reject: Rejected<'_>) {
        self.wrong += 1;
        self.rows.rollback();
    }
}

fn counted(parser: JsonParser, bytes: &[u8]) -> (u64, u64) {
    let mut count = Count { rows: RowBuilder::new(4_096), right: 0, wrong: 0 };
    let until = bytes.len();
    let mut chunk = Chunk { bytes, at: 0, until, is_end: true, is_inside: false, lines: 0 };
    let step = Lines::new(parser, Limits::default().message_bytes_max).read(&mut chunk, &mut count);
    assert_eq!(step, Step::Done);
    (count.right, count.wrong)
}
