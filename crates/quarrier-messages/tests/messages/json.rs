//! JSON is read exactly: what is right is accepted, with its values; what is wrong is refused.

use std::collections::BTreeMap;

use quarrier_messages::build::{FieldId, Row};
use quarrier_messages::format::json::JsonParser;
use quarrier_messages::{Fault, Limits};

/// The fields of one message, as texts that show their kinds.
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
fn scalars_have_the_kind_that_they_are_written_as() {
    check(r#"{"a":1,"b":-0,"c":9223372036854775807}"#, "a=1 b=0 c=9223372036854775807");
    check(r#"{"a":-9223372036854775808}"#, "a=-9223372036854775808");
    check(r#"{"a":9223372036854775808}"#, "a=9.223372036854776e18f");
    check(r#"{"a":1.50,"b":-0.001,"c":0.0}"#, "a=150/2 b=-1/3 c=0/1");
    check(
        r#"{"a":1e2,"b":1.5E-3,"c":0.12345678901234567890}"#,
        "a=100.0f b=0.0015f c=0.12345678901234568f",
    );
    check(r#"{"a":true,"b":false,"c":null}"#, "a=true b=false c=null");
    check(r#"["x", 1, [2]]"#, r#"[0]="x" [1]=1 [2][0]=2"#);
    check(" 7 ", "value=7");
    check("{}", "");
}

#[test]
fn fields_are_named_by_their_paths_and_a_key_that_would_be_mistaken_is_quoted() {
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
fn escapes_stand_for_their_characters() {
    check(
        r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\uD834\uDD1E\u0000"}"#,
        r#"a="\"\\/\u{8}\u{c}\n\r\té𝄞\0""#,
    );
    check(r#"{"\u0061":"é"}"#, r#"a="é""#);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    check_refused(r#"{"a":01}"#, 5, "a number that starts with 0");
    check_refused(r#"{"a":1.}"#, 7, "a number that ends with its point");
    check_refused(r#"{"a":-}"#, 6, "a number without digits");
    check_refused(r#"{"a":1e}"#, 7, "a number with an exponent without digits");
    check_refused(r#"{"a":1e999}"#, 5, "a number beyond what 64 bits hold");
    check_refused("{\"a\":\"\t\"}", 6, "a control character in a string");
    check_refused(r#"{"a":"\x"}"#, 6, "an unknown escape in a string");
    check_refused(r#"{"a":"\uDD1E"}"#, 6, "half of a surrogate pair in a string");
    check_refused(b"{\"a\":\"\xff\"}", 6, "bytes that are not UTF-8");
    check_refused(r#"{"a":"x}"#, 8, "a string without its end");
    check_refused(r#"{"a" 1}"#, 5, "no ':' behind a key");
    check_refused(r#"{a:1}"#, 1, "no key in an object");
    check_refused(r#"{"a":1 "b":2}"#, 7, "no ',' or '}' in an object");
    check_refused(r#"[1 2]"#, 3, "no ',' or ']' in an array");
    check_refused(r#"{"a":1}x"#, 7, "more behind the end of the value");
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
