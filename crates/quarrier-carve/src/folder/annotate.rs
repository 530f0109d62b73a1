//! Facts about a file from outside: the file system entry of its bytes, other hashes, and whether it is
//! known.

use std::io;

use super::Row;
use crate::view::View;

/// Adds to rows what only others know.
pub trait Annotate: Send + Sync {
    /// Whether it takes the bytes of files.
    fn takes_bytes(&self) -> bool;

    /// Begins with a file.
    fn begin(&self) -> Box<dyn Annotating + '_>;
}

/// A file that is about to get its row.
pub trait Annotating {
    /// Takes the next bytes of the file, if [`Annotate::takes_bytes`].
    fn update(&mut self, bytes: &[u8]);

    /// Fills in [`Row::place`], [`Row::hashes`] and [`Row::known`], after the last byte.
    ///
    /// # Errors
    /// Where known hashes cannot be looked up.
    fn finish(self: Box<Self>, row: &mut Row) -> io::Result<()>;
}

/// Adds to the row of a file whose bytes were not read what `annotate` knows of it.
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
