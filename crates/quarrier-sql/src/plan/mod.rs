//! What is done to plans.

mod strict;
pub(crate) use strict::StrictKinds;

mod top_rows;
pub(crate) use top_rows::TopRows;
