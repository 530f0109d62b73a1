//! Decodes the chunks of a segment.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};

use super::layout::is_sealed;
use super::parts::Held;
use super::table::{Place, invalid};

/// Buffers that decoding needs besides input and output; reused for the next chunk.
pub(crate) struct Scratch {
    inflate: Decompress,
    packed: Vec<u8>,
    plain: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Scratch { inflate: Decompress::new(true), packed: Vec::new(), plain: Vec::new() }
    }

    /// Reads the chunk at `place`: its first `wanted` bytes, or all of it.
    ///
    /// # Errors
    /// Those of the segment; `InvalidData` if a checksum is wrong or the chunk is too short.
    pub(crate) fn read(
        &mut self,
        segment: &Held<'_>,
        place: Place,
        chunk_bytes: u32,
        wanted: Option<usize>,
    ) -> io::Result<&[u8]> {
        // The fastest level of deflate expands incompressible data by an eighth.
        let most = match place.is_compressed {
            true => chunk_bytes as usize + (chunk_bytes >> 3) as usize + 1024,
            false => chunk_bytes as usize + 4,
        };
        let bytes = usize::try_from(place.bytes).unwrap_or(usize::MAX).min(most);
        self.packed.resize(bytes, 0);
        segment.read(place.offset, &mut self.packed)?;
        let chunk = match place.is_compressed {
            true => self.inflate(chunk_bytes)?,
            false => self.stored(wanted)?,
        };
        match wanted {
            Some(wanted) if wanted > chunk.len() => {
                Err(invalid(format!("it has {} bytes instead of {wanted}", chunk.len())))
            }
            // Some writers pad the last chunk to full length.
            Some(wanted) => Ok(&chunk[..wanted]),
            None => Ok(chunk),
        }
    }

    fn stored(&self, wanted: Option<usize>) -> io::Result<&[u8]> {
        let lengths = [wanted.map_or(0, |wanted| wanted + 4), self.packed.len()];
        let fits = |length: &usize| {
            (4..=self.packed.len()).contains(length) && is_sealed(&self.packed[..*length])
        };
        match lengths.into_iter().find(fits) {
            Some(length) => Ok(&self.packed[..length - 4]),
            None => Err(invalid("its checksum is wrong")),
        }
    }

    /// Decompresses into a buffer that is one byte longer than any chunk, so that the decoder always
    /// reaches the end of the stream and verifies its checksum.
    fn inflate(&mut self, chunk_bytes: u32) -> io::Result<&[u8]> {
        self.plain.resize(chunk_bytes as usize + 1, 0);
        self.inflate.reset(true);
        let ended = self.inflate.decompress(&self.packed, &mut self.plain, FlushDecompress::Finish);
        match ended {
            Ok(Status::StreamEnd) => {}
            Ok(_) => return Err(invalid("it is compressed, and too short or too long")),
            Err(error) => return Err(invalid(format!("it cannot be decompressed: {error}"))),
        }
        match self.inflate.total_out() as usize {
            length if length <= chunk_bytes as usize => Ok(&self.plain[..length]),
            _ => Err(invalid("it is longer than a chunk")),
        }
    }
}
