//! HFS+, written by xorriso and by hand, compared with sleuthkit.

use std::collections::{BTreeMap, BTreeSet};

use quarrier_core::source::Memory;
use quarrier_files::{Entry, Kind, Places, Reach, State, find, unallocated};

use super::lab::{Clock, Lab, content, entries, named, noise, skip, survive};
use super::parts;

#[path = "../../../../../fuzz/src/volumes/hfs.rs"]
mod volume;

/// The HFS+ partition of a disc that xorriso writes.
fn disc() -> Option<Lab> {
    let lab = Lab::new(0);
    std::os::unix::fs::symlink("docs/deep", lab.path("files/link")).unwrap();
    for number in 0..300 {
        lab.put(&format!("files/many/number {number}"), b"many");
    }
    if !lab.does("xorriso", &["-as", "mkisofs", "-quiet", "-hfsplus", "-o", "disc", "files"]) {
        skip("xorriso does not run");
        return None;
    }
    // The Apple partition map begins in the second sector, one entry per sector.
    let disc = std::fs::read(lab.path("disc")).unwrap();
    let number = |at: usize| u32::from_be_bytes(disc[at..at + 4].try_into().unwrap()) as usize;
    let sector_bytes = usize::from(u16::from_be_bytes([disc[2], disc[3]])).max(512);
    let is_it = |at: &usize| disc[at + 48..].starts_with(b"Apple_HFS\0");
    let at = (1..16).map(|sector| sector * sector_bytes).find(is_it).unwrap();
    let (start, sectors) = (number(at + 8) * sector_bytes, number(at + 12) * sector_bytes);
    lab.put("image", &disc[start..start + sectors]);
    Some(lab)
}

#[test]
fn hfs_is_as_sleuthkit_has_it() {
    let Some(lab) = disc() else { return };
    let Some(all) = lab.compare(Clock::Whole) else { return };
    let source = lab.source();
    assert_eq!(find(&source).unwrap().systems[0].kind.to_string(), "HFS+");
    for (path, name, bytes) in [
        ("/a.txt", "a.txt", 6),
        ("/random.bin", "random.bin", 100_000),
        ("/docs/deep/deeper/leaf.txt", "docs/deep/deeper/leaf.txt", 700),
    ] {
        assert!(content(&source, named(&all, path)) == noise(name, bytes), "{path}");
    }
    assert_eq!(content(&source, named(&all, "/link")), b"docs/deep");
    assert_eq!(all.iter().filter(|entry| entry.path.starts_with("/many/")).count(), 300);
}

/// A volume built by hand, with everything that xorriso does not write.
fn by_hand() -> (Lab, Memory<Vec<u8>>, Vec<Entry>) {
    let lab = Lab::new(0);
    let image = volume::hfs();
    lab.put("image", &image);
    let source = Memory::new("image", image);
    let all = entries(&source);
    (lab, source, all)
}

#[test]
fn files_in_pieces_links_and_packed_files_are_read() {
    let (lab, source, all) = by_hand();
    for (path, name, bytes) in [
        ("/docs/a.txt", "a", 700),
        ("/docs/a.txt:rsrc", "icon", 300),
        ("/pieces", "pieces", 5000),
        ("/docs/first", "linked", 600),
        ("/docs/second", "linked", 600),
        ("/small", "small", 200),
        ("/medium", "medium", 9000),
    ] {
        let entry = named(&all, path);
        assert_eq!((entry.size, entry.kind), (bytes as u64, Kind::File), "{path}");
        assert!(content(&source, entry) == parts::bytes(name, bytes), "{path}");
    }
    assert_eq!(named(&all, "/docs/second").inode, 22);
    assert_eq!(named(&all, "/pieces").extents().len(), 10);
    let link = named(&all, "/link");
    assert_eq!((link.kind, content(&source, link)), (Kind::Link, b"docs/a.txt".to_vec()));
    let unknown = named(&all, "/unknown");
    assert_eq!(
        (unknown.size, unknown.content.lost),
        (100_000, Some("it is compressed in an unsupported format"))
    );
    for name in ["lzvn", "lzfse"] {
        let (small, large) = (format!("/{name}"), format!("/{name} blocks"));
        assert!(content(&source, named(&all, &small)) == parts::runs(name, 400), "{name}");
        let entry = named(&all, &large);
        assert_eq!((entry.size, entry.content.pieces.len()), ((64 << 10) + 100, 2), "{name}");
        assert!(content(&source, entry) == parts::runs(&large[1..], (64 << 10) + 100), "{name}");
    }
    assert_eq!(all.iter().filter(|entry| entry.state == State::Allocated).count(), 18);
    // Compare with sleuthkit.
    let mut expected = BTreeMap::new();
    let Some(text) = lab.run("fls", &["-r", "-p", "-F", "image"]) else {
        return skip("fls does not run");
    };
    for line in String::from_utf8_lossy(&text).lines() {
        let (inode, name) = line.split_once(":\t").unwrap();
        expected.insert(name.to_string(), inode.rsplit(' ').next().unwrap().to_string());
    }
    // Sleuthkit does not unpack LZFSE.
    let packed = ["small", "medium", "lzvn", "lzvn blocks"];
    let others = ["docs/a.txt", "docs/first", "docs/second", "pieces", "empty"];
    for name in packed.into_iter().chain(others) {
        let entry = named(&all, &format!("/{name}"));
        let inode = expected.get(name).unwrap_or_else(|| panic!("{name} is not in {expected:?}"));
        let number = inode.split('-').next().unwrap();
        assert_eq!(number, entry.inode.to_string(), "{name}");
        let bytes = lab.run("icat", &["image", number]).unwrap();
        assert!(bytes == content(&source, entry), "{name}");
    }
}

#[test]
fn deleted_files_are_found_in_slack_unused_nodes_and_the_journal() {
    let (_, source, all) = by_hand();
    let deleted: Vec<_> = all
        .iter()
        .filter(|entry| entry.state == State::Deleted)
        .map(|entry| (&*entry.path, entry.inode, entry.kind))
        .collect();
    let expected = [
        ("/journaled", 43, Kind::File),
        ("/docs/gone", 40, Kind::File),
        ("/docs/old", 41, Kind::Folder),
        ("/docs/old/inside", 42, Kind::File),
        ("/$OrphanFiles/orphan", 44, Kind::File),
    ];
    assert_eq!(deleted, expected);
    for (path, ..) in expected.iter().filter(|(.., kind)| *kind == Kind::File) {
        let name = path.rsplit('/').next().unwrap();
        let entry = named(&all, path);
        assert!(content(&source, entry) == parts::bytes(name, 600), "{path}");
        assert!(entry.times.modified.is_some(), "{path}");
    }
    let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
    let place = places.at(230 * 512);
    assert_eq!((place.file, place.state.name()), (Some("/docs/gone"), "deleted"));
    // They are listed only if requested.
    let system = find(&source).unwrap().systems.remove(0);
    system
        .list(&source, Reach::Allocated, &false.into(), &mut |entry| {
            assert_eq!(entry.state, State::Allocated);
            Ok(())
        })
        .unwrap();
}

/// Removes a record from a node as macOS and Linux do: later ones move up, and nothing is cleared.
fn remove(node: &mut [u8], index: usize) -> Vec<u8> {
    let slot = |index: usize| volume::CATALOG_NODE_BYTES - 2 * (index + 1);
    let number = |node: &[u8], at: usize| usize::from(u16::from_be_bytes([node[at], node[at + 1]]));
    let count = number(node, 10);
    let offset = |node: &[u8], index: usize| number(node, slot(index));
    let (start, end, last) = (offset(node, index), offset(node, index + 1), offset(node, count));
    let record = node[start..end].to_vec();
    node.copy_within(end..last, start);
    for index in index..count {
        let moved = (offset(node, index + 1) - record.len()) as u16;
        node[slot(index)..][..2].copy_from_slice(&moved.to_be_bytes());
    }
    node[10..12].copy_from_slice(&(count as u16 - 1).to_be_bytes());
    record
}

/// The number of a folder or file in a record; `None` for thread records and structures.
fn item_number(record: &[u8]) -> Option<u32> {
    let key = usize::from(u16::from_be_bytes([record[0], record[1]]));
    let value = &record[2 + key..];
    let id = u32::from_be_bytes(value[8..12].try_into().unwrap());
    (matches!(value[1], 1 | 2) && id >= 16).then_some(id)
}

proptest::proptest! {
    /// A deleted file is listed exactly if all bytes of its record remain after those of its node.
    #[test]
    fn removed_records_are_listed_as_long_as_their_bytes_remain(
        removals in proptest::collection::vec((2usize..4, 0usize..1000), 0..12),
    ) {
        let mut image = volume::hfs();
        let node_at = |number: usize| volume::CATALOG_AT + number * volume::CATALOG_NODE_BYTES;
        let before: BTreeSet<_> = entries(&Memory::new("image", image.clone()))
            .into_iter()
            .filter(|entry| entry.state == State::Deleted)
            .map(|entry| entry.inode as u32)
            .collect();
        let mut removed = Vec::new();
        for (number, index) in removals {
            let node = &mut image[node_at(number)..][..volume::CATALOG_NODE_BYTES];
            let count = usize::from(u16::from_be_bytes([node[10], node[11]]));
            removed.push((number, remove(node, index % count)));
        }
        let mut expected = BTreeSet::new();
        for (number, record) in &removed {
            let node = &image[node_at(*number)..][..volume::CATALOG_NODE_BYTES];
            let count = usize::from(u16::from_be_bytes([node[10], node[11]]));
            let slot = node.len() - 2 * (count + 1);
            let end = usize::from(u16::from_be_bytes([node[slot], node[slot + 1]]));
            let remains = node[end..slot].windows(record.len()).any(|bytes| bytes == record);
            // The unused node and the journal have copies of two records.
            let all = [node_at(4)..node_at(5), 211 * 512..227 * 512];
            let is_copied = all.into_iter().any(|range| {
                image[range].windows(record.len()).any(|bytes| bytes == record)
            });
            if (remains || is_copied) && let Some(id) = item_number(record) {
                expected.insert(id);
            }
        }
        expected.extend(&before);
        let source = Memory::new("image", image);
        let system = find(&source).unwrap().systems.remove(0);
        let mut found = BTreeSet::new();
        system.list(&source, Reach::FreeClusters, &false.into(), &mut |entry| {
            let is_stream = entry.path.ends_with(":rsrc");
            if entry.state == State::Deleted && !is_stream {
                // A link has the number of its target.
                let id = match entry.path.rsplit('/').next().unwrap() {
                    "first" => 23,
                    "second" => 24,
                    _ => entry.inode as u32,
                };
                assert!(found.insert(id), "{}", entry.path);
            }
            Ok(())
        }).unwrap();
        proptest::prop_assert_eq!(found, expected);
    }
}

#[test]
fn free_blocks_are_those_of_the_bitmap() {
    let (lab, source, all) = by_hand();
    let found = unallocated::find(&source).unwrap();
    assert_eq!(found.volumes[0].kind, "HFS+");
    let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
    assert_eq!(places.unallocated_notices(), Vec::<String>::new());
    assert_eq!(places.damages(), [""; 0]);
    let is_there = |entry: &&Entry| entry.kind == Kind::File && entry.state == State::Allocated;
    for entry in all.iter().filter(is_there) {
        for extent in entry.extents() {
            let is_free = found.ranges.iter().any(|range| range.contains(&extent.offset));
            assert!(!is_free, "{}", entry.path);
        }
    }
    let Some(text) = lab.run("fsstat", &["image"]) else { return skip("fsstat does not run") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find(|line| line.starts_with("Number of Free Blocks")).unwrap();
    let blocks: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(found.bytes(), blocks * 512);
}

#[test]
fn a_cyclic_catalog_ends() {
    let (_, source, all) = by_hand();
    let mut image = vec![0; 128 << 10];
    quarrier_core::source::read_full_at(&source, 0, &mut image).unwrap();
    // Make the last leaf point to the first one.
    let leaf = 16 * 512 + 3 * 4096;
    image[leaf + 3] = 2;
    let circle = Memory::new("image", image);
    let mut count = 0;
    let system = find(&circle).unwrap().systems.remove(0);
    let listed = system.list(&circle, Reach::FreeClusters, &false.into(), &mut |_| {
        count += 1;
        Ok(())
    });
    assert!(count >= all.len());
    assert!(listed.is_ok_and(|damages| damages.lines[0].contains("a cycle of leaves")));
}

#[test]
fn a_changed_volume_gives_an_answer_or_an_error() {
    survive(&volume::hfs(), |_| ());
}
