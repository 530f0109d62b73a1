//! What is done to plans.

mod counts;
pub(crate) use counts::Counts;

mod memberships;
pub(crate) use memberships::Memberships;

mod multisets;
pub(crate) use multisets::Multisets;

mod strict;
pub(crate) use strict::StrictKinds;

mod top_rows;
pub(crate) use top_rows::{TOP_ROWS_MAX, TopRows};

mod whole_orders;
pub(crate) use whole_orders::WholeOrders;
