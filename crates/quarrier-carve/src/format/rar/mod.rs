//! RAR archives of versions 4 and 5: a chain of blocks, each with the checksum of its header.
//!
//! RARLAB, *technote.txt* of RAR 4 and *RAR 5.0 archive format*. There is no decoder for compressed
//! data here, and the verdict says so. But the chain of headers skips them, so that a gap shows at
//! the next header. Stored data are verified.

mod five;
mod four;

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// RAR. The validator verifies the checksums of all headers, and those of stored files; of other
/// files it reports that they were not read.
pub struct Rar;

/// The unread part, and why.
const PACKED: &str = "compressed files were not read: no decoder is built in";
const IN_PARTS: &str = "parts of files that continue in other volumes were not compared";
const NO_CHECKSUM: &str = "data without a supported checksum were not compared";

const RAR: Kind = Kind::new("rar");

/// The result of following the chain.
enum Chain {
    /// The end of the archive; and the part that was not read, or `""`.
    End(u64, &'static str),
    /// An error; all bytes before the first number belong to the archive for certain.
    Wrong(u64, u64, &'static str),
    /// No archive.
    Not,
}

impl Format for Rar {
    fn kinds(&self) -> &[Kind] {
        &[RAR]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "52 61 72 21 1A 07", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let chain = match view.array::<8>(0) {
            Some([b'R', b'a', b'r', b'!', 0x1A, 0x07, 0, _]) => four::follow(view),
            Some([b'R', b'a', b'r', b'!', 0x1A, 0x07, 1, 0]) => five::follow(view),
            _ => Chain::Not,
        };
        match chain {
            Chain::End(length, not_read) => Verdict::ended(length, RAR, not_read),
            Chain::Wrong(sure, at, reason) => Verdict::broken(view, RAR, sure, at, reason),
            Chain::Not => Verdict::Not,
        }
    }
}
