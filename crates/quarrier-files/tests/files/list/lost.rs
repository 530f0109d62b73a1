//! Lost folders of FAT and exFAT, compared with sleuthkit.

use std::collections::{BTreeMap, BTreeSet};

use quarrier_core::source::Memory;
use quarrier_files::{Entry, Reach, State, find};

use super::lab::{Lab, content, entries, named, noise, skip, survive};

/// The names of files in `/$OrphanFiles`, by their inodes.
type Lost = BTreeMap<u64, String>;

fn lost(entries: &[Entry]) -> Lost {
    let is_lost = |entry: &&Entry| entry.path.starts_with("/$OrphanFiles/");
    let lost =
        entries.iter().filter(is_lost).inspect(|entry| assert_eq!(entry.state, State::Deleted));
    lost.map(|entry| (entry.inode, entry.path.rsplit('/').next().unwrap().to_string())).collect()
}

/// As [`lost`], by sleuthkit.
fn lost_by_fls(lab: &Lab) -> Option<Lost> {
    let Some(output) = lab.run("fls", &["-r", "-p", "image"]) else {
        skip("fls does not run");
        return None;
    };
    let text = String::from_utf8(output).unwrap();
    let lost = text.lines().filter_map(|line| {
        let (kind, path) = line.split_once(":\t")?;
        let name = path.strip_prefix("$OrphanFiles/")?.rsplit('/').next()?;
        Some((kind.rsplit(' ').next()?.parse().unwrap(), name.to_string()))
    });
    Some(lost.collect())
}

/// A FAT with a deleted folder, whose entry was overwritten, and with one of which only a later cluster
/// is lost.
fn fat(bits: &str, mebibytes: u64) -> Option<Lab> {
    let lab = Lab::new(mebibytes);
    if !lab.does("mkfs.vfat", &["-F", bits, "image"]) {
        skip("mkfs.vfat does not run");
        return None;
    }
    lab.put("files/lost folder/sub folder/leaf with a long name.bin", &noise("leaf", 9_000));
    lab.put("files/lost folder/sub folder/deep/SHORT.BIN", &noise("short", 5_000));
    let sixty: Vec<String> =
        (0..60).map(|number| format!("many/number {number} of many")).collect();
    sixty.iter().for_each(|name| lab.put(&format!("files/{name}"), b""));
    let copy = |from: &str| lab.does("mcopy", &["-s", "-m", "-i", "image", from, "::"]);
    if !copy("files/lost folder") {
        skip("mcopy does not run");
        return None;
    }
    assert!(copy("files/random.bin") && copy("files/many"));
    assert!(lab.does("mdeltree", &["-i", "image", "::lost folder", "::many"]));
    // Files without clusters take the entry of the first folder.
    for name in ["A", "B"] {
        lab.put(name, b"");
        assert!(lab.does("mcopy", &["-i", "image", name, "::"]));
    }
    Some(lab)
}

#[test]
fn lost_folders_of_fat_are_as_sleuthkit_has_them() {
    for (bits, mebibytes) in [("12", 2), ("16", 16), ("32", 48)] {
        let Some(lab) = fat(bits, mebibytes) else { return };
        let source = lab.source();
        let all = entries(&source);
        let found = lost(&all);
        let top = "/$OrphanFiles";
        for (path, name, bytes) in [
            ("lost file with a name.dat", "lost folder/lost file with a name.dat", 3_000),
            ("sub folder/leaf with a long name.bin", "leaf", 9_000),
        ] {
            let file = named(&all, &format!("{top}/{path}"));
            assert!(content(&source, file) == noise(name, bytes), "{path}");
        }
        assert!(found.len() > 60 || bits != "32", "the clusters of a folder are small: {found:?}");
        let Some(expected) = lost_by_fls(&lab) else { return };
        let inodes = |lost: &Lost| lost.keys().copied().collect::<BTreeSet<_>>();
        assert_eq!(inodes(&found), inodes(&expected), "{found:#?} {expected:#?}");
    }
}

#[test]
fn a_folder_is_listed_once_in_its_parent() {
    let Some(lab) = fat("32", 48) else { return };
    let mut image = std::fs::read(lab.path("image")).unwrap();
    // As after a quick format: no chain and nothing in the root, but all other folders are in use.
    let all = entries(&lab.source());
    let paths = |entries: &[Entry]| lost(entries).len();
    let before = paths(&all);
    let root = named(&all, "/").extents()[0];
    for at in root.offset..root.offset + 32 {
        image[at as usize] = 0;
    }
    let source = Memory::new("image", image);
    let after = entries(&source);
    let unique: BTreeSet<u64> = after.iter().map(|entry| entry.inode).collect();
    assert_eq!(unique.len(), after.len());
    assert!(paths(&after) >= before, "{before} {}", paths(&after));
    let found = find(&source).unwrap();
    let mut rows = 0;
    found.systems[0]
        .list(&source, Reach::Deleted, &false.into(), &mut |entry| {
            rows += 1;
            assert!(!entry.path.contains("Orphan"), "{}", entry.path);
            Ok(())
        })
        .unwrap();
    assert_eq!(rows, 1, "without the search only the root is left");
}

/// The entries of a file in an exFAT folder, in use or deleted.
fn exfat_set(name: &str, attributes: u8, cluster: u32, bytes: u64, is_deleted: bool) -> Vec<u8> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let names = units.len().div_ceil(15);
    let mut set = vec![0; 64 + names * 32];
    let date = [0x21, 0x5A, 0x63, 0x59];
    set[..6].copy_from_slice(&[0x85, 1 + names as u8, 0, 0, attributes, 0]);
    for at in [8, 12, 16] {
        set[at..at + 4].copy_from_slice(&date);
    }
    set[32..36].copy_from_slice(&[0xC0, 3, 0, units.len() as u8]);
    set[40..48].copy_from_slice(&bytes.to_le_bytes());
    set[52..56].copy_from_slice(&cluster.to_le_bytes());
    set[56..64].copy_from_slice(&bytes.to_le_bytes());
    for (part, units) in set[64..].chunks_exact_mut(32).zip(units.chunks(15)) {
        part[0] = 0xC1;
        for (place, unit) in part[2..].chunks_exact_mut(2).zip(units) {
            place.copy_from_slice(&unit.to_le_bytes());
        }
    }
    let sum = set.iter().enumerate().fold(0u16, |sum, (at, byte)| match at {
        2 | 3 => sum,
        _ => sum.rotate_right(1).wrapping_add(u16::from(*byte)),
    });
    set[2..4].copy_from_slice(&sum.to_le_bytes());
    if is_deleted {
        set.iter_mut().step_by(32).for_each(|kind| *kind &= 0x7F);
    }
    set
}

#[test]
fn lost_folders_of_exfat_are_as_sleuthkit_has_them() {
    let lab = Lab::new(32);
    if !lab.does("mkfs.exfat", &["image"]) {
        return skip("mkfs.exfat does not run");
    }
    let mut image = std::fs::read(lab.path("image")).unwrap();
    let number = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize;
    let (clusters_at, shift) = (number(88) << image[108], image[108] + image[109]);
    let place = |cluster: usize| clusters_at + ((cluster - 2) << shift);
    let (bitmap, bytes) = (place(number(place(number(96)) + 32 + 20)), 1u64 << shift);
    // A folder of two clusters below one of which the entry is lost, and beside it a deleted one.
    let mut folder = exfat_set("in use.bin", 0x20, 210, 9_000, false);
    folder.extend(exfat_set("a folder that is deleted", 0x10, 190, bytes, true));
    folder.extend(exfat_set("long", 0x10, 192, 2 * bytes, false));
    let many: Vec<u8> = (0..bytes / 96 + 20)
        .flat_map(|number| exfat_set(&format!("{number:06}"), 0x20, 0, 0, number % 2 == 0))
        .collect();
    let mut unsound = exfat_set("unsound", 0x20, 220, 9_000, true);
    unsound[10] ^= 1;
    let allocated = exfat_set("allocated", 0x20, 220, 9_000, false);
    image[bitmap + 238 / 8] |= 1 << (238 % 8);
    for (cluster, bytes) in [
        (190, exfat_set("leaf with a name of more than fifteen units", 0x20, 230, 20, true)),
        (192, many),
        (200, folder),
        (210, noise("in use", 9_000)),
        (236, unsound),
        (240, allocated),
    ] {
        image[place(cluster)..][..bytes.len()].copy_from_slice(&bytes);
    }
    std::fs::write(lab.path("image"), image).unwrap();
    let source = lab.source();
    let all = entries(&source);
    let top = "/$OrphanFiles";
    assert!(content(&source, named(&all, &format!("{top}/in use.bin"))) == noise("in use", 9_000));
    named(
        &all,
        &format!("{top}/a folder that is deleted/leaf with a name of more than fifteen units"),
    );
    let long = all.iter().filter(|entry| entry.path.starts_with(&format!("{top}/long/")));
    let long: Vec<_> = long.map(|entry| entry.path.as_str()).collect();
    assert!(long.len() as u64 >= bytes / 96 + 19, "{}", long.len());
    let found = lost(&all);
    assert_eq!(found.len(), long.len() + 4, "{found:#?}");
    let Some(expected) = lost_by_fls(&lab) else { return };
    // Sleuthkit does not check the sums of entries.
    let expected = expected.into_iter().filter(|(_, name)| name != "unsound").collect::<Lost>();
    assert_eq!(found, expected);
}

#[test]
fn damaged_lost_folders_are_listed_in_bounds() {
    let Some(lab) = fat("12", 1) else { return };
    survive(&std::fs::read(lab.path("image")).unwrap(), |_| ());
}
