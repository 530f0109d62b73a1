//! The binary `quarrier` from the outside: the behaviour that people and scripts rely on.
//!
//! Every test goes through [`harness`]: a [`Lab`](harness::Lab) is an empty folder in which the binary
//! runs, a [`Ran`](harness::Ran) is its answer.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

#[path = "../../../quarrier-remote/tests/kit/bucket.rs"]
#[allow(dead_code, reason = "shared by the tests of several crates")]
mod bucket;
mod harness;

mod account;
mod archives;
mod bad_sectors;
mod buckets;
mod cache;
mod carve;
mod carve_free;
mod carve_resume;
mod carve_several;
mod carve_units;
mod case;
mod changing;
mod copies;
mod credentials;
mod damaged_images;
mod damaged_systems;
mod devices;
mod ewf;
mod explain;
mod failures;
mod files;
mod filter;
mod filter_agrees;
mod filter_hidden;
mod filter_holes;
mod filter_kinds;
mod filter_lists;
mod filter_sources;
mod filter_streams;
mod folders;
mod formats;
mod gauge;
mod gauge_limits;
mod gpu;
mod habits;
mod images;
mod invariance;
mod keep;
mod keep_crashes;
mod known_answers;
mod matches;
mod matrix;
mod mount;
mod names;
mod outputs;
mod patterns;
mod remote;
mod rule_scopes;
mod rules;
mod scope;
mod shrinking;
mod signals;
mod sources;
mod sparse;
mod surroundings;
mod terminal;
mod threads;
mod unallocated;
mod units;
mod waiting;
mod wrong_use;
