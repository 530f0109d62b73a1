//! Virtual disks and compressed images: the same rows as from the bytes inside.

use std::ffi::OsStr;
use std::io::Write;

use md5::{Digest, Md5};

use crate::carve::{carve, gif, image, tree};
use crate::harness::{Lab, noise, run, skip};
use crate::remote::Server;

/// A QCOW2 image with clusters of 64 KiB, without zero clusters.
pub(crate) fn qcow2(disk: &[u8]) -> Vec<u8> {
    const CLUSTER: usize = 64 << 10;
    let mut file = vec![0; 3 * CLUSTER];
    file[..8].copy_from_slice(b"QFI\xfb\0\0\0\x02");
    file[20..24].copy_from_slice(&16u32.to_be_bytes());
    file[24..32].copy_from_slice(&(disk.len() as u64).to_be_bytes());
    file[36..40].copy_from_slice(&1u32.to_be_bytes());
    file[40..48].copy_from_slice(&(CLUSTER as u64).to_be_bytes());
    file[CLUSTER..CLUSTER + 8].copy_from_slice(&((2 * CLUSTER as u64) | (1 << 63)).to_be_bytes());
    for (index, cluster) in disk.chunks(CLUSTER).enumerate() {
        if cluster.iter().any(|&byte| byte != 0) {
            let at = file.len() as u64 | 1 << 63;
            file[2 * CLUSTER + index * 8..][..8].copy_from_slice(&at.to_be_bytes());
            file.extend(cluster);
            file.resize(file.len().next_multiple_of(CLUSTER), 0);
        }
    }
    file
}

/// An AFF4 image with chunks of 32 KiB in zlib, without zero chunks; with the map entries for some
/// chunks, and the type of the image.
pub(crate) fn aff4(disk: &[u8], named: &[(usize, &str)], kind: &str) -> Vec<u8> {
    const CHUNK: usize = 32 << 10;
    let (mut data, mut index, mut map) = (Vec::new(), Vec::new(), Vec::new());
    let (mut hash, mut stored) = (Md5::new(), 0);
    let mut names = vec!["aff4://data".to_string()];
    for (number, chunk) in disk.chunks(CHUNK).enumerate() {
        let name = named.iter().find(|(at, _)| *at == number);
        if name.is_none() && chunk.iter().all(|&byte| byte == 0) {
            continue;
        }
        let target = name.map_or(0, |(_, name)| {
            names.push(format!("http://aff4.org/Schema#{name}"));
            names.len() as u32 - 1
        });
        for value in [number * CHUNK, chunk.len(), stored * CHUNK] {
            map.extend((value as u64).to_le_bytes());
        }
        map.extend(target.to_le_bytes());
        if name.is_none() {
            let level = flate2::Compression::fast();
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(chunk).unwrap();
            let packed = encoder.finish().unwrap();
            let packed = if packed.len() < CHUNK { packed } else { chunk.to_vec() };
            index.extend((data.len() as u64).to_le_bytes());
            index.extend((packed.len() as u32).to_le_bytes());
            data.extend(packed);
            hash.update(chunk);
            stored += 1;
        }
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "@prefix aff4: <http://aff4.org/Schema#> .\n\
         <aff4://i> a aff4:{kind} , aff4:Image ; aff4:dataStream <aff4://map> ; aff4:size {} .\n\
         <aff4://map> a aff4:Map ; aff4:mapGapDefaultStream aff4:Zero .\n\
         <aff4://data> a aff4:ImageStream ; aff4:chunkSize {CHUNK} ; aff4:chunksInSegment 2048 ;\n\
         aff4:compressionMethod <https://www.ietf.org/rfc/rfc1950.txt> ; aff4:size {} ;\n\
         aff4:hash \"{hash}\"^^aff4:MD5 .\n",
        disk.len(),
        stored * CHUNK
    );
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    let names = names.join("\n");
    let members: [(&str, &[u8]); 6] = [
        ("container.description", b"aff4://v"),
        ("aff4%3A%2F%2Fdata/00000000", &data),
        ("aff4%3A%2F%2Fdata/00000000.index", &index),
        ("aff4%3A%2F%2Fmap/map", &map),
        ("aff4%3A%2F%2Fmap/idx", names.as_bytes()),
        ("information.turtle", text.as_bytes()),
    ];
    for (name, bytes) in members {
        let at = file.len() as u32;
        let mut common = vec![0; 12];
        common.extend((bytes.len() as u32).to_le_bytes().repeat(2));
        common.extend((name.len() as u16).to_le_bytes());
        file.extend([&b"PK\x03\x04\0\0"[..], &common, &[0, 0], name.as_bytes(), bytes].concat());
        directory.extend([&b"PK\x01\x02\0\0\0\0"[..], &common, &[0; 12]].concat());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let at = file.len() as u32;
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0\x06\0\x06\0");
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    file
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A disk with words across clusters, pictures, and many zeros.
fn disk() -> Vec<u8> {
    let files = [(70_000, gif("a")), (131_000, gif(&"cluster ".repeat(9000))), (900_000, gif("b"))];
    let files: Vec<(usize, &[u8])> = files.iter().map(|(at, file)| (*at, &file[..])).collect();
    let mut disk = image(2 << 20, &files);
    disk[1_000_000..1_900_000].fill(0);
    for at in [0, (64 << 10) - 3, 1_500_000, (2 << 20) - 7] {
        disk[at..at + 7].copy_from_slice(b"<token>");
    }
    disk
}

/// The rows of a search, without the name of the source.
fn rows(lab: &Lab, source: &str) -> Vec<crate::harness::Row> {
    let ran = lab.search(["-e", "<token>", "-E", "[a-f]{3,9}", "--format", "json", source]);
    let mut rows = ran.rows();
    rows.iter_mut().for_each(|row| row.source.clear());
    rows
}

/// The files of a carved folder, without the name of the source in its reports.
fn carved(lab: &Lab, source: &str, folder: &str) -> Vec<(String, String)> {
    let ran = carve(lab, &[source, "-o", folder]);
    assert!(ran.code < Some(2) && ran.stderr.is_empty(), "{ran:?}");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(source, "f");
    tree(&lab.path(folder)).into_iter().map(|(name, bytes)| (name, text(bytes))).collect()
}

#[test]
fn an_image_gives_the_rows_and_files_of_its_disk_under_any_name() {
    let disk = disk();
    let lab = Lab::with(&disk);
    lab.put("disk.bin", qcow2(&disk));
    lab.put("disk.gz", gzip(&disk));
    lab.put("packed", gzip(&qcow2(&disk)));
    lab.put("disk.aff4", aff4(&disk, &[], "DiskImage"));
    let expected = rows(&lab, "f");
    assert!(expected.len() > 4, "{}", expected.len());
    let files = carved(&lab, "f", "raw");
    assert!(files.len() >= 5, "{}", files.len());
    for (number, name) in ["disk.bin", "disk.gz", "packed", "disk.aff4"].into_iter().enumerate() {
        assert_eq!(rows(&lab, name), expected, "{name}");
        assert!(carved(&lab, name, &format!("out{number}")) == files, "{name}");
    }
}

/// A frame of Zstandard with these bytes and then zeros, more than 128 MiB in all.
fn long_zst(bytes: &[u8]) -> Vec<u8> {
    zst_of(&[(bytes, 1025)])
}

/// A block of Zstandard.
const BLOCK: usize = 128 << 10;

/// A frame of Zstandard with bytes, and a number of blocks of zeros after each.
fn zst_of(parts: &[(&[u8], usize)]) -> Vec<u8> {
    let length: usize = parts.iter().map(|(bytes, zeros)| bytes.len() + zeros * BLOCK).sum();
    // Its header: the magic number, a length of four bytes and no checksum, a window of one MiB.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x80, 0x50];
    frame.extend((length as u32).to_le_bytes());
    let mut last = 0;
    for (bytes, zeros) in parts {
        for block in bytes.chunks(BLOCK) {
            frame.extend(&((block.len() as u32) << 3).to_le_bytes()[..3]);
            frame.extend(block);
        }
        // Blocks of one byte, repeated.
        for _ in 0..*zeros {
            last = frame.len();
            frame.extend(&((BLOCK as u32) << 3 | 2).to_le_bytes()[..3]);
            frame.push(0);
        }
    }
    frame[last] |= 1;
    frame
}

#[test]
fn a_frame_that_is_too_long_for_memory_gives_the_rows_and_files_of_its_disk() {
    let disk = disk();
    let lab = Lab::new();
    lab.put_sparse("f", disk.len() as u64 + (1025 << 17), &[(0, &disk)]);
    lab.put("disk.zst", long_zst(&disk));
    lab.put("inside.zst", long_zst(&qcow2(&disk)));
    let server = Server::with(vec![("disk.zst", long_zst(&disk))]);
    let files = carved(&lab, "f", "raw");
    assert!(files.len() >= 5, "{}", files.len());
    for (number, name) in ["disk.zst", &server.url, "inside.zst"].into_iter().enumerate() {
        assert_eq!(rows(&lab, name), rows(&lab, "f"), "{name}");
        assert!(carved(&lab, name, &format!("out{number}")) == files, "{name}");
    }
    let part = ["token", "--range", "1M..140M", "-c"];
    let of_part = |name: &str| lab.search(part.into_iter().chain([name])).text().to_string();
    assert_eq!(of_part("disk.zst"), of_part("f"));
    // A search from the start needs no temporary file, everything else says where it needs one.
    let without = |args: &[&str]| {
        let mut command = lab.command(args);
        command.env("TMPDIR", lab.path("missing"));
        run(command, b"")
    };
    let ran = without(&["search", "-c", "<token>", "disk.zst"]);
    assert_eq!(ran.is_clean().text().trim(), "4  <token>");
    for command in [&["carve", "disk.zst", "-o", "no"][..], &["search", "a", "inside.zst"]] {
        without(command).refuses(&["cannot create a temporary file in", "missing"]);
    }
}

#[test]
fn without_space_for_a_long_frame_carving_says_so_and_goes_on_with_more() {
    let lab = Lab::new();
    let (first, second) = (gif("first"), gif("second"));
    let at = (first.len() + 600 * BLOCK) as u64;
    lab.put_sparse("f", at + second.len() as u64 + (600 << 17), &[(0, &first), (at, &second)]);
    lab.put("disk.zst", zst_of(&[(&first, 600), (&second, 600)]));
    // A limit of 32 MiB for each file, or 64 in a shell that counts blocks of 1024 bytes.
    let line = "trap '' XFSZ; ulimit -f 65536; exec \"$0\" carve disk.zst -o out";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", line, env!("CARGO_BIN_EXE_quarrier")]).current_dir(lab.path(""));
    let ran = run(command, b"");
    ran.says(2, &["disk.zst: cannot read", "there is no space for temporary files in /", "TMPDIR"]);
    let found = tree(&lab.path("out"));
    assert!(found.contains_key("gif/000000000000.gif") && found.len() < 6, "{:?}", found.keys());
    assert_eq!(String::from_utf8_lossy(&found["report.jsonl"]).lines().count(), 1);
    assert!(carve(&lab, &["disk.zst", "-o", "out", "--resume"]).stderr.is_empty());
    let text = |folder: &str| {
        let files = tree(&lab.path(folder)).into_iter();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace("disk.zst", "f");
        files.map(|(name, bytes)| (name, text(bytes))).collect::<Vec<_>>()
    };
    carve(&lab, &["f", "-o", "raw"]).is_clean();
    assert_eq!(text("out"), text("raw"));
}

#[test]
fn a_truncated_long_frame_gives_the_files_before_its_end() {
    let disk = disk();
    let lab = Lab::with(&disk);
    let packed = long_zst(&disk);
    lab.put("cut.zst", &packed[..packed.len() - 2000]);
    let files = carved(&lab, "f", "raw");
    let ran = carve(&lab, &["cut.zst", "-o", "out"]);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let [damage, range] = lines[..] else { panic!("{ran:?}") };
    let (_, end) =
        damage.split_once("cut.zst: damaged: incomplete frame; nothing after byte ").unwrap();
    let end: u64 = end.split(' ').next().unwrap().parse().unwrap();
    assert!(end > 64 << 20, "{damage}");
    let unread = format!("bytes {end}..{} could not be read", end + 1);
    assert!(ran.code == Some(3) && range.ends_with(&unread), "{ran:?}");
    let names = |files: Vec<(String, String)>| -> Vec<String> {
        let names = files.into_iter().map(|(name, _)| name);
        names.filter(|name| name.ends_with(".gif")).collect()
    };
    let found = tree(&lab.path("out")).into_keys().map(|name| (name, String::new())).collect();
    assert_eq!(names(found), names(files));
}

#[test]
fn every_container_of_qemu_gives_the_rows_of_its_disk() {
    let disk = disk();
    let lab = Lab::with(&disk);
    let expected = rows(&lab, "f");
    let forms: [&[&str]; 8] = [
        &["qcow2", "-c"],
        &["vmdk"],
        &["vmdk", "-o", "subformat=streamOptimized"],
        &["vmdk", "-o", "subformat=twoGbMaxExtentSparse"],
        &["vpc", "-o", "force_size=on"],
        &["vpc", "-o", "force_size=on,subformat=fixed"],
        &["vhdx"],
        &["vdi"],
    ];
    for form in forms {
        let (raw, image) = (lab.path("f"), lab.path("image"));
        let mut arguments = vec![OsStr::new("convert"), OsStr::new("-f"), OsStr::new("raw")];
        arguments.push(OsStr::new("-O"));
        arguments.extend(form.iter().map(OsStr::new));
        arguments.extend([raw.as_os_str(), image.as_os_str()]);
        if !crate::harness::works("qemu-img", &arguments) {
            return skip("qemu-img does not run");
        }
        assert_eq!(rows(&lab, "image"), expected, "{form:?}");
    }
}

#[test]
fn an_unreadable_image_is_named_and_its_raw_bytes_are_never_searched() {
    let lab = Lab::new();
    let mut encrypted = qcow2(&disk());
    encrypted[35] = 2;
    lab.put("encrypted", encrypted);
    lab.search(["token", "encrypted"]).refuses(&["encrypted: is encrypted", "qemu-img"]);
    let mut top = qcow2(&disk());
    top[8..16].copy_from_slice(&0x1000u64.to_be_bytes());
    top[16..20].copy_from_slice(&9u32.to_be_bytes());
    top[0x1000..0x1009].copy_from_slice(b"base.disk");
    lab.put("top", &top);
    lab.search(["token", "top"]).refuses(&["top: needs its backing file 'base.disk'"]);
    lab.put("base.disk", b"short");
    assert_eq!(lab.search(["<token>", "top", "-c"]).is_clean().text().trim(), "4  <token>");
    lab.put("cut", &qcow2(&disk())[..100_000]);
    let ran = lab.search(["token", "cut"]);
    assert!(matches!(ran.code, Some(2 | 3)), "{ran:?}");
    lab.put("aff4", [&[b'P', b'K', 3, 4][..], &[0; 26], b"container.descriptionaff4://"].concat());
    lab.search(["token", "aff4"]).refuses(&["aff4: damaged", "ZIP"]);
    lab.put("aff4", aff4(&disk(), &[], "FileImage"));
    lab.search(["token", "aff4"]).refuses(&["aff4: is a logical AFF4 image", "export the files"]);
    let whole = gzip(&disk());
    lab.put("half.gz", &whole[..whole.len() / 2]);
    let ran = lab.search(["token", "half.gz"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("damaged at byte"), "{ran:?}");
}

#[test]
fn a_partition_is_a_source() {
    let mut disk = vec![0; 400 << 9];
    for (index, (start, sectors)) in [(100u32, 50u32), (200, 100)].into_iter().enumerate() {
        let entry = 446 + index * 16;
        disk[entry + 4] = 0x83;
        disk[entry + 8..entry + 12].copy_from_slice(&start.to_le_bytes());
        disk[entry + 12..entry + 16].copy_from_slice(&sectors.to_le_bytes());
    }
    disk[510..512].copy_from_slice(&[0x55, 0xAA]);
    for at in [90 << 9, (200 << 9) + 17, (300 << 9) - 5, 390 << 9] {
        disk[at..at + 5].copy_from_slice(b"token");
    }
    let lab = Lab::with(&disk);
    lab.put("image", qcow2(&disk));
    for source in ["f#2", "image#2"] {
        assert_eq!(lab.offsets(["token", source]), [17, (100 << 9) - 5], "{source}");
    }
    lab.search(["token", "f#3"]).refuses(&["f: has 2 partitions", "#3"]);
    lab.search(["token", "f#0"]).refuses(&["#0"]);
    lab.put("other#2", b"token");
    assert_eq!(lab.offsets(["token", "other#2"]), [0]);
    let server = Server::with(vec![("disk.qcow2", qcow2(&disk))]);
    assert_eq!(lab.offsets(["token", &format!("{}#2", server.url)]), [17, (100 << 9) - 5]);
}

#[test]
fn an_image_at_a_url_is_fetched_only_as_needed() {
    let mut disk = vec![0; 64 << 20];
    disk[..1 << 20].copy_from_slice(&noise(1 << 20, 5));
    disk[50 << 20..(50 << 20) + 5].copy_from_slice(b"token");
    let file = qcow2(&disk);
    assert!(file.len() < 4 << 20);
    let lab = Lab::new();
    let server = Server::with(vec![("disk.qcow2", file.clone())]);
    assert_eq!(lab.offsets(["token", &server.url]), [50 << 20]);
    assert!(server.requests() < 30, "{} requests", server.requests());
    // A disk on top of it, which refers to it by its name in the same folder.
    let mut top = qcow2(&vec![0; 64 << 20]);
    top[8..16].copy_from_slice(&0x1000u64.to_be_bytes());
    top[16..20].copy_from_slice(&10u32.to_be_bytes());
    top[0x1000..0x100A].copy_from_slice(b"disk.qcow2");
    let server = Server::with(vec![("top.qcow2", top.clone()), ("disk.qcow2", file)]);
    assert_eq!(lab.offsets(["token", &server.url]), [50 << 20]);
    let server = Server::with(vec![("top.qcow2", top)]);
    lab.search(["token", &server.url]).refuses(&["backing file 'disk.qcow2'"]);
}

#[test]
fn an_aff4_image_at_a_url_is_fetched_only_as_needed() {
    let mut disk = vec![0; 64 << 20];
    disk[..1 << 20].copy_from_slice(&noise(1 << 20, 5));
    disk[50 << 20..(50 << 20) + 5].copy_from_slice(b"token");
    let server = Server::with(vec![("disk.aff4", aff4(&disk, &[], "DiskImage"))]);
    let lab = Lab::new();
    assert_eq!(lab.offsets(["token", &server.url]), [50 << 20]);
    assert!(server.requests() < 30, "{} requests", server.requests());
}

#[test]
fn ranges_that_the_drive_did_not_give_are_listed_and_others_are_searched() {
    let disk = disk();
    let lab = Lab::new();
    // The chunks of the second token, and of a part without one.
    lab.put("f", aff4(&disk, &[(2, "UnreadableData"), (40, "UnknownData")], "DiskImage"));
    let ran = lab.search(["<token>", "f", "-c"]);
    assert_eq!((ran.code, ran.text().trim()), (Some(3), "3  <token>"), "{ran:?}");
    for words in ["65536", "32768 of its 2097152 bytes were not acquired"] {
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
}

#[test]
fn the_hashes_of_an_aff4_image_are_compared_when_asked_for() {
    let disk = disk();
    let lab = Lab::new();
    let mut file = aff4(&disk, &[], "DiskImage");
    lab.put("image.aff4", &file);
    carve(&lab, &["image.aff4", "--dry-run", "--verify"])
        .says(0, &["image.aff4: stored MD5 of the data stream ", ": matches"]);
    let at = file.windows(11).position(|part| part == b"aff4:hash \"").unwrap() + 11;
    file[at..at + 32].fill(b'a');
    lab.put("image.aff4", &file);
    carve(&lab, &["image.aff4", "--dry-run", "--verify"])
        .says(3, &[&"a".repeat(32), "does not match"]);
}

#[test]
fn messages_inside_images_and_archives_are_read() {
    let lines: String = (0..5000).map(|n| format!("{{\"a\": {n}}}\n")).collect();
    let lab = Lab::with(&lines);
    lab.put("disk", qcow2(lines.as_bytes()));
    lab.put("lines.gz", gzip(lines.as_bytes()));
    for source in ["f", "disk", "lines.gz"] {
        let ran = run(lab.command(["filter", "a < 7", source, "-c"]), b"");
        assert_eq!((ran.code, ran.text().trim()), (Some(0), "7"), "{source}: {ran:?}");
    }
}

/// The beginning of a file of each format that is recognised but not supported, with a word of the
/// refusal.
const REFUSED: [(&[u8], &str); 8] = [
    (b"AFF10\r\n\0", "AFF"),
    (b"encrcdsa", "encrypted"),
    (b"sprs\0\0\0\x03", "sparse image of macOS"),
    (b"LVF\x09\x0d\x0a\xff\x00", "logical"),
    (b"LEF2\x0d\x0a\x81\x00", "logical"),
    (b"QED\0", "QED"),
    (b"\xBE\xBA\xFE\xCA\0\0\0\0\x01\0", "seSparse"),
    (b"QFI\xfb\0\0\0\x09", "version"),
];

/// The same for formats that are searched unchanged, with a notice.
const NOTICED: [(&[u8], &str); 12] = [
    (b"\x04\x22\x4D\x18", "LZ4"),
    (b"LZIP\x01", "lzip"),
    (b"\x89LZO\0\r\n\x1A\n", "lzop"),
    (b"\x1F\x9D\x90", "compress"),
    (b"\x5D\0\0\x80\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0", "LZMA"),
    (b"MSWIM\0\0\0", "WIM"),
    (b"IsZ!", "ISZ"),
    (b"partclone-image", "Partclone"),
    (b"Bochs Virtual HD Image", "Bochs"),
    (b"#!/bin/sh\n#V2.0 Format\n", "cloop"),
    (b"LUKS\xBA\xBE", "LUKS"),
    (b"\xEB\x58\x90-FVE-FS-", "BitLocker"),
];

#[test]
fn wrapped_and_encrypted_disks_are_opened_or_named_under_any_name() {
    let lab = Lab::new();
    let put = |head: &[u8]| {
        let mut file = noise(200_000, 5);
        file[..head.len()].copy_from_slice(head);
        file[100_000..100_006].copy_from_slice(b"needle");
        lab.put("d.bin", file);
    };
    for (head, word) in REFUSED {
        put(head);
        lab.search(["needle", "d.bin"]).refuses(&["d.bin", word]);
        carve(&lab, &["d.bin", "--dry-run"]).refuses(&["d.bin", word]);
    }
    for (head, word) in NOTICED {
        put(head);
        let ran = lab.search(["needle", "d.bin"]);
        ran.says(0, &["d.bin", word, "read as raw data"]);
        assert_eq!(ran.lines().len(), 1);
    }
    // The same holds for the content of an image.
    let mut locked = noise(200_000, 5);
    locked[..6].copy_from_slice(b"LUKS\xBA\xBE");
    lab.put("d.bin", locked);
    let packed = std::process::Command::new("gzip").arg("-n").arg(lab.path("d.bin")).status();
    assert!(packed.unwrap().success());
    lab.search(["needle", "d.bin.gz"]).says(1, &["d.bin.gz", "LUKS"]);
}
