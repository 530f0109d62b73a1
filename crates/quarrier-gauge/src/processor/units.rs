//! The operations per cycle that the processor's design allows.
//!
//! The tables are from the vendors' optimisation guides. Some processors report the width of their
//! units in cpuid; on others only family and model reveal it.

use super::{Isa, Lane};

/// Fused multiply-add instructions that one core starts per cycle; `None` if the design is unknown.
pub fn fused_per_cycle(isa: Isa) -> Option<u32> {
    match isa {
        Isa::Portable => None,
        Isa::Scalar => Some(2),
        Isa::Avx2 => Some(if halves_256() { 1 } else { 2 }),
        Isa::Avx512 => full_512().map(|full| if full { 2 } else { 1 }),
    }
}

/// Maximum number of floating-point operations that one core finishes per cycle; a fused multiply-add
/// counts as two.
pub fn flop_per_cycle(isa: Isa, lane: Lane) -> Option<f64> {
    let lanes = isa.width_bits(lane.bits()) / lane.bits();
    lane.is_float().then_some(())?;
    Some(f64::from(2 * lanes * fused_per_cycle(isa)?))
}

#[cfg(target_arch = "x86_64")]
fn identity() -> Option<(bool, u8, u8)> {
    let cpuid = raw_cpuid::CpuId::new();
    let vendor = cpuid.get_vendor_info()?;
    let features = cpuid.get_feature_info()?;
    let is_amd = matches!(vendor.as_str(), "AuthenticAMD" | "HygonGenuine");
    Some((is_amd, features.family_id(), features.model_id()))
}

/// Whether the processor is a first-generation Zen, which splits 256 bits in two.
#[cfg(target_arch = "x86_64")]
fn halves_256() -> bool {
    matches!(identity(), Some((true, 0x17, 0..0x30)))
}

/// Whether two units handle 512 bits each.
#[cfg(target_arch = "x86_64")]
fn full_512() -> Option<bool> {
    match identity()? {
        // Zen 4 joins two units of 256 bits, and so do the laptop parts of Zen 5.
        (true, 0x19, _) => Some(false),
        (true, 0x1a, model) => Some(!matches!(model, 0x20..=0x2f | 0x60..=0x8f)),
        // The client parts of Ice Lake, Tiger Lake and Rocket Lake have one unit.
        (false, 6, 0x7d | 0x7e | 0x8c | 0x8d | 0xa7) => Some(false),
        (false, 6, _) => Some(true),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn halves_256() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn full_512() -> Option<bool> {
    None
}
