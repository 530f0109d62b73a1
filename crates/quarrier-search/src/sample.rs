//! A sample of the data to search: a few blocks, and the byte frequencies of each type of data among
//! them. Engines use it to choose rare bytes; findings never depend on it.

use quarrier_core::source::{Source, read_full_at};

/// Types of data in the sample. A filter that is good on average but passes all of one type is a bad
/// filter, so each type counts for itself.
pub(crate) const KINDS: usize = 8;

/// Byte frequencies, one for each type of data.
pub(crate) type PerKind = [f32; KINDS];

const BLOCK_BYTES: usize = 4096;
const BLOCKS_MAX: usize = 64;

/// A sample of the data.
#[derive(Debug, Clone)]
pub struct Sample {
    bytes: Vec<u8>,
    /// For each byte value, its frequency in each type of data (0 to 1).
    pub(crate) frequency: Box<[PerKind; 256]>,
    /// The share of each type of data, adding up to 1.
    pub(crate) share: PerKind,
}

impl Default for Sample {
    /// Typical data, for searches without a sample: prose, code, logs, zeros, noise.
    fn default() -> Self {
        let mut bytes = Vec::new();
        let prose = include_bytes!("sample_prose.txt");
        bytes.extend(prose.iter().copied().cycle().take(5 * BLOCK_BYTES));
        bytes.resize(bytes.len() + 2 * BLOCK_BYTES, 0);
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        bytes.extend((0..5 * BLOCK_BYTES).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        }));
        Sample::of(bytes)
    }
}

impl Sample {
    /// Reads up to 64 blocks of 4 KiB, spread evenly over `source`. Unreadable blocks are left out;
    /// an unreadable or empty source gives the default.
    pub fn take(source: &dyn Source) -> Self {
        let blocks = (source.length() / BLOCK_BYTES as u64).min(BLOCKS_MAX as u64);
        let mut bytes = Vec::with_capacity(BLOCKS_MAX * BLOCK_BYTES);
        for block in 0..blocks {
            let step = u128::from(source.length() - BLOCK_BYTES as u64) * u128::from(block);
            let offset = (step / u128::from(blocks.max(2) - 1)) as u64 & !(BLOCK_BYTES as u64 - 1);
            if matches!(source.next_data(offset), Ok(Some(data)) if data.start > offset) {
                continue; // a hole is not searched
            }
            let start = bytes.len();
            bytes.resize(start + BLOCK_BYTES, 0);
            match read_full_at(source, offset, &mut bytes[start..]) {
                Ok(filled) => bytes.truncate(start + filled),
                Err(_) => bytes.truncate(start),
            }
        }
        if bytes.len() < BLOCK_BYTES { Sample::default() } else { Sample::of(bytes) }
    }

    /// A sample of the given bytes.
    pub fn of(bytes: Vec<u8>) -> Self {
        let mut counts: Vec<([u32; 256], u32)> = Vec::new();
        for block in bytes.chunks(BLOCK_BYTES) {
            let mut count = [0u32; 256];
            block.iter().for_each(|&b| count[b as usize] += 1);
            join_nearest(&mut counts, count, block.len() as u32);
        }
        let total: u32 = counts.iter().map(|(_, blocks)| blocks).sum();
        let mut frequency = Box::new([[0.0; KINDS]; 256]);
        let mut share = [0.0; KINDS];
        for (kind, (count, size)) in counts.iter().enumerate() {
            share[kind] = *size as f32 / total.max(1) as f32;
            for byte in 0..256 {
                // No byte counts as impossible, since the data is larger than the sample.
                frequency[byte][kind] = (count[byte] as f32 + 0.25) / (*size as f32 + 64.0);
            }
        }
        Sample { bytes, frequency, share }
    }

    /// The sampled bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Adds a block's counts to the most similar type of data, or to a new one.
fn join_nearest(kinds: &mut Vec<([u32; 256], u32)>, count: [u32; 256], size: u32) {
    let distance = |(kind, kind_size): &([u32; 256], u32)| -> f32 {
        (0..256)
            .map(|b| (kind[b] as f32 / *kind_size as f32 - count[b] as f32 / size as f32).abs())
            .sum()
    };
    let nearest = kinds
        .iter()
        .enumerate()
        .map(|(index, kind)| (index, distance(kind)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    match nearest {
        // 0 means the same distribution, 2 disjoint ones.
        Some((index, distance)) if distance < 0.4 || kinds.len() == KINDS => {
            let (kind, kind_size) = &mut kinds[index];
            kind.iter_mut().zip(count).for_each(|(sum, n)| *sum += n);
            *kind_size += size;
        }
        _ => kinds.push((count, size)),
    }
}
