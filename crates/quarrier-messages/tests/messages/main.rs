//! From messages to columns: parsers, builders and the loader; packed columns and tables.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

mod arrow;
mod assemble;
mod build;
mod columnar;
mod csv;
mod fix;
mod formats;
mod hidden;
mod json;
mod keep_bytes;
mod kinds;
mod lines;
mod load;
mod minefield;
mod order;
mod pack;
mod parts;
mod repeated;
mod views;
mod xml;
