//! Any bytes as packed data, and as their headers, in files with valid checksums.

use crate::checksum::crc32;

/// Makes an xz block of the bytes, which begin with its header.
pub(crate) fn xz(bytes: &[u8]) -> Option<Vec<u8>> {
    let (&[filter, property, unpacked], data) = bytes.split_first_chunk::<3>()?;
    let flags = [0, 0];
    let mut fields = vec![0, u8::from(filter % 13 > 1)];
    match filter % 13 {
        0 | 1 => {}
        2 => fields.extend([3, 1, filter]),
        number => fields.extend([number, 0]),
    }
    fields.extend([0x21, 1, property % 41]);
    fields.resize(fields.len().next_multiple_of(4), 0);
    fields[0] = (fields.len() / 4) as u8;
    let mut block = [&fields[..], &crc32(&fields), data].concat();
    let mut index = vec![0, 1];
    for value in [block.len(), usize::from(unpacked) << (property % 8)] {
        index.extend([value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8 & 0x7F]);
    }
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc32(&index));
    block.resize(block.len().next_multiple_of(4), 0);
    let footer = [&(index.len() as u32 / 4 - 1).to_le_bytes()[..], &flags].concat();
    let start = [&b"\xFD7zXZ\0"[..], &flags, &crc32(&flags)].concat();
    Some([&start[..], &block, &index, &crc32(&footer), &footer, b"YZ"].concat())
}

/// Makes a 7z file of the bytes: its header, plain or packed, and the packed data.
pub(crate) fn seven_zip(bytes: &[u8]) -> Option<Vec<u8>> {
    let (&[kind, length], rest) = bytes.split_first_chunk::<2>()?;
    let (header, packed) = rest.split_at(usize::from(length).min(rest.len()));
    let kind = if kind % 2 == 0 { 0x01 } else { 0x17 };
    let header = [&[kind][..], header].concat();
    let mut start = (packed.len() as u64).to_le_bytes().to_vec();
    start.extend((header.len() as u64).to_le_bytes());
    start.extend(crc32(&header));
    let magic = &b"7z\xBC\xAF\x27\x1C\0\x04"[..];
    Some([magic, &crc32(&start), &start, packed, &header].concat())
}
