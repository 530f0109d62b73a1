//! The carver as a whole.

use quarrier_carve::{Carver, Status};
use quarrier_core::source::Memory;

use crate::sample::{CarvedFiles, carved, valid};
use crate::{gif, jpg};

#[test]
fn files_are_found_wherever_they_lie() {
    let gif = gif::small();
    let mut image = vec![0xAA; 10_000];
    for at in [0, 511, 4096, 9000] {
        image[at..at + gif.len()].copy_from_slice(&gif);
    }
    for workers in [1, 2, 5] {
        let files = carved(&Carver::new().workers(workers), &image);
        assert_eq!(valid(&files), vec![&gif[..]; 4]);
        let places: Vec<_> = files.iter().map(|(carved, _)| carved.offset()).collect();
        assert_eq!(places, [0, 511, 4096, 9000]);
    }
}

#[test]
fn a_broken_file_is_kept_up_to_where_it_breaks() {
    let gif = gif::small();
    let mut image = gif.clone();
    *image.last_mut().unwrap() = 0x77;
    let files = carved(&Carver::new(), &image);
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].0.status, Status::Partial);
    assert_eq!(files[0].1, gif[..gif.len() - 1]);
    assert!(files[0].0.reason.contains("at byte 43"), "{}", files[0].0.reason);
    assert_eq!(carved(&Carver::new().keep_broken(false), &image).len(), 0);
}

#[test]
fn parts_of_a_fragmented_document_are_not_separate_files() {
    let gif = gif::small();
    let image = [&[0x11; 4097], &b"<<>> stream\n"[..], &gif, &b"\nendstream"[..], &[0x11; 999]];
    let image = image.concat();
    assert!(valid(&carved(&Carver::new(), &image)).is_empty());
    assert_eq!(valid(&carved(&Carver::new().embedded(true), &image)), [&gif[..]]);
}

#[test]
fn the_thumbnail_of_a_lost_picture_is_not_a_separate_file() {
    let thumbnail = jpg::small();
    let length = (thumbnail.len() as u32).to_be_bytes();
    for (bits, count) in [(24, 0), (25, 1)] {
        let head = [&b"8BIM\x04\x0C\0\0"[..], &[7; 16], &length, &[0, bits, 0, 1]].concat();
        let image = [&[0x11; 4097][..], &head, &thumbnail, &[0x11; 9999]].concat();
        assert_eq!(valid(&carved(&Carver::new(), &image)).len(), count);
    }
}

#[test]
fn files_off_the_sectors_that_follow_one_another_are_parts_of_another() {
    let gif = gif::small();
    let together = [&[0x11; 1001][..], &gif, &[0x22; 8], &gif, &[0x11; 5000]].concat();
    assert!(valid(&carved(&Carver::new(), &together)).is_empty());
    let apart = [&[0x11; 1001][..], &gif, &[0x22; 777], &gif, &[0x11; 5000]].concat();
    assert_eq!(valid(&carved(&Carver::new(), &apart)).len(), 2);
}

#[test]
fn many_workers_give_the_results_of_one() {
    let gif = gif::small();
    let mut image = vec![0xAA; (33 << 20) + 77];
    let places = (0..300).map(|index| index * 115_333).chain([(16 << 20) - 20, (32 << 20) - 1]);
    for at in places {
        image[at..at + gif.len()].copy_from_slice(&gif);
    }
    let alone = carved(&Carver::new().workers(1), &image);
    assert_eq!(alone.len(), 302);
    for workers in [2, 7] {
        assert_eq!(carved(&Carver::new().workers(workers), &image), alone);
    }
    // With so little memory a stride is judged in parts.
    let little = Carver::new().workers(3).memory_bytes_max(64 << 10);
    assert_eq!(carved(&little, &image), alone);
}

/// Returns the block size that a carver finds for pictures at these offsets.
fn block_bytes(offsets: impl Iterator<Item = usize> + Clone) -> u64 {
    let gif = gif::small();
    let mut image = vec![0xAA; offsets.clone().max().unwrap_or(0) + 4096];
    for at in offsets {
        image[at..at + gif.len()].copy_from_slice(&gif);
    }
    let found = CarvedFiles::default();
    let summary = Carver::new().run(&Memory::new("image", image), &found);
    summary.expect("bytes in memory can be carved").block_bytes
}

#[test]
fn the_block_size_aligns_more_files_than_chance() {
    let every = |bytes: usize, count: usize| (1..=count).map(move |number| number * bytes);
    for bytes in [512usize, 1024, 4096, 65536] {
        // One in eight begins elsewhere.
        let strays = every(bytes, 40).map(|at| if at % (8 * bytes) == 0 { at + 512 } else { at });
        assert_eq!(block_bytes(strays), bytes as u64);
    }
    // With few files, all must be aligned: ten of sixteen are hardly more than the eight that
    // chance aligns.
    let most = every(2048, 16).map(|at| if at % 5000 < 1900 { at + 1024 } else { at });
    assert_eq!(block_bytes(most), 1024);
    assert_eq!(block_bytes(every(65536, 3)), 4096);
    assert_eq!(block_bytes([1024, 5120, 8192].into_iter()), 1024);
    assert_eq!(block_bytes([777].into_iter()), 4096);
}
