//! The rules of quarrier-core, each a test named after the rule.
//!
//! `faults` has sources that misbehave, `census` the kernels and oracles that most tests share; the
//! other files test the rules.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail where it stands")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]
#![allow(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

mod account;
mod census;
mod changing;
mod damage;
mod defects;
mod ending;
mod faults;
mod holes;
mod order;
mod ownership;
mod parallel;
mod rates;
mod region;
mod shared_feed;
mod shared_region;
mod shrinking;
mod split;
mod stream;
