//! XFS, made by mkfs.xfs from a list of files, compared with xfs_db.

use std::collections::BTreeMap;
use std::fmt::Write;

use quarrier_files::{Access, Kind, Places, Reach, State, find};

use super::lab::{Lab, content, entries, named, noise, skip};

/// A volume with files, folders in every format, and links.
fn volume(options: &[&str]) -> Option<Lab> {
    let lab = Lab::new(64);
    let long = "x".repeat(700);
    let mut list = "/dev/null\n0 0\nd--755 0 0\n".to_string();
    for name in ["a.txt", "empty", "random.bin", "gone.bin"] {
        let _ = writeln!(list, "{name} ---644 0 0 files/{name}");
    }
    list.push_str("docs d--755 0 0\n");
    list.push_str("deep d--755 0 0\nleaf.txt ---644 0 0 files/docs/deep/deeper/leaf.txt\n$\n");
    for number in 0..700 {
        let _ = writeln!(list, "number-{number}-with-a-long-name ---644 0 0 files/a.txt");
    }
    let _ = writeln!(list, "$\nsmall d--755 0 0");
    for number in 0..30 {
        let _ = writeln!(list, "n{number} ---644 0 0 files/a.txt");
    }
    let _ = writeln!(
        list,
        "$\nlink l--777 0 0 docs/deep/leaf.txt\nlong-link l--777 0 0 {long}\npipe pug644 70000 33\n$"
    );
    lab.put("list", list.as_bytes());
    let args = [&["-q", "-f", "-p", "list"], options, &["image"]].concat();
    // mkfs.xfs refuses volumes of less than 300 MiB by default.
    let small = [&["--unsupported"], &args[..]].concat();
    if !lab.does("mkfs.xfs", &small) && !lab.does("mkfs.xfs", &args) {
        skip(&format!("mkfs.xfs {} does not run", options.join(" ")));
        return None;
    }
    Some(lab)
}

/// The output of xfs_db.
fn said(lab: &Lab, commands: &[&str]) -> Option<String> {
    let mut args = vec!["-r"];
    commands.iter().for_each(|command| args.extend(["-c", command]));
    args.push("image");
    lab.run("xfs_db", &args).map(|text| String::from_utf8(text).unwrap())
}

/// The names in a folder with inode and type, according to xfs_db.
fn listed(lab: &Lab, path: &str) -> BTreeMap<String, (u64, Kind)> {
    let text = said(lab, &[&format!("ls {path}")]).unwrap();
    let names = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, inode, kind, _, _, name, ..] = fields[..] else { return None };
        let kind = match kind {
            "regular" => Kind::File,
            "directory" => Kind::Folder,
            "symlink" => Kind::Link,
            _ => Kind::Other,
        };
        (name != "." && name != "..").then(|| (name.to_string(), (inode.parse().unwrap(), kind)))
    });
    names.collect()
}

#[test]
fn xfs_of_every_shape_is_as_xfs_db_has_it() {
    let shapes: &[&[&str]] = &[
        &[],
        &["-m", "crc=0,finobt=0,reflink=0", "-n", "ftype=0"],
        &["-b", "size=1024", "-n", "size=8192", "-i", "size=512"],
        &["-m", "bigtime=0,rmapbt=1", "-d", "agcount=3"],
        &["-i", "nrext64=1"],
    ];
    for shape in shapes {
        let Some(lab) = volume(shape) else { continue };
        let source = lab.source();
        let all = entries(&source);
        if said(&lab, &["sb 0"]).is_none() {
            return skip("xfs_db does not run");
        }
        for folder in ["/", "/docs", "/docs/deep", "/small"] {
            let below = if folder == "/" { "/".to_string() } else { format!("{folder}/") };
            let ours: BTreeMap<String, (u64, Kind)> = all
                .iter()
                .filter_map(|entry| {
                    let name = entry.path.strip_prefix(&below)?;
                    let is_in = !name.is_empty() && !name.contains('/');
                    is_in.then(|| (name.to_string(), (entry.inode, entry.kind)))
                })
                .collect();
            let mut expected = listed(&lab, folder);
            if shape.contains(&"ftype=0") {
                // Without file types in folders xfs_db prints none.
                for (name, (_, kind)) in &mut expected {
                    *kind = ours[name].1;
                }
            }
            assert_eq!(ours, expected, "{shape:?} {folder}");
        }
        assert_eq!(all.len(), 1 + 9 + 2 + 700 + 30, "{shape:?}");
        for (path, name, bytes) in [
            ("/a.txt", "a.txt", 6),
            ("/empty", "empty", 0),
            ("/random.bin", "random.bin", 100_000),
            ("/docs/deep/leaf.txt", "docs/deep/deeper/leaf.txt", 700),
            ("/docs/number-699-with-a-long-name", "a.txt", 6),
        ] {
            let entry = named(&all, path);
            assert_eq!((entry.size, entry.state), (bytes as u64, State::Allocated), "{path}");
            assert!(content(&source, entry) == noise(name, bytes), "{shape:?} {path}");
            // Between 2020 and 2120.
            let seconds = entry.times.modified.unwrap() / 1_000_000_000;
            assert!((1_577_836_800..4_733_510_400).contains(&seconds), "{seconds}");
        }
        let pipe = Access { mode: Some(0o016_644), user: 70_000, group: 33 };
        assert_eq!(named(&all, "/pipe").access, pipe);
        assert_eq!(content(&source, named(&all, "/link")), b"docs/deep/leaf.txt");
        assert_eq!(content(&source, named(&all, "/long-link")), "x".repeat(700).as_bytes());

        let free = quarrier_files::unallocated::find(&source).unwrap();
        assert_eq!(free.volumes[0].kind, "XFS");
        let text = said(&lab, &["sb 0", "p agcount blocksize"]).unwrap();
        let number = |text: &str| text.trim().rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        let [groups, block_bytes] = [0, 1].map(|line| number(text.lines().nth(line).unwrap()));
        let blocks: u64 = (0..groups)
            .map(|group| number(&said(&lab, &[&format!("agf {group}"), "p freeblks"]).unwrap()))
            .sum();
        assert_eq!(free.bytes(), blocks * block_bytes, "{shape:?}");
        let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
        assert_eq!(places.unallocated_notices(), Vec::<String>::new());
        assert_eq!(places.damages(), [""; 0]);
        for entry in all.iter().filter(|entry| entry.kind == Kind::File) {
            for extent in entry.extents() {
                assert_eq!(places.at(extent.offset).inode, Some(entry.inode), "{}", entry.path);
            }
        }
        assert!(find(&source).unwrap().notices().is_empty());
    }
}

#[test]
fn structures_that_lead_in_circles_end() {
    let Some(lab) = volume(&[]) else { return };
    let whole = entries(&lab.source());
    let mut image = std::fs::read(lab.path("image")).unwrap();
    // Make a folder's names point to the root, and its first free region to itself.
    let docs = named(&whole, "/docs").extents()[0];
    let root = named(&whole, "/").inode.to_be_bytes();
    let leaf = named(&whole, "/docs/deep").inode.to_be_bytes();
    let at = docs.offset as usize;
    let place = image[at..at + 4096].windows(8).position(|eight| eight == leaf).unwrap();
    image[at + place..at + place + 8].copy_from_slice(&root);
    std::fs::write(lab.path("image"), &image).unwrap();
    let all = entries(&lab.source());
    assert!(all.iter().all(|entry| !entry.path.starts_with("/docs/deep")));
    assert_eq!(named(&all, "/random.bin").size, 100_000);
}

/// Deletes a file as the kernel does: its inode keeps the extents, and is free.
fn delete(image: &mut [u8], number: u64) {
    let is_it = |at: &usize| {
        image[*at..].starts_with(b"IN") && image[at + 152..at + 160] == number.to_be_bytes()
    };
    let at = (0..image.len()).step_by(512).find(is_it).unwrap();
    image[at + 2..at + 4].fill(0);
    image[at + 5] = 2;
    image[at + 56..at + 72].fill(0);
    image[at + 76..at + 80].fill(0);
    image[at + 82] = 0;
    let chunks = (0..image.len()).step_by(4096).filter(|at| image[*at..].starts_with(b"IAB3"));
    let chunks: Vec<usize> = chunks.flat_map(|at| (at + 56..at + 4096).step_by(16)).collect();
    let first = |at: usize| u64::from(u32::from_be_bytes(image[at..at + 4].try_into().unwrap()));
    let has = |at: &usize| (first(*at)..first(*at) + 64).contains(&number);
    let at = chunks.into_iter().find(has).unwrap();
    let bit = number - first(at);
    image[at + 15 - bit as usize / 8] |= 1 << (bit % 8);
}

#[test]
fn deleted_files_keep_their_extents_and_some_their_names() {
    let Some(lab) = volume(&["-d", "agcount=1"]) else { return };
    let source = lab.source();
    let whole = entries(&source);
    let mut image = std::fs::read(lab.path("image")).unwrap();
    // Three adjacent names: the first and the second keep their names, the third does not.
    let paths = [350, 351, 352].map(|number| format!("/docs/number-{number}-with-a-long-name"));
    let numbers = paths.each_ref().map(|path| named(&whole, path).inode);
    let extents = named(&whole, "/docs").extents();
    let entry_at = |image: &[u8], number: u64| {
        let is_it = |at: &usize| image[*at..at + 8] == number.to_be_bytes();
        let blocks = extents.iter().flat_map(|one| one.offset..one.offset + one.length);
        blocks.step_by(8).map(|at| at as usize).find(is_it).unwrap()
    };
    let places = numbers.map(|number| entry_at(&image, number));
    assert!(places[1] - places[0] < 64 && places[2] - places[1] < 64);
    let end = places[1] + (places[1] - places[0]);
    image[places[0]..places[0] + 2].fill(0xFF);
    let length = ((end - places[0]) as u16).to_be_bytes();
    image[places[0] + 2..places[0] + 4].copy_from_slice(&length);
    if places[2] == end {
        let length = 40u16.to_be_bytes();
        image[end..end + 2].fill(0xFF);
        image[end + 2..end + 4].copy_from_slice(&length);
        image[end + 8] = 0;
    }
    numbers.iter().for_each(|number| delete(&mut image, *number));
    lab.put("image", &image);

    let source = lab.source();
    let all = entries(&source);
    for (path, number) in [
        (paths[0].clone(), numbers[0]),
        (paths[1].clone(), numbers[1]),
        (format!("/$OrphanFiles/OrphanFile-{}", numbers[2]), numbers[2]),
    ] {
        let entry = named(&all, &path);
        assert_eq!(
            (entry.inode, entry.state, entry.size),
            (number, State::Deleted, 4096),
            "{path}"
        );
        let bytes = content(&source, entry);
        assert_eq!(bytes[..6], noise("a.txt", 6));
        let live = named(&whole, &paths[numbers.iter().position(|one| *one == number).unwrap()]);
        assert_eq!(entry.extents()[0].offset, live.extents()[0].offset);
    }
    assert_eq!(all.len(), whole.len());
}
