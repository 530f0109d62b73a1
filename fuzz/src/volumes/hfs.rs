//! HFS+ in 256 blocks of 512 bytes: folders, a fragmented file, links of both kinds, packed files, and
//! deleted files in all places where their records remain.

use super::parts::{bytes, lzfse, lzvn, runs, zlib};

pub(crate) const CATALOG_AT: usize = 16 * BLOCK_BYTES;
const VOLUME_BYTES: usize = 128 << 10;
const BLOCK_BYTES: usize = 512;
pub(crate) const CATALOG_NODE_BYTES: usize = 4096;
const SMALL_NODE_BYTES: usize = 1024;
/// 4 July 2019, in seconds since 1904.
const TIME: u32 = 2_082_844_800 + 1_562_235_630;

/// A key without its length, and its value.
type Record = (Vec<u8>, Vec<u8>);

struct Volume {
    image: Vec<u8>,
    is_used: Vec<bool>,
    /// The parent, the name, the value.
    catalog: Vec<(u32, Vec<u16>, Vec<u8>)>,
    extents: Vec<Record>,
    attributes: Vec<Record>,
}

fn units(name: &str) -> Vec<u16> {
    name.encode_utf16().collect()
}

/// A name in the form of keys: its length, and its units.
fn named(units: &[u16]) -> Vec<u8> {
    let length = units.len() as u16;
    std::iter::once(&length).chain(units).flat_map(|unit| unit.to_be_bytes()).collect()
}

/// A node of a tree.
fn node(bytes: usize, kind: u8, height: u8, next: u32, records: &[Record]) -> Vec<u8> {
    let mut node = vec![0; bytes];
    node[..4].copy_from_slice(&next.to_be_bytes());
    node[8] = kind;
    node[9] = height;
    node[10..12].copy_from_slice(&(records.len() as u16).to_be_bytes());
    let mut at = 14;
    let offset = |node: &mut Vec<u8>, index: usize, at: usize| {
        let end = bytes - 2 * index;
        node[end - 2..end].copy_from_slice(&(at as u16).to_be_bytes());
    };
    for (index, (key, value)) in records.iter().enumerate() {
        offset(&mut node, index, at);
        node[at..at + 2].copy_from_slice(&(key.len() as u16).to_be_bytes());
        node[at + 2..at + 2 + key.len()].copy_from_slice(key);
        at += (2 + key.len()).next_multiple_of(2);
        node[at..at + value.len()].copy_from_slice(value);
        at += value.len().next_multiple_of(2);
    }
    offset(&mut node, records.len(), at);
    node
}

/// The header node of a tree.
#[rustfmt::skip]
fn header(bytes: usize, depth: u16, root: u32, leaves: (u32, u32), records: u32, key: u16, nodes: u32) -> Vec<u8> {
    let mut node = node(bytes, 1, 0, 0, &[]);
    node[10..12].copy_from_slice(&3u16.to_be_bytes());
    let mut put = |at: usize, value: &[u8]| node[at..at + value.len()].copy_from_slice(value);
    put(14, &depth.to_be_bytes());
    for (at, value) in [(16, root), (20, records), (24, leaves.0), (28, leaves.1), (36, nodes)] {
        put(at, &value.to_be_bytes());
    }
    put(32, &(bytes as u16).to_be_bytes());
    put(34, &key.to_be_bytes());
    // Names are compared without case; key lengths have 16 bits, and vary in the index.
    put(51, &[0xCF, 0, 0, 0, 6]);
    put(248, &[0xF0]);
    for (index, at) in [14u16, 120, 248, bytes as u16 - 8].into_iter().enumerate() {
        put(bytes - 2 * (index + 1), &at.to_be_bytes());
    }
    node
}

impl Volume {
    fn put(&mut self, block: usize, bytes: &[u8]) {
        let at = block * BLOCK_BYTES;
        self.image[at..at + bytes.len()].copy_from_slice(bytes);
        let blocks = bytes.len().div_ceil(BLOCK_BYTES);
        self.is_used[block..block + blocks].fill(true);
    }

    /// Writes bytes into blocks, and returns their fork.
    fn fork(&mut self, bytes: &[u8], block: usize) -> Vec<u8> {
        let blocks = bytes.len().div_ceil(BLOCK_BYTES);
        self.put(block, bytes);
        fork(bytes.len(), blocks, &[(block, blocks)])
    }

    fn record(&mut self, parent: u32, name: &str, value: Vec<u8>) {
        self.catalog.push((parent, units(name), value));
    }

    /// Adds a thread record, which maps the number of a folder or file to its name.
    fn thread(&mut self, kind: u16, id: u32, parent: u32, name: &str) {
        let mut value = kind.to_be_bytes().to_vec();
        value.extend([0, 0]);
        value.extend(parent.to_be_bytes());
        value.extend(named(&units(name)));
        self.record(id, "", value);
    }

    fn folder(&mut self, parent: u32, name: &str, id: u32, entries: u32) {
        let mut value = item(1, id, 0x41ED, 0);
        value.resize(88, 0);
        value[4..8].copy_from_slice(&entries.to_be_bytes());
        self.record(parent, name, value);
        self.thread(3, id, parent, name);
    }

    fn file(&mut self, parent: u32, name: &str, id: u32, mode: u16, data: &[u8], fork: &[u8]) {
        self.record(parent, name, file(id, mode, data, fork));
        self.thread(4, id, parent, name);
    }

    /// Adds a hard link to a file, in the folder for such files.
    fn link(&mut self, parent: u32, name: &str, id: u32, number: u32) {
        let mut value = item(2, id, 0x8124, number);
        value.extend(b"hlnkhfs+");
        value.resize(248, 0);
        self.record(parent, name, value);
        self.thread(4, id, parent, name);
    }

    /// Makes a tree of two nodes.
    fn small_tree(&mut self, records: &[Record], key: u16, block: usize) -> Vec<u8> {
        let count = records.len() as u32;
        let nodes = [
            header(SMALL_NODE_BYTES, 1, 1, (1, 1), count, key, 2),
            node(SMALL_NODE_BYTES, 0xFF, 1, 0, records),
        ];
        self.fork(&nodes.concat(), block)
    }

    /// Marks the last file as packed, and adds the attribute that describes the packing.
    fn pack(&mut self, id: u32, form: u32, size: usize, packed: &[u8]) {
        if let Some((.., value)) = self.catalog.iter_mut().rev().nth(1) {
            value[41] = 0x20;
        }
        let mut key = vec![0, 0];
        key.extend(id.to_be_bytes());
        key.extend([0; 4]);
        key.extend(named(&units("com.apple.decmpfs")));
        let mut value = vec![0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];
        value.extend((16 + packed.len() as u32).to_be_bytes());
        value.extend(b"fpmc");
        value.extend(form.to_le_bytes());
        value.extend((size as u64).to_le_bytes());
        value.extend(packed);
        self.attributes.push((key, value));
    }
}

/// The record of a file.
fn file(id: u32, mode: u16, data: &[u8], fork: &[u8]) -> Vec<u8> {
    let mut value = item(2, id, mode, 0);
    value.resize(88, 0);
    value.extend(data);
    value.resize(168, 0);
    value.extend(fork);
    value.resize(248, 0);
    value
}

/// The start of a folder's or file's record.
fn item(kind: u16, id: u32, mode: u16, special: u32) -> Vec<u8> {
    let mut value = vec![0; 48];
    value[..2].copy_from_slice(&kind.to_be_bytes());
    value[8..12].copy_from_slice(&id.to_be_bytes());
    for (number, at) in (0..).zip([12, 16, 20, 24]) {
        value[at..at + 4].copy_from_slice(&(TIME + number).to_be_bytes());
    }
    value[42..44].copy_from_slice(&mode.to_be_bytes());
    value[44..48].copy_from_slice(&special.to_be_bytes());
    value
}

fn fork(size: usize, blocks: usize, extents: &[(usize, usize)]) -> Vec<u8> {
    let mut fork = (size as u64).to_be_bytes().to_vec();
    fork.extend([0; 4]);
    fork.extend((blocks as u32).to_be_bytes());
    fork.extend(extents_of(extents));
    fork
}

fn extents_of(extents: &[(usize, usize)]) -> Vec<u8> {
    let mut bytes: Vec<u8> = extents
        .iter()
        .flat_map(|(start, blocks)| [*start as u32, *blocks as u32])
        .flat_map(u32::to_be_bytes)
        .collect();
    bytes.resize(64, 0);
    bytes
}

/// The volume.
pub(crate) fn hfs() -> Vec<u8> {
    let mut volume = Volume {
        image: vec![0; VOLUME_BYTES],
        is_used: vec![false; VOLUME_BYTES / BLOCK_BYTES],
        catalog: Vec::new(),
        extents: Vec::new(),
        attributes: Vec::new(),
    };
    volume.folder(1, "Volume", 2, 12);
    volume.folder(2, "docs", 16, 3);
    volume.folder(2, "\0\0\0\0HFS+ Private Data", 17, 1);
    let data = volume.fork(&bytes("a", 700), 100);
    let resource = volume.fork(&bytes("icon", 300), 102);
    volume.file(16, "a.txt", 18, 0x81A4, &data, &resource);
    let target = volume.fork(b"docs/a.txt", 103);
    volume.file(2, "link", 19, 0xA1FF, &target, &[]);
    volume.file(2, "empty", 20, 0x81A4, &[], &[]);
    // A file in ten pieces, two of them in the extents overflow tree.
    let pieces: Vec<(usize, usize)> = (0..10).map(|number| (110 + number * 2, 1)).collect();
    for ((block, _), bytes) in pieces.iter().zip(bytes("pieces", 5000).chunks(BLOCK_BYTES)) {
        volume.put(*block, bytes);
    }
    let data = fork(5000, 10, &pieces[..8]);
    volume.file(2, "pieces", 21, 0x81A4, &data, &[]);
    let key = vec![0, 0, 0, 0, 0, 21, 0, 0, 0, 8];
    volume.extents.push((key, extents_of(&pieces[8..])));
    // Two names of a file.
    let data = volume.fork(&bytes("linked", 600), 140);
    volume.file(17, "iNode22", 22, 0x81A4, &data, &[]);
    for (id, name) in [(23, "first"), (24, "second")] {
        volume.link(16, name, id, 22);
    }
    // Packed: in an attribute, and in the resource fork.
    volume.file(2, "small", 25, 0x81A4, &[], &[]);
    volume.pack(25, 3, 200, &zlib(&bytes("small", 200)));
    let plain = bytes("medium", 9000);
    let packed = zlib(&plain);
    let mut resource = vec![0; 256];
    resource[2] = 1;
    let length = packed.len() as u32 + 12;
    resource[8..12].copy_from_slice(&length.to_be_bytes());
    resource.extend(length.to_be_bytes());
    for value in [1, 12, packed.len() as u32] {
        resource.extend(value.to_le_bytes());
    }
    resource.extend(packed);
    let resource = volume.fork(&resource, 160);
    volume.file(2, "medium", 26, 0x81A4, &[], &resource);
    volume.pack(26, 4, plain.len(), &[]);
    volume.file(2, "unknown", 27, 0x81A4, &[], &[]);
    volume.pack(27, 13, 100_000, &[]);
    packed_by_apple(&mut volume);
    finish(volume)
}

/// Files packed by LZVN and LZFSE: in an attribute, and in a resource fork that has only the blocks and
/// their offsets. The second block is stored.
fn packed_by_apple(volume: &mut Volume) {
    const SECOND: usize = 64 << 10;
    type Pack = fn(&[u8]) -> Vec<u8>;
    let kinds: [(u32, u32, usize, u8, Pack); 2] =
        [(28, 7, 180, 6, lzvn), (30, 11, 200, 0xFF, lzfse)];
    for (id, form, block, mark, pack) in kinds {
        let name = if form == 7 { "lzvn" } else { "lzfse" };
        volume.file(2, name, id, 0x81A4, &[], &[]);
        volume.pack(id, form, 400, &pack(&runs(name, 400)));
        let name = format!("{name} blocks");
        let plain = runs(&name, SECOND + 100);
        let blocks = [pack(&plain[..SECOND]), [&[mark], &plain[SECOND..]].concat()];
        let second = 12 + blocks[0].len();
        let offsets = [12, second, second + blocks[1].len()].map(|at| (at as u32).to_le_bytes());
        let fork = volume.fork(&[offsets.concat(), blocks.concat()].concat(), block);
        volume.file(2, &name, id + 1, 0x81A4, &[], &fork);
        volume.pack(id + 1, form + 1, plain.len(), &[]);
    }
}

/// The block with the location of the journal, and the journal after it.
const JOURNAL: usize = 210;
const JOURNAL_BLOCKS: usize = 16;

/// A deleted file with its bytes, which are in free blocks.
fn gone(volume: &mut Volume, parent: u32, name: &str, id: u32, block: usize) -> Record {
    let plain = bytes(name, 600);
    volume.image[block * BLOCK_BYTES..][..plain.len()].copy_from_slice(&plain);
    let key = [&parent.to_be_bytes()[..], &named(&units(name))].concat();
    (key, file(id, 0x81A4, &fork(600, 2, &[(block, 2)]), &[]))
}

/// Deleted records after those of a leaf: the end of one, a whole one, and the copy of a record that
/// still exists.
fn slack(volume: &mut Volume, records: &[Record]) -> Vec<u8> {
    let copy = |(key, value): &Record| [&(key.len() as u16).to_be_bytes()[..], key, value].concat();
    let whole = gone(volume, 16, "gone", 40, 230);
    let end = copy(&whole).split_off(60);
    [end, copy(&whole), copy(&records[3])].concat()
}

/// A node that the catalog does not use, with a deleted folder and a file in it. The journal has a leaf
/// with another file, and with an earlier state of two.
fn remains(volume: &mut Volume, records: &[Record]) -> Vec<u8> {
    let folder = {
        let mut value = item(1, 41, 0x41ED, 0);
        value.resize(88, 0);
        ([&16u32.to_be_bytes()[..], &named(&units("old"))].concat(), value)
    };
    let inside = gone(volume, 41, "inside", 42, 232);
    let orphan = gone(volume, 999, "orphan", 44, 236);
    let unused = [folder, inside, orphan, records[4].clone()];
    let unused = node(CATALOG_NODE_BYTES, 0xFF, 1, 0, &unused);
    let logged = gone(volume, 2, "journaled", 43, 234);
    let mut earlier = gone(volume, 2, "earlier name", 40, 230);
    earlier.1[20..24].copy_from_slice(&(TIME - 1).to_be_bytes());
    let logged = node(CATALOG_NODE_BYTES, 0xFF, 1, 0, &[earlier, logged, records[3].clone()]);
    let mut info = vec![0, 0, 0, 1];
    info.resize(36, 0);
    let (start, length) = ((JOURNAL + 1) * BLOCK_BYTES, JOURNAL_BLOCKS * BLOCK_BYTES);
    info.extend([start as u64, length as u64].map(u64::to_be_bytes).concat());
    volume.put(JOURNAL, &info);
    let mut journal = b"xLNJ".to_vec();
    journal.resize(3 * BLOCK_BYTES, 0);
    journal.extend(logged);
    journal.resize(length, 0);
    volume.put(JOURNAL + 1, &journal);
    unused
}

/// Writes the trees, the bitmap and both headers.
fn finish(mut volume: Volume) -> Vec<u8> {
    // Zeros sort last, and letters sort without case.
    let order = |unit: &u16| match unit {
        0 => u16::MAX,
        unit => u8::try_from(*unit).map_or(*unit, |byte| byte.to_ascii_lowercase().into()),
    };
    let key = |(parent, name, _): &(u32, Vec<u16>, Vec<u8>)| {
        (*parent, name.iter().map(order).collect::<Vec<u16>>())
    };
    volume.catalog.sort_by_key(key);
    let records: Vec<Record> = volume
        .catalog
        .iter()
        .map(|(parent, name, value)| {
            ([&parent.to_be_bytes()[..], &named(name)].concat(), value.clone())
        })
        .collect();
    let unused = remains(&mut volume, &records);
    let bytes = |(key, value): &Record| 2 + key.len() + value.len();
    let half: usize = records.iter().map(bytes).sum::<usize>() / 2;
    let mut before = 0;
    let is_first = |record: &&Record| {
        before += bytes(record);
        before < half
    };
    let (first, second) = records.split_at(records.iter().take_while(is_first).count());
    let size = CATALOG_NODE_BYTES;
    let index = [(first[0].0.clone(), vec![0, 0, 0, 2]), (second[0].0.clone(), vec![0, 0, 0, 3])];
    let mut nodes = [
        header(size, 2, 1, (2, 3), records.len() as u32, 516, 5),
        node(size, 0, 2, 0, &index),
        node(size, 0xFF, 1, 3, first),
        node(size, 0xFF, 1, 0, second),
        unused,
    ];
    let slack = slack(&mut volume, &records);
    let used: usize = first.iter().map(bytes).sum();
    nodes[2][14 + used..][..slack.len()].copy_from_slice(&slack);
    let catalog = volume.fork(&nodes.concat(), CATALOG_AT / BLOCK_BYTES);
    let extents = volume.small_tree(&volume.extents.clone(), 10, 8);
    let attributes = volume.small_tree(&volume.attributes.clone(), 266, 12);
    // The first three blocks and the last two are reserved; the fourth has the bitmap.
    volume.is_used[..4].fill(true);
    let blocks = volume.is_used.len();
    volume.is_used[blocks - 2..].fill(true);
    let bit = |bits: &[bool]| bits.iter().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit));
    let bitmap: Vec<u8> = volume.is_used.chunks(8).map(bit).collect();
    let free = volume.is_used.iter().filter(|is_used| !**is_used).count() as u32;
    let allocation = volume.fork(&bitmap, 3);
    let mut header = b"H+\0\x04\0\0\x01\0test".to_vec();
    header.resize(512, 0);
    let counts = [
        (4, 0x2000),
        (12, JOURNAL as u32),
        (16, TIME),
        (20, TIME),
        (28, TIME),
        (32, 10),
        (36, 2),
        (64, 30),
    ];
    let sizes = [(40, BLOCK_BYTES as u32), (44, blocks as u32), (48, free), (52, 200)];
    for (at, value) in counts.into_iter().chain(sizes) {
        header[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    for (at, fork) in [(112, allocation), (192, extents), (272, catalog), (352, attributes)] {
        header[at..at + fork.len()].copy_from_slice(&fork);
    }
    for at in [1024, VOLUME_BYTES - 1024] {
        volume.image[at..at + header.len()].copy_from_slice(&header);
    }
    volume.image
}
