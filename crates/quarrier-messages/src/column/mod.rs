//! Columns: as parsers write them (`raw`), and packed for scans.

pub mod raw;
