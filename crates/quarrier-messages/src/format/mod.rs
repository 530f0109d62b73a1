//! Formats: each parses the bytes of a message into the fields of a row, in its own folder.

mod cell;
mod decimal;
mod paths;

pub mod csv;
pub mod fix;
pub mod json;
pub mod xml;

pub(in crate::format) use cell::set_cell;
