//! Btrfs: volumes from mkfs.btrfs, and volumes built by hand for features that it does not create.

use quarrier_core::source::Memory;
use quarrier_files::{Entry, Kind, Places, Reach, State, find, unallocated};

use super::lab::{Lab, access_of, content, entries, named, noise, skip, survive};
use super::parts;

#[path = "../../../../../fuzz/src/volumes/btrfs.rs"]
mod volume;

/// A mkfs.btrfs volume with many files, some of them inline, and links.
fn made(options: &[&str]) -> Option<Lab> {
    let lab = Lab::new(128);
    std::os::unix::fs::symlink("docs/deep", lab.path("files/link")).unwrap();
    for number in 0..1500 {
        lab.put(&format!("files/many/number {number}"), b"many");
    }
    let args = [&["-q", "-f"], options, &["--rootdir", "files", "image"]].concat();
    if !lab.does("mkfs.btrfs", &args) {
        skip(&format!("mkfs.btrfs {} does not run", options.join(" ")));
        return None;
    }
    Some(lab)
}

/// The free bytes according to the btrfs tools: inside chunks, counting all copies, and outside of
/// them.
fn free_bytes(lab: &Lab) -> Option<u64> {
    let dump = |tree: &str| {
        let text = lab.run("btrfs", &["inspect-internal", "dump-tree", "-t", tree, "image"])?;
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    let number = |text: &str, before: &str| -> Option<u64> {
        let rest = &text[text.find(before)? + before.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    };
    let mut chunks = Vec::new();
    for line in dump("chunk")?.lines() {
        if let Some(start) = number(line, "(FIRST_CHUNK_TREE CHUNK_ITEM ") {
            chunks.push((start, 0, 0));
        } else if let Some(last) = chunks.last_mut() {
            last.1 = number(line, "\t\tlength ").unwrap_or(last.1);
            last.2 = number(line, "num_stripes ").unwrap_or(last.2);
        }
    }
    let mut free = std::fs::metadata(lab.path("image")).unwrap().len() - (1 << 20);
    free -= chunks.iter().map(|(_, length, copies)| length * copies).sum::<u64>();
    for line in dump("free-space")?.lines() {
        let (Some(start), Some(length)) =
            (number(line, "key ("), number(line, " FREE_SPACE_EXTENT "))
        else {
            assert!(!line.contains("FREE_SPACE_BITMAP "), "{line}");
            continue;
        };
        let chunk = chunks.iter().find(|(from, bytes, _)| (*from..from + bytes).contains(&start));
        free += length * chunk.unwrap().2;
    }
    Some(free)
}

#[test]
fn btrfs_has_the_files_that_it_was_made_from() {
    let shapes: &[&[&str]] =
        &[&[], &["-M"], &["-m", "single", "-n", "4096"], &["--csum", "sha256"]];
    for shape in shapes {
        let Some(lab) = made(shape) else { continue };
        let source = lab.source();
        let all = entries(&source);
        assert_eq!(find(&source).unwrap().systems[0].kind.to_string(), "Btrfs");
        for (path, name, bytes) in [
            ("/a.txt", "a.txt", 6),
            ("/empty", "empty", 0),
            ("/random.bin", "random.bin", 100_000),
            ("/docs/deep/deeper/leaf.txt", "docs/deep/deeper/leaf.txt", 700),
        ] {
            let entry = named(&all, path);
            assert_eq!((entry.size, entry.state), (bytes as u64, State::Allocated), "{path}");
            assert!(content(&source, entry) == noise(name, bytes), "{shape:?} {path}");
            let metadata = std::fs::metadata(lab.path("files").join(name)).unwrap();
            assert_eq!(entry.access, access_of(&metadata), "{path}");
            let modified = metadata.modified().unwrap().duration_since(std::time::UNIX_EPOCH);
            let seconds = modified.unwrap().as_secs().cast_signed();
            assert_eq!(entry.times.modified.unwrap() / 1_000_000_000, seconds, "{path}");
        }
        let link = named(&all, "/link");
        assert_eq!((link.kind, content(&source, link)), (Kind::Link, b"docs/deep".to_vec()));
        assert_eq!(all.iter().filter(|entry| entry.path.starts_with("/many/")).count(), 1500);

        let found = unallocated::find(&source).unwrap();
        assert_eq!(found.volumes[0].kind, "Btrfs");
        match free_bytes(&lab) {
            // If no chunk covers the second superblock, the btrfs tools leave it out.
            Some(free) => {
                assert!([0, 65_536].contains(&(free - found.bytes())), "{shape:?} {free}")
            }
            None => skip("btrfs does not run"),
        }
        let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
        assert_eq!(places.unallocated_notices(), Vec::<String>::new());
        assert_eq!(places.damages(), [""; 0]);
        for entry in all.iter().filter(|entry| entry.kind == Kind::File) {
            for extent in entry.extents() {
                assert_eq!(places.at(extent.offset).inode, Some(entry.inode), "{}", entry.path);
                let is_free = found.ranges.iter().any(|range| range.contains(&extent.offset));
                assert!(!is_free, "{}", entry.path);
            }
        }
    }
}

#[test]
fn a_damaged_superblock_and_damaged_nodes_have_copies() {
    let Some(lab) = made(&["-m", "dup"]) else { return };
    let whole = entries(&lab.source());
    let mut image = std::fs::read(lab.path("image")).unwrap();
    image[(64 << 10) + 200] ^= 1;
    // Metadata is duplicated: destroy the first copy of all nodes.
    let nodes: Vec<usize> = (1 << 20..image.len())
        .step_by(4096)
        .filter(|at| *at != 64 << 20)
        .filter(|at| {
            image[at + 48..at + 56] != [0; 8]
                && image[at + 32..at + 48] == image[(64 << 10) + 32..][..16]
        })
        .collect();
    let mut seen = std::collections::HashSet::new();
    let mut destroyed = 0;
    for at in nodes {
        let place: [u8; 8] = image[at + 48..at + 56].try_into().unwrap();
        if seen.insert(place) {
            image[at + 60] ^= 1;
            destroyed += 1;
        }
    }
    assert!(destroyed > 5);
    lab.put("image", &image);
    let source = lab.source();
    let all = entries(&source);
    assert_eq!(all.len(), whole.len());
    for (entry, before) in all.iter().zip(&whole) {
        assert_eq!((&entry.path, entry.inode), (&before.path, before.inode));
        assert!(content(&source, entry) == content(&source, before), "{}", entry.path);
    }
}

fn by_hand() -> (Memory<Vec<u8>>, Vec<Entry>) {
    let source = Memory::new("image", volume::btrfs());
    let all = entries(&source);
    (source, all)
}

#[test]
fn packed_files_and_subvolumes_are_read() {
    let (source, all) = by_hand();
    let mut plain = parts::bytes("plain", 10_000);
    plain[4096..8192].fill(0);
    let zlib = parts::bytes("zlib", 6000);
    let zlib = [&zlib[..4096], &[0; 4096], &zlib[1000..5096]].concat();
    for (path, bytes) in [
        ("/plain", plain),
        ("/zlib", zlib),
        ("/lzo", parts::bytes("lzo", 3000)),
        ("/zstd", parts::bytes("zstd", 9000)),
        ("/docs/hard", parts::bytes("inline", 300)),
        ("/inline", parts::bytes("inline", 300)),
        ("/link", b"docs/inline".to_vec()),
        ("/reserved", vec![0; 4096]),
        ("/sub/small", parts::bytes("small", 400)),
    ] {
        let entry = named(&all, path);
        assert!(content(&source, entry) == bytes, "{path}");
    }
    assert_eq!(named(&all, "/sub").kind, Kind::Folder);
    assert_eq!(all.iter().filter(|entry| entry.state == State::Allocated).count(), 12);
    assert_eq!(named(&all, "/zlib").extents().iter().map(|one| one.length).sum::<u64>(), 16_384);
    let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
    assert_eq!(places.unallocated_notices(), Vec::<String>::new());
    assert_eq!(places.damages(), [""; 0]);
    let found = unallocated::find(&source).unwrap();
    // A node block and two file blocks; the others are too close to the superblock.
    assert_eq!(found.bytes(), 3 * 4096);
}

#[test]
fn deleted_files_are_those_of_leaves_that_no_tree_has() {
    let (source, all) = by_hand();
    let deleted: Vec<_> = all
        .iter()
        .filter(|entry| entry.state == State::Deleted)
        .map(|entry| (&*entry.path, entry.inode, entry.kind, entry.size))
        .collect();
    let expected = [
        ("/docs/gone", 270, Kind::File, 500),
        ("/old", 271, Kind::Folder, 0),
        ("/old/inside", 272, Kind::File, 4000),
        ("/$OrphanFiles/orphan", 273, Kind::File, 0),
    ];
    assert_eq!(deleted, expected);
    assert!(content(&source, named(&all, "/docs/gone")) == parts::bytes("gone", 500));
    assert!(content(&source, named(&all, "/old/inside")) == parts::bytes("inside", 4096)[..4000]);
    // They are listed only if requested.
    let system = find(&source).unwrap().systems.remove(0);
    let mut count = 0;
    system
        .list(&source, Reach::Allocated, &false.into(), &mut |entry| {
            assert_eq!(entry.state, State::Allocated);
            count += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 12);
}

#[test]
fn volumes_that_are_not_read_say_why() {
    let change = |at: usize, value: &[u8]| {
        let mut image = volume::btrfs();
        image[at..at + value.len()].copy_from_slice(value);
        volume::seal(&mut image);
        find(&Memory::new("image", image)).unwrap_err().to_string()
    };
    let superblock = 64 << 10;
    assert!(change(superblock + 136, &[2]).contains("several devices"));
    assert!(change(superblock + 189, &[0x40]).contains("unsupported feature"));
    assert!(change(superblock + 148, &[1]).contains("impossible values"));
    // A tree with a cycle of nodes.
    let mut image = volume::btrfs();
    let index = (1 + 3) * 4096;
    for copy in [0, 16 * 4096] {
        let first = image[index + 118..index + 126].to_vec();
        image[copy + index + 151..copy + index + 159].copy_from_slice(&first);
    }
    volume::seal(&mut image);
    let source = Memory::new("image", image);
    let system = find(&source).unwrap().systems.remove(0);
    let damages =
        system.list(&source, Reach::FreeClusters, &false.into(), &mut |_| Ok(())).unwrap();
    assert!(damages.lines.iter().all(|line| line.contains("damaged") || line.contains("missing")));
    assert!(damages.count > 0);
}

#[test]
fn a_changed_volume_gives_an_answer_or_an_error() {
    survive(&volume::btrfs(), volume::seal);
}
