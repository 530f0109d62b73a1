//! SQL over messages, files and findings.
//!
//! ```text
//!  text ─→ dialect ─→ rewrite ──→ DataFusion: plan ──→ output
//!                      │ names, SQL-92    │ conditions, columns, limits, orders
//!                      └─→ files          ▼
//!                          provider ─→ scan (quarrier-filter over packed columns)
//!                          function: functions and table functions
//! ```
//!
//! The scan evaluates conditions that `quarrier-filter` supports; DataFusion does the rest of SQL.
//! Where DataFusion departs from SQL-92, statements are rewritten before planning (`rewrite`) or
//! refused (`plan::strict`).

mod at_once;

mod ceiling;

mod command;
pub use command::{Connect, query, run_server as serve};

mod dialect;

mod engine;
pub use engine::{
    Answer, Engine, FileRejects, Loaded, Options, Rounded, Statement, WORDS_MAX,
    WORDS_ON_ANY_STACK, scan_answers,
};

mod error;
pub use error::{Cause, Error, Result};

mod files;
pub use files::{
    Spread, SpreadFragment, SpreadSource, Spreading, TakeRows, UnitContent, UnitExec, UnitMessages,
    UnitScan,
};
pub use quarrier_messages::HiddenColumns;

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

mod stack;
