//! Small volumes of each file system, written by hand: a folder, a file in it, a deleted file.

pub(crate) mod apfs;
pub(crate) mod btrfs;
pub(crate) mod hfs;
pub(crate) mod parts;

use parts::put;

/// Size of every volume in bytes.
pub const VOLUME_BYTES: usize = 128 << 10;

/// Makes a volume.
pub type Volume = fn() -> Vec<u8>;

/// The volume of each file system, by name.
pub const ALL: [(&str, Volume); 9] = [
    ("fat", fat),
    ("exfat", exfat),
    ("ntfs", ntfs),
    ("ext", ext),
    ("xfs", xfs),
    ("hfs", hfs::hfs),
    ("btrfs", btrfs::btrfs),
    ("apfs", apfs::apfs),
    ("iso", iso),
];

fn put16(image: &mut [u8], at: usize, value: u16) {
    put(image, at, &value.to_le_bytes());
}

fn put32(image: &mut [u8], at: usize, value: u32) {
    put(image, at, &value.to_le_bytes());
}

fn put64(image: &mut [u8], at: usize, value: u64) {
    put(image, at, &value.to_le_bytes());
}

/// FAT12 with clusters of one sector: the table in sector 1, the root in 2, clusters from 3.
pub fn fat() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    put(&mut image, 0, &[0xEB, 0x3C, 0x90]);
    put16(&mut image, 11, 512);
    put(&mut image, 13, &[1, 1, 0, 1, 16, 0, 250, 0, 0xF8, 1, 0]);
    put(&mut image, 510, &[0x55, 0xAA]);
    // 2: the folder; 3 and 4: the file; all the others free.
    put(&mut image, 512, &[0xF8, 0xFF, 0xFF, 0xFF, 0x4F, 0x00, 0xFF, 0x0F]);
    let slot = |name: &[u8; 11], attributes: u8, cluster: u16, size: u32| {
        let mut slot = [0; 32];
        put(&mut slot, 0, name);
        slot[11] = attributes;
        put16(&mut slot, 24, 0x5A21);
        put16(&mut slot, 26, cluster);
        put32(&mut slot, 28, size);
        slot
    };
    put(&mut image, 1024, &slot(b"DOCS       ", 0x10, 2, 0));
    put(&mut image, 1056, &slot(b"\xE5ONE    TXT", 0x20, 9, 700));
    let mut long = [0xFF; 32];
    put(&mut long, 0, &[0x41, b'f', 0, b'i', 0, b'l', 0, b'e', 0, 0, 0, 0x0F, 0]);
    let name = b"FILE       ";
    long[13] = name.iter().fold(0u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
    put(&mut long, 26, &[0, 0]);
    put(&mut image, 1536, &slot(b".          ", 0x10, 2, 0));
    put(&mut image, 1568, &slot(b"..         ", 0x10, 0, 0));
    put(&mut image, 1600, &long);
    put(&mut image, 1632, &slot(name, 0x20, 3, 900));
    // 20: a lost folder; 30: a later part of one.
    put(&mut image, 21 * 512, &slot(b".          ", 0x10, 20, 0));
    put(&mut image, 21 * 512 + 32, &slot(b"..         ", 0x10, 0, 0));
    put(&mut image, 21 * 512 + 64, &slot(b"LOST       ", 0x20, 21, 900));
    put(&mut image, 31 * 512, &slot(b"\xE5ATER   TXT", 0x20, 40, 700));
    image
}

/// exFAT with clusters of one sector: the FAT in sector 24, clusters from 32: the root, the bitmap,
/// a folder, a file.
pub fn exfat() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    put(&mut image, 3, b"EXFAT   ");
    for (at, value) in [(80, 24), (84, 1), (88, 32), (92, 200), (96, 2)] {
        put32(&mut image, at, value);
    }
    put(&mut image, 108, &[9, 0]);
    for cluster in 2..5 {
        put32(&mut image, 24 * 512 + cluster * 4, 0xFFFF_FFFF);
    }
    put32(&mut image, 24 * 512 + 5 * 4, 7);
    put32(&mut image, 24 * 512 + 7 * 4, 0xFFFF_FFFF);
    let root = 32 * 512;
    put(&mut image, root, &[0x81]);
    put32(&mut image, root + 20, 3);
    put64(&mut image, root + 24, 25);
    put(&mut image, root + 512, &[0b0010_1111]);
    let mut set =
        |at: usize, kind: u8, name: u8, attributes: u16, first: u32, size: u64, flags: u8| {
            put(&mut image, at, &[kind, 2]);
            put16(&mut image, at + 4, attributes);
            put32(&mut image, at + 12, 0x5A21_0000);
            put(&mut image, at + 32, &[kind - 0x85 + 0xC0, flags, 0, 1]);
            put64(&mut image, at + 40, size);
            put32(&mut image, at + 52, first);
            put64(&mut image, at + 56, size);
            put(&mut image, at + 64, &[kind - 0x85 + 0xC1, 0, name, 0]);
        };
    set(root + 32, 0x85, b'd', 0x10, 4, 512, 3);
    set(root + 1024, 0x85, b'f', 0x20, 5, 900, 1);
    image[root + 128] = 0x05;
    image[root + 160] = 0x40;
    image[root + 161] = 3;
    image[root + 163] = 1;
    put32(&mut image, root + 160 + 20, 9);
    put64(&mut image, root + 160 + 24, 600);
    put(&mut image, root + 192, &[0x41, 0, b'g', 0]);
    // 20: a lost folder.
    let at = root + 18 * 512;
    image.copy_within(root + 1024..root + 1024 + 96, at);
    let sum = (0..96)
        .filter(|byte| !matches!(byte, 2 | 3))
        .fold(0u16, |sum, byte| sum.rotate_right(1).wrapping_add(image[at + byte].into()));
    put16(&mut image, at + 2, sum);
    image
}

/// NTFS with clusters of one sector and records of 1,024 bytes: the MFT of 30 records from cluster
/// 8.
pub fn ntfs() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    put(&mut image, 3, b"NTFS    ");
    put16(&mut image, 11, 512);
    image[13] = 1;
    put64(&mut image, 40, 256);
    put64(&mut image, 48, 8);
    image[64] = 0xF6;
    let mut record = |number: usize, flags: u16, attributes: &[Vec<u8>]| {
        let at = 8 * 512 + number * 1024;
        put(&mut image, at, b"FILE");
        put16(&mut image, at + 4, 48);
        put16(&mut image, at + 6, 3);
        put16(&mut image, at + 16, 1);
        put16(&mut image, at + 20, 56);
        put16(&mut image, at + 22, flags);
        let mut end = at + 56;
        for attribute in attributes {
            put(&mut image, end, attribute);
            end += attribute.len();
        }
        put32(&mut image, end, 0xFFFF_FFFF);
        // The update sequence number at the end of both sectors replaces zeros.
        put16(&mut image, at + 48, 7);
        put16(&mut image, at + 510, 7);
        put16(&mut image, at + 1022, 7);
    };
    let name = |parent: u64, name: u8| {
        let mut content = vec![0; 68];
        put64(&mut content, 0, parent | 1 << 48);
        content[64] = 1;
        content[66] = name;
        resident(0x30, &content)
    };
    record(0, 1, &[name(5, b'm'), runs(0x80, 30 * 1024, &[0x11, 60, 8, 0])]);
    record(5, 3, &[name(5, b'.')]);
    record(6, 1, &[name(5, b'b'), resident(0x80, &[0xFF; 32])]);
    record(24, 3, &[name(5, b'd')]);
    record(25, 1, &[resident(0x10, &[1; 48]), name(24, b'f'), resident(0x80, b"in the record")]);
    let mut packed = runs(0x80, 9000, &[0x11, 4, 100, 0x01, 12, 0x11, 16, 20, 0]);
    put16(&mut packed, 12, 1);
    put16(&mut packed, 34, 4);
    record(26, 1, &[name(24, b'p'), packed]);
    record(27, 0, &[name(24, b'g'), runs(0x80, 700, &[0x11, 2, 120, 0])]);
    let list: Vec<u8> =
        [0x80u64 | 32 << 32, 0, 29 | 1 << 48, 0].iter().flat_map(|one| one.to_le_bytes()).collect();
    record(28, 1, &[resident(0x20, &list), name(5, b'l')]);
    record(29, 1, &[runs(0x80, 600, &[0x11, 2, 110, 0])]);
    put64(&mut image, 8 * 512 + 29 * 1024 + 32, 28 | 1 << 48);
    image
}

fn resident(kind: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; (24 + content.len()).next_multiple_of(8)];
    let length = bytes.len() as u32;
    put32(&mut bytes, 0, kind);
    put32(&mut bytes, 4, length);
    put16(&mut bytes, 10, 24);
    put32(&mut bytes, 16, content.len() as u32);
    put16(&mut bytes, 20, 24);
    put(&mut bytes, 24, content);
    bytes
}

fn runs(kind: u32, size: u64, runs: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; (64 + runs.len()).next_multiple_of(8)];
    let length = bytes.len() as u32;
    put32(&mut bytes, 0, kind);
    put32(&mut bytes, 4, length);
    bytes[8] = 1;
    put16(&mut bytes, 10, 64);
    put16(&mut bytes, 32, 64);
    for at in [40, 48, 56] {
        put64(&mut bytes, at, size);
    }
    put(&mut bytes, 64, runs);
    bytes
}

/// ext4 with blocks of 1,024 bytes: 16 inodes from block 5, folders in blocks 10 and 11.
pub fn ext() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    for (at, value) in [(0, 16), (4, 128), (20, 1), (32, 8192), (40, 16), (76, 1), (96, 0x42)] {
        put32(&mut image, 1024 + at, value);
    }
    put16(&mut image, 1024 + 56, 0xEF53);
    put16(&mut image, 1024 + 88, 256);
    for (at, block) in [(0, 3), (4, 4), (8, 5)] {
        put32(&mut image, 2048 + at, block);
    }
    put(&mut image, 3 * 1024, &[0xFF, 0xFF, 0x0F]);
    let mut inode = |number: usize, mode: u16, size: u32, flags: u32, block: &[u8]| {
        let at = 5 * 1024 + (number - 1) * 256;
        put16(&mut image, at, mode);
        put32(&mut image, at + 4, size);
        put16(&mut image, at + 26, 1);
        put32(&mut image, at + 32, flags);
        put(&mut image, at + 40, block);
        put16(&mut image, at + 128, 32);
    };
    let extent = |start: u32, blocks: u16| {
        let mut bytes = vec![0x0A, 0xF3, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(blocks.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(start.to_le_bytes());
        bytes
    };
    let pointers: Vec<u8> = [20u32, 0, 21].iter().flat_map(|one| one.to_le_bytes()).collect();
    inode(2, 0x41ED, 1024, 0x8_0000, &extent(10, 1));
    inode(11, 0x41ED, 1024, 0, &11u32.to_le_bytes());
    inode(12, 0x81A4, 2000, 0x8_0000, &extent(16, 2));
    inode(13, 0x81A4, 3000, 0, &pointers);
    inode(14, 0xA1FF, 4, 0, b"d/f0");
    inode(15, 0x81A4, 11, 0x1000_0000, b"in an inode");
    put16(&mut image, 5 * 1024 + 12 * 256 + 26, 0);
    let mut at = 10 * 1024;
    let mut name = |inode: u32, length: u16, kind: u8, name: &[u8]| {
        put32(&mut image, at, inode);
        put16(&mut image, at + 4, length);
        put(&mut image, at + 6, &[name.len() as u8, kind]);
        put(&mut image, at + 8, name);
        at += usize::from(length);
    };
    name(2, 12, 2, b".");
    name(2, 12, 2, b"..");
    name(11, 12, 2, b"d");
    name(14, 12, 7, b"l");
    name(15, 976, 1, b"i");
    name(11, 12, 2, b".");
    name(2, 12, 2, b"..");
    name(12, 1000, 1, b"f0");
    put32(&mut image, 11 * 1024 + 36, 13);
    put(&mut image, 11 * 1024 + 40, &[12, 0, 1, 1, b'g']);
    image
}

/// XFS with one group of 64 blocks of 2 KiB and inodes from block 8 on: the root, with its entries
/// inline, a folder with a block, files with an extent list and with an extent B-tree, links in
/// both forms.
pub fn xfs() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    let be32 = |image: &mut Vec<u8>, at: usize, value: u32| put(image, at, &value.to_be_bytes());
    put(&mut image, 0, b"XFSB");
    for (at, value) in [(4, 2048), (84, 64), (88, 1), (216, 1)] {
        be32(&mut image, at, value);
    }
    for (at, value) in [(8, 64u64), (56, 32)] {
        put(&mut image, at, &value.to_be_bytes());
    }
    for (at, value) in [(100, 5u16), (102, 512), (104, 512)] {
        put(&mut image, at, &value.to_be_bytes());
    }
    // 64 blocks in a group, four inodes in a block.
    image[124] = 6;
    put(&mut image, 512, b"XAGF");
    be32(&mut image, 512 + 16, 4);
    be32(&mut image, 512 + 28, 1);
    let tree = 4 * 2048;
    put(&mut image, tree, b"AB3B\0\0\0\x02");
    for (at, value) in [(56, 30), (60, 4), (64, 40), (68, 24)] {
        be32(&mut image, tree + at, value);
    }
    let inode =
        |image: &mut Vec<u8>, number: usize, mode: u16, form: u8, size: u64, fork: &[u8]| {
            let at = number * 512;
            put(image, at, b"IN");
            put(image, at + 2, &mode.to_be_bytes());
            put(image, at + 4, &[3, form]);
            put(image, at + 56, &size.to_be_bytes());
            put(image, at + 76, &1u32.to_be_bytes());
            put(image, at + 176, fork);
        };
    let extent = |from: u64, block: u64, blocks: u64| {
        let (high, low) = (from << 9 | block >> 43, block << 21 | blocks);
        [high.to_be_bytes(), low.to_be_bytes()].concat()
    };
    let mut names = vec![5, 0, 0, 0, 0, 32];
    for (name, kind, number) in
        [(b'd', 2, 33u8), (b'f', 1, 34), (b't', 1, 35), (b'l', 7, 36), (b'm', 7, 37)]
    {
        names.extend([1, 0, 0, name, kind, 0, 0, 0, number]);
    }
    inode(&mut image, 32, 0x41ED, 1, names.len() as u64, &names);
    inode(&mut image, 33, 0x41ED, 2, 2048, &extent(0, 16, 1));
    inode(&mut image, 34, 0x81A4, 2, 5000, &extent(1, 20, 2));
    // The root of a B-tree: level, count, keys, and pointers after the space for all keys.
    let mut root = vec![0; 336];
    put(&mut root, 0, &[0, 1, 0, 1]);
    put(&mut root, 4 + 20 * 8, &18u64.to_be_bytes());
    inode(&mut image, 35, 0x81A4, 3, 4000, &root);
    inode(&mut image, 36, 0xA1FF, 1, 3, b"d/g");
    inode(&mut image, 37, 0xA1FF, 2, 600, &extent(0, 19, 1));
    put(&mut image, 18 * 2048, b"BMA3\0\0\0\x02");
    put(&mut image, 18 * 2048 + 72, &extent(0, 24, 1));
    put(&mut image, 18 * 2048 + 88, &extent(1, 26, 1));
    let block = 16 * 2048;
    put(&mut image, block, b"XDB3");
    let mut at = block + 64;
    for (name, number) in [(&b"."[..], 33u64), (b"..", 32), (b"g", 34)] {
        put(&mut image, at, &number.to_be_bytes());
        image[at + 8] = name.len() as u8;
        put(&mut image, at + 9, name);
        at += (12 + name.len()).next_multiple_of(8);
    }
    put(&mut image, at, &[0xFF, 0xFF]);
    let room = (block + 2048 - 32 - at) as u16;
    put(&mut image, at + 2, &room.to_be_bytes());
    // Three hashes, and their number.
    image[block + 2048 - 5] = 3;
    image
}

/// ISO 9660 with Rock Ridge: the root in sector 20, a folder in 21, a file in 22.
pub fn iso() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    let record = |block: u32, size: u32, flags: u8, name: &[u8], extra: &[u8]| {
        let named = (33 + name.len()).next_multiple_of(2);
        let mut bytes = vec![0; named + extra.len()];
        bytes[0] = bytes.len() as u8;
        put32(&mut bytes, 2, block);
        put32(&mut bytes, 10, size);
        put(&mut bytes, 18, &[120, 1, 2, 3, 4, 5, 0, flags]);
        bytes[32] = name.len() as u8;
        put(&mut bytes, 33, name);
        put(&mut bytes, named, extra);
        bytes
    };
    let at = 16 * 2048;
    put(&mut image, at, b"\x01CD001\x01");
    put16(&mut image, at + 128, 2048);
    put(&mut image, at + 156, &record(20, 2048, 2, &[0], &[]));
    put(&mut image, at + 2048, b"\xFFCD001\x01");
    let mut fill = |sector: usize, records: &[Vec<u8>]| {
        let mut at = sector * 2048;
        for record in records {
            put(&mut image, at, record);
            at += record.len();
        }
    };
    let begins = b"SP\x07\x01\xBE\xEF\0";
    let goes_on = b"CE\x1C\x01\x18\0\0\0\0\0\0\x18\x08\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0";
    fill(
        20,
        &[
            record(20, 2048, 2, &[0], begins),
            record(20, 2048, 2, &[1], &[]),
            record(21, 2048, 2, b"D", b"NM\x06\x01\0d"),
            record(0, 0, 0, b"L.;1", b"SL\x0C\x01\0\x04\0\0\x03a/bPX\x0C\x01\xFF\xA1\0\0\0\0\0\0"),
        ],
    );
    fill(
        21,
        &[
            record(21, 2048, 2, &[0], &[]),
            record(20, 2048, 2, &[1], &[]),
            record(22, 900, 0, b"F.;1", goes_on),
            record(22, 900, 0x80, b"G.;1", b"TF\x0C\x01\x02\x78\x01\x02\x03\x04\x05\0"),
            record(23, 900, 0, b"G.;1", &[]),
        ],
    );
    put(&mut image, 24 * 2048 + 8, b"NM\x07\x01\0fi");
    image
}
