//! The structures of a segment. All numbers are little-endian; each structure ends with an Adler-32
//! checksum.

/// Size of the file header of a segment.
pub(crate) const FILE_HEADER_BYTES: usize = 13;
/// Size of a section header.
pub(crate) const SECTION_BYTES: usize = 76;
/// Size of a volume section, which describes the media.
pub(crate) const VOLUME_BYTES: usize = 1052;
/// Size of a volume section in SMART, an older format.
pub(crate) const SMART_VOLUME_BYTES: usize = 94;
/// Size of a table header.
pub(crate) const TABLE_HEADER_BYTES: usize = 24;
/// Size of a hash section, which has the MD5.
pub(crate) const HASH_BYTES: usize = 36;
/// Size of a digest section, which has the MD5 and the SHA-1.
pub(crate) const DIGEST_BYTES: usize = 80;

/// Maximum chunk size: 64 sectors are usual, and tools write at most 32 MiB.
const CHUNK_BYTES_MAX: u64 = 32 << 20;
/// Maximum media length. Leaves room for a partial sector.
const LENGTH_MAX: u64 = i64::MAX as u64 - CHUNK_BYTES_MAX;

/// Returns the segment number, or the reason why the file is not a segment.
pub(crate) fn segment_number(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<u16, &'static str> {
    match &bytes[..8] {
        b"EVF\x09\x0d\x0a\xff\x00" => Ok(u16::from_le_bytes([bytes[9], bytes[10]])),
        b"LVF\x09\x0d\x0a\xff\x00" => {
            Err("is a logical image (L01), which holds files and no disk; export the files from it")
        }
        b"EVF2\x0d\x0a\x81\x00" | b"LEF2\x0d\x0a\x81\x00" => Err(
            "is an image of the second format (Ex01), which is not supported; export it as raw or E01",
        ),
        _ => Err("does not begin as an EWF image; if it is raw, rename it (not .E01)"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Volume,
    Sectors,
    Table,
    TableCopy,
    Hash,
    Digest,
    /// The next segment continues the image.
    Next,
    Done,
    Other,
}

/// A section header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: Kind,
    /// The offset of the next section in the segment.
    pub(crate) next: u64,
}

impl Section {
    /// Returns `None` if the checksum is wrong.
    pub(crate) fn parse(bytes: &[u8; SECTION_BYTES]) -> Option<Section> {
        is_sealed(bytes).then_some(())?;
        let end = bytes[..16].iter().position(|&byte| byte == 0).unwrap_or(16);
        let kind = match &bytes[..end] {
            b"volume" | b"disk" => Kind::Volume,
            b"sectors" => Kind::Sectors,
            b"table" => Kind::Table,
            b"table2" => Kind::TableCopy,
            b"hash" => Kind::Hash,
            b"digest" => Kind::Digest,
            b"next" => Kind::Next,
            b"done" => Kind::Done,
            _ => Kind::Other,
        };
        Some(Section { kind, next: u64_at(bytes, 16) })
    }
}

/// The media, as a volume section describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) chunk_bytes: u32,
    pub(crate) sector_bytes: u32,
    /// Length of the media in bytes.
    pub(crate) length: u64,
}

impl Volume {
    /// Parses a volume section of either format: SMART stores the sector count in 32 bits.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Volume, String> {
        if !is_sealed(bytes) {
            return Err("the checksum of the volume section is wrong".to_string());
        }
        let (chunks, sectors_each) = (u32_at(bytes, 4), u32_at(bytes, 8));
        let is_smart = bytes.len() == SMART_VOLUME_BYTES;
        let sectors = if is_smart { u32_at(bytes, 16).into() } else { u64_at(bytes, 16) };
        let sector_bytes = u32_at(bytes, 12);
        let chunk_bytes = u64::from(sectors_each) * u64::from(sector_bytes);
        if chunk_bytes == 0 || chunk_bytes > CHUNK_BYTES_MAX {
            return Err(format!(
                "chunks of {sectors_each} sectors of {sector_bytes} bytes are not supported"
            ));
        }
        // Some writers leave the count at zero if they did not know it at the start.
        let length = match sectors {
            0 => u64::from(chunks).checked_mul(chunk_bytes),
            _ => sectors.checked_mul(u64::from(sector_bytes)),
        };
        let length = length
            .filter(|&length| length <= LENGTH_MAX)
            .ok_or_else(|| format!("{sectors} sectors of {sector_bytes} bytes are too many"))?;
        Ok(Volume { chunk_bytes: chunk_bytes as u32, sector_bytes, length })
    }
}

/// A table header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableHeader {
    pub(crate) entries: u32,
    /// The base offset of the entries in the segment.
    pub(crate) base: u64,
}

impl TableHeader {
    /// Returns `None` if the checksum is wrong.
    pub(crate) fn parse(bytes: &[u8; TABLE_HEADER_BYTES]) -> Option<TableHeader> {
        is_sealed(bytes).then(|| TableHeader { entries: u32_at(bytes, 0), base: u64_at(bytes, 8) })
    }
}

/// Whether `bytes` end with their own checksum.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    let at = bytes.len() - 4;
    simd_adler32::adler32(&&bytes[..at]) == u32_at(bytes, at)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}
