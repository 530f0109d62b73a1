//! A minimal writer of EWF images.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use md5::{Digest, Md5};
use quarrier_core::source::{Memory, Source};
use quarrier_images::ewf::{EwfSource, Result};
use sha1::Sha1;

/// The form in which to write an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) sectors_each: u32,
    pub(crate) sector_bytes: u32,
    /// Every n-th chunk is stored uncompressed; 0 for none.
    pub(crate) stored_every: u64,
    pub(crate) chunks_a_table: usize,
    pub(crate) tables_a_segment: usize,
    pub(crate) has_digest: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            sectors_each: 8,
            sector_bytes: 512,
            stored_every: 3,
            chunks_a_table: 5,
            tables_a_segment: 2,
            has_digest: true,
        }
    }
}

impl Shape {
    pub(crate) fn chunk_bytes(&self) -> usize {
        (self.sectors_each * self.sector_bytes) as usize
    }

    /// The segments of an image of `media`.
    pub(crate) fn write(&self, media: &[u8]) -> Vec<Vec<u8>> {
        let chunks: Vec<&[u8]> = media.chunks(self.chunk_bytes()).collect();
        let tables: Vec<&[&[u8]]> = chunks.chunks(self.chunks_a_table).collect();
        let mut groups: Vec<&[&[&[u8]]]> = tables.chunks(self.tables_a_segment).collect();
        if groups.is_empty() {
            groups.push(&[]);
        }
        let count = groups.len();
        let mut written = 0;
        let mut segments = Vec::new();
        for (index, group) in groups.into_iter().enumerate() {
            let mut segment = b"EVF\x09\x0d\x0a\xff\x00\x01".to_vec();
            segment.extend((index as u16 + 1).to_le_bytes());
            segment.extend([0, 0]);
            if index == 0 {
                section(&mut segment, "header", b"not read");
                section(&mut segment, "volume", &self.volume(media.len(), chunks.len()));
            }
            for table in group {
                self.table(&mut segment, table, &mut written);
            }
            if index + 1 == count {
                self.hashes(&mut segment, media);
                last_section(&mut segment, "done");
            } else {
                last_section(&mut segment, "next");
            }
            segments.push(segment);
        }
        segments
    }

    fn volume(&self, length: usize, chunks: usize) -> Vec<u8> {
        let mut volume = vec![0u8; 1048];
        volume[4..8].copy_from_slice(&(chunks as u32).to_le_bytes());
        volume[8..12].copy_from_slice(&self.sectors_each.to_le_bytes());
        volume[12..16].copy_from_slice(&self.sector_bytes.to_le_bytes());
        let sectors = length as u64 / u64::from(self.sector_bytes);
        volume[16..24].copy_from_slice(&sectors.to_le_bytes());
        sealed(volume)
    }

    fn table(&self, segment: &mut Vec<u8>, chunks: &[&[u8]], written: &mut u64) {
        let base = segment.len() as u64;
        let (mut data, mut entries) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let is_stored = self.stored_every > 0 && written.is_multiple_of(self.stored_every);
            let at = 76 + data.len() as u32;
            let entry = if is_stored { at } else { at | 1 << 31 };
            entries.extend(entry.to_le_bytes());
            if is_stored {
                data.extend(sealed(chunk.to_vec()))
            } else {
                data.extend(packed(chunk))
            }
            *written += 1;
        }
        section(segment, "sectors", &data);
        let mut table = (chunks.len() as u32).to_le_bytes().to_vec();
        table.extend([0; 4]);
        table.extend(base.to_le_bytes());
        table.extend([0; 4]);
        let mut table = sealed(table);
        table.extend(sealed(entries));
        section(segment, "table", &table);
        section(segment, "table2", &table);
    }

    fn hashes(&self, segment: &mut Vec<u8>, media: &[u8]) {
        let md5 = Md5::digest(media);
        if self.has_digest {
            let mut digest = md5.to_vec();
            digest.extend(Sha1::digest(media));
            digest.resize(76, 0);
            section(segment, "digest", &sealed(digest));
        }
        let mut hash = md5.to_vec();
        hash.resize(32, 0);
        section(segment, "hash", &sealed(hash));
    }
}

/// Appends a checksum to `bytes`.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = simd_adler32::adler32(&bytes.as_slice());
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn packed(chunk: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(chunk).unwrap();
    encoder.finish().unwrap()
}

fn section(segment: &mut Vec<u8>, kind: &str, data: &[u8]) {
    let size = 76 + data.len() as u64;
    let next = segment.len() as u64 + size;
    segment.extend(header(kind, next, size));
    segment.extend(data);
}

fn last_section(segment: &mut Vec<u8>, kind: &str) {
    let at = segment.len() as u64;
    segment.extend(header(kind, at, 76));
}

pub(crate) fn header(kind: &str, next: u64, size: u64) -> Vec<u8> {
    let mut bytes = kind.as_bytes().to_vec();
    bytes.resize(16, 0);
    bytes.extend(next.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.resize(72, 0);
    sealed(bytes)
}

/// Opens an image of these segments.
pub(crate) fn open(segments: Vec<Vec<u8>>) -> Result<EwfSource> {
    let sources = segments.into_iter().enumerate().map(|(index, segment)| {
        Box::new(Memory::new(format!("image.E{:02}", index + 1), segment)) as Box<dyn Source>
    });
    EwfSource::from_segments("image.E01", sources.collect())
}

/// A mix of compressible and incompressible bytes.
pub(crate) fn media(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let byte = |at: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if (at / 700).is_multiple_of(2) { (at / 7) as u8 } else { (state >> 56) as u8 }
    };
    (0..length).map(byte).collect()
}
