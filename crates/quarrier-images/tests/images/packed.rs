//! Compressed disks, compared with the original bytes.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flate2::Compression;
use flate2::write::GzEncoder;
use quarrier_images::{Content, FolderSiblings, Kind, open};

use crate::lab::{Lab, all_of, check, media, open_at, skip};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A lab with a disk as `raw`; `None` if a tool is missing.
fn lab(length: usize, tools: &[&str]) -> Option<(Lab, Vec<u8>)> {
    let lab = Lab::new();
    if let Some(tool) = tools.iter().find(|tool| !lab.runs(tool, "--version")) {
        skip(&format!("{tool} does not run"));
        return None;
    }
    let media = media(length);
    lab.put("raw", &media);
    Some((lab, media))
}

#[test]
fn gzip_is_read_anywhere_however_its_members_lie() {
    let media = media(5_000_001);
    let lab = Lab::new();
    let members: Vec<u8> = media.chunks(77_777).flat_map(gzip).collect();
    for packed in [gzip(&media), members, [gzip(&media), vec![0; 1000]].concat()] {
        lab.put("image", &packed);
        let (image, kind) = open_at(&lab.path("image")).unwrap();
        assert_eq!(kind, Some(Kind::Gzip));
        check(&*image, &media);
    }
}

#[test]
fn damaged_gzip_yields_the_bytes_before_the_damage() {
    let media = media(5_000_000);
    let lab = Lab::new();
    let whole = gzip(&media);
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 0x55;
    let mut other = whole.clone();
    let end = other.len();
    other[end - 6] ^= 1;
    for packed in [&whole[..whole.len() / 2], &changed, &other] {
        lab.put("image", packed);
        let image = lab.open("image").unwrap();
        let end = image.readable_end();
        assert_eq!(image.length(), end + 1);
        assert!(end > 100_000 && end <= media.len() as u64, "{end}");
        let why = image.read_at(end, &mut [0]).unwrap_err().to_string();
        assert!(why.starts_with("damaged at byte "), "{why}");
    }
    lab.put("image", &whole[..12]);
    assert!(lab.open("image").is_ok_and(|image| image.length() == 12), "too short to be gzip");
    lab.put("image", &[&whole[..10], &[0xFF; 100]].concat());
    assert!(lab.refusal("image").contains("damaged"), "{}", lab.refusal("image"));
}

#[test]
fn compressed_files_of_the_tools_allow_random_access() {
    let Some((lab, media)) = lab(7_000_000, &["gzip", "xz", "bzip2", "zstd"]) else { return };
    for (command, name, kind) in [
        ("gzip|-k|-9|raw", "raw.gz", Kind::Gzip),
        ("xz|-k|-1|--block-size=300000|raw", "raw.xz", Kind::Xz),
        (
            "xz|-k|-f|-0|--x86|--lzma2=preset=0|--block-size=1MiB|--check=sha256|raw",
            "raw.xz",
            Kind::Xz,
        ),
        ("bzip2|-k|-1|raw", "raw.bz2", Kind::Bzip2),
        ("bzip2|-k|-f|-9|raw", "raw.bz2", Kind::Bzip2),
        ("zstd|-q|-k|-1|raw", "raw.zst", Kind::Zstd),
    ] {
        let (tool, arguments) = command.split_once('|').unwrap();
        assert!(lab.runs(tool, arguments), "{command}");
        let (image, found) = open_at(&lab.path(name)).unwrap();
        assert_eq!(found, Some(kind), "{command}");
        eprintln!("{command}");
        check(&*image, &media);
    }
    // As pzstd writes it: frames without data before each frame.
    let skipped = [
        &[0x5A, 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 1, 2, 3, 4][..],
        &[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0],
    ];
    lab.put("image", &[&skipped.concat()[..], &lab.read("raw.zst")].concat());
    let (image, found) = open_at(&lab.path("image")).unwrap();
    assert_eq!(found, Some(Kind::Zstd));
    check(&*image, &media);
    for plain in [skipped.concat(), skipped[0][..9].to_vec(), skipped[1].repeat(20)] {
        lab.put("image", &plain);
        assert!(lab.open("image").is_ok_and(|image| image.length() == plain.len() as u64));
    }
    // Concatenated streams count as one.
    for name in ["raw.xz", "raw.bz2", "raw.zst", "raw.gz"] {
        let packed = lab.read(name);
        lab.put(name, &[&packed[..], &packed].concat());
        assert!(all_of(&*lab.open(name).unwrap()) == [&media[..], &media].concat(), "{name}");
    }
}

/// A frame that does not state its length.
fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    let frame = encoder.finish().unwrap();
    assert_eq!(frame[4] & 0xE0, 0, "it states its length");
    frame
}

#[test]
fn zstd_frames_of_unknown_length_allow_random_access() {
    let (lab, media) = (Lab::new(), media(7_000_000));
    let content = || {
        let path = lab.path("image");
        let file = Arc::from(quarrier_core::source::open(&path).unwrap());
        open(file, &FolderSiblings::new(&path, false), &[], &AtomicBool::new(false))
            .unwrap()
            .content
    };
    // As zstd writes a file from a pipe, and as pzstd writes any.
    let mut frames: Vec<Vec<u8>> = media.chunks(1 << 20).map(zstd_frame).collect();
    for packed in [zstd_frame(&media), frames.concat()] {
        lab.put("image", &packed);
        let Content::Disk(image) = content() else { panic!("it can only be read in order") };
        check(&*image, &media);
    }
    // If one is damaged, those before it can still be read in order.
    *frames[4].last_mut().unwrap() ^= 1;
    lab.put("image", &frames.concat());
    let Content::Stream(sequential) = content() else { panic!("the damage was not noticed") };
    let mut found = Vec::new();
    assert!(sequential.reader().unwrap().read_to_end(&mut found).is_err());
    assert!(found.len() >= 4 << 20 && media.starts_with(&found));
}

#[test]
fn damage_of_a_block_is_of_that_block_alone() {
    let Some((lab, media)) = lab(4_000_000, &["xz"]) else { return };
    assert!(lab.runs("xz", "-k|-1|--block-size=500000|raw"));
    let mut packed = lab.read("raw.xz");
    let middle = packed.len() / 2;
    packed[middle] ^= 0x10;
    lab.put("raw.xz", &packed);
    let image = lab.open("raw.xz").unwrap();
    assert_eq!(image.length(), media.len() as u64);
    let mut failed = 0;
    for block in 0..8 {
        let mut bytes = vec![0; 500_000];
        match quarrier_core::source::read_full_at(&*image, block * 500_000, &mut bytes) {
            Ok(read) => assert!(bytes[..read] == media[block as usize * 500_000..][..read]),
            Err(_) => failed += 1,
        }
    }
    assert_eq!(failed, 1);
}

#[test]
fn a_truncated_file_is_read_in_order_up_to_its_end() {
    let Some((lab, media)) = lab(4_000_000, &["xz"]) else { return };
    assert!(lab.runs("xz", "-k|-1|--block-size=500000|raw"));
    let frames: Vec<u8> = media.chunks(1 << 20).flat_map(zstd_frame).collect();
    for packed in [lab.read("raw.xz"), frames] {
        lab.put("image", &packed[..packed.len() - 50_000]);
        let path = lab.path("image");
        let file = Arc::from(quarrier_core::source::open(&path).unwrap());
        let beside = FolderSiblings::new(&path, false);
        let content = open(file, &beside, &[], &AtomicBool::new(false)).unwrap().content;
        let Content::Stream(sequential) = content else { panic!("the damage was not noticed") };
        let mut found = Vec::new();
        assert!(sequential.reader().unwrap().read_to_end(&mut found).is_err());
        assert!(found.len() >= 3_000_000 && media.starts_with(&found), "{}", found.len());
        lab.put("image", &packed[..30]);
        assert!(lab.refusal("image").contains("damaged"), "{}", lab.refusal("image"));
    }
}

#[test]
fn a_compressed_image_is_opened_as_the_image_inside() {
    let Some((lab, media)) = lab(3 << 20, &["qemu-img", "xz"]) else { return };
    assert!(lab.runs("qemu-img", "convert|-f|raw|-O|qcow2|-c|raw|image"));
    lab.put("image.gz", &gzip(&lab.read("image")));
    let (image, kind) = open_at(&lab.path("image.gz")).unwrap();
    assert_eq!(kind, Some(Kind::Qcow2));
    check(&*image, &media);
    lab.put("image.gz", &gzip(&gzip(&gzip(&gzip(&gzip(&lab.read("image")))))));
    assert!(lab.refusal("image.gz").contains("more than"), "{}", lab.refusal("image.gz"));
}
