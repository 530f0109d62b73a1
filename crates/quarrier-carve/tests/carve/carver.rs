//! The carver as a whole.

use quarrier_carve::{Carver, Status};

use crate::gif;
use crate::sample::{carved, valid};

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
fn what_a_document_in_fragments_leaves_behind_is_no_file_of_its_own() {
    let gif = gif::small();
    let image = [&[0x11; 4097], &b"<<>> stream\n"[..], &gif, &b"\nendstream"[..], &[0x11; 999]];
    let image = image.concat();
    assert!(valid(&carved(&Carver::new(), &image)).is_empty());
    assert_eq!(valid(&carved(&Carver::new().embedded(true), &image)), [&gif[..]]);
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
fn strides_that_many_workers_take_give_what_one_gives() {
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
