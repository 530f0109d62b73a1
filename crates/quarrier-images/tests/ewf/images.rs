//! Images are read back as written, at every offset and from every thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use quarrier_core::source::{Source, read_full_at};
use quarrier_images::{Content, FolderSiblings};

use crate::writer::{Shape, media, open};

fn all_of(source: &dyn Source) -> Vec<u8> {
    let mut bytes = vec![0; source.length() as usize];
    assert_eq!(read_full_at(source, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Opens a file according to its content.
fn opened(path: &Path) -> Arc<dyn Source> {
    let file = Arc::from(quarrier_core::source::open(path).unwrap());
    let (beside, stop) = (FolderSiblings::new(path, false), AtomicBool::new(false));
    match quarrier_images::open(file, &beside, &[], &stop).unwrap().content {
        Content::Disk(disk) => disk,
        Content::Stream(_) => panic!("it can only be read in order"),
    }
}

#[test]
fn compressed_and_stored_chunks_of_all_segments_are_read() {
    let media = media(512 * 777);
    let segments = Shape::default().write(&media);
    assert!(segments.len() > 5, "{} segments", segments.len());
    let image = open(segments).unwrap();
    assert_eq!(image.length(), media.len() as u64);
    assert_eq!(all_of(&image), media);
}

#[test]
fn an_empty_media_is_an_image_without_bytes() {
    let image = open(Shape::default().write(&[])).unwrap();
    assert_eq!((image.length(), image.segments()), (0, 1));
    assert_eq!(image.read_at(0, &mut [0; 10]).unwrap(), 0);
}

#[test]
fn files_beside_each_other_are_one_image() {
    let media = media(512 * 400);
    let folder = tempfile::tempdir().unwrap();
    for is_lower in [false, true] {
        let mut first = None;
        for (index, segment) in Shape::default().write(&media).iter().enumerate() {
            let ending = if is_lower { "e" } else { "E" };
            let path = folder.path().join(format!("a.b.{ending}{:02}", index + 1));
            std::fs::write(&path, segment).unwrap();
            first.get_or_insert(path);
        }
        let first = first.unwrap();
        assert!(quarrier_images::ewf::is_ewf(&first));
        assert!(quarrier_images::ewf::segments_from(&first).len() > 2);
        let image = opened(&first);
        assert_eq!(image.name(), first.display().to_string());
        assert_eq!(all_of(&*image), media);
    }
}

#[test]
fn files_not_named_as_images_are_opened_as_plain_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.raw");
    std::fs::write(&path, b"EVF").unwrap();
    assert_eq!(all_of(&*opened(&path)), b"EVF");
}

#[test]
fn more_segments_than_are_open_at_a_time_are_read_by_many_threads() {
    let media = media(512 * 150);
    let folder = tempfile::tempdir().unwrap();
    let shape =
        Shape { sectors_each: 1, chunks_a_table: 1, tables_a_segment: 1, ..Shape::default() };
    let segments = shape.write(&media);
    assert_eq!(segments.len(), 150);
    for (index, segment) in segments.iter().enumerate() {
        let ending = match index + 1 {
            number @ ..100 => format!("E{number:02}"),
            number => format!(
                "E{}{}",
                char::from(b'A' + ((number - 100) / 26) as u8),
                char::from(b'A' + ((number - 100) % 26) as u8)
            ),
        };
        std::fs::write(folder.path().join(format!("image.{ending}")), segment).unwrap();
    }
    let image = opened(&folder.path().join("image.E01"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (image, media) = (&image, &media);
            scope.spawn(move || {
                for step in 0..300 {
                    let at = (step * 7919 + thread * 1237) % media.len();
                    let mut bytes = vec![0; 1300.min(media.len() - at)];
                    assert_eq!(read_full_at(&**image, at as u64, &mut bytes).unwrap(), bytes.len());
                    assert_eq!(bytes, media[at..at + bytes.len()]);
                }
            });
        }
    });
}

#[test]
fn stored_hashes_match_and_are_reported() {
    let media = media(512 * 100);
    for has_digest in [false, true] {
        let image = open(Shape { has_digest, ..Shape::default() }.write(&media)).unwrap();
        assert_eq!(image.stored_hashes().sha1.is_some(), has_digest);
        let mut last = 0;
        let mut progress = |done| {
            assert!(done > last);
            last = done;
            true
        };
        let verified = image.verify(&mut progress).unwrap().unwrap();
        assert!(verified.holds());
        assert_eq!((verified.md5.is_some(), verified.sha1.is_some()), (true, has_digest));
        assert_eq!(last, media.len() as u64);
        assert_eq!(image.verify(&mut |_| false).unwrap(), None);
    }
}

#[test]
fn a_last_chunk_as_long_as_the_others_is_read() {
    // Four and a half sectors; the volume section counts four, the chunk has more.
    let media = media(512 * 40);
    for stored_every in [0, 1] {
        let shape = Shape { stored_every, chunks_a_table: 99, ..Shape::default() };
        let mut segments = shape.write(&media);
        let segment = &mut segments[0];
        let at = segment.windows(6).position(|bytes| bytes == b"volume").unwrap() + 76;
        segment[at + 16..at + 24].copy_from_slice(&37u64.to_le_bytes());
        let sealed = crate::writer::sealed(segment[at..at + 1048].to_vec());
        segment[at..at + 1052].copy_from_slice(&sealed);
        let image = open(segments).unwrap();
        assert_eq!(all_of(&image), media[..512 * 37]);
    }
}

#[test]
fn a_last_sector_that_is_not_full_belongs_to_the_media() {
    for (length, stored_every) in [(512 * 40 + 100, 0), (512 * 40 + 511, 1), (512 * 37 + 1, 1)] {
        let media = media(length);
        let image = open(Shape { stored_every, ..Shape::default() }.write(&media)).unwrap();
        assert_eq!(all_of(&image), media);
        assert!(image.verify(&mut |_| true).unwrap().unwrap().holds());
    }
}

proptest! {
    #[test]
    fn any_range_of_any_layout_reads_back(
        sectors in 1usize..300,
        sectors_each in 1u32..40,
        stored_every in 0u64..4,
        chunks_a_table in 1usize..20,
        tables_a_segment in 1usize..4,
        reads in prop::collection::vec((0usize..160_000, 0usize..40_000), 1..20),
    ) {
        let media = media(sectors * 512);
        let shape = Shape { sectors_each, stored_every, chunks_a_table, tables_a_segment, ..Shape::default() };
        let image = open(shape.write(&media)).unwrap();
        for (at, length) in reads {
            let mut bytes = vec![0; length];
            let read = read_full_at(&image, at as u64, &mut bytes).unwrap();
            let start = at.min(media.len());
            let end = (start + length).min(media.len());
            prop_assert_eq!(&bytes[..read], &media[start..end]);
        }
    }
}
