//! The rules of quarrier-core, each a test named after the rule.
//!
//! `faults` has sources that misbehave, `census` the kernels and oracles that most tests share; the
//! other files test the rules.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is intended")]

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
