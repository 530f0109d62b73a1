//! Compares packed values with constants, 64 rows to a word of a bitmap: written once over
//! [`Packed`], compiled for each instruction set, chosen at run time.
//!
//! Every loop takes a mask of the words to process (`which`), so that rows already decided cost
//! nothing.

use quarrier_core::isa::Isa;

mod bits;
pub(crate) mod lookup;
pub(crate) mod numbers;
mod portable;
pub(crate) mod ranges;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(test)]
mod tests;

pub(crate) use bits::{Bits, WORDS};
pub(crate) use lookup::bit;
pub(crate) use ranges::{FloatRange, Range};

/// Rows of one word of a bitmap.
pub(crate) const WORD_ROWS: usize = 64;

/// The loops of one instruction set. Their functions are safe to call through a reference: only
/// [`kernels`] returns one, after it has detected all features of the set, and `facade` asserts
/// that the loops are compiled for no other features.
pub(crate) struct Kernels {
    pub(crate) bits: bits::BitKernels,
    pub(crate) numbers: numbers::NumberKernels,
    bytes: LaneKernels<u8>,
    shorts: LaneKernels<u16>,
    ints: LaneKernels<u32>,
    longs: LaneKernels<u64>,
    floats: unsafe fn(&ranges::Work<'_, f64, FloatRange>, &mut Bits) -> u64,
}

/// The loops over values of one width.
pub(crate) struct LaneKernels<T> {
    ranges: unsafe fn(&ranges::Work<'_, T, Range<T>>, &mut Bits) -> u64,
    lookup: unsafe fn(&lookup::Work<'_, T>, &mut Bits) -> u64,
    widen: unsafe fn(&[T; WORD_ROWS], i64, &mut numbers::Words),
    scale: unsafe fn(&[T; WORD_ROWS], f32, &mut [u32; WORD_ROWS]),
}

impl<T> LaneKernels<T> {
    /// Converts 64 lanes to the integers that they stand for: each lane plus `base`.
    pub(crate) fn widen(&self, lanes: &[T; WORD_ROWS], base: i64, out: &mut numbers::Words) {
        // SAFETY: `kernels` only returns loops whose features the CPU has. The slices have 64
        // elements by type.
        unsafe { (self.widen)(lanes, base, out) }
    }

    /// Multiplies 64 floats, given as bits, by the numbers that lanes and `base` stand for.
    pub(crate) fn scale(&self, lanes: &[T; WORD_ROWS], base: f32, into: &mut [u32; WORD_ROWS]) {
        // SAFETY: `kernels` only returns loops whose features the CPU has. The slices have 64
        // elements by type.
        unsafe { (self.scale)(lanes, base, into) }
    }
}

/// Returns the loops of `isa`, or of the best set that the CPU supports if it lacks that one.
pub(crate) fn kernels(isa: Isa) -> &'static Kernels {
    match isa.or_best() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => &avx512::KERNELS,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => &avx2::KERNELS,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => &neon::KERNELS,
        _ => &portable::KERNELS,
    }
}

/// An integer type of packed values.
pub(crate) trait Lane: Copy + Ord + Default + Into<u64> + 'static {
    /// Truncates `value` to this width.
    fn cut(value: u64) -> Self;
    /// Converts to an index in a table.
    fn place(self) -> usize;
    /// Converts to the nearest 32-bit float.
    fn near(self) -> f32;
    /// Returns the loops of this width.
    fn of(kernels: &Kernels) -> &LaneKernels<Self>;
}

macro_rules! lane {
    ($lane:ty, $field:ident) => {
        impl Lane for $lane {
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "truncation is intended")]
            fn cut(value: u64) -> Self {
                value as $lane
            }
            #[inline(always)]
            fn place(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn near(self) -> f32 {
                self as f32
            }
            fn of(kernels: &Kernels) -> &LaneKernels<Self> {
                &kernels.$field
            }
        }
    };
}
lane!(u8, bytes);
lane!(u16, shorts);
lane!(u32, ints);
lane!(u64, longs);

/// The operations on 64 packed values that an instruction set implements.
///
/// # Safety
/// The CPU has the features of the instruction set, and 64 values are readable at `values`.
pub(crate) trait Packed<T: Lane> {
    /// Returns a mask of the values within `low..=high`.
    unsafe fn between(values: *const T, range: Range<T>) -> u64;
    /// Returns a mask of the values whose sum with `base` has its bit set in `table`.
    unsafe fn member(values: *const T, base: u32, table: &[u32]) -> u64;
}

/// The operations on 64 floats that an instruction set implements.
///
/// # Safety
/// The contract of [`Packed`].
pub(crate) trait PackedFloats {
    /// Returns a mask of the floats in the range.
    unsafe fn between_floats(values: *const f64, range: FloatRange) -> u64;
}

/// Makes the facade of an instruction set: all loops, compiled with the named features. The
/// assertion checks that the set has them.
macro_rules! facade {
    ($set:ty $(, $isa:ident, $features:literal)?) => {
        $(const _: () = assert!(quarrier_core::isa::Isa::$isa.has($features));)?

        pub(super) static KERNELS: super::Kernels = super::Kernels {
            bits: super::bits::BitKernels { all, any, without, count, words, mask },
            numbers: super::numbers::NumberKernels { float, whole_step, float_step },
            bytes: super::LaneKernels { ranges: ranges::<u8>, lookup: lookup::<u8>, widen: widen::<u8>, scale: scale::<u8> },
            shorts: super::LaneKernels { ranges: ranges::<u16>, lookup: lookup::<u16>, widen: widen::<u16>, scale: scale::<u16> },
            ints: super::LaneKernels { ranges: ranges::<u32>, lookup: lookup::<u32>, widen: widen::<u32>, scale: scale::<u32> },
            longs: super::LaneKernels { ranges: ranges::<u64>, lookup: lookup::<u64>, widen: widen::<u64>, scale: scale::<u64> },
            floats,
        };

        $(#[target_feature(enable = $features)])?
        unsafe fn ranges<T: super::Lane>(
            work: &super::ranges::Work<'_, T, super::Range<T>>,
            out: &mut super::Bits,
        ) -> u64
        where
            $set: super::Packed<T>,
        {
            // SAFETY: this function enables the features of `$set`, so its caller has checked them.
            // The caller also vouches for `which`.
            unsafe { super::ranges::run::<$set, T, super::Range<T>>(work, out) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn floats(
            work: &super::ranges::Work<'_, f64, super::FloatRange>,
            out: &mut super::Bits,
        ) -> u64 {
            // SAFETY: this function enables the features of `$set`, so its caller has checked them.
            // The caller also vouches for `which`.
            unsafe { super::ranges::run::<$set, f64, super::FloatRange>(work, out) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn lookup<T: super::Lane>(
            work: &super::lookup::Work<'_, T>,
            out: &mut super::Bits,
        ) -> u64
        where
            $set: super::Packed<T>,
        {
            // SAFETY: this function enables the features of `$set`, so its caller has checked them.
            unsafe { super::lookup::run::<$set, T>(work, out) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn widen<T: super::Lane>(
            lanes: &[T; super::WORD_ROWS],
            base: i64,
            out: &mut super::numbers::Words,
        ) {
            super::numbers::widen(lanes, base, out);
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn scale<T: super::Lane>(
            lanes: &[T; super::WORD_ROWS],
            base: f32,
            into: &mut [u32; super::WORD_ROWS],
        ) {
            super::numbers::scale(lanes, base, into);
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn float(numbers: &mut super::numbers::Words, power: f64) {
            super::numbers::float(numbers, power);
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn whole_step(
            step: super::numbers::Step,
            into: &mut super::numbers::Words,
            with: &super::numbers::Words,
        ) {
            super::numbers::whole_step(step, into, with);
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn float_step(
            step: super::numbers::Step,
            into: &mut super::numbers::Words,
            with: &super::numbers::Words,
        ) {
            super::numbers::float_step(step, into, with);
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn all(into: &mut super::Bits, with: &super::Bits) -> u64 {
            super::bits::all(into, with)
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn any(into: &mut super::Bits, with: &super::Bits) -> u64 {
            super::bits::any(into, with)
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn without(into: &mut super::Bits, with: &super::Bits) -> u64 {
            super::bits::without(into, with)
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn words(bits: &super::Bits) -> u64 {
            bits.words()
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn mask(into: &mut super::Bits, with: &[u64], flip: u64) -> u64 {
            super::bits::mask(into, with, flip)
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn count(bits: &super::Bits) -> u32 {
            super::bits::count(bits)
        }
    };
}
use facade;
