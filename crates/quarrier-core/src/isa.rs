//! The instruction sets for which loops are compiled, and which of them this CPU supports.

/// The features of each set. The macros that enable features and those that detect them share these
/// lists, so that use and detection cannot differ.
#[cfg(target_arch = "x86_64")]
macro_rules! avx512 {
    ($with:ident) => {
        $with!("avx2" "bmi1" "bmi2" "popcnt" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vbmi"
            "avx512vbmi2" "avx512vpopcntdq")
    };
}
#[cfg(target_arch = "x86_64")]
macro_rules! avx2 {
    ($with:ident) => {
        $with!("avx2" "bmi1" "bmi2" "popcnt")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! neon {
    ($with:ident) => {
        $with!("neon")
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! named {
    ($($feature:tt)+) => {
        &[$($feature),+]
    };
}
#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($($feature:tt)+) => {
        $(is_x86_feature_detected!($feature))&&+
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! detected {
    ($($feature:tt)+) => {
        $(std::arch::is_aarch64_feature_detected!($feature))&&+
    };
}

/// An instruction set for which loops are compiled, besides the portable one.
///
/// A name means the same features everywhere: in kernels, in engines' names and in `explain`. A
/// function that enables some of the features asserts at compile time, by [`has`](Isa::has), that
/// its set contains them, and is called only if [`is_available`](Isa::is_available) detected the
/// whole set.
///
/// ```
/// use quarrier_core::isa::Isa;
///
/// assert!(Isa::best().is_available());
/// # #[cfg(target_arch = "x86_64")]
/// const { assert!(Isa::Avx2.has("avx2,popcnt") && !Isa::Avx2.has("avx2,avx512f")) };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 as in Ice Lake and Zen 4, with vectors of 64 bytes: F, BW, DQ, VL, VBMI, VBMI2 and
    /// VPOPCNTDQ, and all of [`Avx2`](Isa::Avx2).
    Avx512,
    /// AVX2 as in Haswell and Zen, with vectors of 32 bytes: with BMI1, BMI2 and POPCNT.
    Avx2,
    /// NEON as in every 64-bit Arm processor that runs Linux, with vectors of 16 bytes.
    Neon,
    /// Only the baseline of the compiler's target.
    Portable,
}

impl Isa {
    /// All of them, best first.
    pub const ALL: [Isa; 4] = [Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Portable];

    /// Returns `avx512`, `avx2`, `neon` or `portable`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Neon => "neon",
            Isa::Portable => "portable",
        }
    }

    /// Whether this CPU has all features of the set.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        match self {
            Isa::Avx512 => avx512!(detected),
            Isa::Avx2 => avx2!(detected),
            Isa::Neon => false,
            Isa::Portable => true,
        }
    }

    /// Whether this CPU has all features of the set.
    #[cfg(target_arch = "aarch64")]
    pub fn is_available(self) -> bool {
        match self {
            Isa::Avx512 | Isa::Avx2 => false,
            Isa::Neon => neon!(detected),
            Isa::Portable => true,
        }
    }

    /// Whether this CPU has all features of the set.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn is_available(self) -> bool {
        self == Isa::Portable
    }

    /// Returns the sets that this CPU supports, best first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// Returns the best set that this CPU supports.
    pub fn best() -> Isa {
        Isa::available().next().unwrap_or(Isa::Portable)
    }

    /// Returns this set if the CPU supports it, else the best set that it supports.
    #[must_use]
    pub fn or_best(self) -> Isa {
        if self.is_available() { self } else { Isa::best() }
    }

    /// Returns the set's features, by their names in `target_feature`.
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512!(named),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2!(named),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon!(named),
            _ => &[],
        }
    }

    /// Whether the set contains all of `features`, a list separated by commas as in
    /// `target_feature(enable = …)`.
    pub const fn has(self, features: &str) -> bool {
        let text = features.as_bytes();
        let (mut start, mut at) = (0, 0);
        while at <= text.len() {
            if at == text.len() || text[at] == b',' {
                if !self.has_one(text, start, at) {
                    return false;
                }
                start = at + 1;
            }
            at += 1;
        }
        true
    }

    /// Whether the set contains the feature `text[start..end]`.
    const fn has_one(self, text: &[u8], start: usize, end: usize) -> bool {
        let all = self.features();
        let mut which = 0;
        while which < all.len() {
            let name = all[which].as_bytes();
            let mut same = 0;
            while same < name.len() && start + same < end && name[same] == text[start + same] {
                same += 1;
            }
            if same == name.len() && start + same == end {
                return true;
            }
            which += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_own_features_and_no_others() {
        for isa in Isa::ALL {
            let all = isa.features();
            assert!(all.is_empty() || isa.has(&all.join(",")), "{isa:?}");
            assert!(all.iter().all(|feature| isa.has(feature)), "{isa:?}");
            for wrong in
                ["", ",", "avx", "avx22", "avx2,", ",avx2", "avx2,,bmi1", "avx2, bmi1", "amx-tile"]
            {
                assert!(!isa.has(wrong), "{isa:?} {wrong:?}");
            }
        }
        assert!(Isa::Avx2.features().iter().all(|feature| Isa::Avx512.has(feature)));
        assert!(!Isa::Portable.has("avx2") && !Isa::Avx2.has("avx2,avx512f"));
    }

    #[test]
    fn every_target_has_the_sets_of_its_processors_and_no_others() {
        for isa in [Isa::Avx512, Isa::Avx2] {
            assert_eq!(isa.features().is_empty(), !cfg!(target_arch = "x86_64"), "{isa:?}");
        }
        assert_eq!(Isa::Neon.is_available(), cfg!(target_arch = "aarch64"));
        assert_eq!(Isa::Neon.has("neon"), cfg!(target_arch = "aarch64"));
    }

    #[test]
    fn unavailable_sets_fall_back_to_the_best_available() {
        assert!(Isa::Portable.is_available());
        assert_eq!(Isa::available().next(), Some(Isa::best()));
        for isa in Isa::ALL {
            let expected = if isa.is_available() { isa } else { Isa::best() };
            assert_eq!(isa.or_best(), expected);
            assert!(isa.or_best().is_available());
        }
    }
}
