//! Which instructions arithmetic is done with.

/// A set of instructions that arithmetic is measured with; which set a kernel needs is another
/// question, see `quarrier_core::isa::Isa`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain code as the compiler translates it, if no other set is available.
    Portable,
    /// One value an instruction.
    Scalar,
    /// 256 bits an instruction.
    Avx2,
    /// 512 bits an instruction.
    Avx512,
}

impl Isa {
    const ALL: [Isa; 4] = [Isa::Portable, Isa::Scalar, Isa::Avx2, Isa::Avx512];

    /// The word that stands in readings.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Scalar => "scalar",
            Isa::Avx2 => "AVX2",
            Isa::Avx512 => "AVX-512",
        }
    }

    /// The set of this name.
    pub fn of(name: &str) -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.name().eq_ignore_ascii_case(name))
    }

    /// Whether this machine has it and this program knows it.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        let fused = is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx2");
        match self {
            Isa::Portable => !fused,
            Isa::Scalar | Isa::Avx2 => fused,
            Isa::Avx512 => fused && is_x86_feature_detected!("avx512f"),
        }
    }

    /// Whether this machine has it and this program knows it.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_available(self) -> bool {
        self == Isa::Portable
    }

    /// The sets that this machine supports, the narrowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// The widest that this machine has.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::Portable)
    }

    /// Bits an instruction works on, of values of `bits` bits.
    pub fn width_bits(self, bits: u32) -> u32 {
        match self {
            Isa::Portable | Isa::Scalar => bits,
            Isa::Avx2 => 256,
            Isa::Avx512 => 512,
        }
    }
}
