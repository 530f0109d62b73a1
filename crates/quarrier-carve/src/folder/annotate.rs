//! Additional facts about a file: the file system entry of its bytes, other hashes, and whether it
//! is known.

use std::io;

use super::Row;
use crate::view::View;

/// Adds facts to rows that the carver does not know.
pub trait Annotate: Send + Sync {
    /// Whether it needs the bytes of files.
    fn takes_bytes(&self) -> bool;

    /// Begins the annotation of a file.
    fn begin(&self) -> Box<dyn Annotating + '_>;
}

/// The annotation of one file.
pub trait Annotating {
    /// Takes the next bytes of the file, if [`Annotate::takes_bytes`].
    fn update(&mut self, bytes: &[u8]);

    /// Fills in [`Row::place`], [`Row::hashes`] and [`Row::known`]. Call it after the last byte.
    ///
    /// # Errors
    /// If known hashes cannot be looked up.
    fn finish(self: Box<Self>, row: &mut Row) -> io::Result<()>;
}

/// Annotates the row of a file whose bytes have not been read yet.
///
/// # Errors
/// As [`Annotating::finish`].
pub fn annotated(annotate: &dyn Annotate, row: &mut Row, view: &mut View<'_>) -> io::Result<()> {
    let mut annotating = annotate.begin();
    if annotate.takes_bytes() {
        view.each(0..row.length, |piece| annotating.update(piece));
    }
    annotating.finish(row)
}
