//! Builds archives.

use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};

/// A zip archive of members: name, content, and whether to deflate it.
pub(crate) fn zip(members: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content, is_deflated) in members {
        let data = match is_deflated {
            true => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            false => content.to_vec(),
        };
        let mut head = vec![20, 0, 0, 0, if *is_deflated { 8 } else { 0 }, 0, 0, 0, 0x21, 0x50];
        let mut crc = Crc::new();
        crc.update(content);
        head.extend(crc.sum().to_le_bytes());
        head.extend((data.len() as u32).to_le_bytes());
        head.extend((content.len() as u32).to_le_bytes());
        head.extend((name.len() as u16).to_le_bytes());
        head.extend([0; 2]);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&head);
        directory.extend([0; 10]);
        directory.extend((bytes.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(head);
        bytes.extend(name.as_bytes());
        bytes.extend(data);
    }
    let (offset, size) = (bytes.len() as u32, directory.len() as u32);
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    for count in [members.len() as u16; 2] {
        bytes.extend(count.to_le_bytes());
    }
    bytes.extend(size.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

/// A tar archive of members: name and content.
pub(crate) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(header);
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    // A tape record has twenty blocks.
    bytes.resize((bytes.len() + 1024).next_multiple_of(10_240), 0);
    bytes
}

/// A 7z archive of members, name and content, that are not compressed.
pub(crate) fn seven_zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum().to_le_bytes()
    };
    // Numbers of up to eight bytes.
    let number = |value: usize| [&[0xFF][..], &(value as u64).to_le_bytes()].concat();
    let packed: Vec<u8> = members.iter().flat_map(|(_, content)| content.to_vec()).collect();
    let names: Vec<u8> = members
        .iter()
        .flat_map(|(name, _)| name.encode_utf16().chain([0]))
        .flat_map(u16::to_le_bytes)
        .collect();
    let sizes: Vec<u8> = members[1..]
        .iter()
        .zip(members)
        .flat_map(|(_, (_, content))| number(content.len()))
        .collect();
    let crcs: Vec<u8> = members.iter().flat_map(|(_, content)| crc(content)).collect();
    let header = [
        &[1, 4, 6, 0, 1, 9][..],
        &number(packed.len()),
        &[0, 7, 0x0B, 1, 0, 1, 1, 0, 0x0C],
        &number(packed.len()),
        &[0, 8, 0x0D],
        &number(members.len()),
        &[9],
        &sizes,
        &[0x0A, 1],
        &crcs,
        &[0, 0, 5],
        &number(members.len()),
        &[0x11],
        &number(names.len() + 1),
        &[0],
        &names,
        &[0, 0],
    ]
    .concat();
    let mut start = (packed.len() as u64).to_le_bytes().to_vec();
    start.extend((header.len() as u64).to_le_bytes());
    start.extend(crc(&header));
    [&b"7z\xBC\xAF\x27\x1C\0\x04"[..], &crc(&start), &start, &packed, &header].concat()
}

pub(crate) fn gz(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A one-pixel picture, with a comment of at most 255 bytes.
pub(crate) fn gif(comment: &[u8]) -> Vec<u8> {
    let mut bytes = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xFF\xFF\xFF".to_vec();
    bytes.extend([0x21, 0xFE, comment.len() as u8]);
    bytes.extend(comment);
    bytes.extend(b"\0\x2C\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3B");
    bytes
}
