//! Memory that others may write to while it is read: pages of a file that another process writes,
//! an array of another thread.
//!
//! `&[u8]` promises that its bytes stay the same. Code relies on that implicitly: text that was checked
//! once is a `str` from then on, a length that was compared is in bounds. So such memory is handed out
//! as [`ChangingBytes`], which can only be copied. Code that reads the bytes in place promises, by
//! [`AsData`], to rely on none of them.
//!
//! Strictly, Rust gives no meaning to a `&[u8]` whose bytes change. This relies on how compilers
//! behave: each load yields some value of a byte, and code that is correct for every value of every
//! load stays correct. Copies are made of such loads, too.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// A promise to treat bytes that others may change as data only.
#[derive(Debug, Clone, Copy)]
pub struct AsData(());

impl AsData {
    /// Promises to treat bytes as data only, and to pass them only to code that does.
    ///
    /// # Safety
    /// For all bytes that this value shows:
    /// 1. no `str` refers to them, checked or not: code copies text before it validates it;
    /// 2. no `unsafe` code relies on two loads of a byte giving the same value;
    /// 3. no code receives them that may do either.
    pub unsafe fn promised() -> Self {
        AsData(())
    }
}

/// Bytes that others may change while they are read.
#[derive(Debug, Clone, Copy)]
pub struct ChangingBytes<'a> {
    base: *const u8,
    length: usize,
    owner: PhantomData<&'a [u8]>,
}

// SAFETY: the bytes are not tied to a thread. Writes by others are what this type allows for.
unsafe impl Send for ChangingBytes<'_> {}
// SAFETY: a shared reference only copies bytes out, or shows them to code that promised to tolerate
// changes.
unsafe impl Sync for ChangingBytes<'_> {}

impl<'a> ChangingBytes<'a> {
    /// Makes a view of the `length` bytes at `base`.
    ///
    /// # Safety
    /// The bytes lie within one allocation or mapping and are readable as long as `'a` lasts. They
    /// may change.
    pub unsafe fn new(base: *const u8, length: usize) -> Self {
        // An empty slice may have a null address.
        let base = if length == 0 { NonNull::dangling().as_ptr() } else { base };
        ChangingBytes { base, length, owner: PhantomData }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns a part of the bytes; `None` if `range` is out of bounds.
    pub fn get(self, range: Range<usize>) -> Option<Self> {
        let is_within = range.start <= range.end && range.end <= self.length;
        // SAFETY: `start <= end <= length`, so the part lies within the bytes, for which the caller
        // of `new` vouched for `'a`.
        is_within.then(|| unsafe { Self::new(self.base.add(range.start), range.len()) })
    }

    /// Copies bytes from `offset` on into `target`, until either ends; returns their number.
    pub fn copy_to(self, offset: usize, target: &mut [u8]) -> usize {
        let offset = offset.min(self.length);
        let count = target.len().min(self.length - offset);
        // SAFETY: `offset + count <= length`, so the source is readable. `target` is valid for
        // writing `count` bytes, and as an exclusive reference it overlaps no memory that others
        // access.
        unsafe { self.base.add(offset).copy_to_nonoverlapping(target.as_mut_ptr(), count) };
        count
    }

    /// Returns the bytes in place.
    pub fn as_data(self, _: AsData) -> &'a [u8] {
        // SAFETY: the caller of `new` vouched that the bytes are readable for `'a`, and `base` is
        // not null, since `new` replaces it for an empty slice. They may change: the caller of
        // `AsData::promised` vouched that the readers tolerate it, with the reservation in the
        // module's comment.
        unsafe { std::slice::from_raw_parts(self.base, self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::ChangingBytes;

    #[test]
    fn parts_and_copies_stay_within_the_bytes() {
        let text = b"changing";
        // SAFETY: `text` is a live slice of this length, and outlives the value.
        let bytes = unsafe { ChangingBytes::new(text.as_ptr(), text.len()) };
        let mut copy = [0; 5];
        assert_eq!((bytes.copy_to(0, &mut copy), &copy), (5, b"chang"));
        assert_eq!((bytes.copy_to(6, &mut copy), &copy), (2, b"ngang"));
        assert_eq!((bytes.copy_to(9, &mut copy), bytes.copy_to(usize::MAX, &mut copy)), (0, 0));
        let part = bytes.get(2..5).unwrap_or(bytes);
        assert_eq!((part.len(), part.copy_to(1, &mut copy), &copy[..2]), (3, 2, &b"ng"[..]));
        assert!(bytes.get(3..9).is_none() && bytes.get(9..9).is_none());
        assert!(bytes.get(8..8).is_some_and(|none| none.is_empty()));
    }
}
