//! The two kernels of `python/parallel.py` in Rust, through `quarrier_core::parallel` and by hand.
//!
//! `parallel check BYTES` compares both with one-line loops. `parallel map|hand FILE FILE BYTES
//! WORKERS` reads the inputs, then executes the commands in its standard input (`k1 cold`, `k2
//! warm`, `check k1`), and answers each with a line of JSON.

#[expect(dead_code, reason = "only the other benchmarks use random words")]
mod random;

use std::io::{BufRead, Read, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use quarrier_core::parallel::{self, Cut};
use quarrier_core::region::SharedRegion;
use serde_json::json;

use random::Random;

/// Elements that a window extends to each side.
const HALO: usize = 5;
/// Number of elements to process at once, so that intermediate results stay in the L1 cache.
const BLOCK: usize = 4096;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["check", bytes] => check(bytes.parse()?),
        [how @ ("map" | "hand"), first, second, bytes, workers] => {
            let bytes = bytes.parse()?;
            let inputs = [read(first, bytes)?, read(second, bytes)?];
            serve(how, [&inputs[0], &inputs[1]], workers.parse()?)
        }
        _ => bail!("usage: parallel check BYTES | parallel map|hand FILE FILE BYTES WORKERS"),
    }
}

fn bytes_mut(region: &mut SharedRegion) -> &mut [u8] {
    // SAFETY: this program passes on neither the region's descriptor nor its address, so no other
    // code accesses its bytes.
    unsafe { region.as_mut_slice() }
}

fn read(path: &str, bytes: usize) -> Result<Vec<u8>> {
    let mut input = Vec::with_capacity(bytes);
    let file = std::fs::File::open(path).with_context(|| path.to_string())?;
    file.take(bytes as u64).read_to_end(&mut input)?;
    ensure!(input.len() == bytes, "{path} has fewer than {bytes} bytes");
    Ok(input)
}

fn serve(how: &str, inputs: [&[u8]; 2], workers: usize) -> Result<()> {
    let mut kept = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (what, which) = line.split_once(' ').context("two words make a line")?;
        if kept.is_none() && (what == "check" || which == "warm") {
            let mut touched = SharedRegion::new(inputs[0].len())?;
            bytes_mut(&mut touched).fill(1);
            kept = Some(touched);
        }
        let answer = match (what, which) {
            ("check", kernel) => {
                let warm = kept.as_mut().context("made above")?;
                fill(how, kernel, inputs, bytes_mut(warm), workers)?;
                let filled = bytes_mut(warm);
                compare(kernel, inputs, filled)?;
                sums(filled)
            }
            (kernel, "warm") => {
                let warm = kept.as_mut().context("made above")?;
                let start = Instant::now();
                fill(how, kernel, inputs, bytes_mut(warm), workers)?;
                json!({"seconds": start.elapsed().as_secs_f64()})
            }
            (kernel, _) => {
                let start = Instant::now();
                let mut fresh = SharedRegion::new(inputs[0].len())?;
                fill(how, kernel, inputs, bytes_mut(&mut fresh), workers)?;
                json!({"seconds": start.elapsed().as_secs_f64()})
            }
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Returns the checksums by which other programs compare their output.
fn sums(out: &[u8]) -> serde_json::Value {
    let sum: u64 = out.iter().map(|&byte| u64::from(byte)).sum();
    let weighted: u64 =
        out.iter().enumerate().map(|(at, &byte)| (at as u64 & 255) * u64::from(byte)).sum();
    json!({"sum": sum, "weighted": weighted})
}

fn fill(how: &str, kernel: &str, inputs: [&[u8]; 2], out: &mut [u8], workers: usize) -> Result<()> {
    match (how, kernel) {
        ("map", "k1") => {
            let cut = Cut { chunk: 0, workers };
            parallel::map(inputs, out, 0, cut, |part, slices| mean_of_two(part, slices.arrays))?;
        }
        ("map", _) => {
            let cut = Cut { chunk: 0, workers };
            parallel::map(inputs, out, HALO, cut, |part, slices| {
                window_means(part, slices.lead, slices.arrays);
            })?;
        }
        // The machine's limit: a share for each thread, and nothing else.
        (_, _) => {
            let share = out.len().div_ceil(workers).next_multiple_of(64);
            std::thread::scope(|scope| {
                for (number, part) in out.chunks_mut(share).enumerate() {
                    let range = number * share..number * share + part.len();
                    let slices = inputs.map(|input| &input[range.clone()]);
                    scope.spawn(move || mean_of_two(part, slices));
                }
            });
        }
    }
    Ok(())
}

/// Computes the mean of two, rounded down, with streaming stores, because the output does not fit a
/// cache.
fn mean_of_two(out: &mut [u8], inputs: [&[u8]; 2]) {
    #[cfg(target_arch = "x86_64")]
    if out.as_ptr().addr().is_multiple_of(64) {
        let whole = out.len() / 64 * 64;
        let (body, tail) = out.split_at_mut(whole);
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the CPU has AVX-512BW, which includes AVX-512F. `body` is aligned to 64
            // bytes, as checked above, a multiple of 64 bytes long, and as long as the inputs.
            unsafe { x86::mean_avx512(body, inputs.map(|input| &input[..whole])) };
            return plain_mean(tail, inputs.map(|input| &input[whole..]));
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2. `body` is aligned to 64 bytes, as checked above, a multiple
            // of 64 bytes long, and as long as the inputs.
            unsafe { x86::mean_avx2(body, inputs.map(|input| &input[..whole])) };
            return plain_mean(tail, inputs.map(|input| &input[whole..]));
        }
    }
    plain_mean(out, inputs);
}

fn plain_mean(out: &mut [u8], inputs: [&[u8]; 2]) {
    for ((out, &a), &b) in out.iter_mut().zip(inputs[0]).zip(inputs[1]) {
        *out = (a & b) + ((a ^ b) >> 1);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// The CPU has AVX-512F and BW. `out` is aligned to 64 bytes, a multiple of 64 bytes long and
    /// no longer than the inputs.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn mean_avx512(out: &mut [u8], inputs: [&[u8]; 2]) {
        let low_bits = _mm512_set1_epi8(0x7F);
        for at in (0..out.len()).step_by(64) {
            // SAFETY: `at` is a multiple of 64 below the length, itself a multiple of 64, so all
            // three have 64 bytes at `at`. The loads are unaligned ones; the store needs the
            // 64-byte alignment that `out` has.
            unsafe {
                let a = _mm512_loadu_si512(inputs[0].as_ptr().add(at).cast());
                let b = _mm512_loadu_si512(inputs[1].as_ptr().add(at).cast());
                let halves = _mm512_srli_epi16::<1>(_mm512_xor_si512(a, b));
                let halves = _mm512_and_si512(halves, low_bits);
                let mean = _mm512_add_epi8(_mm512_and_si512(a, b), halves);
                _mm512_stream_si512(out.as_mut_ptr().add(at).cast(), mean);
            }
        }
        _mm_sfence();
    }

    /// # Safety
    /// The CPU has AVX2. `out` is aligned to 32 bytes, a multiple of 32 bytes long and no longer
    /// than the inputs.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn mean_avx2(out: &mut [u8], inputs: [&[u8]; 2]) {
        let low_bits = _mm256_set1_epi8(0x7F);
        for at in (0..out.len()).step_by(32) {
            // SAFETY: `at` is a multiple of 32 below the length, itself a multiple of 32, so all
            // three have 32 bytes at `at`. The loads are unaligned ones; the store needs the
            // 32-byte alignment that `out` has.
            unsafe {
                let a = _mm256_loadu_si256(inputs[0].as_ptr().add(at).cast());
                let b = _mm256_loadu_si256(inputs[1].as_ptr().add(at).cast());
                let halves = _mm256_srli_epi16::<1>(_mm256_xor_si256(a, b));
                let halves = _mm256_and_si256(halves, low_bits);
                let mean = _mm256_add_epi8(_mm256_and_si256(a, b), halves);
                _mm256_stream_si256(out.as_mut_ptr().add(at).cast(), mean);
            }
        }
        _mm_sfence();
    }
}

/// Computes the mean of two means of 11 elements, all rounded down; elements beyond the ends count
/// as zeros. `lead` elements of the inputs precede the first output.
fn window_means(out: &mut [u8], lead: usize, inputs: [&[u8]; 2]) {
    let mut sums = [[0_u16; BLOCK]; 2];
    let mut start = 0;
    for part in out.chunks_mut(BLOCK) {
        for (sums, input) in sums.iter_mut().zip(inputs) {
            window_sums(&mut sums[..part.len()], input, lead + start);
        }
        let [first, second] = &sums;
        for ((out, &a), &b) in part.iter_mut().zip(first).zip(second) {
            *out = ((a / 11 + b / 11) / 2) as u8;
        }
        start += part.len();
    }
}

/// Computes the sums of the windows around `input[at..]`.
fn window_sums(sums: &mut [u16], input: &[u8], at: usize) {
    let mut padded = [0_u16; BLOCK + 2 * HALO];
    let seen = at.saturating_sub(HALO)..(at + sums.len() + HALO).min(input.len());
    let gap = HALO - HALO.min(at);
    for (wide, &byte) in padded[gap..].iter_mut().zip(&input[seen]) {
        *wide = u16::from(byte);
    }
    for (at, sum) in sums.iter_mut().enumerate() {
        let window: &[u16; 2 * HALO + 1] =
            padded[at..].first_chunk().expect("padded on both sides");
        *sum = window.iter().sum();
    }
}

/// Compares with a loop of one line per element.
fn compare(kernel: &str, inputs: [&[u8]; 2], out: &[u8]) -> Result<()> {
    let window = |input: &[u8], at: usize| -> u64 {
        let seen = &input[at.saturating_sub(HALO)..(at + HALO + 1).min(input.len())];
        seen.iter().map(|&byte| u64::from(byte)).sum::<u64>() / 11
    };
    for (at, &found) in out.iter().enumerate() {
        let wanted = match kernel {
            "k1" => (u64::from(inputs[0][at]) + u64::from(inputs[1][at])) / 2,
            _ => (window(inputs[0], at) + window(inputs[1], at)) / 2,
        };
        ensure!(
            u64::from(found) == wanted,
            "WRONG RESULT: {kernel} at {at}: {found}, not {wanted}"
        );
    }
    Ok(())
}

fn check(bytes: usize) -> Result<()> {
    for bytes in [0, 1, 9, BLOCK + 3, bytes] {
        let mut random = Random::new(4);
        let mut inputs = [vec![0; bytes], vec![0; bytes]];
        inputs.iter_mut().for_each(|input| random.fill(input));
        let inputs = [&inputs[0][..], &inputs[1]];
        for (how, kernel) in [("map", "k1"), ("map", "k2"), ("hand", "k1")] {
            for workers in [1, 2, 3] {
                let mut out = SharedRegion::new(bytes)?;
                if bytes > 0 {
                    fill(how, kernel, inputs, bytes_mut(&mut out), workers)?;
                }
                compare(kernel, inputs, bytes_mut(&mut out))?;
            }
        }
    }
    Ok(())
}
