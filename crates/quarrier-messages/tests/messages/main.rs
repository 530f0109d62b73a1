//! From messages to columns: parsers, builders and the driver; packed columns, and tables of them.

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
mod lines;
mod load;
mod minefield;
mod pack;
mod repeated;
mod views;
mod xml;
