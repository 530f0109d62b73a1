//! Split images: consecutive parts are one source.

use std::path::Path;

use proptest::prelude::*;
use quarrier_core::Error;
use quarrier_core::pipeline::{Access, Need, Pipeline};
use quarrier_core::source::{FileSource, Memory, Source, SplitSource, open, read_full_at};

use crate::census::{ACCESSES, Census, as_data, check_whole, collect, for_all, noise};
use crate::faults::{FailingSource, ShrinkingSource, SparseSource};

/// Writes `bytes` in parts of these lengths to `image.001` and so on.
fn write_parts(folder: &Path, bytes: &[u8], lengths: &[usize]) {
    let mut rest = bytes;
    for (index, &length) in lengths.iter().enumerate() {
        let (part, after) = rest.split_at(length);
        std::fs::write(folder.join(format!("image.{:03}", index + 1)), part).unwrap();
        rest = after;
    }
    assert!(rest.is_empty());
}

fn in_memory(bytes: &[u8], lengths: &[usize]) -> SplitSource {
    let mut rest = bytes;
    let mut parts: Vec<Box<dyn Source>> = Vec::new();
    for &length in lengths {
        let (part, after) = rest.split_at(length);
        parts.push(Box::new(Memory::new("part", part.to_vec())));
        rest = after;
    }
    SplitSource::new("joined", parts).unwrap()
}

#[test]
fn a_split_image_has_the_bytes_of_its_parts_joined() {
    let bytes = noise(300_000);
    for lengths in [&[300_000][..], &[100_000, 1, 0, 65_536, 134_463], &[4_096, 295_904]] {
        let folder = tempfile::tempdir().unwrap();
        write_parts(folder.path(), &bytes, lengths);
        let files = SplitSource::open(&folder.path().join("image.001")).unwrap();
        for source in [&files, &in_memory(&bytes, lengths)] {
            assert_eq!(source.length(), 300_000);
            for access in ACCESSES {
                let need = Need { before_bytes: 700, after_bytes: 5_000, skip_zeros: false };
                let pipeline = Pipeline::new(source).access(access).workers(3);
                check_whole(&pipeline.clone().buffer_bytes(10_000), &bytes, need);
                check_whole(&pipeline.clone().buffer_bytes(65_536), &bytes, need);
                check_whole(&pipeline, &bytes, Need { skip_zeros: true, ..need });
            }
        }
    }
}

#[test]
fn parts_of_any_length_are_shown_and_copied_as_their_bytes_joined() {
    let length = || prop_oneof![1usize..50, 1usize..9_000, 100_000usize..700_000];
    let around = || prop_oneof![0usize..50, 0usize..9_000];
    let sizes = prop_oneof![3_000usize..20_000, 100_000usize..3_000_000];
    let input = (prop::collection::vec(length(), 1..9), (around(), around()), sizes);
    for_all(60, input, |(lengths, (before_bytes, after_bytes), buffer_bytes)| {
        let bytes = noise(lengths.iter().sum());
        let folder = tempfile::tempdir().unwrap();
        write_parts(folder.path(), &bytes, &lengths);
        let files = SplitSource::open(&folder.path().join("image.001")).unwrap();
        let need = Need { before_bytes, after_bytes, skip_zeros: false };
        for source in [&files, &in_memory(&bytes, &lengths)] {
            let pipeline = Pipeline::new(source).access(Access::Window).workers(2);
            check_whole(&pipeline.clone().buffer_bytes(buffer_bytes), &bytes, need);
            check_whole(&pipeline, &bytes, need);
        }
    });
}

#[test]
fn windows_are_found_within_parts() {
    let bytes = noise(30_000);
    let source = in_memory(&bytes, &[1_000, 0, 9_000, 20_000]);
    for (range, bytes_min, window) in [
        (0..30_000, 1, Some(0..1_000)),
        (0..30_000, 1_001, Some(1_000..10_000)),
        (500..30_000, 501, Some(1_000..10_000)),
        (2_000..30_000, 9_000, Some(10_000..30_000)),
        (2_000..18_000, 8_001, None),
        (0..30_000, 20_001, None),
    ] {
        assert_eq!(
            source.next_window(range.clone(), bytes_min),
            window,
            "{bytes_min} of {range:?}"
        );
    }
}

#[test]
fn a_window_across_two_parts_is_refused_and_one_within_a_part_is_shown() {
    let bytes = noise(30_000);
    let source = in_memory(&bytes, &[10_000, 20_000]);
    assert!(source.window(9_999..10_001).is_none());
    let first = source.window(0..10_000).unwrap().unwrap();
    assert_eq!(first.as_data(as_data()), &bytes[..10_000]);
    let second = source.window(10_000..30_000).unwrap().unwrap();
    assert_eq!(second.as_data(as_data()), &bytes[10_000..]);
}

#[test]
fn reads_continue_in_the_next_part() {
    let bytes = noise(5_000);
    let source = in_memory(&bytes, &[1_000, 0, 1, 3_999]);
    for offset in [0, 999, 1_000, 1_001, 4_999, 5_000, 6_000] {
        let mut buffer = vec![0; 6_000];
        let count = read_full_at(&source, offset as u64, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], bytes.get(offset..).unwrap_or_default());
    }
}

#[test]
fn no_parts_are_an_empty_source() {
    let source = SplitSource::new("nothing", Vec::new()).unwrap();
    assert_eq!(source.length(), 0);
    assert_eq!(source.read_at(0, &mut [0; 4]).unwrap(), 0);
    check_whole(&Pipeline::new(&source), b"", Need::default());
}

#[test]
fn the_first_part_is_known_by_its_name() {
    for (name, is_first) in [
        ("image.001", true),
        ("image.000", true),
        ("image.0001", true),
        ("folder.d/ext2.splitraw.000", true),
        ("image.002", false),
        ("image.010", false),
        ("image.100", false),
        ("image.01", false),
        ("image.1", false),
        ("image.0000000001", false),
        ("image", false),
        ("image.", false),
        ("image.raw", false),
        ("image.001.gz", false),
        ("image.00a", false),
        ("image001", false),
        ("folder.001/image", false),
    ] {
        assert_eq!(SplitSource::is_first_part(Path::new(name)), is_first, "{name}");
    }
}

#[test]
fn parts_follow_by_number_up_to_the_first_gap() {
    let folder = tempfile::tempdir().unwrap();
    for number in (1..=12).chain(14..16) {
        std::fs::write(folder.path().join(format!("image.{number:03}")), b"x").unwrap();
    }
    let parts = SplitSource::parts_from(&folder.path().join("image.001"));
    let names: Vec<_> = parts.iter().map(|part| part.file_name().unwrap()).collect();
    assert_eq!((names[0].to_str(), names[11].to_str()), (Some("image.001"), Some("image.012")));
    assert_eq!(names.len(), 12);
}

#[test]
fn open_joins_a_split_image_and_opens_other_files_alone() {
    let bytes = noise(1_000);
    let folder = tempfile::tempdir().unwrap();
    write_parts(folder.path(), &bytes, &[400, 600]);
    let joined = open(&folder.path().join("image.001")).unwrap();
    assert_eq!(joined.length(), 1_000);
    let alone = open(&folder.path().join("image.002")).unwrap();
    assert_eq!(alone.length(), 600);
    check_whole(&Pipeline::new(&*joined), &bytes, Need::default());
    check_whole(&Pipeline::new(&*alone), &bytes[400..], Need::default());
}

#[test]
fn paths_without_bytes_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let error = FileSource::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::NotReadable { .. }), "{error:?}");
    assert!(error.to_string().contains("is a folder"), "{error}");
    let error = FileSource::open(Path::new("/dev/null")).unwrap_err();
    assert!(error.to_string().contains("is a character device"), "{error}");
    let error = open(&folder.path().join("missing.001")).map(drop).unwrap_err();
    assert!(error.to_string().ends_with("missing.001: cannot open: No such file or directory"));
}

#[test]
fn errors_of_a_part_have_the_offset_in_the_whole() {
    let bytes = noise(51_200);
    let failing = FailingSource::new(bytes.clone(), 512, &[3, 4]);
    let parts: Vec<Box<dyn Source>> =
        vec![Box::new(Memory::new("good", bytes.clone())), Box::new(failing)];
    let source = SplitSource::new("joined", parts).unwrap();
    let mut expected = [&bytes[..], &bytes[..]].concat();
    expected[51_200 + 1_536..51_200 + 2_560].fill(0);
    for access in ACCESSES {
        let pipeline = Pipeline::new(&source).access(access).buffer_bytes(10_000);
        let run = check_whole(&pipeline, &expected, Need::default());
        assert_eq!(run.unreadable, [52_736..53_760], "{access:?}");
    }
}

#[test]
fn a_part_that_shrinks_is_an_error_even_where_another_follows() {
    let bytes = noise(50_000);
    let shrinking = ShrinkingSource::new(bytes.clone(), 30_000);
    let last = Memory::new("last", bytes.clone());
    let source = SplitSource::new("joined", vec![Box::new(shrinking), Box::new(last)]).unwrap();
    let census = Census { expected: &[&bytes[..], &bytes[..]].concat(), need: Need::default() };
    for access in ACCESSES {
        let (run, _) = collect(&Pipeline::new(&source).access(access), &census);
        let shrank =
            matches!(run, Err(Error::Shrank { ended_at: 30_000, opened_bytes: 100_000, .. }));
        assert!(shrank, "{access:?}: {run:?}");
    }
}

#[test]
fn holes_of_parts_are_holes_of_the_whole() {
    let first = SparseSource::new(noise(100_000), &[0..10, 99_990..100_000]);
    let second = SparseSource::new(noise(100_000), &[]);
    let third = SparseSource::new(noise(100_000), &[50_000..60_000]);
    let source =
        SplitSource::new("joined", vec![Box::new(first), Box::new(second), Box::new(third)]);
    let source = source.unwrap();
    for (offset, expected) in [
        (0, Some(0..10)),
        (5, Some(5..10)),
        (10, Some(99_990..100_000)),
        (100_000, Some(250_000..260_000)),
        (255_000, Some(255_000..260_000)),
        (260_000, None),
        (400_000, None),
    ] {
        assert_eq!(source.next_data(offset).unwrap(), expected, "from {offset}");
    }
}
