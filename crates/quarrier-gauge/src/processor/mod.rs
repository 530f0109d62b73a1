//! What a core can do: its sets of instructions, loops of arithmetic, its clock, and how many
//! operations a cycle its design allows.
//!
//! Trials look at it to tell whether they had their cores, and the area [`cpu`](crate::cpu) to
//! measure it.

pub(crate) mod arch;
pub(crate) mod clock;
mod isa;
mod probe;
mod units;

pub use arch::Lane;
pub use isa::Isa;
pub(crate) use probe::{Core, core_now};
pub use units::{flop_per_cycle, fused_per_cycle};
