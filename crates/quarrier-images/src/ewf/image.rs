//! An image as a source.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use quarrier_core::name;
use quarrier_core::source::Source;
use quarrier_core::sync::lock;

use super::chunk::Scratch;
use super::error::{Error, Result};
use super::hashes::{Hashing, StoredHashes, Verified};
use super::names::segments_from;
use super::parts::Parts;
use super::segment::{Map, map};
use super::table::invalid;

/// Capacity of the chunk cache in bytes, for reads of parts of chunks; at least one chunk is kept.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// An EWF image as a source: the bytes of the acquired media.
///
/// Reads of whole chunks go directly into the reader's buffer; partially read chunks are cached (8
/// MiB). In addition, each reading thread needs a buffer, and each table (one per 16,000 chunks or so)
/// takes 48 bytes.
pub struct EwfSource {
    name: String,
    parts: Parts,
    map: Map,
    /// Recently decoded chunks, the newest last.
    kept: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
    /// At most one per concurrent reader.
    scratches: Mutex<Vec<Scratch>>,
}

impl std::fmt::Debug for EwfSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EwfSource")
            .field("name", &self.name)
            .field("segments", &self.parts.count())
            .field("length", &self.map.volume.length)
            .finish()
    }
}

impl EwfSource {
    /// Opens an image by its first segment, together with the following segments beside it. Reads all
    /// chunk tables once: four bytes per chunk.
    ///
    /// Missing segments, and damage after the volume section, are errors only of reads that need those
    /// chunks.
    ///
    /// # Errors
    /// [`Error::Source`] if it cannot be read, [`Error::NotAnImage`] and [`Error::Damaged`] if it does
    /// not describe a medium.
    pub fn open(first: &Path) -> Result<Self> {
        let parts = Parts::files(segments_from(first));
        EwfSource::from_map(name::of_path(first), parts)
    }

    /// Opens an image from its segments, in order.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_segments(name: impl Into<String>, segments: Vec<Box<dyn Source>>) -> Result<Self> {
        EwfSource::from_map(name.into(), Parts::Sources(segments))
    }

    fn from_map(name: String, parts: Parts) -> Result<Self> {
        let map = map(&parts)?;
        let (kept, scratches) = (Mutex::default(), Mutex::default());
        let mut image = EwfSource { name, parts, map, kept, scratches };
        image.add_partial_sector();
        Ok(image)
    }

    /// The number of segments.
    pub fn segments(&self) -> usize {
        self.parts.count()
    }

    /// If a segment is missing or truncated: a message with the chunk at which readable data ends, and
    /// the reason.
    pub fn missing(&self) -> Option<String> {
        let there = self.chunks_there();
        let wanted = self.length().div_ceil(u64::from(self.map.volume.chunk_bytes));
        (there < wanted).then(|| self.ends_before(there))
    }

    /// The number of chunks in all tables.
    fn chunks_there(&self) -> u64 {
        self.map.tables.last().map_or(0, |table| table.first + u64::from(table.count))
    }

    fn ends_before(&self, chunk: u64) -> String {
        format!("the image ends before chunk {chunk}: {}", self.map.ended)
    }

    /// The hashes stored in the image.
    pub fn stored_hashes(&self) -> StoredHashes {
        self.map.hashes
    }

    /// Reads the whole image and compares it with its stored hashes. Decompresses and hashes every byte
    /// on the calling thread.
    ///
    /// `progress` gets the number of bytes done, after each chunk; if it returns `false`, the
    /// verification stops with `None`.
    ///
    /// # Errors
    /// [`Error::Source`] for the first chunk that cannot be read, [`Error::Damaged`] for a stored
    /// hash.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Option<Verified>> {
        if let Some((source_name, offset, reason)) = self.map.hash_damage.clone() {
            return Err(Error::Damaged { source_name, offset, reason });
        }
        let mut hashing = Hashing::new(self.map.hashes);
        let mut buffer = vec![0; self.map.volume.chunk_bytes as usize];
        let mut done = 0;
        while done < self.length() {
            let read = self.read_at(done, &mut buffer).map_err(|error| {
                let what = format!("read at byte {done}");
                Error::Source(quarrier_core::Error::io(&self.name, what, error))
            })?;
            hashing.add(&buffer[..read]);
            done += read as u64;
            if !progress(done) {
                return Ok(None);
            }
        }
        Ok(Some(hashing.finish()))
    }

    /// Decodes the first `wanted` bytes of a chunk, or all of it, and passes them to `take`.
    fn decode<T>(
        &self,
        number: u64,
        wanted: Option<usize>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        let at = self.map.tables.partition_point(|table| table.first <= number);
        let table = at.checked_sub(1).map(|at| self.map.tables[at]);
        let Some(table) = table.filter(|table| number - table.first < u64::from(table.count))
        else {
            return Err(invalid(self.ends_before(number)));
        };
        let index = table.segment as usize;
        let segment = self.parts.get(index).map_err(io::Error::other)?;
        let mut offset = table.entries_at;
        let mut scratch = self.scratches().pop().unwrap_or_else(Scratch::new);
        let done = table.place(&segment, number).and_then(|place| {
            offset = place.offset;
            scratch.read(&segment, place, self.map.volume.chunk_bytes, wanted).map(take)
        });
        self.scratches().push(scratch);
        done.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                let name = self.parts.name(index);
                invalid(format!("chunk {number} (byte {offset} of {name}) is damaged: {error}"))
            }
            _ => error,
        })
    }

    /// The image of a file may end within a sector. The volume section counts only whole sectors, but
    /// the last chunk and the stored hashes include the partial one.
    fn add_partial_sector(&mut self) {
        let volume = self.map.volume;
        let number = volume.length / u64::from(volume.chunk_bytes);
        let known = volume.length % u64::from(volume.chunk_bytes);
        let Ok(length) = self.decode(number, None, <[u8]>::len) else { return };
        let more = (length as u64).saturating_sub(known);
        if more < u64::from(volume.sector_bytes) {
            self.map.volume.length += more;
        }
    }

    /// Chunk `number`, from the cache or decoded into it.
    fn chunk(&self, number: u64, length: usize) -> io::Result<Arc<[u8]>> {
        let held =
            self.kept().iter().find(|(held, _)| *held == number).map(|(_, chunk)| chunk.clone());
        if let Some(chunk) = held {
            return Ok(chunk);
        }
        let chunk: Arc<[u8]> = self.decode(number, Some(length), |chunk| Arc::from(chunk))?;
        let room = (KEPT_BYTES_MAX / self.map.volume.chunk_bytes as usize).max(1);
        let mut kept = self.kept();
        while kept.len() >= room {
            kept.pop_front();
        }
        kept.push_back((number, Arc::clone(&chunk)));
        Ok(chunk)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<[u8]>)>> {
        lock(&self.kept)
    }

    fn scratches(&self) -> MutexGuard<'_, Vec<Scratch>> {
        lock(&self.scratches)
    }
}

impl Source for EwfSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.map.volume.length
    }

    fn readable_end(&self) -> u64 {
        let chunk_bytes = u64::from(self.map.volume.chunk_bytes);
        self.chunks_there().saturating_mul(chunk_bytes).min(self.length())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let chunk_bytes = u64::from(self.map.volume.chunk_bytes);
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            if at >= self.length() {
                break;
            }
            let (number, from) = (at / chunk_bytes, (at % chunk_bytes) as usize);
            let length = chunk_bytes.min(self.length() - number * chunk_bytes) as usize;
            let wanted = (length - from).min(buffer.len() - filled);
            let out = &mut buffer[filled..filled + wanted];
            let read = if wanted == length {
                self.decode(number, Some(length), |chunk| out.copy_from_slice(chunk))
            } else {
                self.chunk(number, length)
                    .map(|chunk| out.copy_from_slice(&chunk[from..from + wanted]))
            };
            match read {
                Ok(()) => filled += wanted,
                // Return the bytes read; the next read reports the error.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn is_packed(&self) -> bool {
        true
    }

    /// A chunk can only be read as a whole.
    fn sector_bytes(&self) -> usize {
        self.map.volume.chunk_bytes as usize
    }
}
