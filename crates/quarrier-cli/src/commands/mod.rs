//! One module a verb.

pub(crate) mod engines;
pub(crate) mod markdown;
pub(crate) mod search;
