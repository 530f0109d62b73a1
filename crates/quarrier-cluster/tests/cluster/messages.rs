//! Files of drawn messages, in all formats.

use std::fmt::Write;

use super::lab::{Draw, Lab};

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Missing,
    Null,
    /// As it is written in JSON without quotes.
    Plain(String),
    Text(String),
}

/// A message: its fields in order.
pub(crate) type Message = Vec<(&'static str, Value)>;

/// Names of fields, and those of FIX.
pub(crate) const FIX_NAMES: &[(&str, u32, &str)] = &[
    ("id", 34, "MsgSeqNum"),
    ("symbol", 55, "Symbol"),
    ("qty", 38, "OrderQty"),
    ("price", 44, "Price"),
    ("day", 75, "TradeDate"),
    ("note", 58, "Text"),
    ("odd", 1, "Account"),
    ("late", 50, "SenderSubID"),
];

/// Draws messages. From some message on, `odd` has values of another type, and some have the field `late`.
pub(crate) fn messages(draw: &mut Draw, count: u64) -> Vec<Message> {
    let change = draw.below(2 * count);
    let (before, after) = (draw.below(6), draw.below(8));
    let symbols = ["ABC", "ABD", "XYZ", "A_C", "a long symbol that is not inlined", "é,\"q\""];
    (0..count)
        .map(|id| {
            let is_late = id >= change;
            let note = match draw.below(40) {
                0 => Value::Text("long ".repeat(draw.below(900) as usize)),
                1 => Value::Null,
                2 => Value::Text("two\nlines".to_string()),
                _ => Value::Text(format!("note number {}", draw.below(50))),
            };
            let mut message = vec![
                ("id", plain(id)),
                ("symbol", one_or(draw, 7, |draw| Value::Text((*draw.one_of(&symbols)).into()))),
                ("qty", one_or(draw, 9, |draw| plain(draw.below(1_000)))),
                ("price", plain(format!("{}.{:02}", draw.below(900), draw.below(100)))),
                ("rate", plain(format!("{}e-3", draw.below(9_000)))),
                ("day", Value::Text(format!("2026-0{}-1{}", 1 + draw.below(9), draw.below(10)))),
                ("open", plain(draw.below(2) == 0)),
                ("note", note),
                ("odd", odd(draw, if is_late { after } else { before })),
            ];
            if is_late && draw.below(3) == 0 {
                message.push(("late", plain(draw.below(5))));
            }
            message
        })
        .collect()
}

fn plain(value: impl ToString) -> Value {
    Value::Plain(value.to_string())
}

fn one_or(draw: &mut Draw, of: u64, value: impl Fn(&mut Draw) -> Value) -> Value {
    match draw.below(of) {
        0 => Value::Null,
        1 => Value::Missing,
        _ => value(draw),
    }
}

fn odd(draw: &mut Draw, way: u64) -> Value {
    match way {
        0 => Value::Null,
        1 => plain(draw.below(100)),
        2 => plain(format!("{}.{}", draw.below(100), draw.below(10_000))),
        3 => Value::Text(format!("2026-01-0{}", 1 + draw.below(9))),
        4 => Value::Text(format!("2026-01-0{}T10:00:0{}Z", 1 + draw.below(9), draw.below(10))),
        5 => plain(draw.below(2) == 0),
        6 => Value::Text(format!("text {}", draw.below(9))),
        _ => plain(format!("{}00000000000000000000000", 1 + draw.below(100))),
    }
}

/// Writes messages to a file in a format. Returns its size in bytes.
pub(crate) fn write(lab: &Lab, name: &str, draw: &mut Draw, messages: &[Message]) -> u64 {
    let mut out = Vec::new();
    let format = name.rsplit('.').next().unwrap_or_default();
    match format {
        "csv" => out.extend(b"id,symbol,qty,price,rate,day,open,note,odd,late\n"),
        "xml" => out.extend(b"<orders>\n"),
        "ndjson" if draw.below(3) == 0 => out.extend("\u{feff}".as_bytes()),
        _ => {}
    }
    let is_damaged = draw.below(2) == 0;
    let end: &[u8] = if draw.below(2) == 0 { b"\n" } else { b"\r\n" };
    for message in messages {
        let mut message = message.clone();
        if format != "csv" && draw.below(4) == 0 {
            let fields = message.len() as u64;
            message.rotate_left(draw.below(fields) as usize);
        }
        let mut bytes = match format {
            "csv" => csv(&message),
            "xml" => xml(&message),
            "fix" => fix(&message),
            "nvfix" => nvfix(&message),
            _ => json(&message),
        };
        if is_damaged && format != "xml" {
            damage(draw, &mut bytes, format == "csv");
        }
        out.extend(bytes);
        out.extend(end);
    }
    if format == "xml" {
        out.extend(b"</orders>\n");
    } else if draw.below(3) == 0 {
        // The last line may have no end.
        out.truncate(out.len() - end.len());
    }
    let path = lab.file(name, &out);
    path.metadata().unwrap().len()
}

fn damage(draw: &mut Draw, bytes: &mut Vec<u8>, is_csv: bool) {
    match draw.below(30) {
        // A quote without its end would go on in the next records.
        0 if !is_csv => bytes.truncate(draw.below(bytes.len() as u64) as usize),
        1 => bytes.insert(0, 0xFF),
        2 => bytes.clear(),
        3 => *bytes = b"no message, at all".to_vec(),
        4 => bytes.extend_from_within(..),
        _ => {}
    }
}

fn json(message: &Message) -> Vec<u8> {
    let mut out = String::from("{");
    for (name, value) in message {
        let value = match value {
            Value::Missing => continue,
            Value::Null => "null".to_string(),
            Value::Plain(value) => value.clone(),
            Value::Text(text) => serde_json::to_string(text).unwrap(),
        };
        let comma = if out.len() > 1 { "," } else { "" };
        write!(out, "{comma}\"{name}\":{value}").unwrap();
    }
    (out + "}").into_bytes()
}

fn csv(message: &Message) -> Vec<u8> {
    let cell = |value: &Value| match value {
        Value::Missing | Value::Null => String::new(),
        Value::Plain(value) => value.clone(),
        Value::Text(text) => format!("\"{}\"", text.replace('"', "\"\"")),
    };
    let mut cells: Vec<String> = message.iter().map(|(_, value)| cell(value)).collect();
    cells.resize(10, String::new());
    cells.join(",").into_bytes()
}

fn xml(message: &Message) -> Vec<u8> {
    let mut out = String::from("<order>");
    for (name, value) in message {
        if let Value::Plain(text) | Value::Text(text) = value {
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            write!(out, "<{name}>{text}</{name}>").unwrap();
        }
    }
    (out + "</order>").into_bytes()
}

/// The fields that FIX has, with their tags and names.
fn fix_fields(message: &Message) -> Vec<(u32, &'static str, String)> {
    let field = |(name, value): &(&str, Value)| {
        let (_, tag, known) = FIX_NAMES.iter().find(|(own, ..)| own == name)?;
        match value {
            Value::Plain(text) | Value::Text(text) if !text.is_empty() => {
                Some((*tag, *known, text.replace(['\n', '-'], "")))
            }
            _ => None,
        }
    };
    message.iter().filter_map(field).collect()
}

fn fix(message: &Message) -> Vec<u8> {
    let fields = fix_fields(message).into_iter();
    let body: String = fields.map(|(tag, _, value)| format!("{tag}={value}\x01")).collect();
    let body = format!("35=D\x01{body}");
    let mut out = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
    let sum: u32 = out.iter().map(|byte| u32::from(*byte)).sum();
    out.extend(format!("10={:03}\x01", sum % 256).into_bytes());
    out
}

fn nvfix(message: &Message) -> Vec<u8> {
    let fields = fix_fields(message).into_iter();
    let body: String = fields.map(|(_, name, value)| format!("{name}={value}\x01")).collect();
    format!("BeginString=FIX.4.4\x01MsgType=D\x01{body}").into_bytes()
}
