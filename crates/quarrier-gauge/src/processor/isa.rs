//! Instruction sets whose arithmetic is measured.

/// An instruction set whose arithmetic is measured. For the sets that kernels need see
/// `quarrier_core::isa::Isa`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain code as the compiler translates it; only if no other set is available.
    Portable,
    /// One value per instruction.
    Scalar,
    /// 256 bits per instruction.
    Avx2,
    /// 512 bits per instruction.
    Avx512,
}

impl Isa {
    const ALL: [Isa; 4] = [Isa::Portable, Isa::Scalar, Isa::Avx2, Isa::Avx512];

    /// The value of a reading's parameter.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Scalar => "scalar",
            Isa::Avx2 => "AVX2",
            Isa::Avx512 => "AVX-512",
        }
    }

    /// Parses the parameter's value.
    pub fn of(name: &str) -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.name().eq_ignore_ascii_case(name))
    }

    /// Whether this machine has the set and this program supports it.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        let fused = is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx2");
        match self {
            Isa::Portable => !fused,
            Isa::Scalar | Isa::Avx2 => fused,
            Isa::Avx512 => fused && is_x86_feature_detected!("avx512f"),
        }
    }

    /// Whether this machine has the set and this program supports it.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_available(self) -> bool {
        self == Isa::Portable
    }

    /// The sets that this machine supports, the narrowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// The widest available set.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::Portable)
    }

    /// The width of an instruction in bits, for values of `bits` bits.
    pub fn width_bits(self, bits: u32) -> u32 {
        match self {
            Isa::Portable | Isa::Scalar => bits,
            Isa::Avx2 => 256,
            Isa::Avx512 => 512,
        }
    }
}
