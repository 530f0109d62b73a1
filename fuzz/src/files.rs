//! Volumes with mutations anywhere: an error, or entries with bytes in the source, in bounded time
//! and memory.

use quarrier_core::source::Memory;
use quarrier_files::{Entry, Piece, PlaceState, Places, Reach, find, read};

use crate::volumes::{self, VOLUME_BYTES};
use crate::{Target, Verdict};

/// FAT.
pub const FAT: Target = Target {
    name: "fat",
    run: |bytes| run(bytes, volumes::fat),
    once: &[],
    seeds: SEEDS,
    words: WORDS,
};
/// exFAT.
pub const EXFAT: Target = Target { name: "exfat", run: |bytes| run(bytes, volumes::exfat), ..FAT };
/// NTFS.
pub const NTFS: Target = Target { name: "ntfs", run: |bytes| run(bytes, volumes::ntfs), ..FAT };
/// ext2, ext3 and ext4.
pub const EXT: Target = Target { name: "ext", run: |bytes| run(bytes, volumes::ext), ..FAT };
/// XFS.
pub const XFS: Target = Target { name: "xfs", run: |bytes| run(bytes, volumes::xfs), ..FAT };
/// HFS+.
pub const HFS: Target = Target { name: "hfs", run: |bytes| run(bytes, volumes::hfs::hfs), ..FAT };
/// Btrfs.
pub const BTRFS: Target = Target {
    name: "btrfs",
    run: |bytes| run_sealed(bytes, volumes::btrfs::btrfs, volumes::btrfs::seal),
    ..FAT
};
/// APFS.
pub const APFS: Target = Target {
    name: "apfs",
    run: |bytes| run_sealed(bytes, volumes::apfs::apfs, volumes::apfs::seal),
    ..FAT
};
/// ISO 9660.
pub const ISO: Target = Target { name: "iso", run: |bytes| run(bytes, volumes::iso), ..FAT };

/// Mutations: an offset of three bytes, a length, and the bytes to write there.
const SEEDS: &[&[u8]] = &[
    b"",
    b"\x00\x04\x00\x04abcd",
    b"\x00\x10\x00\x02\xFF\xFF\x38\x10\x00\x01\x80",
    b"\x00\x06\x00\x08\x02\0\0\0\x02\0\0\0",
    b"\x00\xA0\x00\x02\x14\0\x0A\xA0\x00\x04\xFF\xFF\xFF\xFF",
];

const WORDS: &[&[u8]] =
    &[&[0xFF; 8], &[0; 4], b"FILE", b"NM", b"SL", b"CE", b"..", b"/", b"\x0A\xF3"];

/// Lists a volume after mutations, and reads all of it.
pub fn run(bytes: &[u8], volume: fn() -> Vec<u8>) -> Verdict {
    run_sealed(bytes, volume, |_| ())
}

/// Like [`run`], for a volume whose checksums are corrected after the mutations.
pub fn run_sealed(bytes: &[u8], volume: fn() -> Vec<u8>, seal: fn(&mut [u8])) -> Verdict {
    let mut image = volume();
    let mut rest = bytes;
    while let [low, middle, high, length, more @ ..] = rest {
        let (put, after) = more.split_at(usize::from(*length).min(more.len()));
        let at = u32::from_le_bytes([*low, *middle, *high, 0]) as usize % VOLUME_BYTES;
        let room = put.len().min(VOLUME_BYTES - at);
        image[at..at + room].copy_from_slice(&put[..room]);
        rest = after;
    }
    seal(&mut image);
    let source = Memory::new("image", image);
    let Ok(found) = find(&source) else { return Verdict::Skipped };
    let stop = false.into();
    let mut bytes_left = 4 << 20;
    for system in &found.systems {
        let mut entries = 0;
        let listed = system.list(&source, Reach::FreeClusters, &stop, &mut |entry| {
            entries += 1;
            check(&source, &entry, &mut bytes_left);
            Ok(())
        });
        if bytes.is_empty() {
            listed.as_ref().expect("the volume as it is written is sound");
            assert!(entries >= 4, "{entries} entries");
        }
        if let Err(error) = listed {
            assert!(!error.to_string().is_empty());
        }
    }
    if let Ok(places) = Places::read(&source, Reach::FreeClusters, &stop) {
        let (unallocated, clusters) = (places.unallocated(), places.unallocated_clusters());
        for ranges in [&unallocated, &clusters] {
            assert!(ranges.iter().all(|range| range.start < range.end));
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            assert!(ranges.last().is_none_or(|last| last.end <= VOLUME_BYTES as u64));
        }
        let has = |ranges: &[std::ops::Range<u64>], at: u64| {
            let index = ranges.partition_point(|range| range.end <= at);
            ranges.get(index).is_some_and(|range| range.start <= at)
        };
        for at in (0..VOLUME_BYTES as u64).step_by(509) {
            let state = places.at(at).state;
            assert!(has(&unallocated, at) == (state != PlaceState::Allocated), "{at} is {state}");
            assert!(has(&unallocated, at) || !has(&clusters, at));
        }
        for file in places.in_pieces() {
            assert!(file.len() > 1 && file.iter().all(|one| one.length > 0));
        }
    }
    Verdict::Checked
}

/// Checks that an entry's extents lie in the source, and that its size equals the number of bytes
/// read.
fn check(source: &Memory<Vec<u8>>, entry: &Entry, bytes_left: &mut u64) {
    assert!(entry.path.starts_with('/') && !entry.path.contains('\0'), "{:?}", entry.path);
    for extent in entry.extents() {
        let end = extent.offset.checked_add(extent.length);
        let is_inside = end.is_some_and(|end| end <= VOLUME_BYTES as u64);
        assert!(is_inside || entry.content.lost.is_some(), "{entry:?}");
    }
    if entry.size > *bytes_left {
        return;
    }
    *bytes_left -= entry.size;
    let mut bytes = 0;
    let done = read(source, entry, &mut |piece| {
        bytes += match piece {
            Piece::Bytes(piece) => piece.len() as u64,
            Piece::Zeros(zeros) => zeros,
        };
        Ok(())
    });
    assert!(done.is_err() || bytes == entry.size, "{bytes} of {entry:?}");
}
