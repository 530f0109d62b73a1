//! Makes zip archives.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The compression of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Stored,
    Deflated,
    /// Deflated, with sizes and checksum after it.
    Streamed,
    /// Stored, with sizes and checksum after it.
    StoredStreamed,
}

/// An archive under construction.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl Archive {
    pub(crate) fn add(&mut self, name: &str, content: &[u8], way: Way) {
        let is_deflated = matches!(way, Way::Deflated | Way::Streamed);
        let is_streamed = matches!(way, Way::Streamed | Way::StoredStreamed);
        let data = match is_deflated {
            true => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(content).expect("writing to memory succeeds");
                encoder.finish().expect("writing to memory succeeds")
            }
            false => content.to_vec(),
        };
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, content) as u32;
        let offset = self.bytes.len() as u32;
        let flags = if is_streamed { 8u16 } else { 0 };
        let head = |crc: u32, packed: u32, unpacked: u32| {
            let mut head = 20u16.to_le_bytes().to_vec();
            head.extend(flags.to_le_bytes());
            head.extend(if is_deflated { 8u16 } else { 0 }.to_le_bytes());
            head.extend([0, 0, 0x21, 0x50]);
            head.extend(crc.to_le_bytes());
            head.extend(packed.to_le_bytes());
            head.extend(unpacked.to_le_bytes());
            head.extend((name.len() as u16).to_le_bytes());
            head.extend([0, 0]);
            head
        };
        let known = (crc, data.len() as u32, content.len() as u32);
        let (crc, packed, unpacked) = if is_streamed { (0, 0, 0) } else { known };
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(head(crc, packed, unpacked));
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(&data);
        if is_streamed {
            self.bytes.extend(b"PK\x07\x08");
            for value in [known.0, known.1, known.2] {
                self.bytes.extend(value.to_le_bytes());
            }
        }
        self.directory.extend(b"PK\x01\x02\x14\x00");
        self.directory.extend(head(known.0, known.1, known.2));
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries += 1;
    }

    pub(crate) fn finish(mut self, comment: &[u8]) -> Vec<u8> {
        let (offset, size) = (self.bytes.len() as u32, self.directory.len() as u32);
        self.bytes.append(&mut self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.extend((comment.len() as u16).to_le_bytes());
        self.bytes.extend(comment);
        self.bytes
    }
}
