//! From messages to columns: parsers, builders and the loader; packed columns and tables.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

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
mod load;
mod minefield;
mod pack;
mod repeated;
mod views;
mod xml;
