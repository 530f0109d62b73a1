//! Makes the bytes to send, and compares received ones with them.

use crate::statistics::SplitMix;

/// The period of a stream in bytes. It is not a power of two, so that messages of such a size begin at
/// many places, and a lost or duplicated one is noticed.
const PERIOD_BYTES: usize = 33 * 4096;
/// A hasty check compares this many bytes …
const LOOK_BYTES: usize = 64;
/// … in each block of this size.
const LOOK_EACH_BYTES: usize = 16 << 10;

/// Random bytes that both sides derive from the same seed. They are stored twice in a row, so any part
/// of up to a period is contiguous.
pub(super) struct Payload(Vec<u8>);

impl Payload {
    pub(super) fn new(seed: u64) -> Payload {
        let mut random = SplitMix(seed);
        let mut bytes: Vec<u8> =
            (0..PERIOD_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
        bytes.extend_from_within(..);
        Payload(bytes)
    }

    /// Returns the stream's bytes from `position` on: at least a period, so longer messages are sent in
    /// parts.
    pub(super) fn at(&self, position: u64) -> &[u8] {
        &self.0[(position % PERIOD_BYTES as u64) as usize..]
    }

    /// Whether all of `bytes` are the stream's bytes at `position`.
    pub(super) fn is_at(&self, position: u64, bytes: &[u8]) -> bool {
        let mut position = position;
        bytes.chunks(PERIOD_BYTES).all(|part| {
            let same = self.at(position)[..part.len()] == *part;
            position += part.len() as u64;
            same
        })
    }

    /// Like [`is_at`](Self::is_at), for 64 bytes in each 16 KiB, and the last ones.
    pub(super) fn is_at_hastily(&self, position: u64, bytes: &[u8]) -> bool {
        let last = bytes.len().saturating_sub(LOOK_BYTES);
        (0..bytes.len()).step_by(LOOK_EACH_BYTES).chain([last]).all(|from| {
            let part = &bytes[from..bytes.len().min(from + LOOK_BYTES)];
            self.at(position + from as u64)[..part.len()] == *part
        })
    }
}
