//! Converts between tables and Arrow record batches.

mod leaves;
mod read;
mod show;
mod values;

pub use show::Batches;

mod views;
pub use views::{Places, Views};
