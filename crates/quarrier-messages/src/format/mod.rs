//! Formats: bytes of a message to the fields of a row. A folder each.

mod cell;
mod decimal;
mod paths;

pub mod csv;
pub mod fix;
pub mod json;
pub mod xml;

pub(in crate::format) use cell::set_cell;
