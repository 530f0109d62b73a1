//! The caller's room for ranges.

use crate::error::Failure;
use crate::input::{items_mut, put};
use crate::span::Span;

/// Room of the caller's for ranges. It takes as many as fit and counts all.
pub(crate) struct Room<'r> {
    spans: &'r mut [Span],
    count: usize,
}

impl Room<'_> {
    /// # Safety
    /// The pointer is NULL, or valid for `capacity` ranges that nobody else uses for `'r`.
    pub(crate) unsafe fn new<'r>(spans: *mut Span, capacity: usize) -> Result<Room<'r>, Failure> {
        // SAFETY: the caller promises `capacity` ranges that nobody else uses for `'r`.
        Ok(Room { spans: unsafe { items_mut(spans, capacity, "spans") }?, count: 0 })
    }

    #[inline]
    pub(crate) fn push(&mut self, span: quarrier_sparse::Span) {
        if let Some(place) = self.spans.get_mut(self.count) {
            *place = span.into();
        }
        self.count += 1;
    }

    /// Stores the number of ranges, including those that did not fit.
    ///
    /// # Safety
    /// The pointer is NULL or writable.
    pub(crate) unsafe fn tell(self, count: *mut usize) -> Result<(), Failure> {
        // SAFETY: the caller promises that it is NULL or writable.
        unsafe { put(count, self.count) };
        Ok(())
    }
}
