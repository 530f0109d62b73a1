//! Damage is an error at its location, and never wrong bytes.

use proptest::prelude::*;
use quarrier_core::source::{Source, read_full_at};
use quarrier_images::ewf::Error;

use crate::writer::{Shape, header, media, open};

/// A shape whose image is one segment with one table.
fn single() -> Shape {
    Shape { chunks_a_table: 1000, ..Shape::default() }
}

fn position(segment: &[u8], word: &[u8]) -> usize {
    segment.windows(word.len()).position(|bytes| bytes == word).unwrap()
}

/// Reads chunks one by one: `None` for unreadable ones.
fn chunks_of(image: &dyn Source, chunk_bytes: usize) -> Vec<Option<Vec<u8>>> {
    (0..image.length() as usize)
        .step_by(chunk_bytes)
        .map(|at| {
            let mut bytes = vec![0; chunk_bytes.min(image.length() as usize - at)];
            read_full_at(image, at as u64, &mut bytes).ok().map(|_| bytes)
        })
        .collect()
}

#[test]
fn a_damaged_chunk_leaves_the_others_readable() {
    let media = media(512 * 8 * 10);
    for stored_every in [0, 1] {
        let mut segments = Shape { stored_every, ..single() }.write(&media);
        let at = position(&segments[0], b"sectors") + 76 + 2000;
        segments[0][at] ^= 0x10;
        let image = open(segments).unwrap();
        let chunks = chunks_of(&image, 4096);
        let bad: Vec<usize> = (0..chunks.len()).filter(|&at| chunks[at].is_none()).collect();
        assert_eq!(bad.len(), 1, "{bad:?}");
        for (chunk, expected) in chunks.iter().zip(media.chunks(4096)) {
            assert!(chunk.as_ref().is_none_or(|chunk| chunk == expected));
        }
        let error = image.read_at(bad[0] as u64 * 4096, &mut [0; 10]).unwrap_err();
        assert!(error.to_string().contains("of image.E01) is damaged"), "{error}");
        assert_eq!(image.sector_bytes(), 4096);
        assert!(matches!(image.verify(&mut |_| true), Err(Error::Source(_))));
    }
}

#[test]
fn the_copy_of_a_table_replaces_it() {
    let media = media(512 * 800);
    let shape = Shape::default();
    let segments = shape.write(&media);
    // Damage to the entries, then to the header, which leaves the number of chunks unknown.
    for inside in [24 + 3, 1] {
        let mut segments = segments.clone();
        for segment in &mut segments {
            let at = position(segment, b"table\0") + 76 + inside;
            segment[at] ^= 1;
        }
        let image = open(segments.clone()).unwrap();
        assert_eq!(chunks_of(&image, 4096).concat_all(), media);
        for segment in &mut segments {
            let at = position(segment, b"table2") + 76 + inside;
            segment[at] ^= 1;
        }
        let image = open(segments).unwrap();
        let chunks = chunks_of(&image, 4096);
        assert!(chunks[0].is_none());
        for (chunk, expected) in chunks.iter().zip(media.chunks(4096)) {
            assert!(chunk.as_ref().is_none_or(|chunk| chunk == expected));
        }
        // The second table of a segment is usable if its range of chunks is known.
        assert_eq!(chunks[5].is_some(), inside > 24);
    }
}

trait ConcatAll {
    fn concat_all(self) -> Vec<u8>;
}

impl ConcatAll for Vec<Option<Vec<u8>>> {
    fn concat_all(self) -> Vec<u8> {
        self.into_iter().flatten().flatten().collect()
    }
}

#[test]
fn reads_of_a_missing_segment_name_it() {
    let media = media(512 * 8 * 50);
    let mut segments = Shape::default().write(&media);
    segments.truncate(2);
    let image = open(segments).unwrap();
    assert_eq!(image.length(), media.len() as u64);
    let mut bytes = vec![0; 4096 * 20];
    assert_eq!(read_full_at(&image, 0, &mut bytes).unwrap(), bytes.len());
    assert_eq!(bytes, media[..bytes.len()]);
    let error = image.read_at(4096 * 20, &mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().contains(".E03 is missing"), "{error}");
    assert_eq!(image.missing(), Some(error.to_string()));
    assert_eq!(open(Shape::default().write(&media)).unwrap().missing(), None);
}

#[test]
fn segments_in_the_wrong_order_are_not_read_as_if_they_were_right() {
    let media = media(512 * 8 * 50);
    let mut segments = Shape::default().write(&media);
    segments.swap(1, 2);
    let image = open(segments).unwrap();
    let error = image.read_at(4096 * 10, &mut [0; 1]).unwrap_err();
    assert!(error.to_string().contains("says that it is segment 3"), "{error}");
}

#[test]
fn other_formats_are_refused_by_name() {
    let refused = |bytes: &[u8]| open(vec![bytes.to_vec()]).unwrap_err().to_string();
    assert!(refused(b"").contains("too short"));
    assert!(refused(&[0; 100]).contains("does not begin as an EWF image"));
    assert!(refused(b"LVF\x09\x0d\x0a\xff\x00\x01\x01\x00\x00\x00").contains("L01"));
    assert!(refused(b"EVF2\x0d\x0a\x81\x00\x01\x01\x00\x00\x00").contains("Ex01"));
    let mut smart = b"EVF\x09\x0d\x0a\xff\x00\x01\x01\x00\x00\x00".to_vec();
    smart.extend(header("volume", 13 + 76 + 94, 76 + 94));
    smart.extend([0; 94]);
    assert!(refused(&smart).contains("volume"));
}

#[test]
fn sections_that_lead_back_end_the_image() {
    let mut bytes = b"EVF\x09\x0d\x0a\xff\x00\x01\x01\x00\x00\x00".to_vec();
    bytes.extend(header("header", 13, 76));
    bytes.extend([0; 200]);
    let error = open(vec![bytes]).unwrap_err();
    assert!(matches!(error, Error::Damaged { offset: 13, .. }), "{error}");
}

#[test]
fn mismatching_and_damaged_hashes_are_reported() {
    let media = media(512 * 50);
    let mut segments = Shape { has_digest: false, ..single() }.write(&media);
    let at = position(&segments[0], b"hash\0") + 76;
    segments[0][at] ^= 1;
    assert!(matches!(
        open(segments.clone()).unwrap().verify(&mut |_| true),
        Err(Error::Damaged { .. })
    ));
    let sealed = crate::writer::sealed(segments[0][at..at + 32].to_vec());
    segments[0][at..at + 36].copy_from_slice(&sealed);
    let verified = open(segments).unwrap().verify(&mut |_| true).unwrap().unwrap();
    assert!(!verified.holds());
}

proptest! {
    /// Each structure has a 32-bit checksum: bytes that remain readable after a few changes are right.
    #[test]
    fn changed_bytes_are_noticed_or_do_not_matter(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let media = media(512 * 90);
        let mut segments = Shape::default().write(&media);
        for (at, mask) in changes {
            let total: usize = segments.iter().map(Vec::len).sum();
            let mut at = at.index(total);
            let segment = segments.iter_mut().find(|segment| {
                let is_here = at < segment.len();
                if !is_here {
                    at -= segment.len();
                }
                is_here
            });
            segment.unwrap()[at] ^= mask;
        }
        if let Some(cut) = cut {
            let last = segments.last_mut().unwrap();
            last.truncate(cut.index(last.len()));
        }
        if let Ok(image) = open(segments) {
            prop_assert_eq!(image.length(), media.len() as u64);
            for (chunk, expected) in chunks_of(&image, 4096).iter().zip(media.chunks(4096)) {
                prop_assert!(chunk.as_ref().is_none_or(|chunk| chunk == expected));
            }
        }
    }
}
