//! `--unallocated` of `search` and `carve` leaves out exactly the bytes of allocated files; fragmented
//! deleted files are recovered from the run lists that their file system still has.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::carve::{carve, gif, tree};
use crate::carve_free::does;
use crate::harness::{Lab, noise, places, run, skip};

/// The planted files: pictures with these words, the first in an allocated file.
const WORDS: [&str; 4] = ["live", "gone", "in slack", "in free space"];

/// Files of several blocks.
fn picture(words: &str) -> Vec<u8> {
    gif(&words.repeat(3300 / words.len()))
}

/// The rows of `quarrier files`, deleted ones too.
fn files(lab: &Lab) -> Vec<Value> {
    let command = lab.command(["files", "f", "--deleted", "--format", "json"]);
    let ran = run(command, b"");
    ran.is_clean().lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row<'r>(rows: &'r [Value], path: &str) -> &'r Value {
    let paths = || rows.iter().map(|row| row["path"].clone()).collect::<Vec<_>>();
    rows.iter().find(|row| row["path"] == path).unwrap_or_else(|| panic!("{path}: {:?}", paths()))
}

fn extents(row: &Value) -> Vec<Range<usize>> {
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let pairs = row["extents"].as_array().unwrap().iter();
    pairs.map(|pair| number(&pair[0])..number(&pair[0]) + number(&pair[1])).collect()
}

/// The bytes of a file, by the extents in its row.
fn bytes_of(image: &[u8], row: &Value) -> Vec<u8> {
    extents(row).into_iter().flat_map(|range| image[range].to_vec()).collect()
}

/// An empty volume `f` of 4 MiB, and pictures to put into it.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.put_sparse("f", 4 << 20, &[]);
    std::fs::create_dir(lab.path("files")).unwrap();
    for words in &WORDS[..2] {
        lab.put(format!("files/{words}.gif"), picture(words));
    }
    lab
}

fn ext(kind: &str) -> Option<Lab> {
    let lab = lab();
    let made = does(&lab, "mke2fs", &["-q", "-F", "-t", kind, "-b", "1024", "-d", "files", "f"]);
    (made && does(&lab, "debugfs", &["-w", "-R", "rm /gone.gif", "f"])).then_some(lab)
}

fn fat(args: &[&str]) -> Option<Lab> {
    let lab = lab();
    let mut made = does(&lab, "mkfs.vfat", &[args, &["f"]].concat());
    for name in ["gone", "live"] {
        made = made && does(&lab, "mcopy", &["-i", "f", &format!("files/{name}.gif"), "::"]);
    }
    (made && does(&lab, "mdel", &["-i", "f", "::gone.gif"])).then_some(lab)
}

/// No tool deletes files in NTFS without mounting it: marks the record as not in use, and the clusters
/// as free.
fn ntfs() -> Option<Lab> {
    let lab = lab();
    let mut made = does(&lab, "mkntfs", &["-q", "-Q", "-F", "-c", "1024", "f"]);
    for name in ["gone.gif", "live.gif"] {
        made = made && does(&lab, "ntfscp", &["-q", "-f", "f", &format!("files/{name}"), name]);
    }
    made.then_some(())?;
    delete_from_ntfs(&lab, "/gone.gif");
    Some(lab)
}

fn delete_from_ntfs(lab: &Lab, path: &str) {
    let rows = files(lab);
    let mut image = std::fs::read(lab.path("f")).unwrap();
    let place = |path: &str, at: usize| {
        let mut left = at;
        let extents = extents(row(&rows, path));
        let holder = extents.into_iter().find(|range| {
            let is_here = left < range.len();
            left -= if is_here { 0 } else { range.len() };
            is_here
        });
        holder.unwrap().start + left
    };
    let gone = row(&rows, path);
    let record = place("/$MFT", gone["inode"].as_u64().unwrap() as usize * 1024);
    assert_eq!(&image[record..record + 4], b"FILE");
    image[record + 22] &= !1;
    for extent in extents(gone) {
        for cluster in extent.start / 1024..extent.end.div_ceil(1024) {
            image[place("/$Bitmap", cluster / 8)] &= !(1 << (cluster % 8));
        }
    }
    std::fs::write(lab.path("f"), image).unwrap();
}

/// No tool writes to exFAT without mounting it: puts two files into its root, each contiguous, the
/// second one deleted.
fn exfat() -> Option<Lab> {
    let lab = lab();
    if !does(&lab, "mkfs.exfat", &["f"]) {
        return None;
    }
    let rows = files(&lab);
    let mut image = std::fs::read(lab.path("f")).unwrap();
    let root = extents(row(&rows, "/"))[0].start;
    let number =
        |image: &[u8], at: usize| u32::from_le_bytes(*image[at..].first_chunk().unwrap()) as usize;
    let (heap, cluster_bytes) = (number(&image, 88) * 512, 512 << image[109]);
    let bitmap = (root..).step_by(32).find(|at| image[*at] == 0x81).unwrap();
    let bitmap = heap + (number(&image, bitmap + 20) - 2) * cluster_bytes;
    let mut slot = (root..).step_by(32).find(|at| image[*at] == 0).unwrap();
    for (words, cluster, in_use) in [("live", 100, 0x80), ("gone", 120, 0)] {
        let bytes = picture(words);
        let name: Vec<u8> =
            format!("{words}.gif").encode_utf16().flat_map(u16::to_le_bytes).collect();
        image[slot] = 0x05 | in_use;
        image[slot + 1] = 2;
        image[slot + 32] = 0x40 | in_use;
        image[slot + 33] = 3;
        image[slot + 35] = (name.len() / 2) as u8;
        for at in [slot + 40, slot + 56] {
            image[at..at + 8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        }
        image[slot + 52..slot + 56].copy_from_slice(&(cluster as u32).to_le_bytes());
        image[slot + 64] = 0x41 | in_use;
        image[slot + 66..slot + 66 + name.len()].copy_from_slice(&name);
        slot += 96;
        let at = heap + (cluster - 2) * cluster_bytes;
        image[at..at + bytes.len()].copy_from_slice(&bytes);
        for used in cluster - 2..cluster - 2 + bytes.len().div_ceil(cluster_bytes) {
            image[bitmap + used / 8] |= (in_use >> 7) << (used % 8);
        }
    }
    std::fs::write(lab.path("f"), image).unwrap();
    Some(lab)
}

/// Ranges without a byte of an allocated file, computed byte by byte from the rows of `quarrier files`.
/// A deleted file in an NTFS record has its bytes there.
fn unallocated(rows: &[Value], length: usize) -> Vec<Range<usize>> {
    let mut is_taken = vec![false; length];
    for row in rows.iter().filter(|row| row["state"] == "allocated") {
        extents(row).into_iter().for_each(|range| is_taken[range].fill(true));
    }
    let table = rows.iter().find(|row| row["path"] == "/$MFT").map_or(Vec::new(), extents);
    for row in rows.iter().filter(|row| row["state"] == "deleted") {
        let is_in_record =
            |range: &Range<usize>| table.iter().any(|all| all.contains(&range.start));
        extents(row).into_iter().filter(is_in_record).for_each(|range| is_taken[range].fill(false));
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..length).filter(|at| !is_taken[*at]) {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// Plants pictures in slack and in free space, and checks that `search` and `carve` find those and the
/// deleted one.
fn check(lab: &Lab, gone: &str) {
    let rows = files(lab);
    let (live, gone) = (row(&rows, "/live.gif"), row(&rows, gone));
    assert_eq!((&live["state"], &gone["state"]), (&"allocated".into(), &"deleted".into()));
    let mut image = std::fs::read(lab.path("f")).unwrap();
    let slack = extents(live).last().unwrap().end;
    assert!(!slack.is_multiple_of(512) && 512 - slack % 512 > 100, "no slack at {slack}");
    let ranges = unallocated(&rows, image.len());
    let longest = ranges.iter().max_by_key(|range| range.len()).unwrap();
    let free = (longest.start + longest.len() / 2) & !511;
    for (at, words) in [(slack, WORDS[2]), (free, WORDS[3])] {
        let bytes = gif(words);
        image[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    std::fs::write(lab.path("f"), &image).unwrap();

    let expected: BTreeSet<Vec<u8>> =
        [picture(WORDS[1]), gif(WORDS[2]), gif(WORDS[3])].into_iter().collect();
    carve(lab, &["f", "-o", "out", "--unallocated"]).is_clean();
    let carved = tree(&lab.path("out"));
    let carved: BTreeSet<Vec<u8>> = carved
        .into_iter()
        .filter_map(|(name, bytes)| name.starts_with("gif/").then_some(bytes))
        .collect();
    assert!(carved == expected, "{} files", carved.len());

    let twin = |needle: &[u8]| -> Vec<u64> {
        let found = ranges.iter().flat_map(|range| {
            let found = places(&image[range.clone()], needle);
            found.into_iter().map(|at| at + range.start as u64)
        });
        found.collect()
    };
    for needle in ["GIF89a", "live", "gone", "in slack", "in free space"] {
        let found = lab.offsets(["-e", needle, "f", "--unallocated"]);
        assert_eq!(found, twin(needle.as_bytes()), "{needle}");
        assert_eq!(found.is_empty(), needle == "live", "{needle}");
    }
    let zeros = lab.search(["-x", "00", "f", "--unallocated", "-c", "--format", "json"]);
    let zeros: Value = serde_json::from_str(zeros.is_clean().text()).unwrap();
    assert_eq!(zeros["count"], twin(b"\0").len());
    let args = ["in slack", "f", "--unallocated", "--where", "--format", "json"];
    let found: Value = serde_json::from_str(lab.search(args).is_clean().text()).unwrap();
    assert_eq!((&found["file"], &found["state"]), (&"/live.gif".into(), &"slack".into()));
}

#[test]
fn only_the_bytes_of_allocated_files_are_left_out_of_fat() {
    for args in [["-F", "16", "-s", "1"], ["-F", "12", "-s", "4"]] {
        match fat(&args) {
            // FAT loses the first character of deleted names.
            Some(lab) => check(&lab, "/_one.gif"),
            None => return skip("mkfs.vfat or mtools do not run"),
        }
    }
}

#[test]
fn only_the_bytes_of_allocated_files_are_left_out_of_ext() {
    for kind in ["ext2", "ext4"] {
        match ext(kind) {
            Some(lab) => check(&lab, "/gone.gif"),
            None => return skip("mke2fs or debugfs does not run"),
        }
    }
}

#[test]
fn only_the_bytes_of_allocated_files_are_left_out_of_ntfs() {
    match ntfs() {
        Some(lab) => check(&lab, "/gone.gif"),
        None => skip("mkntfs or ntfscp does not run"),
    }
}

#[test]
fn only_the_bytes_of_allocated_files_are_left_out_of_exfat() {
    match exfat() {
        Some(lab) => check(&lab, "/gone.gif"),
        None => skip("mkfs.exfat does not run"),
    }
}

/// Writes files and deletes every other one, so that a larger file is spread over the gaps; `put` and
/// `delete` do this with names in `files`. The larger file is deleted, too.
fn in_pieces(lab: &Lab, put: &dyn Fn(&str) -> bool, delete: &dyn Fn(&str) -> bool) -> Option<()> {
    let count = 24;
    for number in 0..count {
        lab.put(format!("files/p{number}"), noise(3000, number));
        put(&format!("p{number}")).then_some(())?;
    }
    for number in (0..count).step_by(2) {
        assert!(delete(&format!("p{number}")));
    }
    // These take the inodes that were freed: several names of one would be ambiguous.
    lab.put("files/empty", b"");
    for number in 0..count / 2 {
        std::fs::copy(lab.path("files/empty"), lab.path(format!("files/e{number}"))).unwrap();
        assert!(put(&format!("e{number}")));
    }
    lab.put("files/large.gif", gif(&"in pieces ".repeat(1500)));
    assert!(put("large.gif") && delete("large.gif"));
    Some(())
}

/// Checks that `carve` recovers the large file with the run list of the file system, and everything
/// that it recovers without.
fn check_in_pieces(lab: &Lab, path: &str) {
    let rows = files(lab);
    let large = row(&rows, path);
    let picture = gif(&"in pieces ".repeat(1500));
    assert_eq!(large["state"], "deleted");
    assert!(extents(large).len() > 3, "{large}");
    assert!(bytes_of(&std::fs::read(lab.path("f")).unwrap(), large) == picture);
    let valid = |args: &[&str]| -> Vec<Value> {
        let ran = carve(lab, &[&["f", "--dry-run", "--format", "json"], args].concat());
        assert_eq!(ran.stderr, "");
        let rows = ran.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.filter(|row| row["status"] == "valid").collect()
    };
    let hashes = |rows: &[Value]| -> BTreeSet<String> {
        rows.iter().map(|row| row["sha256"].as_str().unwrap().to_string()).collect()
    };
    let (without, with) = (valid(&[]), valid(&["--where"]));
    let (without, all) = (hashes(&without), hashes(&with));
    assert!(all.is_superset(&without) && all.len() > without.len(), "{without:?} {all:?}");
    let extents = &large["extents"];
    let found = with.iter().find(|row| row["extents"] == *extents).expect("its runs");
    for (column, value) in [
        ("file", &large["path"]),
        ("inode", &large["inode"]),
        ("state", &large["state"]),
        ("modified", &large["modified"]),
        ("length", &large["size"]),
    ] {
        assert_eq!(&found[column], value, "{column}");
    }
    assert!(hashes(&valid(&["--unallocated"])).contains(found["sha256"].as_str().unwrap()));
}

#[test]
fn deleted_files_in_pieces_of_ext_are_recovered_by_their_runs() {
    for kind in ["ext2", "ext4"] {
        let lab = lab();
        if !does(&lab, "mke2fs", &["-q", "-F", "-t", kind, "-b", "1024", "f"]) {
            return skip("mke2fs does not run");
        }
        let run = |command: String| does(&lab, "debugfs", &["-w", "-R", &command, "f"]);
        let put = |name: &str| run(format!("write files/{name} {name}"));
        let made = in_pieces(&lab, &put, &|name| run(format!("rm /{name}")));
        match made {
            Some(()) => check_in_pieces(&lab, "/large.gif"),
            None => return skip("debugfs does not run"),
        }
    }
}

#[test]
fn deleted_files_in_pieces_of_fat_are_recovered_by_their_runs() {
    let lab = lab();
    let put = |name: &str| does(&lab, "mcopy", &["-i", "f", &format!("files/{name}"), "::"]);
    let delete = |name: &str| does(&lab, "mdel", &["-i", "f", &format!("::{name}")]);
    let made = does(&lab, "mkfs.vfat", &["-F", "16", "-s", "1", "f"]);
    match made.then(|| in_pieces(&lab, &put, &delete)).flatten() {
        Some(()) => check_in_pieces(&lab, "/_arge.gif"),
        None => skip("mkfs.vfat or mtools do not run"),
    }
}
