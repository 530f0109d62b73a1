//! Messages into columns: parsers, builders and the driver; columns packed, and tables of them.

mod assemble;
mod build;
mod json;
mod minefield;
mod pack;
