//! Common parts of the tests of all formats: loads, and tables as text.

use quarrier_core::source::Memory;
use quarrier_messages::{Format, Limits, Load, Loaded, Value};

/// Loads `bytes` with one worker.
pub(crate) fn load(format: &Format, bytes: &[u8]) -> Loaded {
    load_within(format, bytes, 1, &Limits::default())
}

pub(crate) fn load_within(
    format: &Format,
    bytes: &[u8],
    workers: usize,
    limits: &Limits,
) -> Loaded {
    let load = Load::new(format.clone()).workers(workers).limits(limits.clone());
    load.run(&[&Memory::new("log", bytes.to_vec())]).unwrap()
}

/// Returns the non-NULL fields of every row as `name=value`, with strings in quotes.
pub(crate) fn rows(loaded: &Loaded) -> Vec<String> {
    let table = &loaded.table;
    let row = |row| {
        let fields = table.schema().fields.iter().enumerate();
        let shown = fields.filter_map(|(column, field)| {
            let value = match table.value(row, column) {
                Value::Null => return None,
                Value::Boolean(value) => value.to_string(),
                Value::Integer(value) => value.to_string(),
                Value::Decimal { mantissa, scale } => format!("{mantissa}/{scale}"),
                Value::Float(value) => format!("{value:?}f"),
                Value::Date(days) => format!("{days}d"),
                Value::Timestamp(nanoseconds) => format!("{nanoseconds}ns"),
                Value::Text(text) => format!("{:?}", &*text),
                other => format!("{other:?}"),
            };
            Some(format!("{}={value}", field.name))
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    (0..table.rows()).map(row).collect()
}

/// Returns the rejects: line, byte offset and reason.
pub(crate) fn rejects(loaded: &Loaded) -> Vec<String> {
    let show = |reject: &quarrier_messages::Reject| {
        format!("{} {} {}", reject.line, reject.offset, reject.fault.what)
    };
    loaded.rejects.iter().map(show).collect()
}

/// Checks the rows and rejects of `bytes`, loaded at once, and with more workers than there is work
/// for.
pub(crate) fn check(format: &Format, bytes: &[u8], expected: &[&str], refused: &[&str]) {
    for workers in [1, 3] {
        let loaded = load_within(format, bytes, workers, &Limits::default());
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(rows(&loaded), expected, "{text}");
        assert_eq!(rejects(&loaded), refused, "{text}");
    }
}
