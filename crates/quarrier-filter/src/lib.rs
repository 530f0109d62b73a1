//! SQL-92 search conditions over messages.
//!
//! ```text
//!  text ─→ sql ─→ Expr (bound to a schema) ─→ predicate kernels ─→ scan: block by block,
//!                       │                                          all conditions at once
//!                       └─→ naive: row by row, the oracle
//! ```

mod arch;
pub mod expr;
pub use expr::Expr;
