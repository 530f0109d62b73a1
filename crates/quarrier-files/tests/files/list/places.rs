//! The owners of bytes, in volumes with known files.

use std::ops::Range;

use quarrier_core::source::{Source, read_full_at};
use quarrier_files::{Entry, Kind, PlaceState, Places, Reach, State};

use super::lab::{Lab, entries, named, skip};

/// Checks that every byte of every file belongs to it, that the bytes after its end are slack, and that
/// deleted files own their bytes until these are reused.
fn check(lab: &Lab) {
    let source = lab.source();
    let entries = entries(&source);
    let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
    for entry in entries.iter().filter(|entry| entry.kind == Kind::File) {
        for extent in entry.extents() {
            for at in [extent.offset, extent.offset + extent.length - 1] {
                let place = places.at(at);
                let expected = match entry.state {
                    State::Allocated => PlaceState::Allocated,
                    State::Deleted => PlaceState::Deleted,
                };
                let is_shared =
                    place.file != Some(&*entry.path) && place.inode == Some(entry.inode);
                assert!(
                    is_shared || (place.file, place.state) == (Some(&*entry.path), expected),
                    "{} at {at}: {place:?}",
                    entry.path
                );
                assert_eq!(place.modified, entry.times.modified);
            }
        }
        let is_live = entry.state == State::Allocated;
        for extent in entry.slack().into_iter().filter(|_| is_live) {
            let place = places.at(extent.offset);
            assert_eq!((place.file, place.state), (Some(&*entry.path), PlaceState::Slack));
        }
    }
    let mut states = [0; 6];
    for at in (0..source.length()).step_by(512) {
        states[places.at(at).state as usize] += 1;
    }
    assert_eq!(places.unallocated(), twin(&entries, source.length()));
    let [allocated, _, _, free, metadata, outside] = states;
    assert!(allocated > 200 && free > 1000 && metadata > 0 && outside == 0, "{states:?}");
    let mut sector = [0; 512];
    read_full_at(&source, 0, &mut sector).unwrap();
}

/// An oracle: the bytes that no allocated entry owns, byte by byte. Inside a record, its file takes
/// precedence.
fn twin(entries: &[Entry], length: u64) -> Vec<Range<u64>> {
    let mut is_taken = vec![false; length as usize];
    let steps = [
        (State::Allocated, false, true),
        (State::Deleted, true, false),
        (State::Allocated, true, true),
    ];
    for (state, is_in_record, taken) in steps {
        let is_of_step =
            |entry: &&Entry| entry.state == state && entry.content.inline.is_some() == is_in_record;
        for extent in entries.iter().filter(is_of_step).flat_map(Entry::extents) {
            is_taken[extent.offset as usize..][..extent.length as usize].fill(taken);
        }
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for at in (0..length).filter(|at| !is_taken[*at as usize]) {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

#[test]
fn unallocated_bytes_of_every_file_system_are_those_that_no_allocated_file_has() {
    let compare = |lab: &Lab, kind: &str| {
        let source = lab.source();
        let all = entries(&source);
        let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
        assert_eq!(places.systems()[0].kind.to_string(), kind);
        assert_eq!(places.unallocated_notices(), Vec::<String>::new());
        assert_eq!(places.damages(), [""; 0]);
        let unallocated = places.unallocated();
        assert!(unallocated == twin(&all, source.length()), "{kind}");
        let has = |at: u64| unallocated.iter().any(|range| range.contains(&at));
        for range in places.unallocated_clusters() {
            for at in [range.start, range.end - 1] {
                let state = places.at(at).state;
                let is_free = matches!(state, PlaceState::Free | PlaceState::Deleted);
                assert!(has(at) && (is_free || kind == "ISO 9660"), "{kind} at {at}: {state}");
            }
        }
    };
    let lab = Lab::new(16);
    if lab.does("mkntfs", &["-q", "-Q", "-F", "image"]) {
        for name in ["a.txt", "random.bin"] {
            assert!(lab.does("ntfscp", &["-q", "-f", "image", &format!("files/{name}"), name]));
        }
        compare(&lab, "NTFS");
    } else {
        skip("mkntfs does not run");
    }
    let lab = Lab::new(16);
    match lab.does("mkfs.exfat", &["image"]) {
        true => compare(&lab, "exFAT"),
        false => skip("mkfs.exfat does not run"),
    }
    let lab = Lab::new(0);
    match lab.does("genisoimage", &["-quiet", "-R", "-o", "image", "files"]) {
        true => compare(&lab, "ISO 9660"),
        false => skip("genisoimage does not run"),
    }
    let lab = Lab::new(16);
    match lab.does("mke2fs", &["-q", "-F", "-t", "ext2", "-b", "1024", "-d", "files", "image"]) {
        true => compare(&lab, "ext"),
        false => skip("mke2fs does not run"),
    }
}

#[test]
fn files_of_a_damaged_folder_count_as_unallocated() {
    let lab = Lab::new(16);
    let mut is_made = lab.does("mkfs.vfat", &["-F", "16", "image"]);
    for name in ["a.txt", "docs"] {
        is_made =
            is_made && lab.does("mcopy", &["-s", "-i", "image", &format!("files/{name}"), "::"]);
    }
    if !is_made {
        return skip("mkfs.vfat or mcopy does not run");
    }
    let whole = entries(&lab.source());
    let (root, docs) = (named(&whole, "/").extents()[0], named(&whole, "/docs"));
    let slot = (root.offset + (docs.inode - 3) * 32) as usize;
    let leaf = named(&whole, "/docs/deep/deeper/leaf.txt").extents()[0];
    let mut image = std::fs::read(lab.path("image")).unwrap();
    image[slot + 26..slot + 28].copy_from_slice(&[0xF0, 0xFF]);
    std::fs::write(lab.path("image"), image).unwrap();
    let places = Places::read(&lab.source(), Reach::FreeClusters, &false.into()).unwrap();
    let damages = places.unallocated_damages();
    assert!(damages.len() == 1 && damages[0].starts_with("/docs: "), "{damages:?}");
    assert!(damages[0].starts_with(&places.damages()[0]), "{damages:?}");
    assert_eq!(places.notices(), places.unallocated_notices());
    let unallocated = places.unallocated();
    let around = unallocated.iter().find(|range| range.contains(&leaf.offset)).unwrap();
    assert!(around.end >= leaf.offset + leaf.length);
    assert_eq!(places.at(leaf.offset).state, PlaceState::Metadata);
}

#[test]
fn bytes_of_fat_and_ext_belong_to_their_files() {
    let lab = Lab::new(16);
    if !lab.does("mkfs.vfat", &["-F", "16", "image"]) {
        return skip("mkfs.vfat does not run");
    }
    for name in ["a.txt", "random.bin", "gone.bin", "docs"] {
        if !lab.does("mcopy", &["-s", "-i", "image", &format!("files/{name}"), "::"]) {
            return skip("mcopy does not run");
        }
    }
    assert!(lab.does("mdel", &["-i", "image", "::gone.bin"]));
    check(&lab);
    let lab = Lab::new(16);
    if !lab.does("mke2fs", &["-q", "-F", "-t", "ext4", "-d", "files", "image"]) {
        return skip("mke2fs does not run");
    }
    check(&lab);
}

#[test]
fn bytes_of_a_record_belong_to_the_file_in_it() {
    let lab = Lab::new(16);
    if !lab.does("mkntfs", &["-q", "-Q", "-F", "image"]) {
        return skip("mkntfs does not run");
    }
    for name in ["a.txt", "random.bin"] {
        assert!(lab.does("ntfscp", &["-q", "-f", "image", &format!("files/{name}"), name]));
    }
    let source = lab.source();
    let entries = entries(&source);
    let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
    let small = named(&entries, "/a.txt").extents()[0];
    assert_eq!(places.at(small.offset).file, Some("/a.txt"));
    assert_eq!(places.at(small.offset - 1).file, Some("/$MFT"));
    let large = named(&entries, "/random.bin").extents()[0];
    assert_eq!(places.at(large.offset).file, Some("/random.bin"));
}
