//! Decompression of independent blocks, with reusable decoder state.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};

use crate::bytes::u32_le;
use crate::fault::{invalid, room};

/// Decoders, reused from block to block.
#[derive(Default)]
pub(crate) struct Unpacker {
    deflate: Option<Decompress>,
    zlib: Option<Decompress>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    snappy: snap::raw::Decoder,
}

impl Unpacker {
    /// Decompresses raw Deflate into the whole of `block`.
    ///
    /// # Errors
    /// If the data is damaged or too short.
    pub(crate) fn deflate(&mut self, packed: &[u8], block: &mut [u8]) -> io::Result<()> {
        let decoder = self.deflate.get_or_insert_with(|| Decompress::new(false));
        decoder.reset(false);
        // The sector may continue with anything, and some writers omit the last bits of the stream.
        inflate(decoder, packed, block).and_then(|(bytes, _)| is_whole(bytes, block))
    }

    /// Decompresses zlib, with its checksum, into the whole of `block`.
    ///
    /// # Errors
    /// If the data is damaged or has another length.
    pub(crate) fn zlib(&mut self, packed: &[u8], block: &mut [u8]) -> io::Result<()> {
        let decoder = self.zlib.get_or_insert_with(|| Decompress::new(true));
        decoder.reset(true);
        let (bytes, mut has_ended) = inflate(decoder, packed, block)?;
        is_whole(bytes, block)?;
        if !has_ended {
            // The block is full, but the checksum is still unread.
            let rest = packed.get(decoder.total_in() as usize..).unwrap_or_default();
            has_ended = inflate(decoder, rest, &mut [0])? == (0, true);
        }
        match has_ended {
            true => Ok(()),
            false => Err(invalid("it is longer than a block, or its end is missing")),
        }
    }

    /// As [`zlib`](Self::zlib), for data of up to `bytes_max` bytes, of which `block` gets the first
    /// ones.
    ///
    /// # Errors
    /// As [`zlib`](Self::zlib).
    pub(crate) fn zlib_up_to(
        &mut self,
        packed: &[u8],
        block: &mut [u8],
        bytes_max: usize,
    ) -> io::Result<()> {
        if block.len() >= bytes_max {
            return self.zlib(packed, block);
        }
        let mut whole = vec![0; bytes_max + 1];
        let decoder = self.zlib.get_or_insert_with(|| Decompress::new(true));
        decoder.reset(true);
        match inflate(decoder, packed, &mut whole)? {
            (bytes, true) if (block.len()..=bytes_max).contains(&bytes) => {
                block.copy_from_slice(&whole[..block.len()]);
                Ok(())
            }
            _ => Err(invalid("it is too long or too short, or its end is missing")),
        }
    }

    /// Decompresses zlib or bzip2 of unknown length, up to `bytes_max`.
    ///
    /// # Errors
    /// If the data is damaged or longer.
    pub(crate) fn some(
        &mut self,
        packed: &[u8],
        is_bzip2: bool,
        bytes_max: usize,
    ) -> io::Result<Vec<u8>> {
        let mut unpacked = vec![0; bytes_max + 1];
        let bytes = if is_bzip2 {
            let mut decoder = bzip2::Decompress::new(false);
            match decoder.decompress(packed, &mut unpacked) {
                Ok(bzip2::Status::StreamEnd) => decoder.total_out() as usize,
                Ok(_) => return Err(invalid("it is too long, or its end is missing")),
                Err(error) => return Err(invalid(format!("it cannot be decompressed: {error}"))),
            }
        } else {
            let decoder = self.zlib.get_or_insert_with(|| Decompress::new(true));
            decoder.reset(true);
            match inflate(decoder, packed, &mut unpacked)? {
                (bytes, true) => bytes,
                _ => return Err(invalid("it is too long, or its end is missing")),
            }
        };
        if bytes > bytes_max {
            return Err(invalid("it is too long"));
        }
        unpacked.truncate(bytes);
        Ok(unpacked)
    }

    /// Decompresses a bzip2 stream, with its checksum, into the whole of `block`.
    ///
    /// # Errors
    /// If the data is damaged or has another length.
    pub(crate) fn bzip2(&mut self, packed: &[u8], block: &mut [u8]) -> io::Result<()> {
        let mut decoder = bzip2::Decompress::new(false);
        let mut last = [0];
        loop {
            let (used, filled) = (decoder.total_in() as usize, decoder.total_out() as usize);
            let input = packed.get(used..).unwrap_or_default();
            // One byte of room after the block detects data that is too long.
            let out = if filled < block.len() { &mut block[filled..] } else { &mut last[..] };
            let status = decoder.decompress(input, out);
            let status =
                status.map_err(|error| invalid(format!("it cannot be decompressed: {error}")))?;
            let bytes = decoder.total_out() as usize;
            if status == bzip2::Status::StreamEnd {
                return is_whole(bytes, block);
            }
            if bytes > block.len() || (bytes == filled && decoder.total_in() as usize == used) {
                return Err(invalid("it is too long, or its end is missing"));
            }
        }
    }

    /// Decompresses a Snappy block of up to `bytes_max` bytes, of which `block` gets the first ones.
    ///
    /// # Errors
    /// If the data is damaged or has another length.
    pub(crate) fn snappy(
        &mut self,
        packed: &[u8],
        block: &mut [u8],
        bytes_max: usize,
    ) -> io::Result<()> {
        let bytes = snap::raw::decompress_len(packed).map_err(invalid_snappy)?;
        if bytes < block.len() || bytes > bytes_max {
            return Err(invalid(format!("it has {bytes} bytes instead of {}", block.len())));
        }
        into(block, bytes, |block| {
            self.snappy.decompress(packed, block).map_err(invalid_snappy).map(|_| ())
        })
    }

    /// Decompresses an LZ4 block of up to `bytes_max` bytes, of which `block` gets the first ones. Some
    /// writers put the length before the block.
    ///
    /// # Errors
    /// If the data is damaged or has another length.
    pub(crate) fn lz4(
        &mut self,
        packed: &[u8],
        block: &mut [u8],
        bytes_max: usize,
    ) -> io::Result<()> {
        let wanted = block.len();
        into(block, bytes_max, |block| {
            let stated = u32_le(packed, 0) as usize;
            if let Some(rest) = packed.get(4..).filter(|_| stated == wanted || stated == bytes_max)
                && lz4_flex::block::decompress_into(rest, block).is_ok_and(|bytes| bytes == stated)
            {
                return Ok(());
            }
            match lz4_flex::block::decompress_into(packed, block) {
                Ok(bytes) if bytes >= wanted => Ok(()),
                Ok(bytes) => Err(invalid(format!("it has {bytes} bytes instead of {wanted}"))),
                Err(error) => Err(invalid(format!("it cannot be decompressed: {error}"))),
            }
        })
    }

    /// Decompresses a Zstandard frame into the whole of `block`.
    ///
    /// # Errors
    /// If the data is damaged or has another length.
    pub(crate) fn zstd(&mut self, packed: &[u8], block: &mut [u8]) -> io::Result<()> {
        // The frame ends somewhere in the last sector.
        let bytes = zstd::zstd_safe::find_frame_compressed_size(packed)
            .map_err(|_| invalid("it is not a Zstandard frame"))?;
        let decoder = match &mut self.zstd {
            Some(decoder) => decoder,
            none => none.insert(zstd::bulk::Decompressor::new()?),
        };
        let packed = packed.get(..bytes).unwrap_or(packed);
        let unpacked = decoder.decompress_to_buffer(packed, block)?;
        is_whole(unpacked, block)
    }
}

fn invalid_snappy(error: snap::Error) -> io::Error {
    invalid(format!("it cannot be decompressed: {error}"))
}

/// Calls `unpack` with `block`, or with a longer buffer whose beginning is copied to `block`.
fn into(
    block: &mut [u8],
    bytes: usize,
    unpack: impl FnOnce(&mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    if bytes == block.len() {
        return unpack(block);
    }
    let mut whole = room(bytes)?;
    unpack(&mut whole)?;
    block.copy_from_slice(&whole[..block.len()]);
    Ok(())
}

/// Returns the number of bytes written, and whether the stream has ended.
fn inflate(decoder: &mut Decompress, packed: &[u8], block: &mut [u8]) -> io::Result<(usize, bool)> {
    let before = decoder.total_out();
    match decoder.decompress(packed, block, FlushDecompress::Finish) {
        Ok(status) => {
            let bytes = (decoder.total_out() - before) as usize;
            Ok((bytes, status == Status::StreamEnd))
        }
        Err(error) => Err(invalid(format!("it cannot be decompressed: {error}"))),
    }
}

fn is_whole(bytes: usize, block: &[u8]) -> io::Result<()> {
    match bytes == block.len() {
        true => Ok(()),
        false => Err(invalid(format!("it has {bytes} bytes instead of {}", block.len()))),
    }
}
