//! SQL-92 search conditions over messages.
//!
//! ```text
//!  text ─→ sql ─→ Expr (bound to a schema) ─→ predicate kernels ─→ scan: block by block,
//!                       │                                          all conditions at once
//!                       └─→ naive: row by row, the oracle
//! ```
//!
//! ```
//! use quarrier_filter::{naive, sql};
//! use quarrier_messages::{Field, Kind, Schema, Value};
//!
//! let schema = Schema {
//!     fields: vec![
//!         Field { name: "symbol".into(), kind: Kind::Text },
//!         Field { name: "qty".into(), kind: Kind::Integer },
//!     ],
//! };
//! let condition = sql::condition("symbol LIKE 'A%' AND qty BETWEEN 10 AND 20", &schema)?;
//! let row = [Value::Text("ABC".into()), Value::Integer(12)];
//! assert_eq!(naive::truth(&condition, &row[..]), Ok(Some(true)));
//! # Ok::<(), quarrier_filter::Error>(())
//! ```
//!
//! The example `orders` loads a file and asks twenty conditions of it in one pass.

mod error;
pub use error::{Error, Fault, Result};

pub mod calendar;

pub mod expr;
pub use expr::Expr;

mod keys;
pub use keys::Keys;

pub mod matching;

pub mod naive;

mod number;

mod query;
pub use query::{Order, Output, Query, Select};

pub mod sql;

mod arch;

mod predicate;

mod scan;
pub use scan::{
    Answer, Explanation, Matches, PassResult, Passes, PlanStep, QueryPlan, Scan, Scanner, Ticket,
    Work,
};

pub mod group;

mod gpu;
pub use gpu::ResidentTable;

mod sieve;
pub use sieve::Sieve;

mod standing;
pub use standing::{MatchedRow, Standing};

mod project;
