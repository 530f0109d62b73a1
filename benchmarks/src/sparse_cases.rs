//! The calls on sparse files to measure, with quarrier; `rivals/svfsc.cpp` is the same for the
//! rival. Prints a line per case: name, calls, seconds, and a checksum of the results, by which
//! both are compared.

use std::hint::black_box;
use std::time::Instant;

use quarrier_sparse::SparseFile;

const BYTES: u64 = 1 << 20;

/// Number of repetitions of a case in one process; the least time counts, as for the rival.
const REPEATS: usize = 5;

fn main() {
    for block in [1, 64, 512] {
        let apart = filled(block, 2 * block);
        report("read apart", block, || reads(&apart, block, 2 * block));
    }
    let joined = filled(1, 1);
    for block in [1, 64, 512] {
        report("read joined", block, || reads(&joined, block, block));
    }
    report("has joined", 1, || has(&joined));
    report("need nothing", 1, || need_nothing(&joined));
    for block in [1, 64] {
        let apart = filled(block, 2 * block);
        report("need 1 MiB, apart", block, || need_all(&apart));
    }
    for block in [1, 8, 64, 512] {
        report("write joined", block, || writes(block, block));
        report("write apart", block, || writes(block, 2 * block));
    }
    for block in [64, 512] {
        report("write descending", block, || writes_descending(block));
    }
}

/// Runs a case, which returns its number of calls and the checksum.
fn report(name: &str, block: u64, mut case: impl FnMut() -> (u64, u64)) {
    let mut least = f64::INFINITY;
    let mut last = (0, 0);
    for _ in 0..REPEATS {
        let start = Instant::now();
        last = black_box(case());
        least = least.min(start.elapsed().as_secs_f64());
    }
    let (calls, sum) = last;
    println!("{name}\t{block}\t{calls}\t{least}\t{sum}");
}

fn byte_at(offset: u64) -> u8 {
    (offset * 7 % 251) as u8
}

fn filled(block: u64, step: u64) -> SparseFile {
    let mut file = SparseFile::new("bench");
    for offset in (0..BYTES).step_by(step as usize) {
        let data: Vec<u8> = (offset..offset + block).map(byte_at).collect();
        file.write(offset, &data).expect("nothing differs");
    }
    file
}

fn reads(file: &SparseFile, block: u64, step: u64) -> (u64, u64) {
    let mut buffer = vec![0; block as usize];
    let (mut calls, mut sum) = (0, 0);
    for offset in (0..BYTES).step_by(step as usize) {
        file.read_into(offset, &mut buffer).expect("it was written");
        sum += u64::from(buffer[0]) + u64::from(buffer[buffer.len() - 1]);
        calls += 1;
    }
    (calls, sum)
}

fn has(file: &SparseFile) -> (u64, u64) {
    (BYTES, (0..BYTES).map(|offset| u64::from(file.has(offset, 1))).sum())
}

fn need_nothing(file: &SparseFile) -> (u64, u64) {
    let needs = (0..BYTES).map(|offset| file.need(offset, 1).map_or(0, |need| need.len() as u64));
    (BYTES, needs.sum())
}

fn need_all(file: &SparseFile) -> (u64, u64) {
    let needs = file.need(0, BYTES).expect("no overflow");
    let sum = needs.iter().map(|need| need.offset + need.length).sum();
    (1, sum)
}

fn writes(block: u64, step: u64) -> (u64, u64) {
    let data = vec![b'x'; block as usize];
    let mut file = SparseFile::new("bench");
    let mut calls = 0;
    for offset in (0..BYTES).step_by(step as usize) {
        file.write(offset, &data).expect("nothing differs");
        calls += 1;
    }
    (calls, file.num_bytes() + file.num_blocks() as u64)
}

fn writes_descending(block: u64) -> (u64, u64) {
    let data = vec![b'x'; block as usize];
    let mut file = SparseFile::new("bench");
    // The rival's time grows quadratically, so use a quarter of the bytes.
    let calls = BYTES / 4 / block;
    for call in (0..calls).rev() {
        file.write(call * block, &data).expect("nothing differs");
    }
    (calls, file.num_bytes() + file.num_blocks() as u64)
}
