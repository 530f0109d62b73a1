//! Image streams: chunks that are compressed separately and grouped in segments (bevies).
//!
//! ```text
//!  offset ─→ chunk ─→ segment "URN/00000000", and its index: where each chunk begins, and its length
//! ```
//!
//! A chunk whose stored size equals the chunk size is uncompressed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;

use super::container::{Container, Member};
use super::graph::{SCHEMA, Thing};
use crate::bytes::{u32_le, u64_le};
use crate::disk::{BlockCache, Disk, Layout, Place, Run};
use crate::fault::{invalid, refused, room};
use crate::tables::Tables;
use crate::unpack::Unpacker;

const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// The default chunk size.
const CHUNK_BYTES: u64 = 32 << 10;
const CHUNKS_IN_SEGMENT: u64 = 1024;
const INDEX_ENTRY_BYTES: u64 = 12;
/// Maximum size of a deflated index, which is inflated as a whole.
const INDEX_BYTES_MAX: u64 = 8 << 20;
/// Maximum length of a segment's name after that of its stream: a number, and `.index`.
const SEGMENT_NAME_BYTES_MAX: usize = 26;

/// The compression of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Stored,
    Zlib,
    Deflate,
    Snappy,
    /// Snappy in which every chunk is compressed, even one that grows.
    SnappyAlways,
    Lz4,
}

impl Packing {
    fn of(urn: Option<&str>) -> Option<Packing> {
        let Some(urn) = urn else { return Some(Packing::Zlib) };
        if let Some(name) = urn.strip_prefix(SCHEMA) {
            let is_stored = matches!(name, "NullCompressor" | "compression/stored");
            return is_stored.then_some(Packing::Stored);
        }
        // The same compression has IRIs with different schemes.
        let name = urn.split_once("://").map_or(urn, |(_, name)| name).trim_end_matches('/');
        match name.trim_end_matches(".txt").trim_end_matches(".html") {
            "www.ietf.org/rfc/rfc1950" | "tools.ietf.org/html/rfc1950" => Some(Packing::Zlib),
            "www.ietf.org/rfc/rfc1951" | "tools.ietf.org/html/rfc1951" => Some(Packing::Deflate),
            "code.google.com/p/snappy" => Some(Packing::Snappy),
            "github.com/google/snappy" => Some(Packing::SnappyAlways),
            "code.google.com/p/lz4" | "github.com/lz4/lz4" => Some(Packing::Lz4),
            _ => None,
        }
    }
}

/// State shared by all streams of an image.
pub(super) struct Shared {
    pub(super) file: Arc<dyn Source>,
    pub(super) pages: Tables,
    /// Inflated indexes, by their offset in the file.
    indexes: BlockCache,
}

impl Shared {
    pub(super) fn new(file: &Arc<dyn Source>) -> Arc<Shared> {
        let pages = Tables::new(Arc::clone(file));
        Arc::new(Shared { file: Arc::clone(file), pages, indexes: BlockCache::default() })
    }
}

/// A group of chunks (bevy).
struct Segment {
    number: u64,
    data: LocatedMember,
    index: LocatedMember,
}

/// A member, and the offset of its data once known.
struct LocatedMember {
    member: Member,
    at: OnceLock<u64>,
}

impl LocatedMember {
    fn new(member: Member) -> Self {
        LocatedMember { member, at: OnceLock::new() }
    }

    fn at(&self, file: &dyn Source) -> io::Result<u64> {
        if let Some(&at) = self.at.get() {
            return Ok(at);
        }
        let at = self.member.data_at(file)?;
        Ok(*self.at.get_or_init(|| at))
    }
}

/// The locations of a stream's chunks.
pub(super) struct Stream {
    shared: Arc<Shared>,
    /// Indexed by segment number.
    segments: Vec<Segment>,
    chunk_bytes: u64,
    chunks_in_segment: u64,
    length: u64,
    packing: Packing,
    /// At most one per concurrent reader.
    unpackers: Mutex<Vec<Unpacker>>,
}

/// Opens the stream `urn`.
///
/// # Errors
/// If its properties are invalid, or its data is in another file.
pub(super) fn open(
    shared: &Arc<Shared>,
    container: &Container,
    (urn, thing): (&str, &Thing),
) -> Result<Disk<Stream>> {
    let file = &*shared.file;
    let wrong = |reason: &str| Err(refused(file, format!("its stream {} {reason}", shown(urn))));
    let segments = segments(container, urn);
    let elsewhere = thing.iri("stored").filter(|volume| *volume != container.volume);
    if let Some(volume) = elsewhere.filter(|_| segments.is_empty()) {
        return wrong(&format!(
            "lies in another file ({}), as the image is striped over several, and there is none of \
             them beside it; put them there",
            shown(volume)
        ));
    }
    let number = |property: &str, usual: Option<u64>| thing.number(property).unwrap_or(usual);
    let chunk_bytes = number("chunkSize", Some(CHUNK_BYTES));
    let chunk_bytes = chunk_bytes.filter(|bytes| (1..=CHUNK_BYTES_MAX).contains(bytes));
    let chunks_in_segment = number("chunksInSegment", Some(CHUNKS_IN_SEGMENT));
    let length = number("size", None).filter(|&bytes| bytes <= i64::MAX as u64 - CHUNK_BYTES_MAX);
    let (Some(chunk_bytes), Some(chunks_in_segment @ 1..), Some(length)) =
        (chunk_bytes, chunks_in_segment, length)
    else {
        return wrong("lacks its size or that of its chunks, or has impossible values");
    };
    let Some(packing) = Packing::of(thing.iri("compressionMethod")) else {
        return wrong("has an unknown compression; export the image as raw or E01");
    };
    if segments.is_empty() && length > 0 {
        return wrong("has no segments in the file; copy the image again from its source");
    }
    if segments.iter().any(|segment| !segment.data.member.is_stored()) {
        return wrong(
            "is encrypted, or also compressed by ZIP, which is not supported; export it as raw or E01",
        );
    }
    let layout = Stream {
        shared: Arc::clone(shared),
        segments,
        chunk_bytes,
        chunks_in_segment,
        length,
        packing,
        unpackers: Mutex::default(),
    };
    let (name, files) = (file.name(), vec![Arc::clone(&shared.file)]);
    Ok(match packing {
        Packing::Stored => Disk::stored(name, length, layout, files),
        _ => Disk::packed(name, length, layout, files, chunk_bytes as usize),
    })
}

/// Whether the file has segments of the stream `urn`.
pub(super) fn is_in(container: &Container, urn: &str) -> bool {
    !segments(container, urn).is_empty()
}

/// The segments of a stream in this file, with their indexes.
fn segments(container: &Container, urn: &str) -> Vec<Segment> {
    let mut found: BTreeMap<u64, [Option<Member>; 2]> = BTreeMap::new();
    for (name, member) in container.below(urn, SEGMENT_NAME_BYTES_MAX) {
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        let (number, is_index) = match name.strip_suffix(".index") {
            Some(number) => (number, true),
            None => (name, false),
        };
        // `parse` would accept a sign; names must not have one.
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let Some(number) = number.parse().ok().filter(|_| is_number) else { continue };
        found.entry(number).or_default()[usize::from(is_index)] = Some(member);
    }
    let segment = |(number, [data, index]): (u64, [Option<Member>; 2])| {
        Some(Segment { number, data: LocatedMember::new(data?), index: LocatedMember::new(index?) })
    };
    found.into_iter().filter_map(segment).collect()
}

/// Formats a name from an image for display.
fn shown(urn: &str) -> String {
    crate::around::shown(urn)
}

/// A chunk's location in the file.
struct Chunk {
    at: u64,
    bytes: u64,
}

impl Stream {
    /// Unpacked size of a chunk.
    fn bytes_of(&self, chunk: u64) -> u64 {
        self.chunk_bytes.min(self.length - chunk * self.chunk_bytes)
    }

    /// Looks up a chunk in its segment's index.
    fn chunk(&self, chunk: u64) -> io::Result<Chunk> {
        let file = &*self.shared.file;
        let (number, within) = (chunk / self.chunks_in_segment, chunk % self.chunks_in_segment);
        let at = self.segments.binary_search_by_key(&number, |segment| segment.number);
        let Ok(at) = at else {
            return Err(invalid(format!("segment {number} of a stream, or its index, is missing")));
        };
        let Segment { data, index, .. } = &self.segments[at];
        let from = within.saturating_mul(INDEX_ENTRY_BYTES);
        let is_there = from
            .checked_add(INDEX_ENTRY_BYTES)
            .is_some_and(|end| end <= index.member.bytes || !index.member.is_stored());
        if !is_there {
            return Err(invalid(format!("the index of segment {number} has no chunk {within}")));
        }
        let mut entry = [0; INDEX_ENTRY_BYTES as usize];
        if index.member.is_stored() {
            self.shared.pages.read(index.at(file)?.saturating_add(from), &mut entry)?;
        } else {
            let unpacked = self
                .shared
                .indexes
                .block(index.member.header_at, || index.member.whole(file, INDEX_BYTES_MAX))?;
            let found = unpacked.get(from as usize..from as usize + entry.len());
            let found = found.ok_or_else(|| {
                invalid(format!("the index of segment {number} has no chunk {within}"))
            })?;
            entry.copy_from_slice(found);
        }
        let (from, bytes) = (u64_le(&entry, 0), u64::from(u32_le(&entry, 8)));
        if from.checked_add(bytes).is_none_or(|end| end > data.member.bytes) {
            return Err(invalid(format!("chunk {within} lies beyond the end of segment {number}")));
        }
        Ok(Chunk { at: data.at(file)?.saturating_add(from), bytes })
    }

    /// Whether a chunk with `bytes` stored bytes is uncompressed.
    fn is_uncompressed(&self, bytes: u64) -> bool {
        match self.packing {
            Packing::Stored => true,
            Packing::SnappyAlways => false,
            _ => bytes == self.chunk_bytes,
        }
    }

    fn unpack_into(&self, packed: &[u8], block: &mut [u8]) -> io::Result<()> {
        let bytes_max = self.chunk_bytes as usize;
        let mut unpacker = lock(&self.unpackers).pop().unwrap_or_default();
        let done = match self.packing {
            Packing::Zlib => unpacker.zlib_up_to(packed, block, bytes_max),
            Packing::Deflate => unpacker.deflate(packed, block),
            Packing::Snappy | Packing::SnappyAlways => unpacker.snappy(packed, block, bytes_max),
            Packing::Lz4 => unpacker.lz4(packed, block, bytes_max),
            Packing::Stored => Err(invalid("it is shorter than a chunk")),
        };
        lock(&self.unpackers).push(unpacker);
        match done {
            // Some writers label the stream this way but store incompressible chunks anyway.
            Err(_) if self.packing == Packing::SnappyAlways && packed.len() == bytes_max => {
                block.copy_from_slice(&packed[..block.len()]);
                Ok(())
            }
            done => done,
        }
    }
}

impl Layout for Stream {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (chunk, within) = (offset / self.chunk_bytes, offset % self.chunk_bytes);
        let bytes = self.bytes_of(chunk);
        let Chunk { at, bytes: stored } = self.chunk(chunk)?;
        let place = match self.is_uncompressed(stored) {
            true if stored < bytes => {
                return Err(invalid(format!("chunk {chunk} of a stream is too short")));
            }
            true => Place::Stored { file: 0, at: at.saturating_add(within) },
            false => Place::Packed { key: chunk, start: offset - within, bytes: bytes as usize },
        };
        Ok(Run { bytes: bytes - within, place })
    }

    fn unpack(&self, key: u64, block: &mut [u8]) -> io::Result<()> {
        let file = &self.shared.file;
        let Chunk { at, bytes } = self.chunk(key)?;
        let wrong = |why: &dyn std::fmt::Display| {
            invalid(format!("chunk {key} (byte {at} of {}) is damaged: {why}", file.name()))
        };
        // No supported compression grows data by a sixth.
        if bytes > self.chunk_bytes + self.chunk_bytes / 6 + 1024 {
            return Err(wrong(&format!("it is too long ({bytes} bytes)")));
        }
        let mut packed = room(bytes as usize)?;
        if read_full_at(&**file, at, &mut packed)? < packed.len() {
            return Err(wrong(&"the file is truncated"));
        }
        self.unpack_into(&packed, block).map_err(|error| wrong(&error))
    }
}
