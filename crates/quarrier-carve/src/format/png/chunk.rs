//! Chunks.

use crate::crc32::Crc32;
use crate::view::View;

pub(super) const SIGNATURE_BYTES: u64 = 8;
/// Size of the signature and the first chunk.
pub(super) const FIRST_BYTES: u64 = 33;
/// Size of a chunk without its data: length, name and checksum.
pub(super) const OVERHEAD_BYTES: u64 = 12;

/// A chunk with a readable header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) at: u64,
    pub(super) name: [u8; 4],
    pub(super) data_bytes: u64,
}

/// The place of a fault in a chunk, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: u64,
    pub(super) why: String,
}

impl Chunk {
    /// Reads the header at `at`.
    pub(super) fn read(view: &mut View<'_>, at: u64) -> Result<Chunk, Wrong> {
        let Some([a, b, c, d, name @ ..]) = view.array::<8>(at) else {
            return Err(Wrong { at: view.length(), why: "truncated".to_string() });
        };
        let data_bytes = u32::from_be_bytes([a, b, c, d]).into();
        let is_name = name.iter().all(u8::is_ascii_alphabetic) && name[2].is_ascii_uppercase();
        if !is_name || data_bytes > 0x7FFF_FFFF || (name == *b"IEND" && data_bytes != 0) {
            return Err(Wrong { at, why: "no chunk begins here".to_string() });
        }
        Ok(Chunk { at, name, data_bytes })
    }

    /// Returns the start of the next chunk.
    pub(super) fn end(&self) -> u64 {
        self.at + OVERHEAD_BYTES + self.data_bytes
    }

    /// Verifies the checksum; passes the data to `take`.
    pub(super) fn check(
        &self,
        view: &mut View<'_>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Wrong> {
        let mut crc = Crc32::new();
        crc.update(&self.name);
        let data_at = self.at + 8;
        let crc_at = data_at + self.data_bytes;
        let count = view.each(data_at..crc_at, |piece| {
            crc.update(piece);
            take(piece);
        });
        match view.u32_be(crc_at) {
            Some(stated) if count == self.data_bytes && stated == crc.value() => Ok(()),
            Some(_) if count == self.data_bytes => {
                let name = String::from_utf8_lossy(&self.name);
                Err(Wrong { at: crc_at, why: format!("CRC of {name}") })
            }
            _ => Err(Wrong { at: data_at + count, why: "truncated".to_string() }),
        }
    }
}

/// If a PNG begins here, verifies the first chunk and returns the start of the second.
pub(super) fn after_header(view: &mut View<'_>) -> Option<u64> {
    let chunk = Chunk::read(view, SIGNATURE_BYTES).ok()?;
    let data = view.array::<13>(SIGNATURE_BYTES + 8)?;
    let [w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, compression, filter, interlace] = data;
    let sizes = [u32::from_be_bytes([w0, w1, w2, w3]), u32::from_be_bytes([h0, h1, h2, h3])];
    let is_colour = match colour {
        0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | 4 | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    let is_header = chunk.name == *b"IHDR"
        && chunk.data_bytes == 13
        && sizes.iter().all(|size| (1..=0x7FFF_FFFF).contains(size))
        && is_colour
        && (compression, filter) == (0, 0)
        && interlace < 2;
    (is_header && chunk.check(view, &mut |_| ()).is_ok()).then(|| chunk.end())
}
