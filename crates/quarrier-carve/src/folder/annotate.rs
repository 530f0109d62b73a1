//! Facts about a file from outside: the file system entry of its bytes, and whether it is known.

use super::Row;
use crate::view::View;

/// Hands the bytes of a file to a function, piece by piece.
pub type Bytes<'b> = dyn FnMut(&mut dyn FnMut(&[u8])) + 'b;

/// Adds to rows what only others know.
pub trait Annotate: Send + Sync {
    /// Fills in [`Row::place`] and [`Row::known`]. `bytes` may be called once, where they are needed.
    fn annotate(&self, row: &mut Row, bytes: &mut Bytes<'_>);
}

/// Adds to the row of a file what `annotate` knows of it.
pub fn annotated(annotate: &dyn Annotate, row: &mut Row, view: &mut View<'_>) {
    let length = row.length;
    annotate.annotate(row, &mut |take| {
        view.each(0..length, |piece| take(piece));
    });
}
