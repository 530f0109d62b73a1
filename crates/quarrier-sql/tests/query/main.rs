//! Tests of `quarrier-sql` as a library and as a program.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

mod accounts;
#[path = "../../../quarrier-remote/tests/kit/bucket.rs"]
#[allow(dead_code, reason = "shared by the tests of several crates")]
mod bucket;
mod changing;
mod clauses;
mod copied;
mod correlated;
mod direct;
mod drawn;
mod failures;
mod files;
mod formats;
mod functions;
mod guards;
mod harness;
mod hidden;
mod hostile;
mod kept;
mod keyed;
mod killed;
mod lists;
mod live;
mod matrix;
mod meaning;
mod memory;
mod names;
mod notices;
mod numbers;
mod outputs;
mod panics;
mod plans;
mod probes;
mod program;
mod prompt;
mod pushdown;
mod random;
mod remote;
mod remote_parquet;
mod rules;
mod serve;
#[path = "../../../quarrier-cli/tests/cli/surroundings.rs"]
mod surroundings;
mod terminal;
mod threads;
mod times;
mod together;
mod twin;
mod waiting;
mod wide;
mod written;
