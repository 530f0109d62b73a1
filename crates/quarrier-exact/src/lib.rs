//! SQL arithmetic that never wraps, as DataFusion functions: 64-bit arithmetic, SUM, AVG, and
//! conversion of exact numbers to floats.
//!
//! ```text
//!  a + b  ─→ Checked ─→ sql_add(a, b) ─┐
//!  SUM(a) ─→ all_totals ───────────────┼─→ the exact value, or a Refusal
//!  a < 0.5 ─→ Floats ─→ sql_double(a) ─┘
//! ```
//!
//! This is a separate crate because every row passes through these loops, so the compiler should
//! optimise them fully, whereas it hardly optimises `quarrier-sql`, which plans.

mod checked;
mod floats;
mod refusal;
mod totals;

pub use checked::{Checked, all as all_checked};
pub use floats::{Floats, all as all_floats, nearest};
pub use refusal::Refusal;
pub use totals::{Exact, all as all_totals};
