//! Conditions as text against what SQL-92 says of them.

mod asked;
mod expressions;
mod features;
mod hostile;
mod matching;
mod outcomes;
mod probes;
mod refusals;
mod statements;
