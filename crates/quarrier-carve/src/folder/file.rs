//! Copies and hashes the bytes of a file in one pass, without holding all of them in memory.

use std::fs::File;
use std::io::{self, Write};

use quarrier_core::hex;
use sha2::{Digest, Sha256};

use super::{Annotate, Annotating, Row, RowHashes};
use crate::carved::{Carved, Status};
use crate::format::Kind;
use crate::view::View;

/// Number of bytes to hash and write at a time, which stay in the CPU's cache meanwhile.
const PIECE_BYTES: usize = 256 << 10;

/// Returns the path of a file relative to the folder, such as `jpg/00000001a000.jpg`.
pub fn path_of(carved: &Carved) -> String {
    format!("{}/{:012x}.{}", carved.kind, carved.offset(), carved.extension)
}

/// Copies the first `length` bytes of `view` to `out`, and shows them to `annotating`. Returns the
/// number of bytes copied, and their SHA-256 in hexadecimal.
pub(super) fn copy(
    view: &mut View<'_>,
    length: u64,
    mut out: Option<&mut File>,
    mut annotating: Option<&mut Box<dyn Annotating + '_>>,
) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut at = 0;
    while at < length {
        let most = usize::try_from(length - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        let piece = view.run(at, most);
        if piece.is_empty() {
            break;
        }
        hash.update(piece);
        if let Some(annotating) = &mut annotating {
            annotating.update(piece);
        }
        if let Some(out) = &mut out {
            out.write_all(piece)?;
        }
        at += piece.len() as u64;
    }
    Ok((at, hex::encode(&hash.finalize())))
}

/// Makes the row of a file whose bytes were just read through `view`.
pub(super) fn row(
    source_name: &str,
    carved: &Carved,
    view: &View<'_>,
    length: u64,
    sha256: String,
    path: String,
) -> Row {
    let mut row = Row {
        source: source_name.to_string(),
        kind: carved.kind.clone(),
        offset: carved.offset(),
        length,
        extents: crate::view::cut(&carved.extents, length),
        status: carved.status,
        reason: carved.reason.clone(),
        sha256,
        path,
        container: None,
        place: None,
        known: None,
        hashes: RowHashes::default(),
    };
    let lost: u64 = view.unreadable().iter().map(|range| lost_of(carved, range)).sum();
    if lost > 0 && row.status == Status::Valid {
        row.status = Status::Partial;
        row.reason = format!("{lost} of its bytes could not be read and are zeros");
    }
    row
}

/// Returns the number of bytes of `range` that belong to the file.
fn lost_of(carved: &Carved, range: &std::ops::Range<u64>) -> u64 {
    let within = |extent: &crate::view::Extent| {
        extent.end().min(range.end).saturating_sub(extent.offset.max(range.start))
    };
    carved.extents.iter().map(within).sum()
}

/// Makes the row that a file would have if it were written.
///
/// # Errors
/// Currently none; the errors are those of [`Folder::write`](super::Folder::write).
pub fn described(source_name: &str, carved: &Carved, view: &mut View<'_>) -> io::Result<Row> {
    described_with(source_name, carved, view, None)
}

/// As [`described`], with the annotations of `annotate`.
///
/// # Errors
/// As [`Annotating::finish`].
pub fn described_with(
    source_name: &str,
    carved: &Carved,
    view: &mut View<'_>,
    annotate: Option<&dyn Annotate>,
) -> io::Result<Row> {
    let mut annotating = annotate.map(|annotate| annotate.begin());
    let (length, sha256) = copy(view, carved.length(), None, annotating.as_mut())?;
    let mut row = row(source_name, carved, view, length, sha256, path_of(carved));
    if let Some(annotating) = annotating {
        annotating.finish(&mut row)?;
    }
    Ok(row)
}

/// Makes the row of a file inside the archive `outer`: the `number`th there, from 1, of type
/// `kind`. `way` is its [`Member::path`](crate::embedded::Member::path).
pub fn described_inside(
    source_name: &str,
    outer: &Carved,
    number: u64,
    kind: Kind,
    way: &str,
    bytes: &[u8],
) -> Row {
    let offset = outer.offset();
    let names = way.split_once('!').map_or("", |(_, names)| names);
    Row {
        source: source_name.to_string(),
        kind: kind.name.to_string(),
        offset,
        length: bytes.len() as u64,
        extents: Vec::new(),
        status: Status::Valid,
        reason: String::new(),
        sha256: fingerprint(bytes),
        path: format!("{}/{offset:012x}-{number}.{}", kind.name, kind.extension),
        container: Some(format!("{}@{offset:#x}!{names}", outer.kind)),
        place: None,
        known: None,
        hashes: RowHashes::default(),
    }
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn fingerprint(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}
