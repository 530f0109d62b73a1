//! Differential tests: one question asked in many ways, to find answers that depend on how data is
//! packed.
//!
//! ```text
//!  seed ─→ Table ─→ files (JSON lines, CSV, NVFIX, Arrow, Parquet; plain and compressed)
//!            │                                    │
//!            └─→ Question: its SQL ───────────────┴─→ doors (filter, --many, query, …) ─→ answers
//!                  └─→ its answer, row by row ──────────────────────────────────────────→ equal?
//! ```
//!
//! Nothing here calls the engine's parsers, types or arithmetic. A condition is drawn as a tree, which
//! is written as SQL for the doors and evaluated here in the simplest way.

pub mod condition;
pub mod door;
pub mod draw;
pub mod file;
pub mod question;
pub mod round;
pub mod table;
pub mod value;
