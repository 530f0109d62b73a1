//! Records the places of batches for an index, which then need not read them again.

use super::batch::{ABANDONED, CONTINUES, Encoding, MORE, Sealed};
use super::entry::Entry;

/// Durable batches that no caller has received yet.
#[derive(Default)]
pub(super) struct Placed {
    /// Whether a caller will request them.
    is_wanted: bool,
    done: Vec<Entry>,
    /// The batches of an unfinished chain.
    chain: Vec<Entry>,
}

impl Placed {
    pub(super) fn new(is_wanted: bool) -> Self {
        Placed { is_wanted, ..Placed::default() }
    }

    /// Records a durable batch. Calls must come in the order of marks.
    pub(super) fn note(&mut self, sealed: &Sealed) {
        if !self.is_wanted {
            return;
        }
        let header = sealed.header;
        if !header.has(CONTINUES) || header.has(ABANDONED) {
            // The chain before this note was abandoned.
            self.chain.clear();
        }
        if header.encoding == Encoding::Note {
            return;
        }
        // An index needs everything except the messages.
        self.chain.push(Entry::new(header, sealed.place, sealed.extension.clone()));
        if !header.has(MORE) {
            self.done.append(&mut self.chain);
        }
    }

    /// Returns the batches since the last call, in order, without their messages.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::log::disk::FaultyDisk;
    use crate::log::{Batch, Encoding, Event, Opener, Publication, Reader};

    fn batch(text: &str) -> Batch {
        Batch::new(1, Encoding::Json, 1, text.as_bytes().to_vec()).unwrap()
    }

    /// The log records what a reader finds: a complete chain, or none of it.
    #[test]
    fn batches_are_noted_where_a_reader_finds_them() {
        let disk = Arc::new(FaultyDisk::new(1));
        let opener = Opener::new().noting_places();
        let log = opener.open_on(Arc::clone(&disk) as _, |_| {}).unwrap();
        log.append(batch("{}\n")).unwrap();
        let mut chain = log.begin().unwrap();
        chain.append(batch("{\"a\":1}\n")).unwrap();
        chain.append(batch("{\"a\":2}\n")).unwrap();
        chain.commit(None).unwrap();
        let mut given_up = log.begin().unwrap();
        given_up.append(batch("{\"b\":1}\n")).unwrap();
        given_up.append(batch("{\"b\":2}\n")).unwrap();
        drop(given_up);
        let publication = Publication { publisher: 7, sequence: 3, source_offset: 9 };
        log.append(batch("{\"c\":1}\n").published(publication)).unwrap();
        let noted = log.take_placed();
        assert!(log.take_placed().is_empty());
        log.close().unwrap();
        let mut reader = Reader::of(disk, 1).unwrap();
        let mut found = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            if let Event::Batch(entry) = event {
                found.push((entry.place(), entry.marks(), entry.publication()));
            }
        }
        let noted = noted.iter().map(|it| (it.place(), it.marks(), it.publication()));
        assert_eq!(noted.collect::<Vec<_>>(), found);
        assert_eq!(found.len(), 4);
    }
}
