//! Btrfs in 32 blocks of 4 KiB: a chunk of nodes with two copies, two chunks of files, folders,
//! files in all forms, a subvolume, an earlier leaf with deleted files.

use super::parts::{bytes, put, zlib};

const VOLUME_BYTES: usize = 128 << 10;
const BLOCK_BYTES: usize = 4096;
const SUPERBLOCK_AT: usize = 64 << 10;
/// Nodes: the logical address, and the blocks of the device with each copy.
const NODES: u64 = 1 << 20;
const NODE_BLOCKS: usize = 8;
const COPIES: [usize; 2] = [1, 17];
/// Files: two chunks of seven blocks.
const FILES: [(u64, usize); 2] = [(2 << 20, 25), (3 << 20, 9)];
const FILE_BLOCKS: usize = 7;
/// 4 July 2019.
const TIME: u64 = 1_562_235_630;

type Item = ((u64, u8, u64), Vec<u8>);

/// A Zstandard frame of one stored block.
fn zstd(plain: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x28, 0xB5, 0x2F, 0xFD, 0x60];
    packed.extend((plain.len() as u16 - 256).to_le_bytes());
    packed.extend(&((plain.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    packed.extend(plain);
    packed
}

/// An LZO segment of literals only, in a sector.
fn lzo(plain: &[u8]) -> Vec<u8> {
    let rest = plain.len() - 18;
    let mut stream = vec![0; 1 + (rest - 1) / 255];
    stream.push(((rest - 1) % 255) as u8 + 1);
    stream.extend(plain);
    stream.extend([0x11, 0, 0]);
    let length = stream.len() as u32;
    [&(length + 8).to_le_bytes()[..], &length.to_le_bytes(), &stream].concat()
}

fn key((object, kind, offset): (u64, u8, u64)) -> Vec<u8> {
    let mut key = object.to_le_bytes().to_vec();
    key.push(kind);
    key.extend(offset.to_le_bytes());
    key
}

/// The header of a node: its address, its tree, the number of its items, its level.
fn head(index: u64, tree: u64, items: usize, level: u8) -> Vec<u8> {
    let mut node = vec![0; BLOCK_BYTES];
    put(&mut node, 48, &(NODES + index * BLOCK_BYTES as u64).to_le_bytes());
    put(&mut node, 80, &1u64.to_le_bytes());
    put(&mut node, 88, &tree.to_le_bytes());
    put(&mut node, 96, &(items as u32).to_le_bytes());
    node[100] = level;
    node
}

fn leaf(index: u64, tree: u64, items: &[Item]) -> Vec<u8> {
    let mut node = head(index, tree, items.len(), 0);
    let mut end = BLOCK_BYTES;
    for (number, (of_item, data)) in items.iter().enumerate() {
        end -= data.len();
        put(&mut node, end, data);
        let at = 101 + number * 25;
        put(&mut node, at, &key(*of_item));
        put(&mut node, at + 17, &(end as u32 - 101).to_le_bytes());
        put(&mut node, at + 21, &(data.len() as u32).to_le_bytes());
    }
    node
}

fn inode(mode: u32, size: usize) -> Vec<u8> {
    let mut inode = vec![0; 160];
    put(&mut inode, 0, &1u64.to_le_bytes());
    put(&mut inode, 16, &(size as u64).to_le_bytes());
    put(&mut inode, 40, &1u32.to_le_bytes());
    put(&mut inode, 52, &mode.to_le_bytes());
    for (number, at) in (0..).zip([112, 124, 136, 148]) {
        put(&mut inode, at, &(TIME + number).to_le_bytes());
    }
    inode
}

/// An extent of a form, with its packing and its unpacked length.
fn extent(form: u8, packing: u8, plain: usize) -> Vec<u8> {
    let mut extent = vec![0; 21];
    put(&mut extent, 0, &1u64.to_le_bytes());
    put(&mut extent, 8, &(plain as u64).to_le_bytes());
    extent[16] = packing;
    extent[20] = form;
    extent
}

fn inline(packing: u8, stored: &[u8], plain: usize) -> Vec<u8> {
    let mut extent = extent(0, packing, plain);
    extent.extend(stored);
    extent
}

/// An extent in blocks: their address and number, the bytes to skip, and the length in the file.
fn stored(
    form: u8,
    packing: u8,
    at: u64,
    blocks: usize,
    skip: u64,
    length: u64,
    plain: usize,
) -> Vec<u8> {
    let mut extent = extent(form, packing, plain);
    for value in [at, (blocks * BLOCK_BYTES) as u64, skip, length] {
        extent.extend(value.to_le_bytes());
    }
    extent
}

fn name(folder: u64, index: u64, name: &str, target: (u64, u8, u64), kind: u8) -> Item {
    let mut entry = key(target);
    entry.extend(1u64.to_le_bytes());
    entry.extend([0, 0]);
    entry.extend((name.len() as u16).to_le_bytes());
    entry.push(kind);
    entry.extend(name.as_bytes());
    ((folder, 96, index), entry)
}

/// The name of an inode in a folder.
fn reference(number: u64, folder: u64, name: &str) -> Item {
    let mut reference = 2u64.to_le_bytes().to_vec();
    reference.extend((name.len() as u16).to_le_bytes());
    reference.extend(name.as_bytes());
    ((number, 12, folder), reference)
}

fn tree(index: u64, level: u8) -> Vec<u8> {
    let mut root = inode(0o40755, 0);
    root.resize(439, 0);
    put(&mut root, 168, &256u64.to_le_bytes());
    put(&mut root, 176, &(NODES + index * BLOCK_BYTES as u64).to_le_bytes());
    put(&mut root, 216, &1u32.to_le_bytes());
    root[238] = level;
    root
}

fn chunk(length: usize, profile: u64, blocks: &[usize]) -> Vec<u8> {
    let mut chunk = vec![0; 48];
    for (at, value) in [(0, length as u64), (8, 2), (16, 65_536), (24, profile)] {
        put(&mut chunk, at, &value.to_le_bytes());
    }
    put(&mut chunk, 40, &(BLOCK_BYTES as u32).to_le_bytes());
    put(&mut chunk, 44, &(blocks.len() as u16).to_le_bytes());
    for block in blocks {
        chunk.extend(1u64.to_le_bytes());
        chunk.extend(((block * BLOCK_BYTES) as u64).to_le_bytes());
        chunk.extend([0; 16]);
    }
    chunk
}

/// The volume.
pub(crate) fn btrfs() -> Vec<u8> {
    let mut image = vec![0; VOLUME_BYTES];
    let [(first, first_block), (second, second_block)] = FILES;
    let file = |image: &mut Vec<u8>, block: usize, bytes: &[u8]| {
        put(image, block * BLOCK_BYTES, bytes);
    };
    let plain = bytes("plain", 10_000);
    file(&mut image, first_block, &plain[..4096]);
    file(&mut image, first_block + 2, &plain[8192..]);
    file(&mut image, first_block + 3, &zlib(&bytes("zlib", 6000)));
    file(&mut image, second_block, &zstd(&bytes("zstd", 9000)));
    file(&mut image, second_block + 3, &lzo(&bytes("lzo", 3000)));
    file(&mut image, second_block + 4, &bytes("reserved", 4096));

    let at = |start: u64, block: u64| start + block * BLOCK_BYTES as u64;
    let names = ["docs", "inline", "link", "lzo", "plain", "reserved", "sub", "zlib", "zstd"];
    let mut items: Vec<Item> = vec![((256, 1, 0), inode(0o40755, 100))];
    for (index, one) in (2..).zip(names) {
        let (target, kind) = match one {
            "docs" => ((257, 1, 0), 2),
            "sub" => ((256, 132, u64::MAX), 2),
            "link" => ((258 + index, 1, 0), 7),
            _ => ((258 + index, 1, 0), 1),
        };
        items.push(name(256, index, one, target, kind));
    }
    items.push(((257, 1, 0), inode(0o40755, 4)));
    items.push(reference(257, 256, "docs"));
    items.push(name(257, 2, "hard", (261, 1, 0), 1));
    items.push(((261, 1, 0), inode(0o100_644, 300)));
    items.push(((261, 108, 0), inline(0, &bytes("inline", 300), 300)));
    items.push(((262, 1, 0), inode(0o120_777, 11)));
    items.push(((262, 108, 0), inline(0, b"docs/inline", 11)));
    let (left, mut right) = (items, Vec::<Item>::new());
    let mut put_file = |number: u64, size: usize, extents: Vec<(u64, Vec<u8>)>| {
        right.push(((number, 1, 0), inode(0o100_644, size)));
        right.extend(extents.into_iter().map(|(from, extent)| ((number, 108, from), extent)));
    };
    put_file(263, 3000, vec![(0, stored(1, 2, at(second, 3), 1, 0, 4096, 4096))]);
    let plain = [
        (0, stored(1, 0, at(first, 0), 1, 0, 4096, 4096)),
        (8192, stored(1, 0, at(first, 1), 2, 4096, 4096, 8192)),
    ];
    put_file(264, 10_000, plain.to_vec());
    put_file(265, 4096, vec![(0, stored(2, 0, at(second, 4), 1, 0, 4096, 4096))]);
    // Two extents that share the same packed bytes, and a hole.
    let packed = [
        (0, stored(1, 1, at(first, 3), 2, 0, 4096, 6000)),
        (8192, stored(1, 1, at(first, 3), 2, 1000, 4096, 6000)),
    ];
    put_file(267, 12_288, packed.to_vec());
    put_file(268, 9000, vec![(0, stored(1, 3, at(second, 0), 3, 0, 9000, 9000))]);
    let below = [
        ((256, 1, 0), inode(0o40755, 4)),
        name(256, 2, "small", (257, 1, 0), 1),
        ((257, 1, 0), inode(0o100_644, 400)),
        ((257, 108, 0), inline(3, &zstd(&bytes("small", 400)), 400)),
    ];
    // An earlier leaf: a folder and a file that still exist, and deleted ones.
    file(&mut image, second_block + 5, &bytes("inside", 4096));
    let old = [
        ((257, 1, 0), inode(0o40755, 8)),
        ((261, 1, 0), inode(0o100_644, 200)),
        ((270, 1, 0), inode(0o100_644, 500)),
        reference(270, 257, "gone"),
        ((270, 108, 0), inline(0, &bytes("gone", 500), 500)),
        ((271, 1, 0), inode(0o40755, 12)),
        reference(271, 256, "old"),
        ((272, 1, 0), inode(0o100_644, 4000)),
        reference(272, 271, "inside"),
        ((272, 108, 0), stored(1, 0, at(second, 5), 1, 0, 4096, 4096)),
        ((273, 1, 0), inode(0o100_644, 0)),
        reference(273, 9999, "orphan"),
    ];
    let mut index = head(3, 5, 2, 1);
    for (number, (items, node)) in [(&left, 4u64), (&right, 5)].into_iter().enumerate() {
        put(&mut index, 101 + number * 33, &key(items[0].0));
        put(&mut index, 101 + number * 33 + 17, &at(NODES, node).to_le_bytes());
    }
    let length = FILE_BLOCKS * BLOCK_BYTES;
    let of_nodes = chunk(NODE_BLOCKS * BLOCK_BYTES, 0x26, &COPIES);
    let chunks = [
        ((256, 228, NODES), of_nodes.clone()),
        ((256, 228, first), chunk(length, 1, &[first_block])),
        ((256, 228, second), chunk(length, 1, &[second_block])),
    ];
    let trees = [((2, 132, 0), tree(2, 0)), ((5, 132, 0), tree(3, 1)), ((256, 132, 0), tree(6, 0))];
    let mut used: Vec<Item> = (0..7).map(|node| ((at(NODES, node), 169, 0), vec![0; 24])).collect();
    for (start, block, blocks) in [
        (first, 0, 1),
        (first, 1, 2),
        (first, 3, 2),
        (second, 0, 3),
        (second, 3, 1),
        (second, 4, 1),
    ] {
        used.push(((at(start, block), 168, blocks * BLOCK_BYTES as u64), vec![0; 24]));
    }
    let nodes = [
        leaf(0, 3, &chunks),
        leaf(1, 1, &trees),
        leaf(2, 2, &used),
        index,
        leaf(4, 5, &left),
        leaf(5, 5, &right),
        leaf(6, 256, &below),
        leaf(7, 5, &old),
    ];
    for copy in COPIES {
        put(&mut image, copy * BLOCK_BYTES, &nodes.concat());
    }
    let mut superblock = vec![0; BLOCK_BYTES];
    put(&mut superblock, 64, b"_BHRfS_M");
    let places = [
        (48, SUPERBLOCK_AT as u64),
        (72, 1),
        (80, at(NODES, 1)),
        (88, NODES),
        (112, VOLUME_BYTES as u64),
        (120, 65_536),
        (128, 6),
        (136, 1),
    ];
    for (at, value) in places {
        put(&mut superblock, at, &value.to_le_bytes());
    }
    let first_chunks = [key((256, 228, NODES)), of_nodes].concat();
    let sizes = [(144, 4096), (148, 4096), (156, 4096), (160, first_chunks.len() as u32)];
    for (at, value) in sizes {
        put(&mut superblock, at, &value.to_le_bytes());
    }
    put(&mut superblock, 201, &1u64.to_le_bytes());
    put(&mut superblock, 811, &first_chunks);
    put(&mut image, SUPERBLOCK_AT, &superblock);
    seal(&mut image);
    image
}

/// Corrects the checksums of the superblock and all nodes.
pub(crate) fn seal(image: &mut [u8]) {
    let of_copy = |copy: usize| copy..copy + NODE_BLOCKS;
    let blocks = COPIES.into_iter().flat_map(of_copy).chain([SUPERBLOCK_AT / BLOCK_BYTES]);
    for block in blocks {
        let node = &mut image[block * BLOCK_BYTES..][..BLOCK_BYTES];
        let step = |crc: u32, byte: &u8| {
            let shift = |crc: u32| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0x82F6_3B78 };
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| shift(crc))
        };
        let sum = !node[32..].iter().fold(!0, step);
        put(node, 0, &sum.to_le_bytes());
    }
}
