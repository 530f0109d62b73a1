//! Tests of `quarrier-sql`: as a library, and as the program.

mod failures;
mod files;
mod formats;
mod functions;
mod harness;
mod meaning;
mod names;
mod probes;
mod program;
mod pushdown;
mod together;
mod twin;
