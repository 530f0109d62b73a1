//! Any bytes as images that contain a disk, with valid checksums: an error, or a disk that is read
//! within its length.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::{Memory, Source};
use quarrier_images::{Content, Siblings, open};

use crate::{Target, Verdict};

/// QCOW2.
pub const QCOW2: Target =
    Target { name: "qcow2", run: plain, once: &[], seeds: QCOW2_SEEDS, words: WORDS };
/// VDI.
pub const VDI: Target = Target { name: "vdi", run: vdi, once: &[], seeds: HEADERS, words: WORDS };
/// VHD.
pub const VHD: Target = Target { name: "vhd", run: vhd, once: &[], seeds: HEADERS, words: WORDS };
/// VHDX.
pub const VHDX: Target =
    Target { name: "vhdx", run: vhdx, once: &[], seeds: HEADERS, words: WORDS };
/// VMDK.
pub const VMDK: Target =
    Target { name: "vmdk", run: plain, once: &[], seeds: VMDK_SEEDS, words: WORDS };
/// Disks of Parallels.
pub const PARALLELS: Target =
    Target { name: "parallels", run: plain, once: &[], seeds: PARALLELS_SEEDS, words: WORDS };
/// Disk images of macOS.
pub const DMG: Target = Target { name: "dmg", run: dmg, once: &[], seeds: DMG_SEEDS, words: WORDS };
/// EWF of the second version.
pub const EWF2: Target =
    Target { name: "ewf2", run: ewf2, once: &[], seeds: HEADERS, words: WORDS };
/// AFF4.
pub const AFF4: Target =
    Target { name: "aff4", run: aff4, once: &[], seeds: AFF4_SEEDS, words: AFF4_WORDS };
/// Compressed disks.
pub const PACKED: Target =
    Target { name: "packed", run: plain, once: &[], seeds: PACKED_SEEDS, words: WORDS };

const WORDS: &[&[u8]] = &[
    &[0xFF; 8],
    &[0; 8],
    &[0, 0, 0, 0, 0, 0, 2, 0],
    &[0, 0, 0, 1],
    &[1, 0, 0, 0],
    &[0, 2, 0, 0],
    &[0x80, 0, 0, 0, 0, 0, 0, 0],
    &[0x40, 0, 0, 0, 0, 0, 0, 0],
    &[6, 0, 0x10, 0, 0, 0, 0, 0],
    b"parent",
    b"RW 4 FLAT \"parent\" 0\n",
    b"RW 4 SPARSE \"parent\"\n",
    b"parentFileNameHint=\"parent\"\nparentCID=1\n",
];

/// Version 2, clusters of 512 bytes, a table of each level, a cluster, a name.
const QCOW2_SEEDS: &[&[u8]] = &[
    b"QFI\xfb\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\x01\
      \0\0\0\0\0\0\0\x50\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0",
    b"QFI\xfb\0\0\0\x03\0\0\0\0\0\0\0\x68\0\0\0\x06\0\0\0\x09\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\x01\
      \0\0\0\0\0\0\0\x70\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x68parent\0\0\x40\0\0\0\0\0\0\x10",
];

const VMDK_SEEDS: &[&[u8]] = &[
    b"# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\nRW 4 FLAT \"parent\" 0\nRW 9 ZERO\n",
    b"# Disk DescriptorFile\nCID=1\nparentCID=2\nparentFileNameHint=\"parent\"\nRW 4 SPARSE \"parent\"\n",
    b"KDMV\x01\0\0\0\x03\0\0\0\x40\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\
      \x40\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\n \r\n\0\0",
    b"COWD\x01\0\0\0\x03\0\0\0\x40\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0",
];

const PARALLELS_SEEDS: &[&[u8]] = &[
    b"WithoutFreeSpace\x02\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0",
    b"WithouFreSpacExt\x02\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0",
];

const PACKED_SEEDS: &[&[u8]] = &[
    &[31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 76, 74, 78, 73, 77, 75, 4, 0, 0, 0, 255, 255, 3, 0, 0, 0],
    b"\x1f\x8b\x08\x1e\0\0\0\0\0\x03\x02\0ab\x6e\0c\0\0\0\x03\0\0\0\0\0\0\0\0\0",
    b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36\x02\0\x21\x01\x16\0\0\0\x74\x2f\xe5\xa3\x01\0\x02abc\0",
    b"BZh91AY&SY\x64\x8c\xbb\x73\0\0\0\x01\0\x38\0\x20\0\x21\x98\x19\x84\x61\x77\x24\x53\x85\x09\x06\x48\xcb\xb7\x30",
    b"\x28\xb5\x2f\xfd\x24\x03\x19\0\0abc\x28\xb5\x2f\xfd\x24\x03\x19\0\0abc",
    b"\x50\x2a\x4d\x18\x02\0\0\0ab\x28\xb5\x2f\xfd\x20\x03\x19\0\0abc",
];

/// The packing of chunks, then members, each a number, a length and bytes: chunks and their index,
/// an entry of the map, streams, more of the description, changes of the directory.
const AFF4_SEEDS: &[&[u8]] = &[
    b"\x00\x00\x10abcdefghijklmnop\x01\x0c\0\0\0\0\0\0\0\0\x10\0\0\0",
    b"\x03\x02\x1c\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0",
    b"\x04\x03\x2baff4://s\nhttp://aff4.org/Schema#UnknownData",
    b"\x01\x0a\x1a<aff4://s> aff4:size 64 .\n",
    b"\x02\x05\x04\x10\0\x50\x08",
];
const AFF4_WORDS: &[&[u8]] = &[
    &[0xFF; 8],
    &[0; 8],
    &[16, 0, 0, 0],
    b"aff4://s\n",
    b"aff4://m\n",
    b"http://aff4.org/Schema#Zero\n",
    b"http://aff4.org/Schema#UnreadableData\n",
    b"http://aff4.org/Schema#SymbolicStream61\n",
    b" aff4:size 64 ;",
    b" a aff4:Map ;",
    b" a aff4:ImageStream ;",
    b" aff4:chunkSize 16 ;",
    b" aff4:chunksInSegment 4 ;",
    b" aff4:compressionMethod <http://code.google.com/p/snappy/> ;",
    b" aff4:compressionMethod <https://github.com/lz4/lz4> ;",
    b" aff4:mapGapDefaultStream aff4:UnknownData ;",
    b"<aff4://s> .",
    b"\"64\"^^aff4:int",
];

/// The bytes after the numbers of a header.
const HEADERS: &[&[u8]] = &[
    &[0; 64],
    &[
        1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2,
        0, 0,
    ],
    &[4; 200],
];

/// Fields as in [`HEADERS`], and a chunk packed by LZFSE.
const DMG_SEEDS: &[&[u8]] = &[
    HEADERS[0],
    HEADERS[1],
    &[
    0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x62, 0x76, 0x78, 0x6e, 0x00, 0x02, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0xe1, 0x61,
    0x38, 0x01, 0xf0, 0xff, 0xf0, 0xd6, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x62, 0x76,
    0x78, 0x24,
    ],
    b"\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\x16bvx2",
];

fn plain(bytes: &[u8]) -> Verdict {
    check(bytes.to_vec())
}

/// Makes a header with the numbers at the start of `bytes`, a map, and blocks.
fn vdi(bytes: &[u8]) -> Verdict {
    let mut file = vec![0; 0x400];
    file[0x40..0x44].copy_from_slice(&[0x7F, 0x10, 0xDA, 0xBE]);
    file[0x46] = 1;
    let mut bytes = bytes;
    for (at, length, usual) in [
        (0x4C, 4, 1u64),
        (0x154, 4, 0x200),
        (0x158, 4, 0x400),
        (0x170, 8, 0x1000),
        (0x178, 4, 0x400),
        (0x180, 4, 4),
    ] {
        number(&mut file, at, length, usual, &mut bytes);
    }
    let map = bytes.len().min(16);
    file[0x200..0x200 + map].copy_from_slice(&bytes[..map]);
    file.extend(&bytes[map..]);
    check(file)
}

/// Writes `usual` at `at`, or, if the next byte is odd, the bytes after that. Numbers are
/// little-endian.
fn number(file: &mut [u8], at: usize, length: usize, usual: u64, bytes: &mut &[u8]) {
    let usual = usual.to_le_bytes();
    let value = match bytes {
        [flag, rest @ ..] if flag % 2 == 1 && rest.len() >= length => {
            let (value, rest) = rest.split_at(length);
            *bytes = rest;
            value
        }
        [_, rest @ ..] => {
            *bytes = rest;
            &usual[..length]
        }
        [] => &usual[..length],
    };
    file[at..at + length].copy_from_slice(value);
}

/// Does the same with a big-endian number.
fn number_be(file: &mut [u8], at: usize, length: usize, usual: u64, bytes: &mut &[u8]) {
    number(file, at, length, usual, bytes);
    file[at..at + length].reverse();
}

/// Makes a dynamic disk: its footer twice, a header and a table.
fn vhd(bytes: &[u8]) -> Verdict {
    let mut bytes = bytes;
    let mut footer = vec![0; 512];
    footer[..16].copy_from_slice(b"conectix\0\0\0\x02\0\x01\0\0");
    number_be(&mut footer, 16, 8, 512, &mut bytes);
    number_be(&mut footer, 48, 8, 4096, &mut bytes);
    number_be(&mut footer, 60, 4, 3, &mut bytes);
    seal_vhd(&mut footer, 64);
    let mut header = vec![0; 1024];
    header[..8].copy_from_slice(b"cxsparse");
    number_be(&mut header, 16, 8, 1536, &mut bytes);
    number_be(&mut header, 28, 4, 4, &mut bytes);
    number_be(&mut header, 32, 4, 1024, &mut bytes);
    header[64..76].copy_from_slice(b"\0p\0a\0r\0e\0n\0t");
    seal_vhd(&mut header, 36);
    let mut file = [&footer[..], &header, bytes].concat();
    file.resize(file.len().next_multiple_of(512), 0);
    file.extend(footer);
    check(file)
}

fn seal_vhd(bytes: &mut [u8], at: usize) {
    bytes[at..at + 4].fill(0);
    let sum = bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_add(byte.into()));
    bytes[at..at + 4].copy_from_slice(&(!sum).to_be_bytes());
}

/// Makes a disk with a log: headers, regions and metadata in their fixed places.
fn vhdx(bytes: &[u8]) -> Verdict {
    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    let mut bytes = bytes;
    let mut file = vec![0; 4 * MIB];
    file[..8].copy_from_slice(b"vhdxfile");
    let header = &mut file[64 * KIB..68 * KIB];
    header[..4].copy_from_slice(b"head");
    header[66] = 1;
    number(header, 48, 1, 0, &mut bytes);
    number(header, 68, 4, MIB as u64, &mut bytes);
    number(header, 72, 8, MIB as u64, &mut bytes);
    seal_vhdx(header);
    let regions = &mut file[192 * KIB..256 * KIB];
    regions[..12].copy_from_slice(b"regi\0\0\0\0\x02\0\0\0");
    for (index, (id, at)) in [(TABLE, 3 * MIB), (METADATA, 2 * MIB)].into_iter().enumerate() {
        let entry = &mut regions[16 + index * 32..][..32];
        entry[..16].copy_from_slice(&id);
        number(entry, 16, 8, at as u64, &mut bytes);
        number(entry, 24, 4, MIB as u64, &mut bytes);
    }
    seal_vhdx(regions);
    let metadata = &mut file[2 * MIB..3 * MIB];
    metadata[..12].copy_from_slice(b"metadata\0\0\x04\0");
    for (index, (id, at, length)) in ITEMS.into_iter().enumerate() {
        let entry = &mut metadata[32 + index * 32..][..32];
        entry[..16].copy_from_slice(&id);
        number(entry, 16, 4, at, &mut bytes);
        number(entry, 20, 4, length, &mut bytes);
    }
    let items = &mut metadata[64 * KIB..];
    number(items, 0, 4, MIB as u64, &mut bytes);
    number(items, 4, 4, 0, &mut bytes);
    number(items, 8, 8, 3 * MIB as u64, &mut bytes);
    number(items, 16, 4, 512, &mut bytes);
    let (table, rest) = bytes.split_at(bytes.len().min(64));
    file[3 * MIB..3 * MIB + table.len()].copy_from_slice(table);
    let entry = &mut file[MIB..2 * MIB];
    let length = rest.len().min(8 * KIB);
    entry[..length].copy_from_slice(&rest[..length]);
    if length > 0 {
        entry[..4].copy_from_slice(b"loge");
        let bytes =
            (u32::from_le_bytes([entry[8], entry[9], entry[10], entry[11]]) as usize).min(MIB);
        let bytes = bytes.next_multiple_of(4 * KIB).max(4 * KIB);
        entry[8..12].copy_from_slice(&(bytes as u32).to_le_bytes());
        seal_vhdx(&mut entry[..bytes]);
    }
    check(file)
}

const TABLE: [u8; 16] = *b"\x66\x77\xC2\x2D\x23\xF6\x00\x42\x9D\x64\x11\x5E\x9B\xFD\x4A\x08";
const METADATA: [u8; 16] = *b"\x06\xA2\x7C\x8B\x90\x47\x9A\x4B\xB8\xFE\x57\x5F\x05\x0F\x88\x6E";
const ITEMS: [([u8; 16], u64, u64); 4] = [
    (*b"\x37\x67\xA1\xCA\x36\xFA\x43\x4D\xB3\xB6\x33\xF0\xAA\x44\xE7\x6B", 65536, 8),
    (*b"\x24\x42\xA5\x2F\x1B\xCD\x76\x48\xB2\x11\x5D\xBE\xD8\x3B\xF4\xB8", 65544, 8),
    (*b"\x1D\xBF\x41\x81\x6F\xA9\x09\x47\xBA\x47\xF2\x33\xA8\xFA\xAB\x5F", 65552, 4),
    (*b"\x2D\x5F\xD3\xA8\x0B\xB3\x4D\x45\xAB\xF7\xD3\xD8\x48\x34\xAB\x0C", 65556, 64),
];

/// The CRC-32C of each byte.
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let (mut sum, mut bit) = (at as u32, 0);
        while bit < 8 {
            sum = if sum & 1 != 0 { sum >> 1 ^ 0x82F6_3B78 } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
};

fn seal_vhdx(bytes: &mut [u8]) {
    bytes[4..8].fill(0);
    let next = |sum: u32, &byte: &u8| CRC[usize::from(sum as u8 ^ byte)] ^ (sum >> 8);
    let sum = bytes.iter().fold(!0, next);
    bytes[4..8].copy_from_slice(&(!sum).to_le_bytes());
}

/// Makes data, a list with a table of chunks, and a trailer.
fn dmg(bytes: &[u8]) -> Verdict {
    let mut bytes = bytes;
    let mut trailer = vec![0; 512];
    trailer[..12].copy_from_slice(b"koly\0\0\0\x04\0\0\x02\0");
    number_be(&mut trailer, 24, 8, 0, &mut bytes);
    number_be(&mut trailer, 492, 8, 64, &mut bytes);
    let (entries, data) = bytes.split_at(bytes.len().min(160));
    let mut table = vec![0; 204];
    table[..4].copy_from_slice(b"mish");
    table[203] = 4;
    let mut entries = entries.to_vec();
    for entry in entries.chunks_mut(40) {
        let kind = [
            [0, 0, 0, 1],
            [0x80, 0, 0, 4],
            [0x80, 0, 0, 5],
            [0x80, 0, 0, 6],
            [0x80, 0, 0, 8],
            [0x80, 0, 0, 7],
        ];
        let kind = kind[usize::from(entry[0] % 6)];
        let length = entry.len().min(4);
        entry[..length].copy_from_slice(&kind[..length]);
    }
    table.extend(entries);
    let list = format!("<key>blkx</key><data>{}</data>", base64(&table));
    trailer[216..224].copy_from_slice(&(data.len() as u64).to_be_bytes());
    trailer[224..232].copy_from_slice(&(list.len() as u64).to_be_bytes());
    check([data, list.as_bytes(), &trailer].concat())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |part: &[u8]| {
        let bits = part.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
        let bits = bits << (8 * (3 - part.len()));
        let letter = |at: usize| LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
        (0..=part.len()).map(|at| char::from(letter(at))).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// Makes sections: each has a type, a length, and its data with corrected checksums.
fn ewf2(mut bytes: &[u8]) -> Verdict {
    let mut file = b"EVF2\x0d\x0a\x81\x00\x01\x00\x01\x00\x01\0\0\0".to_vec();
    file.resize(32, 0);
    let mut before = 0u64;
    let mut add = |kind: u32, data: &[u8]| {
        file.extend(data);
        let mut descriptor = kind.to_le_bytes().to_vec();
        descriptor.resize(8, 0);
        descriptor.extend(before.to_le_bytes());
        descriptor.extend((data.len() as u64).to_le_bytes());
        descriptor.resize(60, 0);
        before = file.len() as u64;
        file.extend(adler(descriptor));
    };
    let mut number = |usual: u64| match bytes {
        [first, rest @ ..] => {
            bytes = rest;
            if first % 2 == 1 { u64::from(*first) << (first % 60) } else { usual }
        }
        [] => usual,
    };
    let (sectors, sector_bytes, each) = (number(64), number(512), number(2));
    add(1, &text(&format!("1\nmain\nts\tbp\tsb\n{sectors}\t{sector_bytes}\t{each}\n")));
    while let [kind, length, rest @ ..] = bytes {
        let data = &rest[..usize::from(*length).min(rest.len())];
        bytes = &rest[data.len()..];
        if kind % 2 == 0 {
            let (header, entries) = data.split_at(data.len().min(16));
            let mut header = header.to_vec();
            header.resize(16, 0);
            header[4..8].fill(0);
            header[10..12].fill(0);
            let mut table = adler(header);
            table.resize(32, 0);
            add(4, &[&table, entries].concat());
        } else {
            add(u32::from(kind % 16), data);
        }
    }
    check(file)
}

/// Makes a ZIP file of an image. The first byte chooses the packing of chunks; the rest are members
/// that replace the usual ones, each a number, a length, and its bytes.
fn aff4(bytes: &[u8]) -> Verdict {
    const NAMES: [&str; 6] =
        ["s/00000000", "s/00000000.index", "m/map", "m/idx", "information.turtle", ""];
    const PACKINGS: [&str; 5] = [
        "http://aff4.org/Schema#NullCompressor",
        "https://www.ietf.org/rfc/rfc1950.txt",
        "https://tools.ietf.org/html/rfc1951",
        "http://code.google.com/p/snappy/",
        "https://github.com/lz4/lz4",
    ];
    let Some((&first, mut bytes)) = bytes.split_first() else { return Verdict::Skipped };
    let packing = PACKINGS[usize::from(first) % PACKINGS.len()];
    let index: Vec<u8> = (0..4u64)
        .flat_map(|chunk| [&(chunk * 16).to_le_bytes()[..], &[16, 0, 0, 0]].concat())
        .collect();
    let entry = |start: u64, bytes: u64, at: u64, stream: u32| {
        let numbers = [start, bytes, at].into_iter().flat_map(u64::to_le_bytes);
        numbers.chain(stream.to_le_bytes()).collect::<Vec<u8>>()
    };
    let text = format!(
        "@prefix aff4: <http://aff4.org/Schema#> .\n\
         <aff4://i> a aff4:DiskImage ; aff4:dataStream <aff4://m> ; aff4:size 256 .\n\
         <aff4://m> a aff4:Map ; aff4:mapGapDefaultStream aff4:Zero .\n\
         <aff4://s> a aff4:ImageStream ; aff4:chunkSize 16 ; aff4:chunksInSegment 4 ; aff4:size 60 ;\n\
         aff4:compressionMethod <{packing}> .\n"
    );
    let mut members = [
        (0..64).collect(),
        index,
        [entry(0, 30, 0, 0), entry(40, 20, 5, 1), entry(100, 30, 30, 0)].concat(),
        b"aff4://s\nhttp://aff4.org/Schema#SymbolicStream61\n".to_vec(),
        text.into_bytes(),
        Vec::new(),
    ];
    while let [number, length, rest @ ..] = bytes {
        let data = &rest[..usize::from(*length).min(rest.len())];
        bytes = &rest[data.len()..];
        let member = &mut members[usize::from(*number) % NAMES.len()];
        // The description can be long, so further data is appended to it.
        match number % 12 {
            10 => member.extend(data),
            _ => *member = data.to_vec(),
        }
    }
    let (mut file, mut directory, mut count) = (Vec::new(), Vec::new(), 0u16);
    // The last one has no name: its bytes change the directory.
    let other = members[5].clone();
    for (name, data) in [("container.description", &b"aff4://v"[..])]
        .into_iter()
        .chain(NAMES.into_iter().zip(members.iter().map(|data| &data[..])).take(5))
    {
        let name = match name.contains('/') {
            true => format!("aff4%3A%2F%2F{name}"),
            false => name.to_string(),
        };
        let at = file.len() as u32;
        let mut common = vec![0; 12];
        common.extend((data.len() as u32).to_le_bytes().repeat(2));
        common.extend((name.len() as u16).to_le_bytes());
        file.extend([&b"PK\x03\x04\0\0"[..], &common, &[0, 0], name.as_bytes(), data].concat());
        directory.extend([&b"PK\x01\x02\0\0\0\0"[..], &common, &[0; 12]].concat());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
        count += 1;
    }
    for (place, byte) in other.chunks_exact(2).map(|two| (usize::from(two[0]), two[1])) {
        let at = place * directory.len() / 256;
        directory[at] = byte;
    }
    let at = file.len() as u32;
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes().repeat(2));
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    check(file)
}

/// Makes UTF-16 in a stored zlib stream.
fn text(text: &str) -> Vec<u8> {
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let length = text.len() as u16;
    let mut packed = vec![0x78, 1, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(&text);
    let sum = adler(text);
    let (_, sum) = sum.split_at(sum.len() - 4);
    packed.extend(sum.iter().rev());
    packed
}

/// Appends the Adler-32.
fn adler(mut bytes: Vec<u8>) -> Vec<u8> {
    let (mut a, mut b) = (1u32, 0u32);
    for &byte in &bytes {
        a = (a + u32::from(byte)) % 65521;
        b = (b + a) % 65521;
    }
    bytes.extend((b << 16 | a).to_le_bytes());
    bytes
}

/// A folder in which every file that an image names contains the rest of the input.
struct Rest(Vec<u8>);

impl Siblings for Rest {
    fn open(&self, name: &str) -> quarrier_core::Result<Box<dyn Source>> {
        Ok(Box::new(Memory::new(name, self.0.clone())))
    }

    fn names(&self) -> Vec<String> {
        vec!["other.aff4".to_string(), "parent.vdi".to_string()]
    }
}

/// Whether the file is an image; if so, reads it at its ends and in between.
fn check(file: Vec<u8>) -> Verdict {
    let rest = Rest(file[file.len() / 2..].to_vec());
    let file: Arc<dyn Source> = Arc::new(Memory::new("image", file));
    let disk = match open(file, &rest, &[], &AtomicBool::new(false)) {
        Ok(image) if image.kind.is_none() => return Verdict::Skipped,
        Ok(image) => image.content,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Verdict::Skipped;
        }
    };
    match disk {
        Content::Disk(disk) => read(&*disk),
        Content::Stream(sequential) => {
            if let Ok(reader) = sequential.reader() {
                let _ = io::copy(&mut reader.take(1 << 20), &mut io::sink());
            }
        }
    }
    Verdict::Checked
}

fn read(disk: &dyn Source) {
    let length = disk.length();
    assert!(i64::try_from(length).is_ok());
    let mut buffer = [0; 5000];
    for offset in [0, 1, 4096, length / 2, length.saturating_sub(5000), length, u64::MAX] {
        match disk.read_at(offset, &mut buffer) {
            Ok(read) => assert!(read as u64 <= length.saturating_sub(offset)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let mut at = 0;
    for _ in 0..20 {
        let Ok(Some(data)) = disk.next_data(at) else { break };
        assert!(data.start >= at && data.start < data.end && data.end <= length);
        at = data.end;
    }
}

/// A stored index with a valid checksum, beside a small file.
pub const KEPT: Target =
    Target { name: "kept", run: kept, once: &[], seeds: KEPT_SEEDS, words: WORDS };

/// Indexes of the files of [`kept`].
const KEPT_SEEDS: &[&[u8]] = &[
    &[
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0xd1, 0x65, 0x58, 0x7c, 0x96, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0xd1, 0x65, 0x58, 0x7c, 0xa5, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0xa7, 0x00, 0x00, 0x00, 0xed, 0xd0, 0x41, 0x0d, 0x00, 0x00, 0x08, 0xc4, 0xb0, 0xb3,
        0x0a, 0xf8, 0xf7, 0x80, 0x0b, 0xc2, 0xa3, 0xcb, 0x14, 0x34, 0x11, 0x01, 0x02, 0x04, 0x08,
        0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01,
        0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40,
        0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08,
        0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01,
        0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40,
        0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08,
        0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01,
        0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40,
        0x80, 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x00, 0x01, 0x02, 0x04, 0x08,
        0x10, 0xb8, 0x14, 0xa8, 0x9e, 0x87, 0x2f,
    ],
    &[
        0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08,
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2c, 0x01, 0x00, 0x00,
    ],
];

/// "abc" a hundred times, packed by bzip2.
const BZIP2: &[u8] = &[
    0x42, 0x5a, 0x68, 0x31, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x8b, 0x9d, 0xae, 0xa5, 0x00, 0x00,
    0x31, 0x81, 0x00, 0x38, 0x00, 0x20, 0x00, 0x30, 0xcc, 0x05, 0x29, 0xa6, 0x22, 0xe2, 0x2c, 0x45,
    0xe2, 0xee, 0x48, 0xa7, 0x0a, 0x12, 0x11, 0x73, 0xb5, 0xd4, 0xa0,
];

/// The same packed by gzip, in two stored blocks.
fn gzip() -> Vec<u8> {
    let half = b"abc".repeat(50);
    let mut file = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    for is_last in [0, 1] {
        file.extend([is_last, 150, 0, !150, 0xFF]);
        file.extend(&half);
    }
    file.extend([0x84, 0xb8, 0xc4, 0xd0, 0x2c, 0x01, 0x00, 0x00]);
    file
}

/// A place that has an index, and stores none.
struct WithIndex(Vec<u8>);

impl Siblings for WithIndex {
    fn open(&self, name: &str) -> quarrier_core::Result<Box<dyn Source>> {
        Err(quarrier_core::Error::io(name, "open", io::ErrorKind::NotFound.into()))
    }

    fn keeps_indexes(&self) -> bool {
        true
    }

    fn kept_index(&self) -> Option<Vec<u8>> {
        Some(self.0.clone())
    }
}

/// Makes an index of one of two files, with a valid checksum and arbitrary entries.
fn kept(bytes: &[u8]) -> Verdict {
    let Some((&first, mut bytes)) = bytes.split_first() else { return Verdict::Skipped };
    let (kind, file) = if first % 2 == 1 { (2u32, BZIP2.to_vec()) } else { (1, gzip()) };
    let mut index = b"QRYINDEX\x01\0\0\0".to_vec();
    index.extend(kind.to_le_bytes());
    index.extend((file.len() as u64).to_le_bytes());
    index.extend([0; 8]);
    number(&mut index, 24, 8, 300, &mut bytes);
    index.extend(bytes);
    index.extend(quarrier_remote::journal::block_checksum(&index).to_le_bytes());
    let file: Arc<dyn Source> = Arc::new(Memory::new("image", file));
    let image = open(file, &WithIndex(index), &[], &AtomicBool::new(false));
    let Ok(Content::Disk(disk)) = image.map(|image| image.content) else {
        return Verdict::Skipped;
    };
    read(&*disk);
    Verdict::Checked
}
