//! Strings and kinds as SQL writes them.

use crate::kind;

/// A text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The name that SQL has for a kind; `None` if it has none that all engines know.
pub fn sql_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        kind::BOOL => "BOOLEAN",
        kind::INT2 => "SMALLINT",
        kind::INT4 => "INTEGER",
        kind::INT8 | kind::OID => "BIGINT",
        kind::FLOAT4 => "REAL",
        kind::FLOAT8 => "DOUBLE PRECISION",
        kind::NUMERIC => "DECIMAL(38, 10)",
        kind::TEXT | kind::VARCHAR | kind::BPCHAR | kind::NAME => "VARCHAR",
        kind::BYTEA => "BYTEA",
        kind::DATE => "DATE",
        kind::TIME => "TIME",
        kind::TIMESTAMP | kind::TIMESTAMPTZ => "TIMESTAMP",
        _ => return None,
    })
}
