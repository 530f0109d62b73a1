//! One question, many ways: the test that finds answers that depend on how data is packed.
//!
//! ```text
//!  seed ─→ Table ─→ files (JSON lines, CSV, NVFIX, Arrow, Parquet; plain and compressed)
//!            │                                    │
//!            └─→ Question: its text ──────────────┴─→ doors (filter, --many, query, …) ─→ answers
//!                  └─→ its answer, row by row ──────────────────────────────────────────→ equal?
//! ```
//!
//! Nothing here calls the engine's parsers, kinds or arithmetic: a condition is drawn as a tree,
//! which is written as SQL for the doors and evaluated here in the plainest way.

pub mod condition;
pub mod door;
pub mod draw;
pub mod file;
pub mod question;
pub mod round;
pub mod table;
pub mod value;
