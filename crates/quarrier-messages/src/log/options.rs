//! Options for writing a log.

/// Sizes of a log. Start from the defaults and change fields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of a segment, a file whose space is allocated before it is written. 256 MiB; from 16 KiB to 64
    /// GiB, rounded to a multiple of 4 KiB.
    pub segment_bytes: u64,
    /// Bytes to gather for one write. 4 MiB; at least 4 KiB.
    pub write_bytes: usize,
    /// Maximum bytes of batches in the queue; senders block while it is full. 64 MiB.
    pub queue_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { segment_bytes: 256 << 20, write_bytes: 4 << 20, queue_bytes: 64 << 20 }
    }
}

impl Options {
    pub(crate) const SEGMENT_BYTES_MAX: u64 = 64 << 30;

    /// Returns the sizes within their limits.
    pub(super) fn rounded(&self) -> Self {
        let segment_bytes = self.segment_bytes.clamp(16 << 10, Self::SEGMENT_BYTES_MAX);
        Options {
            segment_bytes: segment_bytes.next_multiple_of(4096),
            write_bytes: self.write_bytes.clamp(4096, 1 << 30).next_multiple_of(4096),
            queue_bytes: self.queue_bytes,
        }
    }
}
