//! The actual clock of a core, measured by dependent additions, which take one cycle each.
//!
//! A virtual machine does not know its clock, and a real machine changes it from minute to minute. So
//! it is measured next to the work whose cycles are counted.

use std::time::Instant;

use crate::error::{Error, Result};

/// Number of additions in one step of the chain.
const STEP: u64 = 64;

/// Returns the cycles per second of the core that runs the calling thread, by `tries` chains of
/// `steps` steps. The fastest one counts, since an interruption can only make a chain slower.
///
/// # Errors
/// If a chain computes a wrong value, or this architecture has none.
pub(crate) fn fastest(tries: u32, steps: u64) -> Result<f64> {
    let mut best: f64 = 0.0;
    for _ in 0..tries.max(1) {
        let start = Instant::now();
        let additions = chain(steps)? as f64;
        best = best.max(additions / start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Runs a chain of `steps` times 64 additions, checks their sum, and returns it.
///
/// # Errors
/// If the sum is wrong, or this architecture has no chain.
pub(crate) fn chain(steps: u64) -> Result<u64> {
    let additions = steps * STEP;
    let sum = additions_one_after_another(steps).ok_or_else(|| {
        let name = std::env::consts::ARCH;
        Error::BadRequest(format!("there is no chain of additions for {name}; measure the rest"))
    })?;
    if sum != additions {
        return Err(Error::wrong("clock", format!("{sum} instead of {additions}")));
    }
    Ok(sum)
}

/// Adds 1 from a register, 64 times per step. A processor could add a constant in no time, when it
/// renames the instruction.
#[cfg(target_arch = "x86_64")]
fn additions_one_after_another(steps: u64) -> Option<u64> {
    if steps == 0 {
        return Some(0);
    }
    let mut sum = 0_u64;
    // SAFETY: the asm changes only its operands and the flags, and accesses neither memory nor the
    // stack. `steps` is not 0, so that the loop ends.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {one}",
            ".endr",
            "dec {steps}",
            "jnz 2b",
            sum = inout(reg) sum,
            one = in(reg) 1_u64,
            steps = inout(reg) steps => _,
            options(nomem, nostack),
        );
    }
    Some(sum)
}

/// Adds 1, 64 times per step.
#[cfg(target_arch = "aarch64")]
fn additions_one_after_another(steps: u64) -> Option<u64> {
    if steps == 0 {
        return Some(0);
    }
    let mut sum = 0_u64;
    // SAFETY: the asm changes only its operands and the flags, and accesses neither memory nor the
    // stack. `steps` is not 0, so that the loop ends.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {one}",
            ".endr",
            "subs {steps}, {steps}, #1",
            "b.ne 2b",
            sum = inout(reg) sum,
            one = in(reg) 1_u64,
            steps = inout(reg) steps => _,
            options(nomem, nostack),
        );
    }
    Some(sum)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn additions_one_after_another(_steps: u64) -> Option<u64> {
    None
}
