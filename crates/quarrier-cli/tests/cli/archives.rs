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
