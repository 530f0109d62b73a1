//! bzip2: blocks of bits, each with its checksum.
//!
//! Only decompression finds the end of a block, and verifies it, at some 30 MB/s.

use bzip2::{Decompress, Status};

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// bzip2. The validator unpacks the file, which verifies the checksum of every block.
pub struct Bz2;

const BZ2: Kind = Kind::new("bz2");
const INPUT_BYTES: usize = 64 << 10;
const OUTPUT_BYTES: usize = 256 << 10;
/// The cost of a decompressor in bytes of fuel: it has megabytes of tables.
const SETUP_FUEL: u64 = 16 << 10;
const MAGIC: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];

impl Format for Bz2 {
    fn kinds(&self) -> &[Kind] {
        &[BZ2]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "42 5A 68 3? 31 41 59 26 53 59", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        if !is_header(view, 0) || !may_be_block(view, 4) {
            return Verdict::Not;
        }
        let mut end = match stream(view, 0) {
            Ok(end) => end,
            Err(at) => return Verdict::broken(view, BZ2, 0, at, "packed data"),
        };
        // A stream that follows directly belongs to the file.
        while is_header(view, end) {
            let Ok(next) = stream(view, end) else { break };
            end = next;
        }
        Verdict::Whole { length: end, kind: BZ2 }
    }
}

fn is_header(view: &mut View<'_>, at: u64) -> bool {
    view.array::<10>(at).is_some_and(|bytes| {
        bytes[..3] == *b"BZh" && (b'1'..=b'9').contains(&bytes[3]) && bytes[4..] == MAGIC
    })
}

/// Returns whether a block may begin at `at`, by its header: the sorted text starts within the
/// block, and some byte values are used. A decompressor would take a thousand times as long to find
/// out.
fn may_be_block(view: &mut View<'_>, at: u64) -> bool {
    let Some(level) = view.byte(at - 1) else { return false };
    let Some(header) = view.array::<16>(at) else { return !view.is_starved() };
    // After the magic number and the checksum: 1 bit, 24 bits, 16 bits.
    let bits = u64::from_be_bytes([
        0, 0, header[10], header[11], header[12], header[13], header[14], header[15],
    ]);
    let (origin, used) = (bits >> 23 & 0xFF_FFFF, bits >> 7 & 0xFFFF);
    origin < u64::from(level - b'0') * 100_000 && used != 0
}

/// Returns the end of the stream that begins at `at`, or the place where it breaks.
fn stream(view: &mut View<'_>, mut at: u64) -> Result<u64, u64> {
    view.spend(SETUP_FUEL);
    let mut decompress = Decompress::new(false);
    let mut output = vec![0; OUTPUT_BYTES];
    loop {
        let bytes = view.run(at, INPUT_BYTES);
        if bytes.is_empty() {
            return Err(at);
        }
        let given = bytes.len();
        let (mut used, mut count) = (0, 0);
        let mut is_wrong = false;
        while used < bytes.len() {
            let before = (decompress.total_in(), decompress.total_out());
            let status = decompress.decompress(&bytes[used..], &mut output);
            used += (decompress.total_in() - before.0) as usize;
            let more = decompress.total_out() - before.1;
            count += more;
            match status {
                Ok(Status::StreamEnd) => return Ok(at + used as u64),
                Ok(_) if decompress.total_in() == before.0 && more == 0 => is_wrong = true,
                Ok(_) => {}
                Err(_) => is_wrong = true,
            }
            if is_wrong {
                // The bytes after the fault were not read.
                view.refund((given - used) as u64);
                return Err(at + used as u64);
            }
        }
        at += used as u64;
        view.spend(count);
    }
}
