//! AFF4 images, written by an independent implementation of the standard and compared with their
//! contents, and the reference images of the format's authors if present.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_images::aff4::StoredHashes;
use quarrier_images::{Content, Kind, NoSiblings, open};
use sha1::{Digest, Sha1};

use crate::lab::{Lab, all_of, check, media, open_at, random, skip};

const SCHEMA: &str = "http://aff4.org/Schema#";
const VOLUME: &str = "aff4://00000000-0000-4000-8000-000000000001";
const IMAGE: &str = "aff4://00000000-0000-4000-8000-000000000002";
const MAP: &str = "aff4://00000000-0000-4000-8000-000000000003";
const STREAM: &str = "aff4://00000000-0000-4000-8000-000000000004";

/// The form of a container.
#[derive(Debug, Clone)]
struct Shape {
    chunk: usize,
    chunks_in_segment: usize,
    packing: &'static str,
    /// Whether sizes and offsets of members are 64-bit (ZIP64).
    is_wide: bool,
    /// Whether names are relative to the volume, and those of streams too.
    is_relative: bool,
    /// Whether maps, indexes and the description are deflated by ZIP.
    is_deflated: bool,
    /// Whether the entries of the map are unsorted.
    is_shuffled: bool,
    /// The stream for gaps of the map.
    gaps: &'static str,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            chunk: 32 << 10,
            chunks_in_segment: 16,
            packing: "http://code.google.com/p/snappy/",
            is_wide: false,
            is_relative: false,
            is_deflated: false,
            is_shuffled: false,
            gaps: "Zero",
        }
    }
}

const PACKINGS: [&str; 7] = [
    "http://aff4.org/Schema#NullCompressor",
    "https://www.ietf.org/rfc/rfc1950.txt",
    "https://tools.ietf.org/html/rfc1951",
    "http://code.google.com/p/snappy/",
    "https://github.com/google/snappy",
    "https://code.google.com/p/lz4/",
    "https://github.com/lz4/lz4",
];

/// A ZIP file, member by member.
#[derive(Default)]
struct Zip {
    file: Vec<u8>,
    directory: Vec<u8>,
    members: u64,
    is_wide: bool,
}

impl Zip {
    fn add(&mut self, name: &str, bytes: &[u8], is_deflated: bool) {
        let at = self.file.len() as u64;
        let packed = match is_deflated {
            true => deflated(bytes),
            false => bytes.to_vec(),
        };
        let method = if is_deflated { 8u16 } else { 0 };
        let common = |length: [u32; 2]| {
            let mut header = vec![20, 0, 8, 0];
            header.extend(method.to_le_bytes());
            header.extend([0; 8]);
            header.extend(length[0].to_le_bytes());
            header.extend(length[1].to_le_bytes());
            header.extend((name.len() as u16).to_le_bytes());
            header
        };
        let sizes = [packed.len() as u32, bytes.len() as u32];
        // After the name, the local header may differ from the directory.
        self.file.extend(b"PK\x03\x04");
        self.file.extend(common(sizes));
        self.file.extend([5, 0]);
        self.file.extend(name.as_bytes());
        self.file.extend([0xCA, 0xCA, 1, 0, 7]);
        self.file.extend(&packed);
        self.directory.extend(b"PK\x01\x02\x2d\0");
        let extra = match self.is_wide {
            false => vec![],
            true => {
                let numbers = [bytes.len() as u64, packed.len() as u64, at];
                let numbers = numbers.into_iter().flat_map(u64::to_le_bytes);
                [0xCA, 0xCA, 0, 0, 1, 0, 24, 0].into_iter().chain(numbers).collect()
            }
        };
        self.directory.extend(common(if self.is_wide { [u32::MAX; 2] } else { sizes }));
        self.directory.extend((extra.len() as u16).to_le_bytes());
        self.directory.extend([0; 10]);
        let narrow = if self.is_wide { u32::MAX } else { at as u32 };
        self.directory.extend(narrow.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.directory.extend(extra);
        self.members += 1;
    }

    fn finish(mut self, comment: &str) -> Vec<u8> {
        let (at, bytes) = (self.file.len() as u64, self.directory.len() as u64);
        self.file.extend(&self.directory);
        let end = self.file.len() as u64;
        if self.is_wide {
            self.file.extend(b"PK\x06\x06");
            self.file.extend(44u64.to_le_bytes());
            self.file.extend([0; 12]);
            for number in [self.members, self.members, bytes, at] {
                self.file.extend(number.to_le_bytes());
            }
            self.file.extend(b"PK\x06\x07\0\0\0\0");
            self.file.extend(end.to_le_bytes());
            self.file.extend([1, 0, 0, 0]);
        }
        self.file.extend(b"PK\x05\x06\0\0\0\0");
        let count = if self.is_wide { u16::MAX } else { self.members as u16 };
        self.file.extend(count.to_le_bytes().repeat(2));
        for number in [bytes, at] {
            let number = if self.is_wide { u32::MAX } else { number as u32 };
            self.file.extend(number.to_le_bytes());
        }
        self.file.extend((comment.len() as u16).to_le_bytes());
        self.file.extend(comment.as_bytes());
        self.file
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A chunk as writers store it: compressed unless that does not make it smaller. The last one may be
/// short.
fn packed(chunk: &[u8], shape: &Shape) -> Vec<u8> {
    let smaller = match shape.packing {
        name if name.contains("rfc1950") => {
            let mut encoder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(chunk).unwrap();
            encoder.finish().unwrap()
        }
        name if name.contains("rfc1951") => deflated(chunk),
        name if name.contains("snappy") => snap::raw::Encoder::new().compress_vec(chunk).unwrap(),
        name if name.contains("github.com/lz4") => lz4_flex::block::compress(chunk),
        // As in pyaff4.
        name if name.contains("lz4") => lz4_flex::block::compress_prepend_size(chunk),
        _ => vec![0; shape.chunk],
    };
    if shape.packing.contains("github.com/google/snappy") || smaller.len() < shape.chunk {
        return smaller;
    }
    let mut stored = chunk.to_vec();
    stored.resize(shape.chunk, 0);
    stored
}

/// A map entry: offset on the disk, length, offset in the stream, stream number.
type Entry = (u64, u64, u64, u32);

/// A container with a map and a stream; `names` are the stream names of the map.
fn written(
    shape: &Shape,
    length: u64,
    stream: &[u8],
    mut entries: Vec<Entry>,
    names: &[&str],
) -> Vec<u8> {
    let mut zip = Zip { is_wide: shape.is_wide, ..Zip::default() };
    let urn = |urn: &str| match shape.is_relative {
        true => format!("{VOLUME}/{}", &urn[7..]),
        false => urn.to_string(),
    };
    let name = |of: &str, rest: &str| match shape.is_relative {
        true => format!("{}{rest}", &of[7..]),
        false => format!("aff4%3A%2F%2F{}{rest}", &of[7..]),
    };
    zip.add("container.description", VOLUME.as_bytes(), false);
    zip.add("version.txt", b"major=1\nminor=0\ntool=test\n", false);
    let segment_bytes = shape.chunk * shape.chunks_in_segment;
    for (number, segment) in stream.chunks(segment_bytes).enumerate() {
        let (mut data, mut index) = (Vec::new(), Vec::new());
        for chunk in segment.chunks(shape.chunk) {
            let chunk = packed(chunk, shape);
            index.extend((data.len() as u64).to_le_bytes());
            index.extend((chunk.len() as u32).to_le_bytes());
            data.extend(chunk);
        }
        zip.add(&name(STREAM, &format!("/{number:08}")), &data, false);
        zip.add(&name(STREAM, &format!("/{number:08}.index")), &index, shape.is_deflated);
        zip.add(&name(STREAM, &format!("/{number:08}.blockHash.md5")), b"0123456789abcdef", false);
    }
    if shape.is_shuffled {
        let mut seed = 3;
        entries.sort_by_cached_key(|_| random(&mut seed));
    }
    let map: Vec<u8> = entries
        .iter()
        .flat_map(|&(start, bytes, at, target)| {
            let numbers = [start, bytes, at].into_iter().flat_map(u64::to_le_bytes);
            numbers.chain(target.to_le_bytes()).collect::<Vec<u8>>()
        })
        .collect();
    zip.add(&name(MAP, "/map"), &map, shape.is_deflated);
    let lines: String = names
        .iter()
        .map(|name| match name.starts_with("aff4:") {
            true => format!("{}\n", urn(name)),
            false => format!("{SCHEMA}{name}\n"),
        })
        .collect();
    zip.add(&name(MAP, "/idx"), lines.as_bytes(), shape.is_deflated);
    let mut text = format!(
        "@prefix : <{VOLUME}> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n\
         @prefix aff4: <{SCHEMA}> .\n\n: a aff4:ZipVolume ;\n    aff4:stored \"a.aff4\" .\n\n"
    );
    let hash: String = Sha1::digest(stream).iter().map(|byte| format!("{byte:02x}")).collect();
    let (image, map, data) = (urn(IMAGE), urn(MAP), urn(STREAM));
    write!(
        text,
        "<{image}>\n        a aff4:ContiguousImage , aff4:Image , aff4:DiskImage ;\n\
                 aff4:dataStream <{map}> ;\n        aff4:size \"{length}\"^^xsd:long ;\n\
                 aff4:hash \"00\"^^aff4:blockMapHashSHA512 ;\n        aff4:stored : .\n\n\
         <{map}> a aff4:Map ;\n        aff4:dependentStream <{data}> ;\n\
                 aff4:mapGapDefaultStream aff4:{} ;\n        aff4:size \"{length}\"^^xsd:long .\n\n\
         <{data}>\n        a aff4:ImageStream ;\n        aff4:chunkSize \"{}\"^^xsd:int ;\n\
                 aff4:chunksInSegment {} ;\n        aff4:compressionMethod <{}> ;\n\
                 aff4:hash \"{hash}\"^^aff4:SHA1 ;\n        aff4:size \"{}\"^^xsd:long ;\n\
                 aff4:stored : .\n",
        shape.gaps,
        shape.chunk,
        shape.chunks_in_segment,
        shape.packing,
        stream.len()
    )
    .unwrap();
    zip.add("information.turtle", text.as_bytes(), shape.is_deflated);
    zip.finish(&format!("{VOLUME}\0"))
}

/// An image of the blocks of `disk`, as imagers write it: zeros and repeated bytes are symbolic
/// streams, and the other blocks are in the stream in an order different from the disk's.
fn imaged(disk: &[u8], block: usize, shape: &Shape) -> Vec<u8> {
    let names = [STREAM, "Zero", "SymbolicStreamFF", "SymbolicStream61"];
    let (mut stream, mut entries) = (Vec::new(), Vec::new());
    let blocks: Vec<(usize, &[u8])> = disk.chunks(block).enumerate().collect();
    // Of every four blocks, the last two are written first.
    let order = blocks
        .chunks(4)
        .flat_map(|four| [&four[four.len() / 2..], &four[..four.len() / 2]].concat());
    for (number, bytes) in order {
        let start = (number * block) as u64;
        let is_all = |byte: u8| bytes.iter().all(|&found| found == byte);
        let length = bytes.len() as u64;
        match [(0, 1), (0xFF, 2), (0x61, 3)].into_iter().find(|(byte, _)| is_all(*byte)) {
            // Some zeros are gaps, others are named.
            Some((0, _)) if number % 2 == 0 => {}
            Some((_, target)) => entries.push((start, length, start, target)),
            None => {
                entries.push((start, length, stream.len() as u64, 0));
                stream.extend(bytes);
            }
        }
    }
    entries.sort_unstable();
    written(shape, disk.len() as u64, &stream, entries, &names)
}

fn opened(file: Vec<u8>) -> quarrier_core::Result<(Arc<dyn Source>, Option<String>)> {
    let file: Arc<dyn Source> = Arc::new(Memory::new("image.aff4", file));
    let image = open(file, &NoSiblings, &[], &false.into())?;
    assert_eq!(image.kind, Some(Kind::Aff4));
    match image.content {
        Content::Disk(disk) => Ok((disk, image.notice)),
        Content::Stream(_) => panic!("it can only be read in order"),
    }
}

fn refusal(file: Vec<u8>) -> String {
    match opened(file) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

/// `media` with runs of bytes that have symbolic streams.
fn disk(length: usize) -> Vec<u8> {
    let mut disk = media(length);
    let from = length / 7;
    disk[from..from + length / 9].fill(0xFF);
    disk[2 * from..2 * from + length / 11].fill(b'a');
    disk
}

#[test]
fn a_disk_has_its_bytes_however_its_streams_are_packed() {
    let disk = disk(4_000_000);
    for packing in PACKINGS {
        for is_wide in [false, true] {
            let shape = Shape { packing, is_wide, is_deflated: is_wide, ..Shape::default() };
            let (image, notice) = opened(imaged(&disk, 64 << 10, &shape)).unwrap();
            assert_eq!(notice, None, "{shape:?}");
            check(&*image, &disk);
        }
    }
}

#[test]
fn an_image_is_detected_regardless_of_name_and_place() {
    let lab = Lab::new();
    let disk = disk(1_000_000);
    let file = imaged(&disk, 4096, &Shape::default());
    lab.put("image.bin", &file);
    let (image, kind) = open_at(&lab.path("image.bin")).unwrap();
    assert_eq!(kind, Some(Kind::Aff4));
    check(&*image, &disk);
    // Another member comes first: only the comment identifies the format.
    let zip = |comment: &str| {
        let mut zip = Zip::default();
        zip.add("readme", &[b'a'; 600], false);
        zip.add("information.turtle", b"", false);
        zip.finish(comment)
    };
    assert!(refusal(zip(VOLUME)).contains("no image"));
    lab.put("a.zip", &zip("aff"));
    assert_eq!(open_at(&lab.path("a.zip")).unwrap().1, None);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&file).unwrap();
    lab.put("image.gz", &encoder.finish().unwrap());
    check(&*lab.open("image.gz").unwrap(), &disk);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_range_of_any_layout_reads_back(
        (chunk, chunks_in_segment, packing) in (1usize..5000, 1usize..40, 0..PACKINGS.len()),
        (is_wide, is_relative, is_deflated, is_shuffled) in any::<(bool, bool, bool, bool)>(),
        (length, block) in (1usize..200_000, 1usize..9000),
        reads in prop::collection::vec((0usize..210_000, 0usize..60_000), 1..12),
    ) {
        let mut disk = disk(length + 1000);
        disk.truncate(length);
        let packing = PACKINGS[packing];
        let shape = Shape {
            chunk, chunks_in_segment, packing, is_wide, is_relative, is_deflated, is_shuffled, gaps: "Zero",
        };
        let (image, _) = opened(imaged(&disk, block, &shape)).unwrap();
        prop_assert_eq!(image.length(), length as u64);
        prop_assert!(all_of(&*image) == disk);
        for (at, bytes) in reads {
            let mut found = vec![0xEE; bytes];
            let read = read_full_at(&*image, at as u64, &mut found).unwrap();
            let start = at.min(length);
            prop_assert!(found[..read] == disk[start..(start + bytes).min(length)]);
        }
    }
}

#[test]
fn bytes_that_were_not_read_are_unreadable_or_zeros_that_are_counted() {
    let stream = media(128 << 10);
    // Data, unreadable, unknown, a gap, data; none of the borders is one of a chunk.
    let entries = vec![
        (0, 40 << 10, 0, 0),
        (40 << 10, 12 << 10, 0, 1),
        (52 << 10, 20 << 10, 0, 2),
        (80 << 10, 88 << 10, 40 << 10, 0),
    ];
    let names = [STREAM, "UnreadableData", "UnknownData"];
    let file = written(&Shape::default(), 168 << 10, &stream, entries.clone(), &names);
    let (image, notice) = opened(file).unwrap();
    assert!(notice.unwrap().starts_with("20480 of its 172032 bytes were not acquired"));
    let mut bytes = vec![0xEE; 168 << 10];
    assert_eq!(image.read_at(0, &mut bytes).unwrap(), 40 << 10);
    assert!(image.read_at(40 << 10, &mut bytes).is_err());
    assert!(image.read_at((52 << 10) - 1, &mut bytes).is_err());
    assert_eq!(image.read_at(52 << 10, &mut bytes).unwrap(), 116 << 10);
    assert!(bytes[..28 << 10].iter().all(|&byte| byte == 0));
    assert!(bytes[28 << 10..116 << 10] == stream[40 << 10..]);
    // Near unreadable bytes, reads must use smaller units than these offsets.
    assert!((40 << 10) % image.sector_bytes() == 0 && (52 << 10) % image.sector_bytes() == 0);
    let shape = Shape { gaps: "UnreadableData", ..Shape::default() };
    let (image, _) = opened(written(&shape, 1 << 40, &stream, entries.clone(), &names)).unwrap();
    assert_eq!(image.length(), 1 << 40);
    assert!(image.read_at(1 << 39, &mut [0]).is_err());
    let shape = Shape { gaps: "UnknownData", ..Shape::default() };
    let (image, notice) = opened(written(&shape, 1 << 62, &stream, entries, &names)).unwrap();
    assert!(notice.unwrap().starts_with(&format!("{} of its", (1u64 << 62) - (140 << 10))));
    assert_eq!(image.next_data(1 << 20).unwrap(), None, "holes cost nothing");
}

#[test]
fn stored_hashes_are_compared_with_the_bytes() {
    let disk = disk(700_000);
    let mut file = imaged(&disk, 4096, &Shape::default());
    let hashes = |file: &[u8]| {
        let file: Arc<dyn Source> = Arc::new(Memory::new("image.aff4", file.to_vec()));
        StoredHashes::read(&file).unwrap()
    };
    let found = hashes(&file);
    assert!(!found.is_empty() && found.bytes() < disk.len() as u64);
    let checks = found.verify(&mut |_| true).unwrap().unwrap();
    assert_eq!((checks.len(), checks[0].name, checks[0].of), (1, "SHA-1", "data stream"));
    assert_eq!(checks[0].stored, checks[0].computed);
    assert_eq!(found.verify(&mut |_| false).unwrap(), None);
    let at = file.windows(11).position(|part| part == b"aff4:hash \"").unwrap();
    let at =
        at + file[at + 11..].windows(11).position(|part| part == b"aff4:hash \"").unwrap() + 22;
    file[at] = if file[at] == b'0' { b'1' } else { b'0' };
    let checks = hashes(&file).verify(&mut |_| true).unwrap().unwrap();
    assert_ne!(checks[0].stored, checks[0].computed);
}

/// A container with only this description.
fn described(text: &str) -> Vec<u8> {
    let mut zip = Zip::default();
    zip.add("container.description", VOLUME.as_bytes(), false);
    zip.add("information.turtle", format!("@prefix aff4: <{SCHEMA}> .\n{text}").as_bytes(), false);
    zip.finish(VOLUME)
}

#[test]
fn images_that_are_not_read_are_refused_with_the_reason() {
    let refused = |text: &str, reason: &str| {
        let found = refusal(described(text));
        assert!(found.contains(reason), "{text}: {found}");
    };
    refused("<aff4://a> a aff4:FileImage , aff4:Image ; aff4:size 12 .", "logical");
    refused("<aff4://a> a aff4:EncryptedStream .", "encrypted");
    refused("<aff4://a> a <http://afflib.org/2009/aff4#map> .", "before the standard");
    refused("<aff4://a> a aff4:map .", "before the standard");
    refused("<aff4://a> a aff4:CaseNotes .", "no image");
    refused(
        "<aff4://a> a aff4:DiskImage ; aff4:dataStream <aff4://b> .\n\
         <aff4://c> a aff4:DiskImage ; aff4:dataStream <aff4://d> .",
        "holds 2 images",
    );
    refused("<aff4://a> a aff4:DiskImage ; aff4:dataStream <aff4://b> .", "needs aff4://b");
    let other =
        format!("<{STREAM}> a aff4:ImageStream ; aff4:size 99 ; aff4:stored <aff4://other> .");
    refused(&other, "striped");
    refused(&format!("<{STREAM}> a aff4:ImageStream ; aff4:size 99 ."), "no segments");
    refused(&format!("<{STREAM}> a aff4:ImageStream ; aff4:size -1 ."), "size");
    refused("<aff4://a> a aff4:DiskImage", "byte");
    refused(&"<aff4://a> aff4:size 1 .\n".repeat(70_000), "more things");
}

#[test]
fn hostile_containers_are_errors() {
    let shape = Shape::default();
    let stream = media(64 << 10);
    let map = |entries: Vec<Entry>, names: &[&str]| {
        refusal(written(&shape, 64 << 10, &stream, entries, names))
    };
    let names = [STREAM, "Zero"];
    // A map of itself.
    assert!(map(vec![(0, 1 << 16, 0, 0)], &[MAP]).contains("map of parts"));
    assert!(map(vec![(0, 1 << 16, 0, 2)], &names).contains("not listed"));
    assert!(map(vec![(0, 1 << 63, 0, 0)], &names).contains("beyond the end of any disk"));
    assert!(map(vec![(1 << 40, u64::MAX, 0, 0)], &names).contains("beyond the end of any disk"));
    assert!(map(vec![(0, 100, 0, 0), (50, 100, 0, 0)], &names).contains("overlap"));
    assert!(map(vec![(0, 100, 0, 0), (0, 100, 0, 1)], &names).contains("overlap"));
    assert!(map(vec![], &["Other"]).contains("needs http://aff4.org/Schema#Other"));
    let many: Vec<String> = (0..40).map(|n| format!("{STREAM}{n}")).collect();
    let many: Vec<&str> = many.iter().map(|name| name.as_str()).collect();
    assert!(!map(vec![], &many).is_empty());
    // Impossible sizes.
    let whole = written(&shape, 64 << 10, &stream, vec![(0, 1 << 16, 0, 0)], &names);
    let changed = |from: &str, to: &str| {
        let mut file = whole.clone();
        let from = from.as_bytes();
        for at in 0..file.len() - from.len() {
            if file[at..].starts_with(from) {
                file[at..at + from.len()].copy_from_slice(to.as_bytes());
            }
        }
        file
    };
    for (from, to) in [
        (" aff4:size \"65536\"^^xsd:long .", "aff4:size 9223372036854775808"),
        ("  aff4:size \"65536\"^^xsd:long ;", "aff4:size 18446744073709551616"),
        ("aff4:chunkSize \"32768\"^^xsd:int", "aff4:chunkSize 922337203685477"),
        ("aff4:chunkSize \"32768\"^^xsd:int", "aff4:chunkSize 0"),
        ("aff4:chunksInSegment 16", "aff4:chunksInSegment 0"),
    ] {
        assert!(to.len() < from.len(), "{to}");
        let mut to = to.to_string();
        while to.len() < from.len() - 1 {
            to.push(' ');
        }
        to.push(if from.ends_with('.') {
            '.'
        } else if from.ends_with(';') {
            ';'
        } else {
            ' '
        });
        assert!(!refusal(changed(from, &to)).is_empty(), "{to}");
    }
    // One segment per one-byte chunk: missing segments must not take memory.
    let (image, _) = opened(changed("aff4:chunksInSegment 16", "aff4:chunksInSegment  1")).unwrap();
    assert!(image.read_at(40 << 10, &mut [0]).is_err());
    // A directory that claims to be larger than the file, or lies elsewhere.
    let end = whole.len() - VOLUME.len() - 1 - 22;
    for (at, bytes) in [(10, 2), (12, 4), (16, 4)] {
        let mut file = whole.clone();
        file[end + at..end + at + bytes].fill(0x7F);
        assert!(refusal(file).contains("damaged"), "{at}");
    }
    for length in [60, 600, whole.len() - 100] {
        assert!(refusal(whole[..length].to_vec()).contains("damaged"), "{length}");
    }
}

#[test]
fn a_map_that_claims_a_million_entries_is_an_error_of_the_file() {
    let mut file = written(&Shape::default(), 1 << 16, &media(1 << 16), vec![], &[STREAM]);
    let name = format!("aff4%3A%2F%2F{}/map", &MAP[7..]);
    let at = (0..file.len()).rev().find(|&at| file[at..].starts_with(name.as_bytes())).unwrap();
    for at in [at - 46 + 20, at - 46 + 24] {
        file[at..at + 4].copy_from_slice(&28_000_000u32.to_le_bytes());
    }
    assert!(refusal(file).contains("beyond the end of the file"));
}

#[test]
fn damage_of_a_chunk_is_of_that_chunk_alone() {
    let disk: Vec<u8> = (0..1_000_000u32).map(|at| (at / 9) as u8).collect();
    for packing in PACKINGS {
        let shape = Shape { packing, chunk: 50_000, chunks_in_segment: 7, ..Shape::default() };
        let whole = imaged(&disk, 500, &shape);
        let name = format!("aff4%3A%2F%2F{}/00000000.index", &STREAM[7..]);
        let at = whole.windows(name.len()).position(|part| part == name.as_bytes()).unwrap();
        let mut file = whole.clone();
        // The length of the second chunk.
        file[at + name.len() + 5 + 12 + 8..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let (image, _) = opened(file).unwrap();
        assert_eq!(image.length(), disk.len() as u64);
        let mut failed = 0;
        for block in 0..disk.len() / 500 {
            let mut bytes = vec![0; 500];
            match read_full_at(&*image, block as u64 * 500, &mut bytes) {
                Ok(500) => assert!(bytes == disk[block * 500..][..500], "{packing}: {block}"),
                _ => failed += 1,
            }
        }
        assert_eq!(failed, 100, "{packing}");
    }
}

/// The reference images of the format's authors, with the hashes they published.
#[test]
fn reference_images_have_the_bytes_that_are_known_of_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora/aff4");
    if !Path::new(folder).exists() {
        return skip("the reference images are not here");
    }
    let known = "7d3d27f667f95f7ec5b9d32121622c0f4b60b48d";
    for name in ["Base-Linear.aff4", "Base-Linear-AllHashes.aff4", "Base-Allocated.aff4"] {
        let file =
            Arc::from(quarrier_core::source::open(Path::new(&format!("{folder}/{name}"))).unwrap());
        let (image, kind) = open_at(Path::new(&format!("{folder}/{name}"))).unwrap();
        assert_eq!((kind, image.length()), (Some(Kind::Aff4), 256 << 20));
        let hash: String =
            Sha1::digest(all_of(&*image)).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, known, "{name}");
        let checks = StoredHashes::read(&file).unwrap().verify(&mut |_| true).unwrap().unwrap();
        assert!(checks.len() >= 2 && checks.iter().all(|check| check.stored == check.computed));
    }
    // Each file of a striped image has a map of the whole disk.
    for name in ["Base-Linear_1.aff4", "Base-Linear_2.aff4"] {
        let path = format!("{folder}/{name}");
        if ["1", "2"].iter().all(|n| Path::new(&format!("{folder}/Base-Linear_{n}.aff4")).exists())
        {
            let (image, _) = open_at(Path::new(&path)).unwrap();
            let hash: String =
                Sha1::digest(all_of(&*image)).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, known, "{name}");
        }
    }
}

const VOLUME2: &str = "aff4://00000000-0000-4000-8000-000000000011";
const STREAM2: &str = "aff4://00000000-0000-4000-8000-000000000014";

/// A second file of an image, with its own stream.
fn second(shape: &Shape, stream: &[u8]) -> Vec<u8> {
    let mut zip = Zip::default();
    zip.add("container.description", VOLUME2.as_bytes(), false);
    for (number, segment) in stream.chunks(shape.chunk * shape.chunks_in_segment).enumerate() {
        let (mut data, mut index) = (Vec::new(), Vec::new());
        for chunk in segment.chunks(shape.chunk) {
            let chunk = packed(chunk, shape);
            index.extend((data.len() as u64).to_le_bytes());
            index.extend((chunk.len() as u32).to_le_bytes());
            data.extend(chunk);
        }
        let name = format!("aff4%3A%2F%2F{}/{number:08}", &STREAM2[7..]);
        zip.add(&name, &data, false);
        zip.add(&format!("{name}.index"), &index, false);
    }
    let text = format!(
        "@prefix aff4: <{SCHEMA}> .\n<{STREAM2}> a aff4:ImageStream ; aff4:chunkSize {} ;\n\
         aff4:chunksInSegment {} ; aff4:compressionMethod <{}> ; aff4:size {} ;\n\
         aff4:stored <{VOLUME2}> .\n",
        shape.chunk,
        shape.chunks_in_segment,
        shape.packing,
        stream.len()
    );
    zip.add("information.turtle", text.as_bytes(), false);
    zip.finish(&format!("{VOLUME2}\0"))
}

#[test]
fn an_image_that_is_striped_over_files_is_read_from_all_of_them() {
    let (lab, disk, shape) = (Lab::new(), disk(3_000_000), Shape::default());
    let (mut streams, mut entries) = ([Vec::new(), Vec::new()], Vec::new());
    for (number, block) in disk.chunks(100_000).enumerate() {
        let stream: &mut Vec<u8> = &mut streams[number % 2];
        let (start, at) = ((number * 100_000) as u64, stream.len() as u64);
        entries.push((start, block.len() as u64, at, (number % 2) as u32));
        stream.extend(block);
    }
    let first = written(&shape, disk.len() as u64, &streams[0], entries, &[STREAM, STREAM2]);
    lab.put("image.aff4", &first);
    let refusal = lab.refusal("image.aff4");
    assert!(refusal.contains("000000000014"), "{refusal}");
    lab.put("a.aff4", b"no image");
    lab.put("image_2.aff4", &second(&shape, &streams[1]));
    let image = lab.open("image.aff4").unwrap();
    check(&*image, &disk);
    // A file without its segments counts as missing.
    lab.put("image_2.aff4", &second(&shape, &[]));
    assert!(lab.refusal("image.aff4").contains("000000000014"));
}
