//! The owners of bytes, in volumes with known files.

use quarrier_core::source::{Source, read_full_at};
use quarrier_files::{Kind, PlaceState, Places, State};

use super::lab::{Lab, entries, named, skip};

/// Every byte of every file is its own, the bytes after its end are slack, and deleted files own theirs
/// as long as nothing else uses them.
fn check(lab: &Lab) {
    let source = lab.source();
    let entries = entries(&source);
    let places = Places::read(&source, &false.into()).unwrap();
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
    let [allocated, _, _, free, metadata, outside] = states;
    assert!(allocated > 200 && free > 1000 && metadata > 0 && outside == 0, "{states:?}");
    let mut sector = [0; 512];
    read_full_at(&source, 0, &mut sector).unwrap();
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
    let places = Places::read(&source, &false.into()).unwrap();
    let small = named(&entries, "/a.txt").extents()[0];
    assert_eq!(places.at(small.offset).file, Some("/a.txt"));
    assert_eq!(places.at(small.offset - 1).file, Some("/$MFT"));
    let large = named(&entries, "/random.bin").extents()[0];
    assert_eq!(places.at(large.offset).file, Some("/random.bin"));
}
