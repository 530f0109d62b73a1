//! Formats: bytes of a message to the fields of a row. A folder each.

pub mod json;
