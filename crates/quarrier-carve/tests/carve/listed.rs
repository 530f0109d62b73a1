//! Files of ext2 and ext3 without inodes: lists of blocks lie among their bytes.

use quarrier_carve::Carver;

use crate::gz::packed;
use crate::sample::{carved, noise, valid};

/// An ext2 volume of the block size, with files as mke2fs and Linux lay them out, and without the blocks
/// that describe it.
struct Volume {
    block_bytes: usize,
    bytes: Vec<u8>,
}

impl Volume {
    /// A volume that begins `start` bytes into the image.
    fn new(block_bytes: usize, start: usize) -> Self {
        Volume { block_bytes, bytes: noise(1, start + 40 * block_bytes) }
    }

    /// The number of the next block, from that of the volume's `start`.
    fn next(&self, start: usize) -> u32 {
        ((self.bytes.len() - start) / self.block_bytes) as u32
    }

    fn add(&mut self, file: &[u8], start: usize) {
        let per_list = self.block_bytes / 4;
        let blocks: Vec<&[u8]> = file.chunks(self.block_bytes).collect();
        let (direct, rest) = blocks.split_at(blocks.len().min(12));
        direct.iter().for_each(|block| self.block(block));
        let (first, more) = rest.split_at(rest.len().min(per_list));
        self.list(first, start);
        if !more.is_empty() {
            let lists: Vec<&[&[u8]]> = more.chunks(per_list).collect();
            let next = self.next(start) + 1;
            // Each list lies before its blocks.
            let numbers = (0..lists.len()).map(|index| next + (index * (per_list + 1)) as u32);
            self.block(&numbers.flat_map(u32::to_le_bytes).collect::<Vec<_>>());
            lists.iter().for_each(|list| self.list(list, start));
        }
    }

    fn list(&mut self, blocks: &[&[u8]], start: usize) {
        if blocks.is_empty() {
            return;
        }
        let next = self.next(start) + 1;
        let numbers = next..next + blocks.len() as u32;
        self.block(&numbers.flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        blocks.iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, bytes: &[u8]) {
        let end = self.bytes.len() + self.block_bytes;
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(end, 0);
    }
}

#[test]
fn lists_of_blocks_are_left_out() {
    for (block_bytes, start) in [(1024, 0), (1024, 63 * 512), (2048, 0), (4096, 1 << 20)] {
        let mut volume = Volume::new(block_bytes, start);
        let mut files = Vec::new();
        // Without a list, with a short one, with a full one, and with lists of lists.
        for (seed, blocks) in
            [3, 12, 13, 60, 12 + block_bytes / 4, 300 + block_bytes / 4, 1100].iter().enumerate()
        {
            if blocks * block_bytes > 1400 << 10 {
                continue;
            }
            let content = noise(seed as u32 + 7, blocks * block_bytes - 700);
            files.push(packed("file", &content));
        }
        files.iter().for_each(|file| volume.add(file, start));
        volume.bytes.extend(noise(2, 50_000));
        let all = carved(&Carver::new().workers(2), &volume.bytes);
        let found = valid(&all);
        let missing = files.iter().filter(|file| !found.contains(&&file[..]));
        let missing: Vec<usize> = missing.map(|file| file.len() / block_bytes).collect();
        assert_eq!(missing, [0; 0], "with blocks of {block_bytes} bytes");
    }
}

#[test]
fn a_list_that_names_other_blocks_is_not_believed() {
    let mut volume = Volume::new(1024, 0);
    let file = packed("file", &noise(9, 30_000));
    volume.add(&file, 0);
    volume.bytes.extend(noise(2, 50_000));
    let list = (40 + 12) * 1024;
    for change in [0, 1, 2, 3] {
        let mut bytes = volume.bytes.clone();
        let entry = |index: usize| list + index * 4..list + index * 4 + 4;
        match change {
            // Blocks before the source, beyond it, in descending order, and one more than the file has.
            0 => bytes[entry(0)].copy_from_slice(&u32::MAX.to_le_bytes()),
            1 => bytes[entry(17)].copy_from_slice(&u32::MAX.to_le_bytes()),
            2 => bytes[entry(3)].copy_from_slice(&5u32.to_le_bytes()),
            _ => bytes[entry(18)].copy_from_slice(&1000u32.to_le_bytes()),
        }
        // The gap of one block is found by searching, too.
        let all = carved(&Carver::new().workers(1), &bytes);
        assert!(valid(&all).iter().all(|found| *found == file), "{change}");
    }
}
