//! The abilities of a core: instruction sets, loops of arithmetic, its clock, and the operations
//! per cycle that its design allows.
//!
//! Trials use them to detect whether threads had their cores, and the area [`cpu`](crate::cpu) to
//! measure cores.

pub(crate) mod arch;
pub(crate) mod clock;
mod isa;
mod probe;
mod units;

pub use arch::Lane;
pub use isa::Isa;
pub(crate) use probe::{Core, core_now};
pub use units::{flop_per_cycle, fused_per_cycle};
