//! SQL-92 search conditions over messages.
//!
//! ```text
//!  text ─→ sql ─→ Expr (bound to a schema) ─→ predicate kernels ─→ scan: block by block,
//!                       │                                          all conditions at once
//!                       └─→ naive: row by row, the oracle
//! ```

mod error;
pub use error::{Error, Fault, Result};

pub mod calendar;

pub mod expr;
pub use expr::Expr;

pub mod matching;

pub mod naive;

mod number;

mod query;
pub use query::{Order, Output, Query, Select};

pub mod sql;

mod arch;
pub use arch::Isa;

mod predicate;

mod scan;

mod sieve;
pub use sieve::Sieve;
