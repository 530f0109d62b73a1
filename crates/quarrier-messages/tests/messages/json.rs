//! JSON is parsed exactly: valid messages are accepted, with their values; invalid ones are
//! rejected.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quarrier_messages::build::{Cell, FieldId, Row};
use quarrier_messages::format::json::JsonParser;
use quarrier_messages::frame::{Chunk, Lines, Reader, Rejected, Step, Taker};
use quarrier_messages::{Fault, Limits};

/// The fields of one message, as text with their types.
#[derive(Default)]
struct Shown {
    names: Vec<String>,
    values: BTreeMap<usize, String>,
    refused: usize,
}

impl Shown {
    fn set(&mut self, field: FieldId, value: String) {
        self.values.insert(field.index(), value);
    }
}

impl Row for Shown {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        let known = self.names.iter().position(|known| known == name);
        Some(FieldId::new(known.unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        })))
    }
    fn refuse(&mut self) {
        self.refused += 1;
    }
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.set(field, value.to_string());
    }
    fn integer(&mut self, field: FieldId, value: i64) {
        self.set(field, value.to_string());
    }
    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        self.set(field, format!("{mantissa}/{scale}"));
    }
    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        self.set(
            field,
            match number.as_exact() {
                Some((mantissa, scale)) => format!("{mantissa}/{scale}"),
                None => format!("{number:?}"),
            },
        );
    }
    fn float(&mut self, field: FieldId, value: f64) {
        self.set(field, format!("{value:?}f"));
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
    fn null(&mut self, field: FieldId) {
        self.set(field, "null".to_string());
    }
}

fn parse(message: &[u8]) -> Result<String, Fault> {
    let mut shown = Shown::default();
    JsonParser::new(&Limits::default()).message(message, &mut shown)?;
    let fields = shown.values.iter().map(|(&at, value)| format!("{}={value}", shown.names[at]));
    Ok(fields.collect::<Vec<_>>().join(" "))
}

#[track_caller]
fn check(message: &str, expected: &str) {
    assert_eq!(parse(message.as_bytes()).as_deref(), Ok(expected), "{message}");
}

#[track_caller]
fn check_refused(message: impl AsRef<[u8]>, at: usize, what: &str) {
    let fault = parse(message.as_ref()).unwrap_err();
    assert_eq!((fault.at, fault.what), (at, what));
}

#[test]
fn scalars_have_the_type_of_their_notation() {
    check(r#"{"a":1,"b":-0,"c":9223372036854775807}"#, "a=1 b=0 c=9223372036854775807");
    check(r#"{"a":-9223372036854775808}"#, "a=-9223372036854775808");
    check(r#"{"a":9223372036854775808}"#, "a=9223372036854775808/0");
    check(r#"{"a":18446744073709551615}"#, "a=18446744073709551615/0");
    check(r#"{"a":1.50,"b":-0.001,"c":0.0}"#, "a=150/2 b=-1/3 c=0/1");
    check(
        r#"{"a":1e2,"b":1.5E-3,"c":0.12345678901234567890}"#,
        "a=100.0f b=0.0015f c=12345678901234567890/20",
    );
    check(r#"{"a":true,"b":false,"c":null}"#, "a=true b=false c=null");
    check(r#"["x", 1, [2]]"#, r#"[0]="x" [1]=1 [2][0]=2"#);
    check(" 7 ", "value=7");
    check("{}", "");
}

#[test]
fn fields_are_named_by_paths_and_ambiguous_keys_are_quoted() {
    check(
        r#"{"order":{"leg":[{"qty":1},{"qty":2}],"none":{}},"z":[]}"#,
        "order.leg[0].qty=1 order.leg[1].qty=2",
    );
    check(
        r#"{"a.b":1,"a":{"b":2,"":3,"[0]":4,"q\"q":5}}"#,
        r#""a.b"=1 a.b=2 a.""=3 a."[0]"=4 a."q""q"=5"#,
    );
    check(r#"{"a":1,"a":2}"#, "a=2");
}

#[test]
fn escapes_are_replaced_by_their_characters() {
    check(
        r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\uD834\uDD1E\u0000"}"#,
        r#"a="\"\\/\u{8}\u{c}\n\r\té𝄞\0""#,
    );
    check(r#"{"\u0061":"é"}"#, r#"a="é""#);
}

#[test]
fn faults_have_their_position() {
    check_refused(r#"{"a":01}"#, 5, "a number that starts with 0");
    check_refused(r#"{"a":1.}"#, 7, "a number that ends with its point");
    check_refused(r#"{"a":-}"#, 6, "a number without digits");
    check_refused(r#"{"a":1e}"#, 7, "a number with an exponent without digits");
    check_refused(r#"{"a":1e999}"#, 5, "a number beyond the range of 64-bit floats");
    check_refused("{\"a\":\"\t\"}", 6, "a control character in a string");
    check_refused(r#"{"a":"\x"}"#, 6, "an unknown escape in a string");
    check_refused(r#"{"a":"\uDD1E"}"#, 6, "half of a surrogate pair in a string");
    check_refused(b"{\"a\":\"\xff\"}", 6, "bytes that are not UTF-8");
    check_refused(r#"{"a":"x}"#, 8, "an unclosed string");
    check_refused(r#"{"a" 1}"#, 5, "no ':' after a key");
    check_refused(r#"{a:1}"#, 1, "no key in an object");
    check_refused(r#"{"a":1 "b":2}"#, 7, "no ',' or '}' in an object");
    check_refused(r#"[1 2]"#, 3, "no ',' or ']' in an array");
    check_refused(r#"{"a":1}x"#, 7, "more data after the value");
    check_refused("", 0, "no value");
    check_refused("[".repeat(129), 128, "nested deeper than allowed");
    check_refused("{\"a\":".repeat(100_000), 5 * 128, "nested deeper than allowed");
}

#[test]
fn a_million_keys_and_elements_take_bounded_memory() {
    let mut parser = JsonParser::new(&Limits { columns_max: 10, ..Limits::default() });
    let mut shown = Shown::default();
    for message in 0..1_000 {
        let keys = (0..100).map(|key| format!("\"k{}\":{key}", message * 100 + key));
        let message = format!("{{{}}}", keys.collect::<Vec<_>>().join(","));
        parser.message(message.as_bytes(), &mut shown).unwrap();
    }
    assert!(shown.names.len() < 2_000 && shown.refused > 90_000);
    let elements = format!("[{}0]", "0,".repeat(1_000_000));
    parser.message(elements.as_bytes(), &mut shown).unwrap();
    assert!(shown.names.len() < 2_000);
}

/// Records a reader's result for each line.
#[derive(Default)]
struct Log {
    row: Shown,
    lines: Vec<String>,
}

impl Taker for Log {
    type Row = Shown;
    fn row(&mut self) -> &mut Shown {
        &mut self.row
    }
    fn commit(&mut self, message: &[u8], _at: usize, _line: u64) {
        let Shown { names, values, .. } = &mut self.row;
        let mut fields: Vec<_> =
            std::mem::take(values).into_iter().map(|(at, value)| (&names[at], value)).collect();
        fields.sort();
        self.lines.push(format!("{} {fields:?}", message.len()));
    }
    fn reject(&mut self, reject: Rejected<'_>) {
        self.row.values.clear();
        self.lines.push(format!("{} at {}: {}", reject.line, reject.at, reject.fault));
    }
}

fn lines(parser: JsonParser, bytes: &[u8]) -> Vec<String> {
    let mut log = Log::default();
    let mut chunk =
        Chunk { bytes, at: 0, until: bytes.len(), is_end: true, is_inside: false, lines: 0 };
    let step = Lines::new(parser, 1 << 20).read(&mut chunk, &mut log);
    assert_eq!((step, chunk.at), (Step::Done, bytes.len()));
    log.lines
}

/// Returns the results of the same lines, each parsed alone, so that no line is predicted.
fn lines_alone(bytes: &[u8]) -> Vec<String> {
    let mut log = Log::default();
    let mut at = 0;
    for (line, text) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if !text.trim_ascii().is_empty() {
            match JsonParser::new(&Limits::default()).message(text, log.row()) {
                Ok(()) => log.commit(text, 0, 0),
                Err(fault) => {
                    log.reject(Rejected { bytes: text, at, line: line as u64, fault });
                }
            }
        }
        at += text.len() + 1;
        log.row = Shown::default();
    }
    log.lines
}

fn check_lines(text: &[u8]) {
    let expected = lines_alone(text);
    for parser in JsonParser::all(&Limits::default()) {
        let name = format!("{parser:?}");
        let found = lines(parser, text);
        let name = &name[..name.len().min(3000)];
        assert_eq!(found, expected, "{} by {name}", String::from_utf8_lossy(text));
    }
}

#[test]
fn predicted_lines_are_parsed_like_others() {
    check_lines(
        b"{\"a\":1}\n{\"a\":2}\r\n\n \t\n{\"a\":3}\n{\"a\":03}\n{\"a\":3.}\n{\"a\":4}x\n{\"a\":5}",
    );
    let digits = "9876543210123456789876543210";
    let mut text = String::new();
    for whole in 0..22 {
        for part in 0..22 {
            for sign in ["", "-"] {
                for tail in ["", "e1", "E+2", "e", "x"] {
                    let point = if part > 0 { "." } else { "" };
                    let (whole, part) = (&digits[..whole], &digits[..part]);
                    text.push_str(&format!("{{\"n\": {sign}{whole}{point}{part}{tail}}}\n"));
                }
            }
        }
    }
    for len in 0..140 {
        for insert in ["", "\\n", "\u{e9}", "\\ud834\\udd1e", "\u{1}", "\\x"] {
            let (left, right) = ("a".repeat(len), "b".repeat(len % 7));
            text.push_str(&format!("{{\"s\":\"{left}{insert}{right}\",\"t\":null}}\n"));
        }
    }
    text.push_str("{\"s\":\"");
    let mut bytes = text.into_bytes();
    bytes.extend(
        b"\xc3\",\"t\":null}\n{\"s\":\"\xc3\\n\xa9\",\"t\":null}\n{\"s\":\"\",\"t\":true}\n",
    );
    check_lines(&bytes);
}

#[test]
fn a_scalar_may_end_at_the_end_of_the_examined_bytes() {
    let digits = "1234567890123456789";
    let mut text = String::new();
    for key in (0..6).chain(36..66) {
        let key = "k".repeat(key);
        for scalar in (1..20).chain(40..70) {
            let number = &digits[..scalar.min(15)];
            let text_of = "t".repeat(scalar);
            // Twice, because template parsing reads the second one.
            for _ in 0..2 {
                text.push_str(&format!("{{\"{key}\":{number},\"b\":-{number}}}\n"));
                text.push_str(&format!("{{\"{key}\":\"{text_of}\",\"b\":1.{number}}}\n"));
            }
        }
    }
    check_lines(text.as_bytes());
}

#[test]
fn a_constant_length_may_change() {
    let mut text = String::new();
    for number in 0..200 {
        // As long as the line before, except every fortieth.
        let steady = if number % 40 == 39 { "7".repeat(number % 13) } else { "777".into() };
        text.push_str(&format!("{{\"a\":1{steady},\"b\":\"{steady}\",\"c\":0.5{steady}}}\n"));
    }
    check_lines(text.as_bytes());
}

/// Generates JSON, valid or nearly so, from few words, so that lines resemble each other.
fn nearly_json() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(vec![
        "1",
        "-0",
        "23.50",
        "1e5",
        "0.1e-2",
        "00",
        "-",
        "true",
        "false",
        "null",
        "nul",
        "\"\"",
        "\"x\"",
        "\"\\u0041\"",
        "\"\u{1F600}\"",
        "\"unended",
        "12345678901234567890",
        "{}",
        "[]",
        "[ ]",
    ])
    .prop_map(str::to_string);
    let value = scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|values| format!("[{}]", values.join(", "))),
            prop::collection::vec(
                (prop::sample::select(vec!["a", "b", "a.b", "\\u0061", ""]), inner),
                0..4
            )
            .prop_map(|members| {
                let member = |(key, value): (&str, String)| format!("\"{key}\":{value}");
                format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
            }),
        ]
    });
    (value, prop::sample::select(vec!["\n", "\n", "\n", " \r\n", ",\n", ""]))
        .prop_map(|(value, end)| value + end)
}

proptest! {
    #[test]
    fn lines_are_parsed_as_if_each_were_alone(
        kinds in prop::collection::vec(nearly_json(), 1..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let lines: Vec<&str> = order.iter().map(|at| at.get(&kinds).as_str()).collect();
        check_lines(lines.concat().as_bytes());
    }
}
