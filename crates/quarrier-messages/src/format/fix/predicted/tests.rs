//! Compares template parsing with the general parser.

use std::sync::Arc;

use proptest::prelude::*;
use quarrier_core::isa::Isa;

use crate::build::{Cell, FieldId, Row};
use crate::format::fix::{Dictionary, FixParser};
use crate::frame::{Chunk, Reader, RecordFormat, Records, Rejected, Step, Taker};
use crate::{Fault, Limits};

/// The oracle: the general parser, without predictions.
struct Careful(FixParser);

impl RecordFormat for Careful {
    fn is_found_anywhere(&self) -> bool {
        self.0.is_found_anywhere()
    }

    fn start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        self.0.start(bytes, from)
    }

    fn extent(&self, bytes: &[u8], is_last: bool) -> Option<usize> {
        self.0.extent(bytes, is_last)
    }

    fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        self.0.message(message, row)
    }

    fn forget(&mut self) {
        self.0.forget();
    }
}

/// Records every message as text, with the last values of its fields, in the order in which the
/// fields were first set; displayed rows keep that order.
#[derive(Debug, Default, PartialEq)]
struct Log {
    names: Vec<String>,
    row: Vec<(FieldId, String)>,
    /// The row before.
    last: Vec<(FieldId, String)>,
    refused: u32,
    messages: Vec<String>,
}

impl Log {
    fn set(&mut self, field: FieldId, value: String) {
        match self.row.iter_mut().find(|(known, _)| *known == field) {
            Some((_, known)) => *known = value,
            None => self.row.push((field, value)),
        }
    }
}

impl Taker for Log {
    type Row = Log;

    fn row(&mut self) -> &mut Log {
        self
    }

    fn commit(&mut self, message: &[u8], _at: usize, _line: u64) {
        self.last = std::mem::take(&mut self.row);
        self.messages.push(format!("{:?} {:?}", self.last, String::from_utf8_lossy(message)));
    }

    fn reject(&mut self, reject: Rejected<'_>) {
        self.row.clear();
        self.messages.push(format!("{reject:?}"));
    }
}

impl Row for Log {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        let at = self.names.iter().position(|known| known == name).unwrap_or(self.names.len());
        if at == self.names.len() {
            self.names.push(name.into());
        }
        // One of the fields is not requested.
        (name != "Side").then(|| FieldId::new(at))
    }

    fn refuse(&mut self) {
        self.refused += 1;
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        self.set(field, format!("{value}"));
    }

    fn integer(&mut self, field: FieldId, value: i64) {
        self.set(field, format!("{value}i"));
    }

    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        self.set(field, format!("{mantissa}/{scale}"));
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        self.set(field, format!("{number:?}"));
    }

    fn float(&mut self, field: FieldId, value: f64) {
        self.set(field, format!("{value}f"));
    }

    fn date(&mut self, field: FieldId, days: i32) {
        self.set(field, format!("{days}d"));
    }

    fn timestamp(&mut self, field: FieldId, nanoseconds: i64) {
        self.set(field, format!("{nanoseconds}ns"));
    }

    fn text(&mut self, field: FieldId, value: &str) {
        self.set(field, format!("{value:?}"));
    }

    fn text_ahead(&mut self, field: FieldId, value: &str, ahead: &[u8; 32]) {
        assert!(value.as_bytes().starts_with(&ahead[..value.len().min(32)]));
        self.text(field, value);
    }

    fn text_again(&mut self, field: FieldId, value: &str) {
        let last = self.last.iter().find(|(known, _)| *known == field);
        assert_eq!(last, Some(&(field, format!("{value:?}"))), "of the row before");
        self.text(field, value);
    }

    fn null(&mut self, field: FieldId) {
        self.set(field, "NULL".into());
    }
}

/// Makes a whole message of `body`.
fn message(version: &str, names: bool, body: &str) -> Vec<u8> {
    let [begin, length, check] = match names {
        true => ["BeginString", "BodyLength", "CheckSum"],
        false => ["8", "9", "10"],
    };
    let head = format!("{begin}={version}\x01{length}={}\x01", body.len());
    let sum = head.bytes().chain(body.bytes()).map(u32::from).sum::<u32>() % 256;
    format!("{head}{body}{check}={sum:03}\x01").into_bytes()
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{0,21}",
        "-?[0-9]{0,9}\\.[0-9]{0,9}",
        "-?[0-9]{1,20}",
        "20240[0-9]3[01]-1[0-9]:00:[0-6]0(\\.[0-9]{3})?",
        "[A-Z]{1,4}",
        "[YN=]",
        "[a-zü \n]{0,70}",
        Just("3".to_string()),
    ]
}

/// Tags with their names, including those of groups and of data.
const TAGS: [(u32, &str); 18] = [
    (34, "MsgSeqNum"),
    (49, "SenderCompID"),
    (52, "SendingTime"),
    (55, "Symbol"),
    (54, "Side"),
    (44, "Price"),
    (38, "OrderQty"),
    (58, "Text"),
    (43, "PossDupFlag"),
    (75, "TradeDate"),
    (95, "RawDataLength"),
    (96, "RawData"),
    (453, "NoPartyIDs"),
    (448, "PartyID"),
    (447, "PartyIDSource"),
    (9001, "Desk"),
    (900_000_001, "AVeryLongNameOfAField"),
    (9002, "x"),
];

/// Generates messages of two types whose fields are mostly in one order, with some missing and some
/// repeated.
fn log(names: bool) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let field = (0usize..TAGS.len(), value(), 0u32..12);
    let body = (
        prop_oneof![9 => Just(Some("D")), 1 => Just(Some("8")), 1 => Just(None)],
        prop_oneof![6 => Just(Some("GEN")), 1 => Just(Some("GENE")), 1 => Just(None)],
        proptest::collection::vec(field, 0..TAGS.len()),
        any::<bool>(),
    );
    let body = body.prop_map(move |(kind, target, mut fields, is_sorted)| {
        if is_sorted {
            fields.sort_by_key(|field| field.0);
        }
        let key = |tag: u32, name: &str| if names { name.to_string() } else { tag.to_string() };
        let mut body = String::new();
        if let Some(kind) = kind {
            body += &format!("{}={kind}\x01", key(35, "MsgType"));
        }
        if let Some(target) = target {
            body += &format!("{}={target}\x01", key(56, "TargetCompID"));
        }
        for (at, value, times) in fields {
            let (tag, name) = TAGS[at];
            for _ in 0..=u32::from(times == 0) {
                body += &format!("{}={value}\x01", key(tag, name));
            }
        }
        message("FIX.4.4", names, &body)
    });
    let long =
        (0usize..6000).prop_map(move |len| message("FIXT.1.1", names, &"58=x\x01".repeat(len / 5)));
    proptest::collection::vec(prop_oneof![40 => body, 1 => long], 1..30)
}

fn read<F: RecordFormat>(format: F, bytes: &[u8], until: usize) -> (Log, u64, usize, Step) {
    let mut log = Log::default();
    let mut chunk = Chunk { bytes, at: 0, until, is_end: true, is_inside: false, lines: 0 };
    let step = Records::new(format, Limits::default().message_bytes_max).read(&mut chunk, &mut log);
    (log, chunk.lines, chunk.at, step)
}

fn parser(isa: Isa, names: bool) -> FixParser {
    let dictionary = Arc::new(Dictionary::builtin());
    let mut parser = match names {
        true => FixParser::nvfix(dictionary, &Limits::default()),
        false => FixParser::fix(dictionary, &Limits::default()),
    };
    parser.isa = isa;
    parser
}

fn check(bytes: &[u8], until: usize, names: bool) -> Result<(), TestCaseError> {
    let expected = read(Careful(parser(Isa::Portable, names)), bytes, until);
    for isa in Isa::available() {
        prop_assert_eq!(&read(parser(isa, names), bytes, until), &expected, "{:?}", isa);
    }
    Ok(())
}

/// Pads the bytes so that the vectors can read the last message.
fn with_room(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend([b'\n'; 256]);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn predictions_equal_careful_parses(
        names in any::<bool>().prop_flat_map(|names| (Just(names), log(names))),
        between in prop_oneof![Just(""), Just("\n"), Just("\r\n")],
        until in any::<prop::sample::Index>(),
        has_room in any::<bool>(),
        changes in proptest::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![Just(1u8), Just(b'='), Just(b'0'), any::<u8>()]), 0..4),
    ) {
        let (names, messages) = names;
        let mut bytes = messages.join(between.as_bytes());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let until = until.index(bytes.len() + 1);
        let bytes = if has_room { with_room(bytes) } else { bytes };
        check(&bytes, until, names)?;
        check(&bytes, bytes.len(), names)?;
    }
}

#[test]
fn every_byte_of_a_message_is_under_its_sum() {
    let good = message("FIX.4.4", false, "35=D\x0155=ABC\x0158=a text of some bytes more\x01");
    for at in 0..good.len() {
        for byte in [0, 1, b'0', b'=', 0x80, 0xFF, good[at].wrapping_add(1)] {
            let mut changed = good.clone();
            changed[at] = byte;
            let bytes = with_room([&good[..], &changed, &good].join(&b'\n'));
            check(&bytes, bytes.len(), false).unwrap();
        }
    }
}

#[test]
fn similar_messages_are_predicted() {
    let good = message("FIX.4.4", false, "35=D\x0144=1.5\x0158=a\x01");
    let bytes = with_room([&good[..], &good, &good].join(&b'\n'));
    for isa in Isa::available() {
        let mut parser = parser(isa, false);
        let mut log = Log::default();
        let mut chunk = Chunk {
            bytes: &bytes,
            at: 0,
            until: bytes.len(),
            is_end: true,
            is_inside: false,
            lines: 0,
        };
        parser.messages(&mut chunk, &mut log);
        assert_eq!((log.messages.len(), chunk.at), (3, bytes.len()), "{isa:?}");
    }
}

#[test]
fn fields_that_come_before_what_messages_open_with_do_not_shift_what_follows_it() {
    let bodies = [
        "35=D\x0149=A\x0156=B\x0134=1\x01",
        "35=D\x0149=A\x0156=B\x0134=2\x01",
        "35=D\x0157=x\x0150=y\x0149=A\x0156=B\x0134=3\x01",
        "35=D\x0149=A\x0156=B\x0149=C\x0134=4\x01",
        "35=D\x0149=A\x0156=B\x0134=5\x01",
    ];
    for last in 0..bodies.len() {
        let order = [0, 1, 0, 2, last, 0, 1, last, 3, 3];
        let messages = order.map(|at| message("FIX.4.4", false, bodies[at]));
        let bytes = with_room(messages.join(&b'\n'));
        check(&bytes, bytes.len(), false).unwrap();
    }
}
