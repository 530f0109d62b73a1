//! Images built by hand, of kinds that no available tool writes: differencing disks, and logs that were
//! not replayed.

use std::path::Path;

use crate::lab::{Lab, check, media, open_at, skip};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The disk `base`, with the sectors that `top` replaces.
fn changed(base: &[u8], top: &dyn Fn(usize) -> Option<u8>) -> Vec<u8> {
    let sector = |(number, sector): (usize, &[u8])| match top(number) {
        Some(byte) => vec![byte; sector.len()],
        None => sector.to_vec(),
    };
    base.chunks(512).enumerate().flat_map(sector).collect()
}

/// Replaces every third sector of the first and last block, and the whole second block.
fn top(number: usize) -> Option<u8> {
    match number / 4096 {
        0 | 2 if number % 3 == 1 => Some(number as u8),
        1 => Some(0xB1),
        _ => None,
    }
}

fn put_be(bytes: &mut [u8], at: usize, value: u64, length: usize) {
    bytes[at..at + length].copy_from_slice(&value.to_be_bytes()[8 - length..]);
}

fn put_le(bytes: &mut [u8], at: usize, value: u64, length: usize) {
    bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
}

fn seal_vhd(bytes: &mut [u8], at: usize) {
    bytes[at..at + 4].fill(0);
    let sum = bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_add(byte.into()));
    put_be(bytes, at, u64::from(!sum), 4);
}

/// A VHD footer: type 2 for a fixed disk, 4 for a differencing disk.
fn vhd_footer(length: usize, kind: u64, id: u8) -> Vec<u8> {
    let mut footer = vec![0; 512];
    footer[..16].copy_from_slice(b"conectix\0\0\0\x02\0\x01\0\0");
    put_be(&mut footer, 16, if kind == 2 { u64::MAX } else { 512 }, 8);
    put_be(&mut footer, 48, length as u64, 8);
    put_be(&mut footer, 60, kind, 4);
    footer[68..84].fill(id);
    seal_vhd(&mut footer, 64);
    footer
}

/// A VHD with 2 MiB blocks, whose parent is the disk `id` called `parent` with a Windows path.
fn vhd_over(length: usize, id: u8) -> Vec<u8> {
    let footer = vhd_footer(length, 4, 9);
    let mut header = vec![0; 1024];
    header[..8].copy_from_slice(b"cxsparse");
    put_be(&mut header, 16, 2048, 8);
    put_be(&mut header, 28, length.div_ceil(2 * MIB) as u64, 4);
    put_be(&mut header, 32, 2 * MIB as u64, 4);
    header[40..56].fill(id);
    let name: Vec<u8> = r".\old\parent".encode_utf16().flat_map(u16::to_le_bytes).collect();
    header[576..580].copy_from_slice(b"W2ru");
    put_be(&mut header, 584, name.len() as u64, 4);
    put_be(&mut header, 592, 2560, 8);
    seal_vhd(&mut header, 36);
    let mut table = vec![0xFF; 512];
    let mut blocks = Vec::new();
    for block in 0..length.div_ceil(2 * MIB) {
        if (0..4096).any(|sector| top(block * 4096 + sector).is_some()) {
            put_be(&mut table, block * 4, (3072 + blocks.len()) as u64 / 512, 4);
            let mut bits = vec![0u8; 512];
            for sector in 0..4096 {
                let byte = top(block * 4096 + sector);
                bits[sector / 8] |= if byte.is_some() { 0x80 >> (sector % 8) } else { 0 };
                blocks.extend(if sector == 0 { bits.clone() } else { Vec::new() });
                blocks.extend([byte.unwrap_or(0xEE); 512]);
            }
            let at = blocks.len() - 4096 * 512 - 512;
            blocks[at..at + 512].copy_from_slice(&bits);
        }
    }
    let mut names = name;
    names.resize(512, 0);
    [&footer[..], &header, &[0; 512], &table, &names, &blocks, &footer].concat()
}

#[test]
fn a_vhd_that_changes_another_has_its_sectors_and_those_of_the_other() {
    let lab = Lab::new();
    let base = media(5 * MIB);
    lab.put("parent", &[&base[..], &vhd_footer(base.len(), 2, 7)].concat());
    check(&*lab.open("parent").unwrap(), &base);
    lab.put("top", &vhd_over(base.len(), 7));
    check(&*lab.open("top").unwrap(), &changed(&base, &top));
    lab.put("top", &vhd_over(base.len(), 8));
    assert!(lab.refusal("top").contains("is another"), "{}", lab.refusal("top"));
    std::fs::remove_file(lab.path("parent")).unwrap();
    let refusal = lab.refusal("top");
    assert!(refusal.contains(r"needs its parent '.\old\parent'"), "{refusal}");
}

#[test]
fn a_vdi_that_changes_another_finds_it_by_its_identity() {
    let lab = Lab::new();
    let base = media(3 * MIB);
    let vdi = |kind: u64, id: u8, over: u8, blocks: &[Option<&[u8]>]| {
        let mut file = vec![0; 1024];
        put_le(&mut file, 0x40, 0xBEDA_107F, 4);
        put_le(&mut file, 0x44, 0x1_0001, 4);
        put_le(&mut file, 0x4C, kind, 4);
        put_le(&mut file, 0x154, 512, 4);
        put_le(&mut file, 0x158, 1024, 4);
        put_le(&mut file, 0x170, base.len() as u64, 8);
        put_le(&mut file, 0x178, MIB as u64, 4);
        put_le(&mut file, 0x180, blocks.len() as u64, 4);
        file[0x188..0x198].fill(id);
        file[0x1A8..0x1B8].fill(over);
        for (index, block) in blocks.iter().enumerate() {
            let number = (file.len() as u64 - 1024) / MIB as u64;
            put_le(&mut file, 512 + index * 4, block.map_or(0xFFFF_FFFF, |_| number), 4);
            file.extend(block.unwrap_or_default());
        }
        file
    };
    let blocks: Vec<_> = base.chunks(MIB).map(Some).collect();
    lab.put("a.vdi", &vdi(1, 1, 0, &blocks));
    let block = vec![0x77; MIB];
    lab.put("b.vdi", &vdi(4, 2, 1, &[None, Some(&block), None]));
    let mut expected = base.clone();
    expected[MIB..2 * MIB].fill(0x77);
    check(&*lab.open("b.vdi").unwrap(), &expected);
    std::fs::remove_file(lab.path("a.vdi")).unwrap();
    let refusal = lab.refusal("b.vdi");
    assert!(refusal.contains("01010101-0101-"), "{refusal}");
}

const TABLE: [u8; 16] = *b"\x66\x77\xC2\x2D\x23\xF6\x00\x42\x9D\x64\x11\x5E\x9B\xFD\x4A\x08";
const METADATA: [u8; 16] = *b"\x06\xA2\x7C\x8B\x90\x47\x9A\x4B\xB8\xFE\x57\x5F\x05\x0F\x88\x6E";
const PARAMETERS: [u8; 16] = *b"\x37\x67\xA1\xCA\x36\xFA\x43\x4D\xB3\xB6\x33\xF0\xAA\x44\xE7\x6B";
const LENGTH: [u8; 16] = *b"\x24\x42\xA5\x2F\x1B\xCD\x76\x48\xB2\x11\x5D\xBE\xD8\x3B\xF4\xB8";
const SECTOR: [u8; 16] = *b"\x1D\xBF\x41\x81\x6F\xA9\x09\x47\xBA\x47\xF2\x33\xA8\xFA\xAB\x5F";
const PARENT: [u8; 16] = *b"\x2D\x5F\xD3\xA8\x0B\xB3\x4D\x45\xAB\xF7\xD3\xD8\x48\x34\xAB\x0C";

/// CRC-32C, bit by bit.
fn seal_vhdx(bytes: &mut [u8]) {
    bytes[4..8].fill(0);
    let mut sum = !0u32;
    for &byte in bytes.iter() {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 != 0 { sum >> 1 ^ 0x82F6_3B78 } else { sum >> 1 };
        }
    }
    put_le(bytes, 4, u64::from(!sum), 4);
}

/// A VHDX header at 64 KiB, with a log to replay if `log_id` is not 0.
fn vhdx_header(file: &mut [u8], data_id: u8, log_id: u8) {
    let header = &mut file[64 * KIB..68 * KIB];
    header[..4].copy_from_slice(b"head");
    header[32..48].fill(data_id);
    header[48..64].fill(log_id);
    header[66] = 1;
    put_le(header, 68, MIB as u64, 4);
    put_le(header, 72, MIB as u64, 8);
    seal_vhdx(header);
}

/// A parent locator: UTF-16 strings after a table of their offsets.
fn locator(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut list = vec![0; 20 + entries.len() * 12];
    put_le(&mut list, 18, entries.len() as u64, 2);
    for (index, (key, value)) in entries.iter().enumerate() {
        for (text, at, length) in [(key, 0, 8), (value, 4, 10)] {
            let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let place = list.len() as u64;
            put_le(&mut list, 20 + index * 12 + at, place, 4);
            put_le(&mut list, 20 + index * 12 + length, text.len() as u64, 2);
            list.extend(text);
        }
    }
    list
}

/// A VHDX of `length` bytes with 2 MiB blocks; `table` is at 3 MiB.
fn vhdx(length: usize, parent: &[u8], table: &[u64]) -> Vec<u8> {
    let mut file = vec![0; 4 * MIB];
    file[..8].copy_from_slice(b"vhdxfile");
    vhdx_header(&mut file, 5, 0);
    let regions = &mut file[192 * KIB..256 * KIB];
    regions[..12].copy_from_slice(b"regi\0\0\0\0\x02\0\0\0");
    for (index, (id, at)) in [(TABLE, 3 * MIB), (METADATA, 2 * MIB)].into_iter().enumerate() {
        let entry = &mut regions[16 + index * 32..][..32];
        entry[..16].copy_from_slice(&id);
        put_le(entry, 16, at as u64, 8);
        put_le(entry, 24, MIB as u64, 4);
    }
    seal_vhdx(regions);
    let metadata = &mut file[2 * MIB..3 * MIB];
    metadata[..12].copy_from_slice(b"metadata\0\0\x04\0");
    let items = [(PARAMETERS, 0, 8), (LENGTH, 8, 8), (SECTOR, 16, 4), (PARENT, 20, parent.len())];
    for (index, (id, at, bytes)) in items.into_iter().enumerate() {
        let entry = &mut metadata[32 + index * 32..][..32];
        entry[..16].copy_from_slice(&id);
        put_le(entry, 16, (64 * KIB + at) as u64, 4);
        put_le(entry, 20, bytes as u64, 4);
    }
    put_le(metadata, 64 * KIB, 2 * MIB as u64, 4);
    put_le(metadata, 64 * KIB + 4, if parent.is_empty() { 0 } else { 2 }, 4);
    put_le(metadata, 64 * KIB + 8, length as u64, 8);
    put_le(metadata, 64 * KIB + 16, 512, 4);
    metadata[64 * KIB + 20..][..parent.len()].copy_from_slice(parent);
    for (index, entry) in table.iter().enumerate() {
        put_le(&mut file, 3 * MIB + index * 8, *entry, 8);
    }
    file
}

fn stored(megabyte: u64) -> u64 {
    megabyte << 20 | 6
}

#[test]
fn a_vhdx_that_changes_another_has_its_sectors_and_those_of_the_other() {
    let lab = Lab::new();
    let base = media(5 * MIB);
    let mut file = vhdx(base.len(), &[], &[stored(4), stored(6), stored(8)]);
    file.extend(&base);
    file.resize(10 * MIB, 0);
    lab.put("parent", &file);
    check(&*lab.open("parent").unwrap(), &base);

    let id = "{05050505-0505-0505-0505-050505050505}";
    let over = |id: &str| {
        let parent = locator(&[
            ("absolute_win32_path", r"C:\elsewhere\other"),
            ("relative_path", r"..\old\parent"),
            ("parent_linkage", id),
        ]);
        // Blocks that are partly, fully and partly present, and after 2,048 entries the sector bitmaps.
        let mut table = vec![5 << 20 | 7, stored(7), 9 << 20 | 7];
        table.resize(2049, 0);
        table[2048] = stored(4);
        let mut file = vhdx(base.len(), &parent, &table);
        let mut bits = vec![0u8; MIB];
        (0..3 * 4096).filter(|&at| top(at).is_some()).for_each(|at| bits[at / 8] |= 1 << (at % 8));
        file.extend(bits);
        file.extend((0..3 * 4096).flat_map(|at| [top(at).unwrap_or(0xEE); 512]));
        file
    };
    lab.put("top", &over(id));
    check(&*lab.open("top").unwrap(), &changed(&base, &top));
    lab.put("top", &over("{00000000-0000-0000-0000-000000000000}"));
    assert!(lab.refusal("top").contains("based on another disk"), "{}", lab.refusal("top"));
    std::fs::remove_file(lab.path("parent")).unwrap();
    lab.put("top", &over(id));
    assert!(lab.refusal("top").contains(r"'..\old\parent'"), "{}", lab.refusal("top"));
}

/// A log entry that writes 4 KiB sectors at the given offsets.
fn log_entry(sequence: u64, tail: u64, file_bytes: usize, sectors: &[(u64, &[u8])]) -> Vec<u8> {
    let mut entry = vec![0; 4 * KIB * (1 + sectors.len())];
    entry[..4].copy_from_slice(b"loge");
    let bytes = entry.len() as u64;
    put_le(&mut entry, 8, bytes, 4);
    put_le(&mut entry, 12, tail, 4);
    put_le(&mut entry, 16, sequence, 8);
    put_le(&mut entry, 24, sectors.len() as u64, 4);
    entry[32..48].fill(3);
    put_le(&mut entry, 48, file_bytes as u64, 8);
    put_le(&mut entry, 56, file_bytes as u64, 8);
    for (index, (at, sector)) in sectors.iter().enumerate() {
        let descriptor = &mut entry[64 + index * 32..][..32];
        descriptor[..4].copy_from_slice(b"desc");
        descriptor[4..8].copy_from_slice(&sector[4092..]);
        descriptor[8..16].copy_from_slice(&sector[..8]);
        put_le(descriptor, 16, *at, 8);
        put_le(descriptor, 24, sequence, 8);
        let data = &mut entry[4 * KIB * (1 + index)..][..4 * KIB];
        data[8..4092].copy_from_slice(&sector[8..4092]);
        data[..4].copy_from_slice(b"data");
        put_le(data, 4, sequence >> 32, 4);
        put_le(data, 4092, sequence & 0xFFFF_FFFF, 4);
    }
    seal_vhdx(&mut entry);
    entry
}

#[test]
fn the_log_of_a_vhdx_is_replayed_in_memory() {
    let lab = Lab::new();
    let base = media(5 * MIB);
    let table = [stored(4), stored(6), stored(8)];
    let whole = vhdx(base.len(), &[], &table);
    // The table in the file is outdated.
    let mut file = vhdx(base.len(), &[], &[stored(4), 0, 0]);
    file.extend(&base);
    file.resize(10 * MIB, 0);
    vhdx_header(&mut file, 5, 3);
    let older = vec![0xAA; 4 * KIB];
    let newer = &whole[3 * MIB..3 * MIB + 4 * KIB];
    let at = 3 * MIB as u64;
    let first = log_entry(10, 900 * KIB as u64, file.len(), &[(at, &older)]);
    let second = log_entry(11, 900 * KIB as u64, file.len(), &[(at, newer)]);
    let stale = log_entry(40, 500 * KIB as u64, file.len(), &[(at, &older)]);
    let log = MIB + 900 * KIB;
    file[log..log + first.len()].copy_from_slice(&first);
    file[log + first.len()..log + first.len() + second.len()].copy_from_slice(&second);
    // A log entry without its tail does not count, however new it is.
    file[MIB..MIB + stale.len()].copy_from_slice(&stale);
    lab.put("image", &file);
    let before = lab.read("image");
    check(&*lab.open("image").unwrap(), &base);
    assert!(lab.read("image") == before, "evidence was written to");
    // Without a complete entry the log cannot be replayed.
    file[log + 100] ^= 1;
    file[log + first.len() + 100] ^= 1;
    lab.put("image", &file);
    assert!(lab.refusal("image").contains("log"), "{}", lab.refusal("image"));
}

#[test]
fn hostile_headers_are_errors() {
    let lab = Lab::new();
    let mut qcow2 = b"QFI\xfb\0\0\0\x02".to_vec();
    qcow2.resize(512, 0);
    put_be(&mut qcow2, 20, 16, 4);
    for (length, entries, at) in
        [(1 << 63, 1, 0), (1 << 40, 1, 64), (1 << 20, 1 << 29, 64), (1 << 20, 1, 1 << 62)]
    {
        put_be(&mut qcow2, 24, length, 8);
        put_be(&mut qcow2, 36, entries, 4);
        put_be(&mut qcow2, 40, at, 8);
        lab.put("image", &qcow2);
        assert!(lab.refusal("image").contains("damaged"), "{}", lab.refusal("image"));
    }
    let table: Vec<u64> = vec![stored(4); 3];
    let mut file = vhdx(5 * MIB, &[], &table);
    put_le(&mut file, 2 * MIB + 64 * KIB + 8, 1 << 63, 8);
    lab.put("image", &file);
    assert!(lab.refusal("image").contains("damaged"), "{}", lab.refusal("image"));
    // A block beyond the end.
    lab.put("image", &vhdx(5 * MIB, &[], &[stored(1 << 30); 3]));
    let image = lab.open("image").unwrap();
    assert!(image.read_at(0, &mut [0; 10]).is_err());
    for text in
        ["# Disk DescriptorFile\n", "# Disk DescriptorFile\nRW 99999999999999999 FLAT \"x\" 0\n"]
    {
        lab.put("image", text.as_bytes());
        assert!(!lab.refusal("image").is_empty());
    }
    lab.put("image", b"# Disk DescriptorFile\nRW 9 FLAT \"../../etc/passwd\" 0\n");
    assert!(lab.refusal("image").contains("no passwd beside it"), "{}", lab.refusal("image"));
}

#[test]
fn known_images_have_the_same_bytes_in_every_container() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora/containers");
    if !Path::new(folder).exists() {
        return skip("the images are not here");
    }
    let open = |name: &str| open_at(Path::new(&format!("{folder}/{name}"))).unwrap().0;
    let raw = crate::lab::all_of(&*open("ext2.splitraw.000"));
    for name in ["ext2.E01", "ext2.split.E01", "ext2.qcow2", "ext2.vmdk"] {
        check(&*open(name), &raw);
    }
    // VHD sizes are rounded to whole cylinders.
    let vhd = crate::lab::all_of(&*open("ext2.vhd"));
    assert!(vhd[..raw.len().min(vhd.len())] == raw[..raw.len().min(vhd.len())]);
}

/// A DMG of chunks of up to 64 KiB, each with another compression, in two tables.
pub(crate) fn dmg(disk: &[u8], lzma: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    use std::io::Write;
    let (mut file, mut tables) = (Vec::new(), vec![Vec::new(), Vec::new()]);
    for (number, chunk) in disk.chunks(64 * KIB).enumerate() {
        let is_zero = chunk.iter().all(|&byte| byte == 0);
        let (kind, packed) = match number % 5 {
            _ if is_zero => (2u32, Vec::new()),
            0 => (1, chunk.to_vec()),
            1 => (
                0x8000_0004,
                chunk
                    .chunks(128)
                    .flat_map(|part| [&[0x7F + part.len() as u8][..], part].concat())
                    .collect(),
            ),
            2 => {
                let level = bzip2::Compression::fast();
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
                encoder.write_all(chunk).unwrap();
                (0x8000_0006, encoder.finish().unwrap())
            }
            3 => {
                let mut packed = Vec::new();
                lzfse_rust::encode_bytes(chunk, &mut packed).unwrap();
                (0x8000_0007, packed)
            }
            _ => match lzma(chunk) {
                Some(packed) => (0x8000_0008, packed),
                None => {
                    let level = flate2::Compression::fast();
                    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                    encoder.write_all(chunk).unwrap();
                    (0x8000_0005, encoder.finish().unwrap())
                }
            },
        };
        let mut entry = vec![0; 40];
        put_be(&mut entry, 0, kind.into(), 4);
        let first = if number < 20 { 0 } else { 20 };
        put_be(&mut entry, 8, ((number - first) * 128) as u64, 8);
        put_be(&mut entry, 16, (chunk.len() / 512) as u64, 8);
        put_be(&mut entry, 24, file.len() as u64, 8);
        put_be(&mut entry, 32, packed.len() as u64, 8);
        tables[usize::from(number >= 20)].extend(entry);
        file.extend(packed);
    }
    let list: String = tables
        .iter()
        .enumerate()
        .map(|(index, entries)| {
            let mut table = vec![0; 204];
            table[..8].copy_from_slice(b"mish\0\0\0\x01");
            put_be(&mut table, 8, (index * 20 * 128) as u64, 8);
            put_be(&mut table, 16, (entries.len() / 40 * 128) as u64, 8);
            let mut end = vec![0; 40];
            put_be(&mut end, 0, 0xFFFF_FFFF, 4);
            put_be(&mut table, 200, entries.len() as u64 / 40 + 1, 4);
            let text = base64(&[&table[..], entries, &end].concat());
            format!("<dict>\n<key>Data</key>\n<data>\n{text}\n</data>\n</dict>\n")
        })
        .collect();
    let list = format!(
        "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>resource-fork</key><dict>\
         <key>blkx</key><array>{list}</array></dict></dict></plist>"
    );
    let mut trailer = vec![0; 512];
    trailer[..12].copy_from_slice(b"koly\0\0\0\x04\0\0\x02\0");
    put_be(&mut trailer, 32, file.len() as u64, 8);
    put_be(&mut trailer, 216, file.len() as u64, 8);
    put_be(&mut trailer, 224, list.len() as u64, 8);
    put_be(&mut trailer, 492, (disk.len() / 512) as u64, 8);
    [&file[..], list.as_bytes(), &trailer].concat()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |part: &[u8]| {
        let bits = part.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
        let bits = bits << (8 * (3 - part.len()));
        (0..4)
            .map(|at| match at <= part.len() {
                true => char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]),
                false => '=',
            })
            .collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn a_dmg_has_the_bytes_of_its_chunks_however_they_are_packed() {
    let lab = Lab::new();
    let disk = media(3 * MIB);
    let xz = |chunk: &[u8]| {
        lab.put("chunk", chunk);
        lab.runs("xz", "-k|-f|-0|chunk").then(|| lab.read("chunk.xz"))
    };
    for file in [dmg(&disk, &|_| None), dmg(&disk, &xz)] {
        lab.put("image", &file);
        let (image, kind) = open_at(&lab.path("image")).unwrap();
        assert_eq!(kind, Some(quarrier_images::Kind::Dmg));
        check(&*image, &disk);
    }
    lab.put("image.dmg", &dmg(&disk, &|_| None));
    if lab.runs("qemu-img", "convert|-f|dmg|-O|raw|image.dmg|expected") {
        assert!(lab.read("expected") == disk);
    }
    let mut file = dmg(&disk, &|_| None);
    let middle = file.len() - 512 - 2000;
    file[middle] = b'*';
    lab.put("image", &file);
    assert!(lab.refusal("image").contains("damaged"), "{}", lab.refusal("image"));
}

/// An Ex01 with 32 KiB chunks in two segments; chunks are compressed, stored and pattern-filled in
/// turn.
fn ex01(disk: &[u8]) -> [Vec<u8>; 2] {
    use std::io::Write;
    let zlib = |bytes: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let sum = |bytes: &[u8]| simd_adler32::adler32(&bytes).to_le_bytes();
    let section = |file: &mut Vec<u8>, before: &mut u64, kind: u8, data: &[u8]| {
        file.extend(data);
        let mut descriptor = vec![0; 60];
        descriptor[0] = kind;
        put_le(&mut descriptor, 8, *before, 8);
        put_le(&mut descriptor, 16, data.len() as u64, 8);
        put_le(&mut descriptor, 24, 64, 4);
        *before = file.len() as u64;
        file.extend(&descriptor);
        file.extend(sum(&descriptor));
    };
    let text =
        |text: &str| zlib(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    let half = disk.len() / 2;
    [(1u8, &disk[..half]), (2, &disk[half..])].map(|(number, part)| {
        let mut file = b"EVF2\x0d\x0a\x81\x00\x01\x00\x01\x00".to_vec();
        file.extend([number, 0, 0, 0]);
        file.resize(32, 0);
        let mut before = 0;
        if number == 1 {
            let device = format!("\u{FEFF}1\nmain\nsn\tts\tbp\n\t{}\t512\n\n", disk.len() / 512);
            section(&mut file, &mut before, 1, &text(&device));
            section(&mut file, &mut before, 2, &text("\u{FEFF}1\nmain\nnm\tsb\nx\t64\n\n"));
        }
        let (mut data, mut entries) = (Vec::new(), Vec::new());
        for (index, chunk) in part.chunks(32 * KIB).enumerate() {
            let is_pattern = chunk.chunks(8).all(|eight| eight == &chunk[..8]);
            let (at, bytes, flags) = match index % 2 {
                _ if is_pattern => {
                    let pattern = u64::from_le_bytes(*chunk.first_chunk().unwrap());
                    entries.extend([pattern.to_le_bytes(), (4u64 << 32).to_le_bytes()].concat());
                    continue;
                }
                0 => (file.len() + data.len(), zlib(chunk), 1u64),
                _ => (file.len() + data.len(), [chunk, &sum(chunk)].concat(), 2),
            };
            entries.extend((at as u64).to_le_bytes());
            entries.extend((bytes.len() as u64 | flags << 32).to_le_bytes());
            data.extend(bytes);
        }
        section(&mut file, &mut before, 3, &data);
        let mut table = vec![0; 16];
        let first = if number == 1 { 0 } else { half / (32 * KIB) };
        put_le(&mut table, 0, first as u64, 8);
        put_le(&mut table, 8, entries.len() as u64 / 16, 4);
        table.extend(sum(&table.clone()));
        table.resize(32, 0);
        table.extend(&entries);
        table.extend(sum(&entries));
        table.resize(table.len() + 12, 0);
        section(&mut file, &mut before, 4, &table);
        section(&mut file, &mut before, if number == 1 { 13 } else { 15 }, &[]);
        file
    })
}

#[test]
fn an_ex01_has_the_bytes_of_its_chunks() {
    let lab = Lab::new();
    let disk = media(4 * MIB);
    let [first, second] = ex01(&disk);
    lab.put("image.Ex01", &first);
    lab.put("image.Ex02", &second);
    let (image, kind) = open_at(&lab.path("image.Ex01")).unwrap();
    assert_eq!(kind, Some(quarrier_images::Kind::Ewf2));
    check(&*image, &disk);
    std::fs::remove_file(lab.path("image.Ex02")).unwrap();
    let image = lab.open("image.Ex01").unwrap();
    assert!(image.read_at(0, &mut [0; 100]).is_ok());
    assert!(image.read_at(3 << 20, &mut [0; 100]).is_err());
    lab.put("image.Ex01", &first[..first.len() - 10]);
    assert!(lab.refusal("image.Ex01").contains("damaged"), "{}", lab.refusal("image.Ex01"));
}
