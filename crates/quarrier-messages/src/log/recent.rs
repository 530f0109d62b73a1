//! Keeps the stored bytes of the latest small batches, so that those who wait for them need not read the disk.
//!
//! A reader of a batch that was just synced would wait for the disk, which is already busy with the next sync.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

use super::batch::Sealed;
use super::entry::Place;

/// Maximum bytes of a batch to keep. Loads write larger ones, and reading one of these takes longer than the
/// wait for the disk.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// Maximum bytes of all batches.
const BYTES_MAX: usize = 8 << 20;

/// The latest small batches that are on the disk.
#[derive(Default)]
pub(crate) struct Recent {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// In the order of the log.
    batches: VecDeque<RecentBatch>,
    bytes: usize,
}

struct RecentBatch {
    /// The segment, and the place of the header in it.
    place: (u64, u64),
    checksum: u64,
    /// The messages as stored.
    stored: Arc<Vec<u8>>,
}

impl Recent {
    /// Takes the messages of a batch that is on the disk. Calls must come in the order of marks.
    pub(super) fn put(&self, sealed: &mut Sealed) {
        if sealed.payload.is_empty() || sealed.payload.len() > BATCH_BYTES_MAX {
            return;
        }
        let mut stored = std::mem::take(&mut sealed.payload);
        if stored.capacity() > 2 * stored.len() {
            stored.shrink_to_fit();
        }
        let mut held = lock(&self.held);
        held.bytes += stored.capacity();
        let (place, checksum) = (sealed.place, sealed.header.checksum);
        held.batches.push_back(RecentBatch { place, checksum, stored: Arc::new(stored) });
        while held.bytes > BYTES_MAX {
            let Some(first) = held.batches.pop_front() else { break };
            held.bytes -= first.stored.capacity();
        }
    }

    /// Returns the messages at this place as stored, if they are still there.
    pub(crate) fn stored(&self, wanted: &Place) -> Option<Arc<Vec<u8>>> {
        let place = (wanted.segment, wanted.header_offset());
        let held = lock(&self.held);
        let at = held.batches.partition_point(|batch| batch.place < place);
        let batch = held.batches.get(at).filter(|batch| batch.place == place)?;
        let is_same =
            batch.checksum == wanted.checksum && batch.stored.len() == wanted.bytes as usize;
        is_same.then(|| Arc::clone(&batch.stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::disk::FaultyDisk;
    use crate::log::{Batch, Encoding, Opener, Publication};

    fn batch(bytes: usize) -> Batch {
        Batch::new(1, Encoding::Json, 1, vec![b' '; bytes]).unwrap()
    }

    /// The memory is bounded, and the latest batches are kept whatever else they have.
    #[test]
    fn the_latest_small_batches_are_kept_within_a_bound() {
        let opener = Opener::new().noting_places();
        let log = opener.open_on(Arc::new(FaultyDisk::new(1)), |_| {}).unwrap();
        let publication = Publication { publisher: 7, sequence: 3, source_offset: 9 };
        log.append(batch(BATCH_BYTES_MAX)).unwrap();
        log.append(batch(BATCH_BYTES_MAX + 1)).unwrap();
        log.append(batch(5).published(publication)).unwrap();
        log.append(batch(40_000).compressed(1).unwrap()).unwrap();
        let recent = log.recent();
        let found = |places: &[Place]| -> Vec<Option<usize>> {
            places.iter().map(|place| recent.stored(place).map(|it| it.len())).collect()
        };
        let places: Vec<Place> = log.take_placed().iter().map(|it| it.place()).collect();
        let packed = places[3].bytes as usize;
        assert!(packed < 40_000);
        assert_eq!(found(&places), [Some(BATCH_BYTES_MAX), None, Some(5), Some(packed)]);
        let other = Place { checksum: places[2].checksum ^ 1, ..places[2] };
        assert_eq!(found(&[other]), [None]);
        for _ in 0..BYTES_MAX / BATCH_BYTES_MAX {
            log.append(batch(BATCH_BYTES_MAX)).unwrap();
        }
        let later: Vec<Place> = log.take_placed().iter().map(|it| it.place()).collect();
        assert_eq!(found(&places[..1]), [None]);
        assert!(found(&later).iter().all(Option::is_some));
        assert!(lock(&recent.held).bytes <= BYTES_MAX);
    }
}
