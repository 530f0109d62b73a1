//! All of SQL over messages, files and findings.
//!
//! ```text
//!  text ─→ dialect ─→ rewrite ──→ DataFusion: plan ──→ output
//!                      │ names, SQL-92    │ conditions, columns, limits, orders
//!                      └─→ files          ▼
//!                          provider ─→ scan (quarrier-filter over packed columns)
//!                          function: tables and functions of our own
//! ```
//!
//! Conditions that `quarrier-filter` understands are answered by its scan; everything else of SQL
//! is DataFusion's work. What SQL-92 means otherwise than DataFusion is written in other words
//! before it is planned (`rewrite`), or refused (`plan::strict`).

mod at_once;

mod ceiling;

mod dialect;

mod engine;
pub use engine::{
    Answer, Engine, LeftOut, Loaded, Options, Rounded, Statement, WORDS_MAX, WORDS_ON_ANY_STACK,
    is_of_scan,
};

mod error;
pub use error::{Cause, Error, Result};

mod files;

mod function;

mod literal;

mod memory;
pub use memory::usable_memory;

mod net;

mod output;
pub use output::{Format, Written, write};

mod plan;

mod provider;
pub use provider::Messages;

mod reach;
pub use reach::Reach;

mod rewrite;

mod rows;
pub use rows::{Rows, Touched};

mod scan;

mod server;
pub use server::{Served, Serving};
