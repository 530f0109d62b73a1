//! Messages into columns: parsers, builders and the driver; columns packed, and tables of them.

mod assemble;
mod build;
mod json;
mod load;
mod minefield;
mod pack;
