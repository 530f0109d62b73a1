//! The searcher has the same findings as the oracle, for every engine, chunk size, number of
//! workers and kind of source.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

mod defects;
mod engines;
mod gpu;
mod gpu_watched;
mod language;
mod oracle;
mod patterns;
mod pipelines;
mod regex_sets;
mod regexes;
mod wide;
