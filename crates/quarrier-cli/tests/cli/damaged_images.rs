//! Images of every type with a damaged beginning, through the commands that read disks: one line names the
//! damage, besides lists of unreadable ranges, and the exit code reflects the result.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::carve_free::does;
use crate::ewf::{ewf, sealed};
use crate::harness::{Lab, Ran, run, skip};
use crate::images::{aff4, gzip, qcow2};

const COMMANDS: [&[&str]; 6] = [
    &["search", "-q", "invoice"],
    &["search", "-q", "invoice", "--where"],
    &["search", "-q", "invoice", "--unallocated"],
    &["search", "-q", "--rules", "r.yar"],
    &["files", "-q"],
    &["carve", "-q", "--dry-run", "--unallocated"],
];

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A DMG of chunks of 64 KiB, alternately stored and compressed with zlib.
fn dmg(disk: &[u8]) -> Vec<u8> {
    let (mut file, mut table) = (Vec::new(), b"mish\0\0\0\x01".to_vec());
    table.extend([0; 8]);
    table.extend((disk.len() as u64 / 512).to_be_bytes());
    table.resize(200, 0);
    let chunks = disk.chunks(64 << 10);
    table.extend((chunks.len() as u32 + 1).to_be_bytes());
    for (number, chunk) in chunks.enumerate() {
        let (kind, packed) = match number % 2 {
            0 => (1u32, chunk.to_vec()),
            _ => (0x8000_0005, zlib(chunk)),
        };
        table.extend(kind.to_be_bytes());
        table.extend([0; 4]);
        for value in [number * 128, chunk.len() / 512, file.len(), packed.len()] {
            table.extend((value as u64).to_be_bytes());
        }
        file.extend(packed);
    }
    table.extend(u32::MAX.to_be_bytes());
    table.extend([0; 36]);
    let list = format!(
        "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>resource-fork</key><dict><key>blkx</key>\
         <array><dict><key>Data</key><data>{}</data></dict></array></dict></dict></plist>",
        STANDARD.encode(table)
    );
    let mut trailer = b"koly\0\0\0\x04\0\0\x02\0".to_vec();
    trailer.resize(512, 0);
    let mut put = |at: usize, value: usize| {
        trailer[at..at + 8].copy_from_slice(&(value as u64).to_be_bytes());
    };
    for (at, value) in [(32, file.len()), (216, file.len()), (224, list.len())] {
        put(at, value);
    }
    put(492, disk.len() / 512);
    [&file[..], list.as_bytes(), &trailer].concat()
}

/// An Ex01 of compressed chunks of 32 KiB.
fn ex01(disk: &[u8]) -> Vec<u8> {
    let mut file = b"EVF2\x0d\x0a\x81\x00\x01\x00\x01\x00\x01\0\0\0".to_vec();
    file.resize(32, 0);
    let mut before = 0;
    let mut section = |file: &mut Vec<u8>, kind: u8, data: &[u8]| {
        file.extend(data);
        let mut descriptor = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        descriptor.extend((before as u64).to_le_bytes());
        descriptor.extend((data.len() as u64).to_le_bytes());
        descriptor.extend(64u32.to_le_bytes());
        descriptor.resize(60, 0);
        before = file.len();
        file.extend(sealed(descriptor));
    };
    let text =
        |text: &str| zlib(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    let device = format!("\u{FEFF}1\nmain\nsn\tts\tbp\n\t{}\t512\n\n", disk.len() / 512);
    section(&mut file, 1, &text(&device));
    section(&mut file, 2, &text("\u{FEFF}1\nmain\nnm\tsb\nx\t64\n\n"));
    let (mut data, mut entries) = (Vec::new(), Vec::new());
    for chunk in disk.chunks(32 << 10) {
        let packed = zlib(chunk);
        entries.extend(((file.len() + data.len()) as u64).to_le_bytes());
        entries.extend((packed.len() as u64 | 1 << 32).to_le_bytes());
        data.extend(packed);
    }
    section(&mut file, 3, &data);
    let mut head = vec![0; 8];
    head.extend((entries.len() as u64 / 16).to_le_bytes());
    let mut table = sealed(head);
    table.resize(32, 0);
    table.extend(sealed(entries));
    table.resize(table.len() + 12, 0);
    section(&mut file, 4, &table);
    section(&mut file, 15, &[]);
    file
}

/// A disk of 256 KiB with a file of many lines; `None` without the program that creates it.
fn disk(lab: &Lab) -> Option<Vec<u8>> {
    std::fs::create_dir(lab.path("files")).unwrap();
    let text: String = (0..2000).map(|number| format!("invoice {number}\n")).collect();
    std::fs::write(lab.path("files/invoice.txt"), text).unwrap();
    lab.put_sparse("disk", 256 << 10, &[]);
    let made = does(
        lab,
        "mke2fs",
        &["-q", "-F", "-t", "ext2", "-b", "1024", "-N", "32", "-d", "files", "disk"],
    );
    made.then(|| std::fs::read(lab.path("disk")).unwrap())
}

/// Intact images of the disk, by extension: every type that a writer exists for.
fn images(lab: &Lab, disk: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut images = vec![
        ("E01", ewf(disk, 1 << 20).remove(0)),
        ("Ex01", ex01(disk)),
        ("aff4", aff4(disk, &[], "DiskImage")),
        ("qcow2", qcow2(disk)),
        ("dmg", dmg(disk)),
        ("gz", gzip(disk)),
    ];
    let kinds = [
        ("vmdk", "vmdk", "subformat=streamOptimized"),
        ("vhd", "vpc", "subformat=dynamic"),
        ("vhdx", "vhdx", "block_size=1M"),
        ("vdi", "vdi", "static=off"),
        ("hdd", "parallels", "cluster_size=64k"),
    ];
    for (name, kind, option) in kinds {
        let line = ["convert", "-f", "raw", "-O", kind, "-o", option, "disk", name];
        if does(lab, "qemu-img", &line) {
            images.push((name, std::fs::read(lab.path(name)).unwrap()));
        }
    }
    for (program, name) in [("bzip2", "bz2"), ("xz", "xz"), ("zstd", "zst")] {
        if does(lab, program, &["-k", "-q", "disk"]) {
            images.push((name, std::fs::read(lab.path(format!("disk.{name}"))).unwrap()));
        }
    }
    images
}

/// The image truncated, and with bytes overwritten, near its beginning; a compressed image may be
/// short.
fn damaged(image: &[u8]) -> Vec<Vec<u8>> {
    let early = image.len().min(4000) / 2;
    let overwritten = |at: usize| {
        let mut bytes = image.to_vec();
        bytes[at..at + 32].fill(0xA5);
        bytes
    };
    let cut = [early, image.len() / 2].map(|length| image[..length].to_vec());
    cut.into_iter().chain([40, early - 100].map(overwritten)).collect()
}

/// Whether a line lists an unreadable range of the source, or place of a file system.
fn is_listed(line: &str) -> bool {
    let is_place = |(_, rest): (&str, &str)| rest.contains(" at byte ");
    line.ends_with(" could not be read")
        || line.split_once(": cannot read ").is_some_and(is_place)
        || line.rsplit_once(", at byte ").is_some_and(|(_, at)| at.parse::<u64>().is_ok())
}

fn check(ran: &Ran, named: &str, at: &str) {
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let said = lines.iter().filter(|line| !is_listed(line)).count();
    let expected = match ran.code {
        // The command did not need the missing part.
        Some(0 | 1) => lines.len() <= 1,
        Some(2) => lines.len() == 1,
        Some(3) => !lines.is_empty() && said <= 1,
        _ => false,
    };
    assert!(expected, "{at}: {:?}\n{}", ran.code, ran.stderr);
    let twice = format!("{named}: {named}: ");
    assert!(!ran.stderr.contains(&twice), "{at}: {}", ran.stderr);
}

#[test]
fn damage_of_an_image_is_reported_once_by_every_command() {
    let lab = Lab::new();
    let Some(disk) = disk(&lab) else { return skip("mke2fs does not run") };
    lab.put("r.yar", "rule r { strings: $a = \"invoice\" condition: $a }");
    for (kind, image) in images(&lab, &disk) {
        let named = format!("image.{kind}");
        lab.put(&named, &image);
        let sound = run(lab.command(COMMANDS[1].iter().chain(&[&named[..]])), b"");
        assert_eq!((sound.code, &sound.stderr[..]), (Some(0), ""), "a sound {kind}");
        for (number, bytes) in damaged(&image).iter().enumerate() {
            lab.put(&named, bytes);
            for command in COMMANDS {
                let ran = run(lab.command(command.iter().chain(&[&named[..]])), b"");
                check(&ran, &named, &format!("{kind}, damage {number}, {command:?}"));
            }
        }
    }
}
