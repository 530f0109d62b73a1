//! The caller's room for ranges.

use crate::error::Failure;
use crate::input::{items_mut, put};
use crate::span::Span;

/// The caller's room for ranges, which is filled as far as it goes.
pub(crate) struct Room<'r> {
    spans: &'r mut [Span],
    count: usize,
}

impl Room<'_> {
    /// # Safety
    /// The pointer is NULL, or of `capacity` ranges that nobody else uses for `'r`.
    pub(crate) unsafe fn new<'r>(spans: *mut Span, capacity: usize) -> Result<Room<'r>, Failure> {
        // SAFETY: as the caller promises.
        Ok(Room { spans: unsafe { items_mut(spans, capacity, "spans") }?, count: 0 })
    }

    #[inline]
    pub(crate) fn push(&mut self, span: quarrier_sparse::Span) {
        if let Some(place) = self.spans.get_mut(self.count) {
            *place = span.into();
        }
        self.count += 1;
    }

    /// Tells how many there are, also those that had no room.
    ///
    /// # Safety
    /// The pointer is NULL or can be written to.
    pub(crate) unsafe fn tell(self, count: *mut usize) -> Result<(), Failure> {
        // SAFETY: as the caller promises.
        unsafe { put(count, self.count) };
        Ok(())
    }
}
