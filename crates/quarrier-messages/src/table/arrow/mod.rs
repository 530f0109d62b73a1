//! Converts between tables and Arrow record batches.

mod leaves;
mod read;
mod show;
mod values;

pub use show::Batches;

mod views;
pub(super) use views::views_schema;
pub use views::{Places, Views};
