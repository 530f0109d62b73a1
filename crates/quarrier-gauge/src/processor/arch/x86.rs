//! Loops in assembly: a compiler joins chains into wider ones or folds them away.

use std::arch::asm;

use super::{Lane, Lanes};
use crate::processor::Isa;

/// Runs the loop of `isa` and `lane`. The caller has made sure that the machine has `isa`.
pub(super) fn run(isa: Isa, lane: Lane, steps: u32, lanes: &mut Lanes) {
    let steps = u64::from(steps);
    // SAFETY: the caller has made sure that the processor has these instructions.
    unsafe {
        match (isa, lane) {
            (Isa::Avx512, Lane::F32) => fused_f32_512(steps, lanes),
            (Isa::Avx512, Lane::F64) => fused_f64_512(steps, lanes),
            (Isa::Avx512, Lane::I32) => added_i32_512(steps, lanes),
            (Isa::Avx512, Lane::I64) => added_i64_512(steps, lanes),
            (Isa::Avx2, Lane::F32) => fused_f32_256(steps, lanes),
            (Isa::Avx2, Lane::F64) => fused_f64_256(steps, lanes),
            (Isa::Avx2, Lane::I32) => added_i32_256(steps, lanes),
            (Isa::Avx2, Lane::I64) => added_i64_256(steps, lanes),
            (_, Lane::F32) => fused_f32_scalar(steps, lanes),
            (_, Lane::F64) => fused_f64_scalar(steps, lanes),
            (_, Lane::I32) => added_i32_scalar(steps, lanes),
            (_, Lane::I64) => added_i64_scalar(steps, lanes),
        }
    }
}

/// A loop over twelve vector registers; number 12 holds ones. Unrolled twice, so `steps` is even.
macro_rules! vector_loop {
    ($name:ident, $register:literal, $instruction:literal, $second:literal, $ones:expr) => {
        /// # Safety
        /// The processor must have the instructions in the name.
        #[inline(never)]
        unsafe fn $name(steps: u64, lanes: &mut Lanes) {
            debug_assert!(steps > 0 && steps % 2 == 0);
            // SAFETY: the registers written are declared by the ABI's list, the stores go to the
            // 12 times 64 bytes of `lanes`, and the caller has the instructions.
            unsafe {
                asm!(
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                    "vxorps xmm\\i, xmm\\i, xmm\\i",
                    ".endr",
                    "vmovq xmm12, {ones}",
                    concat!("vpbroadcastq ", $register, "12, xmm12"),
                    ".p2align 5",
                    "2:",
                    ".rept 2",
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                    concat!($instruction, " ", $register, "\\i, ", $register, $second, ", ",
                        $register, "12"),
                    ".endr",
                    ".endr",
                    "sub rcx, 2",
                    "jnz 2b",
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                    concat!("vmovups [{lanes} + 64*\\i], ", $register, "\\i"),
                    ".endr",
                    "vzeroupper",
                    ones = in(reg) $ones,
                    lanes = in(reg) lanes.0.as_mut_ptr(),
                    inout("rcx") steps => _,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
        }
    };
}

const ONES_F32: u64 = 0x3f80_0000_3f80_0000;
const ONE_F64: u64 = 1.0_f64.to_bits();
const ONES_I32: u64 = 0x0000_0001_0000_0001;

vector_loop!(fused_f32_512, "zmm", "vfmadd231ps", "12", ONES_F32);
vector_loop!(fused_f64_512, "zmm", "vfmadd231pd", "12", ONE_F64);
vector_loop!(added_i32_512, "zmm", "vpaddd", "\\i", ONES_I32);
vector_loop!(added_i64_512, "zmm", "vpaddq", "\\i", 1_u64);
vector_loop!(fused_f32_256, "ymm", "vfmadd231ps", "12", ONES_F32);
vector_loop!(fused_f64_256, "ymm", "vfmadd231pd", "12", ONE_F64);
vector_loop!(added_i32_256, "ymm", "vpaddd", "\\i", ONES_I32);
vector_loop!(added_i64_256, "ymm", "vpaddq", "\\i", 1_u64);
vector_loop!(fused_f32_scalar, "xmm", "vfmadd231ss", "12", ONES_F32);
vector_loop!(fused_f64_scalar, "xmm", "vfmadd231sd", "12", ONE_F64);

/// A loop over twelve general registers; the summand comes from a register, since a constant may
/// be added when the instruction is renamed.
macro_rules! scalar_loop {
    ($name:ident, $one:literal, $($register:literal),*) => {
        /// # Safety
        /// None of its own: every processor of this architecture can run it.
        #[inline(never)]
        unsafe fn $name(steps: u64, lanes: &mut Lanes) {
            debug_assert!(steps > 0 && steps % 2 == 0);
            // SAFETY: all registers written are operands or declared, but for rbx and rbp, which
            // are put back from vector registers; the stores go to `lanes`.
            unsafe {
                asm!(
                    "vmovq xmm0, rbx",
                    "vmovq xmm1, rbp",
                    "vmovq xmm2, r15",
                    "mov ecx, 1",
                    $(concat!("xor ", $register, ", ", $register),)*
                    ".p2align 5",
                    "2:",
                    $(concat!("add ", $register, ", ", $one),)*
                    $(concat!("add ", $register, ", ", $one),)*
                    "sub r14, 2",
                    "jnz 2b",
                    "vmovq r15, xmm2",
                    // Each is stored whole: adding to a narrow register clears the bits above it.
                    ".set quarrier_place, 0",
                    ".irp register,rax,rbx,rdx,rsi,rdi,rbp,r8,r9,r10,r11,r12,r13",
                    "mov [r15 + quarrier_place], \\register",
                    ".set quarrier_place, quarrier_place + 64",
                    ".endr",
                    "vmovq rbx, xmm0",
                    "vmovq rbp, xmm1",
                    inout("r14") steps => _,
                    inout("r15") lanes.0.as_mut_ptr() => _,
                    out("r12") _, out("r13") _,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
        }
    };
}

scalar_loop!(
    added_i32_scalar,
    "ecx",
    "eax",
    "ebx",
    "edx",
    "esi",
    "edi",
    "ebp",
    "r8d",
    "r9d",
    "r10d",
    "r11d",
    "r12d",
    "r13d"
);
scalar_loop!(
    added_i64_scalar,
    "rcx",
    "rax",
    "rbx",
    "rdx",
    "rsi",
    "rdi",
    "rbp",
    "r8",
    "r9",
    "r10",
    "r11",
    "r12",
    "r13"
);
