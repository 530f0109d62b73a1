//! bzip2: blocks of bits, each with its checksum.
//!
//! Where a block ends only shows when it is unpacked, which verifies it, too: some 30 MB/s.

use bzip2::{Decompress, Status};

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// bzip2. Unpacked, which verifies the checksum of every block.
pub struct Bz2;

const BZ2: Kind = Kind::new("bz2");
const INPUT_BYTES: usize = 64 << 10;
const OUTPUT_BYTES: usize = 256 << 10;
/// What a decompressor costs in bytes of fuel: it has some megabytes of tables.
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
        if !is_header(view, 0) {
            return Verdict::Not;
        }
        let mut end = match stream(view, 0) {
            Ok(end) => end,
            Err(at) => return Verdict::broken(view, BZ2, 0, at, "packed data"),
        };
        // What follows and is a stream, too, belongs to it.
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

/// Where the stream that begins at `at` ends, or where it breaks.
fn stream(view: &mut View<'_>, mut at: u64) -> Result<u64, u64> {
    view.spend(SETUP_FUEL);
    let mut decompress = Decompress::new(false);
    let mut output = vec![0; OUTPUT_BYTES];
    loop {
        let bytes = view.run(at, INPUT_BYTES);
        if bytes.is_empty() {
            return Err(at);
        }
        let mut used = 0;
        let mut count = 0;
        while used < bytes.len() {
            let before = (decompress.total_in(), decompress.total_out());
            let status = decompress.decompress(&bytes[used..], &mut output);
            used += (decompress.total_in() - before.0) as usize;
            let more = decompress.total_out() - before.1;
            count += more;
            match status {
                Ok(Status::StreamEnd) => return Ok(at + used as u64),
                Ok(_) if decompress.total_in() == before.0 && more == 0 => {
                    return Err(at + used as u64);
                }
                Ok(_) => {}
                Err(_) => return Err(at + used as u64),
            }
        }
        at += used as u64;
        view.spend(count);
    }
}
