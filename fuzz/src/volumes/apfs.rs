//! APFS in 32 blocks of 4 KiB: a container with two volumes, one with folders, files and links, the
//! other encrypted. An earlier checkpoint has files that were deleted since.

use super::parts::{bytes, put, zlib};

const VOLUME_BYTES: usize = 128 << 10;
const BLOCK_BYTES: usize = 4096;
/// The blocks of structures, followed by those of files.
const BLOCKS: usize = VOLUME_BYTES / BLOCK_BYTES;
const STRUCTURES: usize = 20;
/// The number of the checkpoint.
const CHECKPOINT: u64 = 7;
/// Numbers of objects.
const SPACE: u64 = 1024;
const VOLUME: u64 = 1026;
const ENCRYPTED: u64 = 1027;
const ROOT: u64 = 1028;
const LEAVES: [u64; 2] = [1029, 1030];
/// 4 July 2019.
const TIME: u64 = 1_562_235_630_000_000_000;

type Record = (Vec<u8>, Vec<u8>);

/// An object: its number, its type and subtype.
fn object(number: u64, kind: u32, subtype: u32) -> Vec<u8> {
    let mut object = vec![0; BLOCK_BYTES];
    put(&mut object, 8, &number.to_le_bytes());
    put(&mut object, 16, &CHECKPOINT.to_le_bytes());
    put(&mut object, 24, &kind.to_le_bytes());
    put(&mut object, 28, &subtype.to_le_bytes());
    object
}

/// A B-tree node. The root describes its tree; keys and values have 16 bytes, or any length.
#[rustfmt::skip]
fn node(number: u64, kind: u32, subtype: u32, level: u16, is_root: bool, is_fixed: bool, records: &[Record]) -> Vec<u8> {
    let mut node = object(number, kind, subtype);
    let flags = u16::from(is_root) | u16::from(level == 0) << 1 | u16::from(is_fixed) << 2;
    put(&mut node, 32, &flags.to_le_bytes());
    put(&mut node, 34, &level.to_le_bytes());
    put(&mut node, 36, &(records.len() as u32).to_le_bytes());
    let each = if is_fixed { 4 } else { 8 };
    let table = (records.len() * each).next_multiple_of(64);
    put(&mut node, 42, &(table as u16).to_le_bytes());
    let keys = 56 + table;
    let end = BLOCK_BYTES - if is_root { 40 } else { 0 };
    let (mut key_at, mut value_back) = (0, 0);
    for (index, (key, value)) in records.iter().enumerate() {
        value_back += value.len();
        put(&mut node, keys + key_at, key);
        put(&mut node, end - value_back, value);
        let numbers = [key_at, key.len(), value_back, value.len()].map(|number| number as u16);
        let places: &[u16] = if is_fixed { &[numbers[0], numbers[2]] } else { &numbers };
        for (number, place) in places.iter().enumerate() {
            put(&mut node, 56 + index * each + number * 2, &place.to_le_bytes());
        }
        key_at += key.len();
    }
    put(&mut node, 44, &(key_at as u16).to_le_bytes());
    put(&mut node, 46, &((end - keys - key_at - value_back) as u16).to_le_bytes());
    for at in [48, 52] {
        put(&mut node, at, &[0xFF, 0xFF, 0, 0]);
    }
    if is_root {
        let sizes = if is_fixed { 16u32 } else { 0 };
        let flags = if is_fixed { 0x10u32 } else { 0 };
        for (at, value) in [(0, flags), (4, BLOCK_BYTES as u32), (8, sizes), (12, sizes)] {
            put(&mut node, end + at, &value.to_le_bytes());
        }
        put(&mut node, end + 24, &(records.len() as u64).to_le_bytes());
        put(&mut node, end + 32, &1u64.to_le_bytes());
    }
    node
}

/// An object map: its own block, and the block of its B-tree.
fn map(block: u64, objects: &[(u64, u64)]) -> [Vec<u8>; 2] {
    let mut map = object(block, 0x4000_000B, 0);
    put(&mut map, 40, &0x4000_0002u32.to_le_bytes());
    put(&mut map, 48, &(block + 1).to_le_bytes());
    let records: Vec<Record> = objects
        .iter()
        .map(|(number, place)| {
            // The transaction that wrote the object: both checkpoints have it.
            let key = [number.to_le_bytes(), (CHECKPOINT - 1).to_le_bytes()].concat();
            let value = [&[0; 4][..], &4096u32.to_le_bytes(), &place.to_le_bytes()].concat();
            (key, value)
        })
        .collect();
    [map, node(block + 1, 0x4000_0002, 0xB, 0, true, true, &records)]
}

fn key(number: u64, kind: u64, rest: &[u8]) -> Vec<u8> {
    [&(number | kind << 60).to_le_bytes()[..], rest].concat()
}

fn inode(number: u64, parent: u64, mode: u16, packed: bool, size: Option<usize>) -> Record {
    let mut value = vec![0; 92];
    put(&mut value, 0, &parent.to_le_bytes());
    put(&mut value, 8, &number.to_le_bytes());
    for (number, at) in (0..).zip([16, 24, 32, 40]) {
        put(&mut value, at, &(TIME + number).to_le_bytes());
    }
    put(&mut value, 56, &1u32.to_le_bytes());
    value[68] = u8::from(packed) << 5;
    put(&mut value, 72, &501u32.to_le_bytes());
    put(&mut value, 76, &20u32.to_le_bytes());
    put(&mut value, 80, &mode.to_le_bytes());
    if let Some(size) = size {
        value.extend([1, 0, 40, 0, 8, 0x20, 40, 0]);
        value.extend((size as u64).to_le_bytes());
        value.extend((size.next_multiple_of(BLOCK_BYTES) as u64).to_le_bytes());
        value.extend([0; 24]);
    }
    (key(number, 3, &[]), value)
}

fn name(folder: u64, name: &str, number: u64, kind: u16) -> Record {
    // The upper bits are for a hash, which no reader uses.
    let length = name.len() as u32 + 1;
    let rest = [&length.to_le_bytes()[..], name.as_bytes(), &[0]].concat();
    let value = [&number.to_le_bytes()[..], &TIME.to_le_bytes(), &kind.to_le_bytes()].concat();
    (key(folder, 9, &rest), value)
}

fn attribute(number: u64, name: &str, flags: u16, bytes: &[u8]) -> Record {
    let length = name.len() as u16 + 1;
    let rest = [&length.to_le_bytes()[..], name.as_bytes(), &[0]].concat();
    let length = bytes.len() as u16;
    let value = [&flags.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat();
    (key(number, 4, &rest), value)
}

fn extent(number: u64, from: u64, bytes: u64, block: u64) -> Record {
    let value = [bytes.to_le_bytes(), block.to_le_bytes(), [0; 8]].concat();
    (key(number, 8, &from.to_le_bytes()), value)
}

fn volume(number: u64, index: u32, name: &str, flags: u64) -> Vec<u8> {
    let mut volume = object(number, 0xD, 0);
    put(&mut volume, 32, b"APSB");
    put(&mut volume, 36, &index.to_le_bytes());
    for (at, value) in [(116, 2u32), (120, 0x4000_0002), (124, 0x4000_0002)] {
        put(&mut volume, at, &value.to_le_bytes());
    }
    let numbers = [(56, 1), (128, 9), (136, ROOT), (176, 100), (184, 7), (192, 1), (264, flags)];
    for (at, value) in numbers {
        put(&mut volume, at, &value.to_le_bytes());
    }
    put(&mut volume, 704, name.as_bytes());
    volume
}

/// The files of the first volume, in two leaves.
fn files(image: &mut [u8]) -> [Vec<Record>; 2] {
    let mut at = |block: usize, bytes: &[u8]| put(image, block * BLOCK_BYTES, bytes);
    let plain = bytes("plain", 10_000);
    at(20, &plain[..4096]);
    at(22, &plain[8192..]);
    at(23, &bytes("a", 700));
    at(24, &bytes("icon", 300));
    let packed = zlib(&bytes("medium", 6000));
    let mut fork = vec![0; 256];
    fork[2] = 1;
    let length = packed.len() as u32 + 12;
    put(&mut fork, 8, &length.to_be_bytes());
    fork.extend(length.to_be_bytes());
    for value in [1, 12, packed.len() as u32] {
        fork.extend(value.to_le_bytes());
    }
    fork.extend(packed);
    at(25, &fork);
    let packing = |form: u32, size: u64, packed: &[u8]| {
        [&b"fpmc"[..], &form.to_le_bytes(), &size.to_le_bytes(), packed].concat()
    };
    let stream = |number: u64, size: usize| {
        let mut stream = [number, size as u64, 8192].map(u64::to_le_bytes).concat();
        stream.resize(48, 0);
        stream
    };
    let left = vec![
        name(1, "root", 2, 4),
        inode(2, 1, 0o40755, false, None),
        name(2, "docs", 16, 4),
        name(2, "empty", 17, 8),
        name(2, "link", 18, 10),
        name(2, "medium", 19, 8),
        name(2, "plain", 20, 8),
        name(2, "small", 21, 8),
        inode(16, 2, 0o40755, false, None),
        name(16, "a.txt", 22, 8),
        name(16, "hard", 20, 8),
        inode(17, 2, 0o100_644, false, None),
    ];
    let decmpfs = "com.apple.decmpfs";
    let resource = "com.apple.ResourceFork";
    let right = vec![
        inode(18, 2, 0o120_755, false, None),
        attribute(18, "com.apple.fs.symlink", 2, b"docs/a.txt\0"),
        inode(19, 2, 0o100_644, true, None),
        attribute(19, resource, 1, &stream(23, fork.len())),
        attribute(19, decmpfs, 2, &packing(4, 6000, &[])),
        inode(20, 2, 0o100_644, false, Some(10_000)),
        extent(20, 0, 4096, 20),
        extent(20, 4096, 4096, 0),
        extent(20, 8192, 4096, 22),
        inode(21, 2, 0o100_644, true, None),
        attribute(21, decmpfs, 2, &packing(3, 200, &zlib(&bytes("small", 200)))),
        inode(22, 16, 0o100_644, false, Some(700)),
        attribute(22, resource, 1, &stream(24, 300)),
        extent(22, 0, 4096, 23),
        extent(23, 0, 8192, 25),
        extent(24, 0, 4096, 24),
    ];
    [left, right]
}

/// An inode with its name.
fn named_inode(number: u64, parent: u64, mode: u16, name: &str, size: Option<usize>) -> Record {
    let (key, mut value) = inode(number, parent, mode, false, None);
    let bytes = name.len() + 1;
    value.extend([1 + u8::from(size.is_some()), 0, 0, 0, 4, 2, bytes as u8, 0]);
    if size.is_some() {
        value.extend([8, 0x20, 40, 0]);
    }
    value.extend(name.as_bytes());
    value.resize(value.len() + bytes.next_multiple_of(8) - name.len(), 0);
    if let Some(size) = size {
        value.extend((size as u64).to_le_bytes());
        value.extend((size.next_multiple_of(BLOCK_BYTES) as u64).to_le_bytes());
        value.extend([0; 24]);
    }
    (key, value)
}

/// The blocks of the earlier checkpoint, which are free: a map, the volume, its map, its tree.
fn earlier(image: &mut [u8], first: &Record) -> Vec<(usize, Vec<u8>)> {
    put(image, 31 * BLOCK_BYTES, &bytes("gone", 2000));
    let leaf = [
        named_inode(20, 2, 0o100_644, "plain", Some(10_000)),
        named_inode(30, 2, 0o40755, "old", None),
        named_inode(31, 30, 0o100_644, "gone", Some(2000)),
        extent(31, 0, 4096, 31),
        named_inode(32, 777, 0o100_644, "orphan", None),
        inode(33, 2, 0o100_644, false, None),
    ];
    let index: Vec<Record> = [first, &leaf[0]]
        .into_iter()
        .zip(LEAVES)
        .map(|(record, leaf)| (record.0.clone(), leaf.to_le_bytes().to_vec()))
        .collect();
    let [of_container, of_container_tree] = map(16, &[(VOLUME, 18)]);
    let objects = [(ROOT, 29), (LEAVES[0], 12), (LEAVES[1], 30)];
    let [of_volume, of_volume_tree] = map(27, &objects);
    let mut volume = volume(VOLUME, 0, "First", 1);
    put(&mut volume, 128, &27u64.to_le_bytes());
    vec![
        (16, of_container),
        (17, of_container_tree),
        (18, volume),
        (27, of_volume),
        (28, of_volume_tree),
        (29, node(ROOT, 2, 0xE, 1, true, false, &index)),
        (30, node(LEAVES[1], 3, 0xE, 0, false, false, &leaf)),
    ]
}

/// The container.
pub(crate) fn apfs() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    let [left, right] = files(&mut image);
    let index: Vec<Record> = [&left, &right]
        .into_iter()
        .zip(LEAVES)
        .map(|(records, leaf)| (records[0].0.clone(), leaf.to_le_bytes().to_vec()))
        .collect();
    let mut superblock = object(1, 0x8000_0001, 0);
    put(&mut superblock, 32, b"NXSB");
    put(&mut superblock, 36, &(BLOCK_BYTES as u32).to_le_bytes());
    for (at, value) in [(104, 2u32), (108, 1), (136, 0), (140, 2), (144, 0), (148, 1), (180, 2)] {
        put(&mut superblock, at, &value.to_le_bytes());
    }
    let numbers = [
        (40, BLOCKS as u64),
        (64, 2),
        (88, 2000),
        (96, CHECKPOINT + 1),
        (112, 1),
        (120, 3),
        (152, SPACE),
        (160, 4),
        (184, VOLUME),
        (192, ENCRYPTED),
    ];
    for (at, value) in numbers {
        put(&mut superblock, at, &value.to_le_bytes());
    }
    // The copy in the first block is older than the one in the ring.
    let mut older = superblock.clone();
    put(&mut older, 16, &(CHECKPOINT - 1).to_le_bytes());
    put(&mut older, 160, &16u64.to_le_bytes());
    let mut list = object(1, 0x4000_000C, 0);
    put(&mut list, 32, &[1, 0, 0, 0, 1]);
    for (at, value) in [(40, 0x8000_0005u32), (48, BLOCK_BYTES as u32)] {
        put(&mut list, at, &value.to_le_bytes());
    }
    put(&mut list, 64, &SPACE.to_le_bytes());
    put(&mut list, 72, &3u64.to_le_bytes());
    let mut space = object(SPACE, 0x8000_0005, 0);
    let counts = [(32, 4096), (36, 32_768), (40, 126), (44, 507), (64, 1), (80, 1000), (1000, 14)];
    for (at, value) in counts {
        put(&mut space, at, &u32::to_le_bytes(value));
    }
    // The structures and the blocks of files are in use.
    let used = |block: &usize| *block < STRUCTURES || [20, 22, 23, 24, 25, 26].contains(block);
    let free = (0..BLOCKS).filter(|block| !used(block)).count();
    for (at, value) in [(48, BLOCKS as u64), (56, 1), (72, free as u64)] {
        put(&mut space, at, &value.to_le_bytes());
    }
    let mut chunks = object(14, 0x4000_0007, 0);
    put(&mut chunks, 36, &1u32.to_le_bytes());
    put(&mut chunks, 40, &CHECKPOINT.to_le_bytes());
    put(&mut chunks, 56, &(BLOCKS as u32).to_le_bytes());
    put(&mut chunks, 60, &(free as u32).to_le_bytes());
    put(&mut chunks, 64, &15u64.to_le_bytes());
    let mut bitmap = vec![0; BLOCK_BYTES];
    (0..BLOCKS).filter(used).for_each(|block| bitmap[block / 8] |= 1 << (block % 8));

    let [of_container, of_container_tree] = map(4, &[(VOLUME, 6), (ENCRYPTED, 7)]);
    let objects = [(ROOT, 11), (LEAVES[0], 12), (LEAVES[1], 13)];
    let [of_volume, of_volume_tree] = map(9, &objects);
    let blocks = [
        (0, older),
        (1, list),
        (2, superblock),
        (3, space),
        (4, of_container),
        (5, of_container_tree),
        (6, volume(VOLUME, 0, "First", 1)),
        (7, volume(ENCRYPTED, 1, "Second", 0)),
        (9, of_volume),
        (10, of_volume_tree),
        (11, node(ROOT, 2, 0xE, 1, true, false, &index)),
        (12, node(LEAVES[0], 3, 0xE, 0, false, false, &left)),
        (13, node(LEAVES[1], 3, 0xE, 0, false, false, &right)),
        (14, chunks),
        (15, bitmap),
    ];
    let earlier = earlier(&mut image, &left[0]);
    for (block, bytes) in blocks.into_iter().chain(earlier) {
        put(&mut image, block * BLOCK_BYTES, &bytes);
    }
    seal(&mut image);
    image
}

/// Corrects the checksums of all objects.
pub(crate) fn seal(image: &mut [u8]) {
    const MODULUS: u64 = u32::MAX as u64;
    for (block, object) in image.chunks_exact_mut(BLOCK_BYTES).enumerate() {
        // The bitmap has no checksum.
        if block == 15 || !(block < STRUCTURES || (27..31).contains(&block)) {
            continue;
        }
        let (mut low, mut high) = (0, 0);
        for word in object[8..].chunks_exact(4) {
            let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            low = (low + word) % MODULUS;
            high = (high + low) % MODULUS;
        }
        let first = MODULUS - (low + high) % MODULUS;
        let second = MODULUS - (low + first) % MODULUS;
        put(object, 0, &(second << 32 | first).to_le_bytes());
    }
}
