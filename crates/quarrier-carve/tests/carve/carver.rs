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
