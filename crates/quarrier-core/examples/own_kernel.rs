//! A custom kernel: the entropy of each MiB of a file. Text has around 4 bits per byte, programs
//! around 6, compressed and encrypted data nearly 8.
//!
//! ```text
//!  file ─→ 2 readers ─→ 6 buffers ─→ 3 workers ─→ sink
//!          fill          of 256 KiB  count bytes   adds up, in the order of the file
//! ```
//!
//! ```sh
//! cargo run --release --example own_kernel -- disk.img
//! ```
//!
//! Without an argument it reads its own source.

#![allow(clippy::print_stdout, reason = "this program prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use quarrier_core::pipeline::{Chunk, Emitter, Kernel, Need, Pipeline, Stage};
use quarrier_core::source::{Source, open};

const MIB: u64 = 1 << 20;

/// The number of occurrences of each byte value.
type Histogram = [u64; 256];

/// Counts the bytes of each MiB.
struct Count;

impl Kernel for Count {
    /// Number of the MiB, and the histogram of its bytes in one chunk.
    type Output = Vec<(u64, Histogram)>;

    fn need(&self) -> Need {
        // The kernel looks at each byte alone, so it needs no context. It counts zeros too, so it
        // leaves `skip_zeros` off, which is the default, and sees the holes of sparse files.
        Need::default()
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, Self::Output>) {
        // The pipeline may cut chunks anywhere, so no result may depend on the cuts: the kernel
        // assigns the owned bytes to the MiBs of the file, and the sink adds up the parts of a MiB.
        let mut offset = chunk.offset + chunk.own.start as u64;
        let mut rest = chunk.owned();
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.len().min((MIB - offset % MIB) as usize));
            let mut histogram = [0; 256];
            for &byte in part {
                histogram[usize::from(byte)] += 1;
            }
            emit.output().push((offset / MIB, histogram));
            offset += part.len() as u64;
            rest = after;
        }
    }
}

/// Returns the entropy in bits per byte: 0 to 8.
fn entropy(histogram: &Histogram) -> f64 {
    let all = histogram.iter().sum::<u64>() as f64;
    let shares = histogram.iter().filter(|&&count| count > 0).map(|&count| count as f64 / all);
    shares.fold(0.0, |sum, share| sum - share * share.log2())
}

fn add(sum: &mut Histogram, part: &Histogram) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

fn main() -> Result<(), Box<dyn Error>> {
    let own_source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/own_kernel.rs");
    let path = std::env::args_os().nth(1).map_or_else(|| own_source.into(), PathBuf::from);
    let source: Box<dyn Source> = open(&path)?;

    // Every setting is optional; the pipeline plans the others.
    let pipeline = Pipeline::new(&*source).readers(2).buffers(6).buffer_bytes(256 << 10).workers(3);
    let mut mibs: BTreeMap<u64, Histogram> = BTreeMap::new();
    let run = pipeline.run(&Count, &mut |_: &Chunk<'_>, parts: &mut Vec<(u64, Histogram)>| {
        for (mib, part) in parts.drain(..) {
            add(mibs.entry(mib).or_insert([0; 256]), &part);
        }
    })?;

    let mut total = [0; 256];
    for (mib, histogram) in &mibs {
        let bits = entropy(histogram);
        println!("MiB {mib:6}  {bits:5.3} bits a byte  {}", "#".repeat((bits * 5.0) as usize));
        add(&mut total, histogram);
    }
    let mut by_count: Vec<(usize, u64)> = total.into_iter().enumerate().collect();
    by_count.sort_by_key(|&(byte, count)| (std::cmp::Reverse(count), byte));
    println!("all of {}: {:.3} bits a byte; most often", source.name(), entropy(&total));
    for (byte, count) in by_count.into_iter().take(5).filter(|&(_, count)| count > 0) {
        println!("  {byte:#04x}  {count} times");
    }

    assert_eq!(total.iter().sum::<u64>(), run.bytes, "every byte is counted once");
    for stage in Stage::ALL {
        let load = run.timeline.load(stage);
        println!("{:5} busy {:?}, waiting {:?}", stage.name(), load.busy, load.waiting);
    }
    let bytes_per_second = run.bytes as f64 / run.elapsed.as_secs_f64();
    println!("{} bytes in {:?}: {:.2} GB/s", run.bytes, run.elapsed, bytes_per_second / 1e9);
    Ok(())
}
