//! Decompresses the pieces of compressed files.

use flate2::{Decompress, FlushDecompress, Status};
use quarrier_core::lzfse;

use crate::entry::Packing;
use crate::lzo;
use crate::part::u32_at;

/// The length field of an LZO segment does not cross a border of these.
const SECTOR_BYTES: usize = 4096;
const LENGTH_BYTES: usize = 4;

/// Decoders, reused from piece to piece.
#[derive(Default)]
pub(crate) struct Unpacker {
    zlib: Option<Decompress>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Unpacker {
    /// Decompresses `packed` into `plain`, which must be zeroed, since a piece may be shorter. False if
    /// the piece is damaged or does not fit.
    pub(crate) fn unpack(&mut self, packing: Packing, packed: &[u8], plain: &mut [u8]) -> bool {
        match (packing, packed) {
            (Packing::ZlibOrPlain, [first, rest @ ..]) if first & 0xF == 0xF => copy(rest, plain),
            (Packing::LzvnOrPlain, [6, rest @ ..]) => fill(rest, plain),
            (Packing::LzvnOrPlain, packed) => lzfse::unpack_lzvn(packed, plain).is_ok(),
            (Packing::LzfseOrPlain, [b'b', ..]) => lzfse::unpack(packed, plain).is_ok(),
            (Packing::LzfseOrPlain, packed) => fill(packed.get(1..).unwrap_or_default(), plain),
            (Packing::Plain, packed) => copy(packed, plain),
            (Packing::Zlib | Packing::ZlibOrPlain, packed) => self.zlib(packed, plain),
            (Packing::Zstd, packed) => self.zstd(packed, plain).unwrap_or(false),
            (Packing::Lzo, packed) => segments(packed, plain).is_some(),
        }
    }

    fn zlib(&mut self, packed: &[u8], plain: &mut [u8]) -> bool {
        let decoder = self.zlib.get_or_insert_with(|| Decompress::new(true));
        decoder.reset(true);
        let done = decoder.decompress(packed, plain, FlushDecompress::Finish);
        // When `plain` is full, the checksum of the stream may still follow.
        match done {
            Ok(Status::StreamEnd) => true,
            Ok(_) => decoder.total_out() == plain.len() as u64,
            Err(_) => false,
        }
    }

    fn zstd(&mut self, packed: &[u8], plain: &mut [u8]) -> Option<bool> {
        // The frame ends somewhere in the last sector.
        let bytes = zstd::zstd_safe::find_frame_compressed_size(packed).ok()?;
        let decoder = match &mut self.zstd {
            Some(decoder) => decoder,
            none => none.insert(zstd::bulk::Decompressor::new().ok()?),
        };
        Some(decoder.decompress_to_buffer(packed.get(..bytes)?, plain).is_ok())
    }
}

/// Decompresses LZO segments; their total length comes first.
fn segments(packed: &[u8], plain: &mut [u8]) -> Option<()> {
    let packed = packed.get(..u32_at(packed, 0) as usize)?;
    let (mut at, mut filled) = (LENGTH_BYTES, 0);
    while at < packed.len() && filled < plain.len() {
        let room = SECTOR_BYTES - at % SECTOR_BYTES;
        if room < LENGTH_BYTES {
            at += room;
        }
        let length = u32_at(packed, at) as usize;
        at += LENGTH_BYTES;
        let segment = packed.get(at..at.checked_add(length)?)?;
        filled += lzo::unpack(segment, &mut plain[filled..])?;
        at += length;
    }
    Some(())
}

/// Copies the start of `bytes`; false if they are too short.
fn fill(bytes: &[u8], plain: &mut [u8]) -> bool {
    bytes.len() >= plain.len() && copy(&bytes[..plain.len()], plain)
}

fn copy(bytes: &[u8], plain: &mut [u8]) -> bool {
    match plain.get_mut(..bytes.len()) {
        Some(room) => room.copy_from_slice(bytes),
        // The piece ends inside its last sector.
        None => plain.copy_from_slice(&bytes[..plain.len()]),
    }
    true
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Packing, Unpacker};

    #[test]
    fn pieces_unpack_or_are_damaged() {
        let plain: Vec<u8> = (0..5000u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&plain).expect("memory takes all");
        let mut zlib = zlib.finish().expect("memory takes all");
        let mut zstd = zstd::bulk::compress(&plain, 3).expect("memory takes all");
        let mut raw = plain.clone();
        raw.insert(0, 0xFF);
        let mut raw_lzvn = plain.clone();
        raw_lzvn.insert(0, 6);
        let mut lzfse = Vec::new();
        lzfse_rust::encode_bytes(&plain, &mut lzfse).expect("memory takes all");
        // The start of the data is short enough for a block of LZVN.
        let short = &plain[..2000];
        let mut lzvn = Vec::new();
        lzfse_rust::encode_bytes(short, &mut lzvn).expect("memory takes all");
        assert_eq!((&lzfse[..4], &lzvn[..4]), (&b"bvx2"[..], &b"bvxn"[..]));
        lzvn.drain(..12);
        for packed in [&mut zlib, &mut zstd] {
            packed.resize(packed.len().next_multiple_of(4096), 0);
        }
        let mut unpacker = Unpacker::default();
        let mut room = vec![0; plain.len()];
        for (packing, packed) in [
            (Packing::Zlib, &zlib),
            (Packing::ZlibOrPlain, &zlib),
            (Packing::ZlibOrPlain, &raw),
            (Packing::LzvnOrPlain, &raw_lzvn),
            (Packing::LzfseOrPlain, &raw),
            (Packing::LzfseOrPlain, &lzfse),
            (Packing::Zstd, &zstd),
            (Packing::Plain, &plain),
        ] {
            room.fill(0);
            assert!(unpacker.unpack(packing, packed, &mut room), "{packing:?}");
            assert_eq!(room, plain, "{packing:?}");
        }
        let mut room = vec![0; short.len()];
        assert!(unpacker.unpack(Packing::LzvnOrPlain, &lzvn, &mut room));
        assert_eq!(room, short);
        let mut room = vec![0; plain.len()];
        for packing in [Packing::LzvnOrPlain, Packing::LzfseOrPlain] {
            assert!(!unpacker.unpack(packing, &[], &mut room), "{packing:?}");
            assert!(!unpacker.unpack(packing, &raw_lzvn[..5000], &mut room), "{packing:?}");
        }
        for (packing, packed) in
            [(Packing::Zlib, &zlib), (Packing::Zstd, &zstd), (Packing::LzfseOrPlain, &lzfse)]
        {
            let mut damaged = packed.clone();
            damaged[2..60].fill(0xA5);
            assert!(!unpacker.unpack(packing, &damaged, &mut room), "{packing:?}");
            assert!(!unpacker.unpack(packing, &packed[..100], &mut room), "{packing:?}");
        }
    }
}
