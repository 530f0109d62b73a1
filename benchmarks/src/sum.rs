//! The ceiling of a search: the same pipeline, with a kernel that only adds up the bytes.
//!
//! `sum FILE THREADS` prints one JSON object; `found` is the sum.

use std::path::Path;

use anyhow::{Result, bail};
use quarrier_core::pipeline::{Chunk, Emitter, Kernel, Need, Pipeline};
use quarrier_core::region::AsData;

type Add = fn(&[u8]) -> u64;

struct Sum {
    add: Add,
}

impl Kernel for Sum {
    type Output = u64;

    fn need(&self) -> Need {
        Need::default()
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, u64>) {
        *emit.output() += (self.add)(chunk.owned());
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, threads] = arguments.as_slice() else {
        bail!("usage: sum FILE THREADS");
    };
    let source = quarrier_core::source::open(Path::new(file))?;
    let (engine, add) = fastest();
    let mut total = 0u64;
    // SAFETY: the kernel only adds up bytes and loads each once; it makes no text of them.
    let promise = unsafe { AsData::promised() };
    let run = Pipeline::new(&*source)
        .show_changing(promise)
        .workers(threads.parse()?)
        .run(&Sum { add }, &mut |_: &Chunk<'_>, sum: &mut u64| total += std::mem::take(sum))?;
    println!(
        "{}",
        serde_json::json!({
            "found": total,
            "scan_seconds": run.elapsed.as_secs_f64(),
            "bytes_per_second": run.bytes as f64 / run.elapsed.as_secs_f64(),
            "engine": engine,
        })
    );
    Ok(())
}

/// Returns the widest addition that this CPU supports.
fn fastest() -> (&'static str, Add) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: AVX-512 BW was detected above, the only condition of the call.
            return ("avx512", |bytes| unsafe { x86::add_avx512(bytes) });
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was detected above, the only condition of the call.
            return ("avx2", |bytes| unsafe { x86::add_avx2(bytes) });
        }
    }
    ("portable", add_portable)
}

/// Adds blocks so short that sums of 16 bits do not overflow; the compiler vectorises the loop.
fn add_portable(bytes: &[u8]) -> u64 {
    const LANES: usize = 64;
    const ROWS: usize = 256;
    bytes
        .chunks(LANES * ROWS)
        .map(|block| {
            let mut sums = [0u16; LANES];
            let (rows, rest) = block.as_chunks::<LANES>();
            for row in rows {
                for (sum, &byte) in sums.iter_mut().zip(row) {
                    *sum += u16::from(byte);
                }
            }
            let rest: u64 = rest.iter().map(|&byte| u64::from(byte)).sum();
            rest + sums.iter().map(|&sum| u64::from(sum)).sum::<u64>()
        })
        .sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Adds into four sums, so that no addition waits for the one before.
    ///
    /// # Safety
    /// The CPU must have AVX-512 BW.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) unsafe fn add_avx512(bytes: &[u8]) -> u64 {
        let zero = _mm512_setzero_si512();
        let mut sums = [zero; 4];
        let (rows, rest) = bytes.as_chunks::<256>();
        for row in rows {
            for (sum, part) in sums.iter_mut().zip(row.as_chunks::<64>().0) {
                // SAFETY: `part` is a slice of 64 bytes, which the unaligned load reads.
                let part = unsafe { _mm512_loadu_si512(part.as_ptr().cast()) };
                *sum = _mm512_add_epi64(*sum, _mm512_sad_epu8(part, zero));
            }
        }
        let sums = sums.map(|sum| _mm512_reduce_add_epi64(sum) as u64);
        sums.iter().sum::<u64>() + super::add_portable(rest)
    }

    /// As [`add_avx512`], with half the width.
    ///
    /// # Safety
    /// The CPU must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn add_avx2(bytes: &[u8]) -> u64 {
        let zero = _mm256_setzero_si256();
        let mut sums = [zero; 4];
        let (rows, rest) = bytes.as_chunks::<128>();
        for row in rows {
            for (sum, part) in sums.iter_mut().zip(row.as_chunks::<32>().0) {
                // SAFETY: `part` is a slice of 32 bytes, which the unaligned load reads.
                let part = unsafe { _mm256_loadu_si256(part.as_ptr().cast()) };
                *sum = _mm256_add_epi64(*sum, _mm256_sad_epu8(part, zero));
            }
        }
        let mut total = super::add_portable(rest);
        for sum in sums {
            let mut parts = [0u64; 4];
            // SAFETY: `parts` is an array of 32 bytes, to which the unaligned store writes.
            unsafe { _mm256_storeu_si256(parts.as_mut_ptr().cast(), sum) };
            total += parts.iter().sum::<u64>();
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_add_agree() {
        for bytes in [0, 1, 63, 64, 300, 5_000, 70_001] {
            let data: Vec<u8> = (0..bytes).map(|i| 255 - (i % 7) as u8).collect();
            let expected = data.iter().map(|&b| u64::from(b)).sum::<u64>();
            assert_eq!(add_portable(&data), expected);
            assert_eq!(fastest().1(&data), expected);
        }
    }
}
