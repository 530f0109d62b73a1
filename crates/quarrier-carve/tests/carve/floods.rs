//! Images with very many candidates: their cost is bounded, and the files among them are found.

use quarrier_carve::{Carver, Status, Summary};
use quarrier_core::source::Memory;

use crate::jpg;
use crate::pdf;
use crate::sample::{CarvedFiles, carved, mixed};

/// The allowance of a stride: 256 MiB for first looks, 512 MiB and 1 GiB for longer ones, and the
/// source once; candidates could demand a thousand times as much.
const COST_PER_STRIDE: u64 = (1792 << 20) + IMAGE_BYTES as u64 * 8;
const IMAGE_BYTES: usize = 1 << 20;
/// Maximum number of files: candidates without fuel, and some thousands of broken files.
const FILES_MAX: usize = 5000;

/// A header, and the distance between its repetitions.
pub(crate) struct Flood {
    pub(crate) name: &'static str,
    pub(crate) header: Vec<u8>,
    pub(crate) every: usize,
}

pub(crate) fn floods() -> Vec<Flood> {
    let flood = |name, header: &[u8], every| Flood { name, header: header.to_vec(), every };
    let zip = |flags: u8, method: u8, size: [u8; 4]| {
        let mut header = b"PK\x03\x04\x14\0".to_vec();
        header.extend([flags, 0, method, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        header.extend(size.iter().chain(&size));
        header.extend(b"\x01\0\0\0a");
        header
    };
    let mut png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x10\0\0\0\x10\0\x08\x02\0\0\0".to_vec();
    let mut crc = flate2::Crc::new();
    crc.update(&png[12..]);
    png.extend(crc.sum().to_be_bytes());
    png.extend(b"\x7F\xFF\xFF\x00IDAT\x78\x9C");
    let mut tar = vec![0; 512];
    tar[..4].copy_from_slice(b"name");
    tar[124..136].copy_from_slice(b"77777777777\0");
    tar[257..263].copy_from_slice(b"ustar\0");
    let sum: u32 = tar.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    vec![
        flood("jpg", &[0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0xFF], 6),
        flood("jpg and 64 KiB", &[0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0xFE], 4096),
        flood("zip, stored", &zip(0, 0, [0xF0, 0xFF, 0xFF, 0x7F]), 4096),
        flood("zip, deflated", &zip(0, 8, [0xF0, 0xFF, 0xFF, 0x7F]), 4096),
        flood("zip, open", &zip(8, 8, [0; 4]), 64),
        flood("zip, found by its descriptor", &zip(8, 0, [0; 4]), 4096),
        flood("gz", &[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3], 16),
        flood(
            "gz with a stored block",
            &[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0xFF, 0xFF],
            512,
        ),
        flood("bz2", b"BZh91AY&SY", 16),
        flood("xz", b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4\x46", 512),
        flood("zst", &[0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x88], 16),
        flood("pdf", b"%PDF-1.4\n", 16),
        flood("pdf with an object", b"%PDF-1.4\n1 0 obj\n<< /Length 5 >>\nstream\n", 512),
        flood("png", &png, 4096),
        flood("html", b"<html><p>", 512),
        flood("html with a comment", b"<html><!-- ", 512),
        flood("xml", b"<?xml version=\"1.0\"?><a>", 512),
        flood("mp3", &[0xFF, 0xFB, 0x90, 0x00], 4),
        flood("mp3 with a tag", b"ID3\x03\0\0\x7F\x7F\x7F\x7F", 16),
        flood("tar", &tar, 512),
        flood(
            "webp",
            b"RIFF\xF0\xFF\xFF\x7FWEBPVP8 \xE0\xFF\xFF\x7F\x10\x02\0\x9D\x01\x2A\xFF\x3F\xFF\x3F",
            64,
        ),
        flood("mp4", b"\0\0\0\x18ftypisom\0\0\0\0isommp42\0\0\0\x08free", 32),
        flood("ole", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 512),
        flood("ogg", b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xFF", 512),
    ]
}

/// Repeats the header, with other bytes in between.
fn image(flood: &Flood, bytes: usize) -> Vec<u8> {
    let filling = mixed(7, flood.every);
    let mut unit = flood.header.clone();
    unit.extend(&filling[..flood.every.saturating_sub(unit.len())]);
    unit.iter().copied().cycle().take(bytes).collect()
}

fn run(image: Vec<u8>) -> (Summary, usize) {
    let found = CarvedFiles::default();
    let summary = Carver::new().run(&Memory::new("flood", image), &found);
    let files = found.0.into_inner().expect("no thread panicked").len();
    (summary.expect("bytes in memory can be carved"), files)
}

#[test]
fn the_cost_of_a_strides_candidates_is_bounded() {
    for flood in floods() {
        let (summary, files) = run(image(&flood, IMAGE_BYTES));
        let cost = summary.cost_bytes;
        assert!(cost <= COST_PER_STRIDE, "{}: {cost}", flood.name);
        assert!(files <= FILES_MAX, "{}: {files} files", flood.name);
    }
}

#[test]
fn pages_with_many_tags_leave_fuel_for_later_files() {
    let page = |number: usize| {
        let rows = "<tr><td>a</td><td>b</td></tr>\n".repeat(300 + number);
        format!("<!DOCTYPE html><html><body><table>{rows}</table></body></html>\n").into_bytes()
    };
    let mut image = Vec::new();
    let mut planted = 0;
    for number in 0..80 {
        let document = pdf::with_streams(&[&mixed(number as u32, 3000)]).table(1).bytes();
        for file in [page(number), jpg::small(), document] {
            image.extend(file);
            image.resize(image.len().next_multiple_of(4096), 0);
            planted += 1;
        }
    }
    let files = carved(&Carver::new(), &image);
    let wrong = files.iter().find(|(file, _)| file.status != Status::Valid);
    assert!(wrong.is_none(), "{:?}", wrong.map(|(file, _)| file));
    assert_eq!(files.len(), planted);
}
