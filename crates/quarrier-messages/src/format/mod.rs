//! Formats: bytes of a message to the fields of a row. A folder each.

mod decimal;

pub mod fix;
pub mod json;
