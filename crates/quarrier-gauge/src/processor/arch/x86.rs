//! Loops in assembly, since a compiler merges chains into wider ones or removes them.

use std::arch::asm;

use super::{Lane, Lanes};
use crate::processor::Isa;

/// Runs the loop of `isa` and `lane`. The caller has checked that `isa` is available and that
/// `steps` is even and not 0.
pub(super) fn run(isa: Isa, lane: Lane, steps: u32, lanes: &mut Lanes) {
    let steps = u64::from(steps);
    // SAFETY: the caller has checked that `isa` is available: each but `Portable` includes FMA and
    // AVX2, which the loops of 256 bits and the scalar ones need, and `Avx512` includes AVX-512F.
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

/// Defines a loop over twelve vector registers; number 12 holds ones. It is unrolled twice, so `steps`
/// must be even.
macro_rules! vector_loop {
    ($name:ident, $register:literal, $instruction:literal, $second:literal, $ones:expr) => {
        /// # Safety
        /// The processor has the instructions in the name, and AVX2.
        #[inline(never)]
        unsafe fn $name(steps: u64, lanes: &mut Lanes) {
            debug_assert!(steps > 0 && steps % 2 == 0);
            // SAFETY: the caller promises the instructions. The stores fill at most the 12 times 64
            // bytes of `lanes`, which is borrowed mutably, and need no alignment. `rcx` is an
            // operand, and the ABI's list declares all vector registers; the other operands are
            // only read. The asm does not touch the stack.
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

/// Defines a loop over twelve general registers. The summand is in a register, since a processor may
/// add a constant when it renames the instruction.
macro_rules! scalar_loop {
    ($name:ident, $one:literal, $($register:literal),*) => {
        /// # Safety
        /// The processor has AVX.
        #[inline(never)]
        unsafe fn $name(steps: u64, lanes: &mut Lanes) {
            debug_assert!(steps > 0 && steps % 2 == 0);
            // SAFETY: the caller promises AVX, for the moves between general and vector registers.
            // The 12 stores of 8 bytes lie within `lanes`, which is borrowed mutably. All registers
            // written are operands, outputs or in the ABI's list, except rbx and rbp, which the asm
            // restores from vector registers and does not use for addresses in between. The asm
            // does not touch the stack.
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
                    // The stores write 64 bits: an addition to a 32-bit register clears the bits
                    // above.
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
