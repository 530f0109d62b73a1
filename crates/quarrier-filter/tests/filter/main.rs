//! Conditions as text against what SQL-92 says of them.

mod asked;
mod probes;
