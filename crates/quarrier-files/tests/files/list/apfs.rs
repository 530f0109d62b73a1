//! APFS: an empty container from mkapfs, and volumes built by hand with files, compared with sleuthkit.

use std::collections::BTreeMap;

use quarrier_core::source::Memory;
use quarrier_files::{Entry, Kind, Places, Reach, State, find, unallocated};

use super::lab::{Lab, content, entries, named, skip, survive};
use super::parts;

#[path = "../../../../../fuzz/src/volumes/apfs.rs"]
mod volume;

#[test]
fn an_empty_container_has_a_root_and_free_blocks() {
    // mkapfs refuses smaller containers.
    let lab = Lab::new(128);
    if !lab.does("mkapfs", &["-L", "empty", "image"]) {
        return skip("mkapfs does not run");
    }
    let source = lab.source();
    assert_eq!(find(&source).unwrap().systems[0].kind.to_string(), "APFS");
    let all = entries(&source);
    let paths: Vec<_> = all.iter().map(|entry| (&*entry.path, entry.kind)).collect();
    assert_eq!(paths, [("/", Kind::Folder)]);
    let found = unallocated::find(&source).unwrap();
    assert_eq!(found.volumes[0].kind, "APFS");
    let Some(text) = lab.run("pstat", &["image"]) else { return skip("pstat does not run") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find(|line| line.starts_with("Number of Free Blocks")).unwrap();
    let blocks: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(found.bytes(), blocks * 4096);
}

fn by_hand() -> (Lab, Memory<Vec<u8>>, Vec<Entry>) {
    let lab = Lab::new(0);
    let image = volume::apfs();
    lab.put("image", &image);
    let source = Memory::new("image", image);
    let mut all = Vec::new();
    let system = find(&source).unwrap().systems.remove(0);
    let damages = system.list(&source, Reach::FreeClusters, &false.into(), &mut |entry| {
        all.push(entry);
        Ok(())
    });
    // The second volume.
    let damages = damages.unwrap().lines;
    assert!(
        damages.len() == 1 && damages[0].contains("encrypted APFS volume: Second"),
        "{damages:?}"
    );
    (lab, source, all)
}

#[test]
fn files_links_and_packed_files_are_read() {
    let (lab, source, all) = by_hand();
    let mut plain = parts::bytes("plain", 10_000);
    plain[4096..8192].fill(0);
    for (path, bytes) in [
        ("plain", plain.clone()),
        ("docs/hard", plain),
        ("docs/a.txt", parts::bytes("a", 700)),
        ("docs/a.txt:rsrc", parts::bytes("icon", 300)),
        ("empty", Vec::new()),
        ("link", b"docs/a.txt".to_vec()),
        ("medium", parts::bytes("medium", 6000)),
        ("small", parts::bytes("small", 200)),
    ] {
        let entry = named(&all, &format!("/First/{path}"));
        assert_eq!(entry.size, bytes.len() as u64, "{path}");
        assert!(content(&source, entry) == bytes, "{path}");
    }
    assert_eq!(all.iter().filter(|entry| entry.state == State::Allocated).count(), 10);
    assert_eq!(named(&all, "/First/link").kind, Kind::Link);
    assert_eq!(named(&all, "/First/docs/a.txt").times.modified, Some(1_562_235_630_000_000_001));
    // Compare with sleuthkit.
    let volume = ["-P", "apfs", "-B", "6", "image"];
    let Some(text) = lab.run("fls", &[&["-r", "-p", "-F"][..], &volume].concat()) else {
        return skip("fls does not read APFS");
    };
    let mut expected = BTreeMap::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let (inode, name) = line.split_once(":\t").unwrap();
        let number = inode.rsplit(' ').next().unwrap().split('-').next().unwrap();
        expected.insert(name.to_string(), number.to_string());
    }
    for name in ["plain", "docs/hard", "docs/a.txt", "medium", "small"] {
        let entry = named(&all, &format!("/First/{name}"));
        assert_eq!(expected.get(name), Some(&entry.inode.to_string()), "{name} in {expected:?}");
        let number = entry.inode.to_string();
        let bytes = lab.run("icat", &[&volume[..], &[number.as_str()]].concat()).unwrap();
        assert!(bytes == content(&source, entry), "{name}");
    }
}

#[test]
fn deleted_files_are_those_of_earlier_checkpoints() {
    let (_, source, all) = by_hand();
    let deleted: Vec<_> = all
        .iter()
        .filter(|entry| entry.state == State::Deleted)
        .map(|entry| (&*entry.path, entry.inode, entry.kind, entry.size))
        .collect();
    let expected = [
        ("/First/old", 30, Kind::Folder, 0),
        ("/First/old/gone", 31, Kind::File, 2000),
        ("/First/$OrphanFiles/orphan", 32, Kind::File, 0),
        ("/First/$OrphanFiles/33", 33, Kind::File, 0),
    ];
    assert_eq!(deleted, expected);
    let gone = named(&all, "/First/old/gone");
    let mode = gone.access.mode.map(|mode| mode >> 12);
    assert_eq!((mode, gone.access.user, gone.access.group), (Some(8), 501, 20));
    assert!(content(&source, gone) == parts::bytes("gone", 2000));
    // Without the earlier map there is nothing, and no damage.
    let mut image = volume::apfs();
    image[17 * 4096 + 100] ^= 1;
    let source = Memory::new("image", image);
    let system = find(&source).unwrap().systems.remove(0);
    let damages = system.list(&source, Reach::FreeClusters, &false.into(), &mut |entry| {
        assert_eq!(entry.state, State::Allocated);
        Ok(())
    });
    assert_eq!(damages.unwrap().count, 1);
}

#[test]
fn free_blocks_are_those_of_the_bitmaps() {
    let (_, source, all) = by_hand();
    let found = unallocated::find(&source).unwrap();
    assert_eq!(found.bytes(), 6 * 4096);
    let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
    for entry in all.iter().filter(|entry| entry.kind == Kind::File) {
        for extent in entry.extents() {
            assert_eq!(places.at(extent.offset).inode, Some(entry.inode), "{}", entry.path);
        }
    }
}

#[test]
fn containers_that_are_not_read_say_why() {
    let error = |at: usize, value: &[u8]| {
        let mut image = volume::apfs();
        image[at..at + value.len()].copy_from_slice(value);
        volume::seal(&mut image);
        find(&Memory::new("image", image)).unwrap_err().to_string()
    };
    assert!(error(65, &[1]).contains("several devices"));
    assert!(error(36, &[1]).contains("impossible values"));
    // Make the file index point to itself, then an object map.
    for (at, value) in [(11 * 4096 + 4048, 1028u64), (5 * 4096 + 34, 1)] {
        let mut image = volume::apfs();
        image[at..at + 2].copy_from_slice(&value.to_le_bytes()[..2]);
        volume::seal(&mut image);
        let source = Memory::new("image", image);
        let system = find(&source).unwrap().systems.remove(0);
        let damages =
            system.list(&source, Reach::FreeClusters, &false.into(), &mut |_| Ok(())).unwrap();
        assert!(damages.lines.iter().any(|line| !line.contains("encrypted")), "{damages:?}");
    }
}

#[test]
fn a_changed_volume_gives_an_answer_or_an_error() {
    survive(&volume::apfs(), volume::seal);
}
