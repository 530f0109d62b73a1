//! Any bytes as a file system: an error, or free ranges in order, within the source.

use quarrier_core::source::Memory;
use quarrier_files::unallocated::find;

use crate::checksum::crc32;
use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target =
    Target { name: "unallocated", run, once: &[], seeds: SEEDS, words: WORDS };

/// The first byte is the kind; then an offset of two bytes, a length, and the bytes there.
const SEEDS: &[&[u8]] = &[
    b"\x00\x0B\x00\x0D\x00\x02\x01\x01\x00\x01\x10\x00\x64\x00\xF8\x01\x00",
    b"\x01\x50\x00\x20\x18\0\0\0\x01\0\0\0\x20\0\0\0\x20\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0",
    b"\x02\x04\x04\x04\xE0\x03\0\0\x20\x04\x04\0\x20\0\0",
    b"\x03\x28\x00\x09\xF0\x03\0\0\0\0\0\0\x01\x40\0\x01\xF6",
    b"\x04\x48\x02\x10\x02\0\0\0\0\0\0\0\x04\0\0\0\x80\0\0\0",
    b"\x06\x08\x02\x08\0\0\0\x10\0\0\0\x20\x30\x02\x09Apple_HFS",
    b"\x05\xC2\x01\x01\x05\xC6\x01\x08\x10\0\0\0\x40\0\0\0",
];

const WORDS: &[&[u8]] =
    &[&[0xFF; 8], b"FILE", b"EFI PART", b"\x53\xEF", b"\x55\xAA", b"\x81\0", b"PM"];

/// Corrects the checksums of a GPT's header and of its partition entries.
fn repair(image: &mut [u8]) {
    let number =
        |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|index| image[at + index])) as usize;
    let (bytes, sector, count, each) = (number(524), number(584), number(592), number(596));
    let list_at = sector.saturating_mul(512);
    let list_bytes = count.saturating_mul(each).min(1 << 20);
    if let Some(list) = image.get(list_at..list_at.saturating_add(list_bytes)) {
        let crc = crc32(list);
        image[600..604].copy_from_slice(&crc);
    }
    image[528..532].fill(0);
    let crc = crc32(&image[512..][..bytes.min(512)]);
    image[528..532].copy_from_slice(&crc);
}

/// Writes `bytes` into a source of 512 KiB that begins as one of the kinds.
pub fn run(bytes: &[u8]) -> Verdict {
    let Some((kind, mut rest)) = bytes.split_first() else { return Verdict::Skipped };
    let mut image = vec![0; 512 << 10];
    let marks: &[(usize, &[u8])] = match kind % 7 {
        0 => &[(0, &[0xEB, 0x3C, 0x90])],
        1 => &[(3, b"EXFAT   "), (96, &[2]), (16384, &[0x81])],
        2 => &[(1024 + 56, &[0x53, 0xEF])],
        3 => &[
            (3, b"NTFS    "),
            (11, &[0, 2, 1]),
            (48, &[1]),
            (512 + 6144, b"FILE\x30\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\x38\0"),
            (512 + 6144 + 56, &[0x80, 0, 0, 0, 0x50, 0, 0, 0, 1]),
        ],
        4 => &[
            (450, &[0xEE]),
            (458, &[1]),
            (510, &[0x55, 0xAA]),
            (512, b"EFI PART"),
            (512 + 12, &[92]),
            (512 + 24, &[1]),
        ],
        5 => &[(510, &[0x55, 0xAA])],
        _ => &[(0, b"ER\x02\0"), (512, b"PM\0\0\0\0\0\x02"), (1024, b"PM\0\0\0\0\0\x02")],
    };
    for (at, mark) in marks {
        image[*at..at + mark.len()].copy_from_slice(mark);
    }
    while let [low, high, length, more @ ..] = rest {
        let (put, after) = more.split_at(usize::from(*length).min(more.len()));
        let at = usize::from(*low) | usize::from(*high) << 8;
        image[at..at + put.len()].copy_from_slice(put);
        rest = after;
    }
    if kind % 7 == 4 {
        repair(&mut image);
    }
    let length = image.len() as u64;
    match find(&Memory::new("image", image)) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Verdict::Skipped
        }
        Ok(found) => {
            let ends = found.ranges.windows(2).all(|pair| pair[0].end < pair[1].start);
            assert!(ends && found.ranges.iter().all(|range| range.start < range.end));
            assert!(found.ranges.last().is_none_or(|last| last.end <= length));
            assert!(found.volumes.iter().all(|volume| volume.free_bytes <= volume.length));
            for passed in &found.skipped_partitions {
                let is_apart = |range: &std::ops::Range<u64>| {
                    range.end <= passed.range.start || range.start >= passed.range.end
                };
                assert!(found.ranges.iter().all(is_apart), "{}", passed.describe());
            }
            Verdict::Checked
        }
    }
}
