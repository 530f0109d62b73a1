//! The inner loops of arithmetic, one file per implementation.
//!
//! Each loop has twelve independent chains of operations in flight: a single chain would measure the
//! latency of an operation, not the throughput. All chains begin at 0 and add 1 in each step, so every
//! lane must end at the number of steps.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::Isa;

/// Number of chains in each loop.
pub(crate) const CHAINS: usize = 12;

/// Number of steps in one call; few enough for 32-bit floats to count them exactly.
pub(crate) const STEPS: u32 = 1 << 16;

/// The number type of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
}

impl Lane {
    /// All types.
    pub const ALL: [Lane; 4] = [Lane::F32, Lane::F64, Lane::I32, Lane::I64];

    /// The value of a reading's parameter.
    pub fn name(self) -> &'static str {
        match self {
            Lane::F32 => "f32",
            Lane::F64 => "f64",
            Lane::I32 => "i32",
            Lane::I64 => "i64",
        }
    }

    /// Parses the parameter's value.
    pub fn of(name: &str) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| lane.name() == name)
    }

    /// Whether the type is floating point.
    pub fn is_float(self) -> bool {
        matches!(self, Lane::F32 | Lane::F64)
    }

    /// The size of the type in bits.
    pub fn bits(self) -> u32 {
        match self {
            Lane::F32 | Lane::I32 => 32,
            Lane::F64 | Lane::I64 => 64,
        }
    }

    /// Returns the bits of `count` in this type.
    fn bits_of(self, count: u32) -> u64 {
        match self {
            Lane::F32 => u64::from((count as f32).to_bits()),
            Lane::F64 => f64::from(count).to_bits(),
            Lane::I32 | Lane::I64 => u64::from(count),
        }
    }
}

/// The final values of the chains: 64 bytes for each; narrower sets use the first of them.
#[repr(align(64))]
pub(crate) struct Lanes(pub(crate) [u64; CHAINS * 8]);

/// Runs [`STEPS`] steps of all chains and returns how many lanes counted correctly: all of them must.
pub(crate) fn run(isa: Isa, lane: Lane) -> usize {
    run_steps(isa, lane, STEPS)
}

/// Like [`run`], for `steps` steps, an even number, not 0 and at most [`STEPS`].
pub(crate) fn run_steps(isa: Isa, lane: Lane, steps: u32) -> usize {
    let mut lanes = Lanes([0; CHAINS * 8]);
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Scalar | Isa::Avx2 | Isa::Avx512 if isa.is_available() => {
            x86::run(isa, lane, steps, &mut lanes);
        }
        _ => portable::run(lane, steps, &mut lanes),
    }
    right(isa, lane, steps, &lanes)
}

/// The number of lanes of all chains together.
pub(crate) fn lanes(isa: Isa, lane: Lane) -> usize {
    CHAINS * (isa.width_bits(lane.bits()) / lane.bits()) as usize
}

fn right(isa: Isa, lane: Lane, steps: u32, ended: &Lanes) -> usize {
    let expected = lane.bits_of(steps);
    let bits = lane.bits();
    let in_chain = lanes(isa, lane) / CHAINS;
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let per_word = (64 / bits) as usize;
    let value = |chain: usize, index: usize| {
        let word = ended.0[chain * 8 + index / per_word];
        (word >> (bits as usize * (index % per_word))) & mask
    };
    (0..CHAINS)
        .map(|chain| (0..in_chain).filter(|&index| value(chain, index) == expected).count())
        .sum()
}
