//! RAR archives, of version 4 and 5: a chain of blocks, each with the checksum of its header.
//!
//! RARLAB, *technote.txt* of RAR 4 and *RAR 5.0 archive format*. Packed data cannot be read here, and
//! the verdict says so; but the chain passes over them, so that a gap shows at the next header. Stored
//! data are verified.

mod five;
mod four;

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// RAR. The checksum of every header is verified, and that of files that are stored; with others the
/// archive was not read in part.
pub struct Rar;

/// The unread part, and why.
const PACKED: &str = "packed files were not read: there is no decoder for them here";
const IN_PARTS: &str = "parts of files that go on in other volumes were not compared";
const NO_CHECKSUM: &str = "data without a checksum that is known here were not compared";

const RAR: Kind = Kind::new("rar");

/// How far the chain leads.
enum Chain {
    /// To the end of the archive; and the unread part, `""` for none.
    End(u64, &'static str),
    /// To something wrong; everything before the first number is of the archive for certain.
    Wrong(u64, u64, &'static str),
    /// Nowhere.
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
