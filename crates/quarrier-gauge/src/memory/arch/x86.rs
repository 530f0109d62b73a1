//! Loops of explicit loads and stores.

use std::arch::asm;

use super::{Arrays, FACTOR};
use crate::memory::{Operation, Stores, WRITTEN};

/// # Safety
/// Those of [`super::run`], and the processor has AVX-512F.
pub(super) unsafe fn run_512(operation: Operation, stores: Stores, arrays: Arrays) -> u64 {
    // SAFETY: the caller promises AVX-512F, which includes all instructions of the loops named
    // `_512`, and arrays as for `super::run`.
    unsafe {
        match (operation, stores) {
            (Operation::Read, _) => return read_512(arrays),
            (Operation::ReadFour, _) => return read_four_512(arrays),
            (Operation::Write, Stores::Ordinary) => write_512(arrays),
            (Operation::Write, Stores::Streaming) => write_512_streaming(arrays),
            (Operation::Copy, Stores::Ordinary) => copy_512(arrays),
            (Operation::Copy, Stores::Streaming) => copy_512_streaming(arrays),
            (Operation::Scale, Stores::Ordinary) => scale_512(arrays),
            (Operation::Scale, Stores::Streaming) => scale_512_streaming(arrays),
            (Operation::Add, Stores::Ordinary) => add_512(arrays),
            (Operation::Add, Stores::Streaming) => add_512_streaming(arrays),
            (Operation::Triad, Stores::Ordinary) => triad_512(arrays),
            (Operation::Triad, Stores::Streaming) => triad_512_streaming(arrays),
        }
    }
    0
}

/// # Safety
/// Those of [`super::run`], and the processor has AVX2 and FMA.
pub(super) unsafe fn run_256(operation: Operation, stores: Stores, arrays: Arrays) -> u64 {
    // SAFETY: the caller promises AVX2 and FMA, which the loops named `_256` need, and arrays as
    // for `super::run`.
    unsafe {
        match (operation, stores) {
            (Operation::Read, _) => return read_256(arrays),
            (Operation::ReadFour, _) => return read_four_256(arrays),
            (Operation::Write, Stores::Ordinary) => write_256(arrays),
            (Operation::Write, Stores::Streaming) => write_256_streaming(arrays),
            (Operation::Copy, Stores::Ordinary) => copy_256(arrays),
            (Operation::Copy, Stores::Streaming) => copy_256_streaming(arrays),
            (Operation::Scale, Stores::Ordinary) => scale_256(arrays),
            (Operation::Scale, Stores::Streaming) => scale_256_streaming(arrays),
            (Operation::Add, Stores::Ordinary) => add_256(arrays),
            (Operation::Add, Stores::Streaming) => add_256_streaming(arrays),
            (Operation::Triad, Stores::Ordinary) => triad_256(arrays),
            (Operation::Triad, Stores::Streaming) => triad_256_streaming(arrays),
        }
    }
    0
}

/// Defines a loop that computes register 0 from the values read, with the constant in register 15,
/// and stores it. It runs `$body` for each of `$places` in a step of `$step` bytes.
///
/// Loops with ordinary stores handle one register per step. A prefetcher follows an instruction; if
/// sixteen instructions share an array, each of them advances by 512 bytes. Beyond the caches, triad
/// reached 23 to 26 GB/s in steps of 512 bytes, 26 to 28 in steps of 32, and 25 in a compiler's loop
/// (Zen 4, huge pages, one thread). In the first-level cache both take equally long.
macro_rules! storing_loop {
    ($name:ident, $register:literal, $places:literal, $step:literal, $constant:expr, $store:literal,
     $($body:expr),*) => {
        /// # Safety
        /// Those of [`super::run`], and the processor has the instructions in the name.
        #[inline(never)]
        unsafe fn $name(arrays: Arrays) {
            // SAFETY: every step divides `bytes`, a multiple of 512 that is not 0, so that all
            // accesses lie in the arrays, which the caller promises to be valid and aligned to 64
            // bytes. The asm declares every register that `vzeroupper` changes, which are all of
            // 0 to 15, and does not touch the stack.
            unsafe {
                asm!(
                    // Some operations read only one array, or none.
                    "# {left} {right}",
                    "vmovq xmm15, {constant}",
                    concat!("vbroadcastsd ", $register, "15, xmm15"),
                    "xor {i:e}, {i:e}",
                    ".p2align 5",
                    "2:",
                    concat!(".irp place,", $places),
                    $($body,)*
                    concat!($store, " [{target} + {i} + \\place], ", $register, "0"),
                    ".endr",
                    concat!("add {i}, ", $step),
                    "cmp {i}, {bytes}",
                    "jb 2b",
                    "sfence",
                    "vzeroupper",
                    constant = in(reg) f64::to_bits($constant),
                    target = in(reg) arrays.target,
                    left = in(reg) arrays.left,
                    right = in(reg) arrays.right,
                    bytes = in(reg) arrays.bytes,
                    i = out(reg) _,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                    out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                    out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _,
                    out("xmm14") _, out("xmm15") _,
                    options(nostack),
                );
            }
        }
    };
}

/// Defines the loops of all operations, at one width and with one kind of store.
macro_rules! storing_loops {
    ($register:literal, $places:literal, $step:literal, $store:literal, $write:ident, $copy:ident, $scale:ident,
     $add:ident, $triad:ident) => {
        storing_loop!(
            $write,
            $register,
            $places,
            $step,
            WRITTEN,
            $store,
            concat!("vmovapd ", $register, "0, ", $register, "15")
        );
        storing_loop!(
            $copy,
            $register,
            $places,
            $step,
            0.0,
            $store,
            concat!("vmovapd ", $register, "0, [{left} + {i} + \\place]")
        );
        storing_loop!(
            $scale,
            $register,
            $places,
            $step,
            FACTOR,
            $store,
            concat!("vmulpd ", $register, "0, ", $register, "15, [{left} + {i} + \\place]")
        );
        storing_loop!(
            $add,
            $register,
            $places,
            $step,
            0.0,
            $store,
            concat!("vmovapd ", $register, "0, [{left} + {i} + \\place]"),
            concat!("vaddpd ", $register, "0, ", $register, "0, [{right} + {i} + \\place]")
        );
        storing_loop!(
            $triad,
            $register,
            $places,
            $step,
            FACTOR,
            $store,
            concat!("vmovapd ", $register, "0, [{left} + {i} + \\place]"),
            concat!("vfmadd231pd ", $register, "0, ", $register, "15, [{right} + {i} + \\place]")
        );
    };
}

/// Defines a loop that adds all words to eight registers, and stores these to `sums` at the end.
macro_rules! reading_loop {
    ($name:ident, $register:literal, $rows:literal, $bytes:literal) => {
        /// # Safety
        /// Those of [`super::run`], and the processor has the instructions in the name.
        #[inline(never)]
        unsafe fn $name(arrays: Arrays) -> u64 {
            let mut sums = [0_u64; 64];
            // SAFETY: `bytes` is a multiple of 512 that is not 0, so that all loads lie in the
            // array, which the caller promises to be valid; the loads and stores need no alignment.
            // The stores fill at most the 8 times 64 bytes of `sums`. The asm declares `rcx` and,
            // by the ABI's list, all vector registers, and does not touch the stack.
            unsafe {
                asm!(
                    ".irp k,0,1,2,3,4,5,6,7",
                    "vpxor xmm\\k, xmm\\k, xmm\\k",
                    ".endr",
                    "xor ecx, ecx",
                    ".p2align 5",
                    "2:",
                    concat!(".irp row,", $rows),
                    ".irp k,0,1,2,3,4,5,6,7",
                    concat!("vpaddq ", $register, "\\k, ", $register,
                        "\\k, [{left} + rcx + ", $bytes, "*(8*\\row + \\k)]"),
                    ".endr",
                    ".endr",
                    "add rcx, 512",
                    "cmp rcx, {bytes}",
                    "jb 2b",
                    ".irp k,0,1,2,3,4,5,6,7",
                    concat!("vmovups [{sums} + 64*\\k], ", $register, "\\k"),
                    ".endr",
                    "vzeroupper",
                    left = in(reg) arrays.left,
                    bytes = in(reg) arrays.bytes,
                    sums = in(reg) sums.as_mut_ptr(),
                    out("rcx") _,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
            sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
        }
    };
}

/// Defines the same loop over four streams, each a quarter of the array: a single stream does not
/// keep as many cache lines in flight as a core can.
macro_rules! four_streams_loop {
    ($name:ident, $register:literal, $places:literal) => {
        /// # Safety
        /// Those of [`super::run`], and the processor has the instructions in the name.
        #[inline(never)]
        unsafe fn $name(arrays: Arrays) -> u64 {
            let mut sums = [0_u64; 32];
            let quarter = arrays.bytes / 4;
            // SAFETY: a quarter is a multiple of 512 that is not 0, so that all loads lie in the
            // array, which the caller promises to be valid, and so do the starts of the quarters;
            // the loads and stores need no alignment. The stores fill at most the 4 times 64 bytes
            // of `sums`. The asm declares `rcx` and, by the ABI's list, all vector registers, and
            // does not touch the stack.
            unsafe {
                asm!(
                    ".irp k,0,1,2,3",
                    "vpxor xmm\\k, xmm\\k, xmm\\k",
                    ".endr",
                    "xor ecx, ecx",
                    ".p2align 5",
                    "2:",
                    concat!(".irp place,", $places),
                    concat!("vpaddq ", $register, "0, ", $register, "0, [{first} + rcx + \\place]"),
                    concat!("vpaddq ", $register, "1, ", $register, "1, [{second} + rcx + \\place]"),
                    concat!("vpaddq ", $register, "2, ", $register, "2, [{third} + rcx + \\place]"),
                    concat!("vpaddq ", $register, "3, ", $register, "3, [{fourth} + rcx + \\place]"),
                    ".endr",
                    "add rcx, 128",
                    "cmp rcx, {quarter}",
                    "jb 2b",
                    ".irp k,0,1,2,3",
                    concat!("vmovups [{sums} + 64*\\k], ", $register, "\\k"),
                    ".endr",
                    "vzeroupper",
                    first = in(reg) arrays.left,
                    second = in(reg) arrays.left.byte_add(quarter),
                    third = in(reg) arrays.left.byte_add(2 * quarter),
                    fourth = in(reg) arrays.left.byte_add(3 * quarter),
                    quarter = in(reg) quarter,
                    sums = in(reg) sums.as_mut_ptr(),
                    out("rcx") _,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
            sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
        }
    };
}

storing_loops!("zmm", "0", "64", "vmovapd", write_512, copy_512, scale_512, add_512, triad_512);
storing_loops!(
    "zmm",
    "0,64,128,192,256,320,384,448",
    "512",
    "vmovntpd",
    write_512_streaming,
    copy_512_streaming,
    scale_512_streaming,
    add_512_streaming,
    triad_512_streaming
);
storing_loops!("ymm", "0", "32", "vmovapd", write_256, copy_256, scale_256, add_256, triad_256);
storing_loops!(
    "ymm",
    "0,32,64,96,128,160,192,224,256,288,320,352,384,416,448,480",
    "512",
    "vmovntpd",
    write_256_streaming,
    copy_256_streaming,
    scale_256_streaming,
    add_256_streaming,
    triad_256_streaming
);
reading_loop!(read_512, "zmm", "0", "64");
reading_loop!(read_256, "ymm", "0,1", "32");
four_streams_loop!(read_four_512, "zmm", "0,64");
four_streams_loop!(read_four_256, "ymm", "0,32,64,96");
