//! The QCOW2 header, and features that prevent reading.

use quarrier_core::source::Source;
use quarrier_core::{Result, name};

use crate::bytes::{u32_be, u64_be};
use crate::fault::{damaged, refused, structure};

/// Maximum size of the L1 table, as in QEMU.
const L1_BYTES_MAX: u64 = 32 << 20;
const HEADER_BYTES_MIN: u64 = 72;
const HEADER_BYTES_MAX: u64 = 4096;

const IS_DIRTY: u64 = 1;
const IS_CORRUPT: u64 = 1 << 1;
const HAS_DATA_FILE: u64 = 1 << 2;
const HAS_COMPRESSION: u64 = 1 << 3;
const HAS_SUBCLUSTERS: u64 = 1 << 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Deflate,
    Zstd,
}

/// The backing file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backing {
    pub(super) name: String,
    pub(super) format: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) cluster_bits: u32,
    pub(super) length: u64,
    pub(super) l1_entries: u64,
    pub(super) l1_at: u64,
    pub(super) compression: Compression,
    pub(super) has_subclusters: bool,
    pub(super) backing: Option<Backing>,
}

impl Header {
    pub(super) fn read(file: &dyn Source) -> Result<Header> {
        let fixed = structure(file, 0, HEADER_BYTES_MIN, "the header")?;
        let version = u32_be(&fixed, 4);
        if !matches!(version, 2 | 3) {
            return Err(refused(
                file,
                format!(
                    "is a QCOW image of version {version}, and only 2 and 3 are supported; convert it \
                     with qemu-img convert -O raw"
                ),
            ));
        }
        let bytes = match version {
            2 => HEADER_BYTES_MIN,
            _ => u64::from(u32_be(&structure(file, 0, 104, "the header")?, 100)),
        };
        let least = if version == 2 { HEADER_BYTES_MIN } else { 104 };
        if !(least..=HEADER_BYTES_MAX).contains(&bytes) {
            return Err(damaged(file, 100, "the header has an impossible length"));
        }
        let header = structure(file, 0, bytes, "the header")?;
        let features = if version == 2 { 0 } else { u64_be(&header, 72) };
        let compression = header.get(104).copied().filter(|_| features & HAS_COMPRESSION != 0);
        let mut found = Header {
            version,
            cluster_bits: u32_be(&header, 20),
            length: u64_be(&header, 24),
            l1_entries: u64::from(u32_be(&header, 36)),
            l1_at: u64_be(&header, 40),
            compression: match compression.unwrap_or(0) {
                0 => Compression::Deflate,
                1 => Compression::Zstd,
                other => {
                    let reason = format!("its clusters have an unknown compression ({other})");
                    return Err(refused(file, reason));
                }
            },
            has_subclusters: features & HAS_SUBCLUSTERS != 0,
            backing: None,
        };
        found.check(file, &header, features)?;
        found.backing = found.backing(file, &header)?;
        Ok(found)
    }

    /// Rejects features that prevent correct reading, and impossible values.
    ///
    /// # Errors
    /// If the image cannot be read correctly, or has impossible values.
    fn check(&self, file: &dyn Source, header: &[u8], features: u64) -> Result<()> {
        if u32_be(header, 32) != 0 {
            let reason =
                "is encrypted; decrypt it with qemu-img convert and its key, and search that";
            return Err(refused(file, reason));
        }
        if features & HAS_DATA_FILE != 0 {
            let reason = "keeps its data in another file; search that, which is raw, or write both \
                          with qemu-img convert -O raw";
            return Err(refused(file, reason));
        }
        let known = IS_DIRTY | IS_CORRUPT | HAS_COMPRESSION | HAS_SUBCLUSTERS;
        if features & !known != 0 {
            let reason = format!(
                "has unknown features ({:#x}); convert it with qemu-img convert -O raw",
                features & !known
            );
            return Err(refused(file, reason));
        }
        let least = if self.has_subclusters { 14 } else { 9 };
        if !(least..=21).contains(&self.cluster_bits) {
            let reason = format!("has an impossible cluster size of 2^{} bytes", self.cluster_bits);
            return Err(damaged(file, 20, reason));
        }
        if self.length > i64::MAX as u64 {
            return Err(damaged(
                file,
                24,
                format!("the disk has an impossible size of {} bytes", self.length),
            ));
        }
        let bytes = self.l1_entries * 8;
        let needed = self.length.div_ceil(self.covered_by_table());
        if bytes > L1_BYTES_MAX || needed > self.l1_entries || !self.l1_at.is_multiple_of(8) {
            return Err(damaged(file, 36, "the L1 table has an impossible size"));
        }
        let end = self.l1_at.checked_add(bytes).filter(|&end| end <= file.length());
        if end.is_none() {
            return Err(damaged(file, self.l1_at, "the L1 table lies beyond the end of the file"));
        }
        Ok(())
    }

    fn backing(&self, file: &dyn Source, header: &[u8]) -> Result<Option<Backing>> {
        let (at, bytes) = (u64_be(header, 8), u64::from(u32_be(header, 16)));
        if at == 0 || bytes == 0 {
            return Ok(None);
        }
        if bytes > 1023 {
            return Err(damaged(file, 16, "the name of the backing file is too long"));
        }
        let name = structure(file, at, bytes, "the name of the backing file")?;
        let name = name::of_bytes(&name);
        let format = extension(file, header.len() as u64, 0xE279_2ACA)?;
        let format = format.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Some(Backing { name, format }))
    }

    pub(super) fn cluster_bytes(&self) -> u64 {
        1 << self.cluster_bits
    }

    pub(super) fn entry_bytes(&self) -> u64 {
        if self.has_subclusters { 16 } else { 8 }
    }

    /// Bytes of the disk mapped by one L2 table.
    pub(super) fn covered_by_table(&self) -> u64 {
        self.cluster_bytes() / self.entry_bytes() * self.cluster_bytes()
    }
}

/// Finds the data of a header extension, which follow the header.
fn extension(file: &dyn Source, mut at: u64, wanted: u32) -> Result<Option<Vec<u8>>> {
    for _ in 0..64 {
        let head = structure(file, at, 8, "an extension of the header")?;
        let (kind, bytes) = (u32_be(&head, 0), u64::from(u32_be(&head, 4)));
        if kind == 0 {
            break;
        }
        if kind == wanted && bytes <= 64 {
            return structure(file, at + 8, bytes, "an extension of the header").map(Some);
        }
        at += 8 + bytes.next_multiple_of(8);
    }
    Ok(None)
}
