//! Files of the most common formats, built from choices; and the same files with wrong lengths,
//! counts, offsets and types under valid checksums.
//!
//! ```text
//!  bytes ─→ choices ─→ build ─→ a valid file, which must be found complete
//!       └─→ changes ─→ build ─→ the same choices, some numbers changed before checksums are made:
//!                               a verdict without contradictions
//! ```

mod deflate;
mod draft;
mod gzip;
mod jpeg;
mod pdf;
mod png;
mod zip;

use arbitrary::{Result, Unstructured};
use quarrier_carve::Format;
use quarrier_carve::format::{gz::Gz, jpg::Jpg, pdf::Pdf, png::Png, zip::Zip};

use crate::carve::{is_whole, judge};
use crate::{Target, Verdict};
use draft::{Change, Draft};

/// JPEG.
pub const JPEG: Target = target("jpeg", |bytes| run(bytes, &Jpg, jpeg::build));
/// PNG.
pub const PNG: Target = target("png", |bytes| run(bytes, &Png, png::build));
/// Zip, and documents that are zip.
pub const ZIP: Target = target("zip", |bytes| run(bytes, &Zip, zip::build));
/// PDF.
pub const PDF: Target = target("pdf", |bytes| run(bytes, &Pdf, pdf::build));
/// Gzip.
pub const GZIP: Target = target("gzip", |bytes| run(bytes, &Gz, gzip::build));

const fn target(name: &'static str, run: fn(&[u8]) -> Verdict) -> Target {
    // Any bytes are choices.
    Target { name, run, once: &[&[]], seeds: &[], words: &[b"\0\0\0\0", b"\xFF\xFF\xFF\xFF"] }
}

/// Writes a file according to choices.
type Build = fn(&mut Unstructured<'_>, &mut Draft) -> Result<()>;

/// Maximum number of changed fields of a file.
const CHANGES_MAX: usize = 3;

fn run(bytes: &[u8], format: &dyn Format, build: Build) -> Verdict {
    let mut u = Unstructured::new(bytes);
    // After the end of the bytes, every further choice is the first one.
    match changes(&mut u).and_then(|changes| check(u, &changes, format, build)) {
        Ok(()) => Verdict::Checked,
        Err(_) => Verdict::Skipped,
    }
}

fn changes(u: &mut Unstructured<'_>) -> Result<Vec<(u16, Change)>> {
    let count = u.int_in_range(1..=CHANGES_MAX)?;
    (0..count).map(|_| Ok((u.arbitrary()?, Change::draw(u)?))).collect()
}

fn check(
    u: Unstructured<'_>,
    changes: &[(u16, Change)],
    format: &dyn Format,
    build: Build,
) -> Result<()> {
    let rest = u.take_rest();
    let mut valid = Draft::default();
    build(&mut Unstructured::new(rest), &mut valid)?;
    let fields = valid.fields();
    assert!(is_whole(format, valid.bytes()), "not whole: {}", valid.bytes().escape_ascii());
    let changes = changes.iter().map(|(field, change)| (usize::from(*field) % fields, *change));
    let mut wrong = Draft::changed(changes.collect());
    build(&mut Unstructured::new(rest), &mut wrong)?;
    judge(format, wrong.bytes());
    // With another file directly after it, and truncated.
    judge(format, &[wrong.bytes(), valid.bytes()].concat());
    judge(format, &wrong.bytes()[..wrong.bytes().len() * 3 / 4]);
    Ok(())
}
