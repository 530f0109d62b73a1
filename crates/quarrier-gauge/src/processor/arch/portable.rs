//! Plain Rust, as compiled.

use std::hint::black_box;

use super::{CHAINS, Lane, Lanes};

/// Leaves `steps` in the first lane of each chain.
pub(super) fn run(lane: Lane, steps: u32, lanes: &mut Lanes) {
    match lane {
        Lane::F32 => put(lanes, floats::<f32>(steps, 1.0).map(|end| u64::from(end.to_bits()))),
        Lane::F64 => put(lanes, floats::<f64>(steps, 1.0).map(f64::to_bits)),
        Lane::I32 => put(lanes, whole_32(steps).map(u64::from)),
        Lane::I64 => put(lanes, whole_64(steps)),
    }
}

fn put(lanes: &mut Lanes, ends: [u64; CHAINS]) {
    for (chain, end) in ends.into_iter().enumerate() {
        lanes.0[chain * 8] = end;
    }
}

/// Multiplies by one and adds one, as two operations: without hardware for a fused one, that would be a
/// call.
fn floats<T>(steps: u32, one: T) -> [T; CHAINS]
where
    T: Copy + Default + std::ops::Mul<Output = T> + std::ops::Add<Output = T>,
{
    let (factor, summand) = (black_box(one), black_box(one));
    let mut chains = [T::default(); CHAINS];
    for _ in 0..steps {
        for chain in &mut chains {
            *chain = *chain * factor + summand;
        }
    }
    black_box(chains)
}

/// Adds one. In each step the summand comes from a black box, so the compiler cannot replace the loop
/// by a product.
fn whole_32(steps: u32) -> [u32; CHAINS] {
    let mut chains = [0_u32; CHAINS];
    for _ in 0..steps {
        let one = black_box(1);
        for chain in &mut chains {
            *chain = chain.wrapping_add(one);
        }
    }
    black_box(chains)
}

/// Like [`whole_32`], with 64 bits.
fn whole_64(steps: u32) -> [u64; CHAINS] {
    let mut chains = [0_u64; CHAINS];
    for _ in 0..steps {
        let one = black_box(1);
        for chain in &mut chains {
            *chain = chain.wrapping_add(one);
        }
    }
    black_box(chains)
}
