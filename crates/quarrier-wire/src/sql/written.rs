//! Strings and names of types in SQL.

use crate::kind;

/// Quotes a string as SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns SQL's name for a type; `None` if not all engines have the type.
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
