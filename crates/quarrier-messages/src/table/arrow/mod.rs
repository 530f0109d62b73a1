//! Tables from Arrow record batches, and record batches of tables.

mod leaves;
mod read;
mod show;
mod values;

pub use show::Batches;

mod views;
pub use views::{Places, Views};
