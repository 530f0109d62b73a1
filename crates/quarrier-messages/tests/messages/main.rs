//! Messages into columns: parsers, builders and the driver.

mod build;
mod json;
mod minefield;
