//! The result of recovery.

use std::sync::Arc;

use super::appender::End;
use super::disk::Disk;
use super::entry::{Cut, Damage, Entry, Event};
use super::error::Result;
use super::publishers::Publishers;
use super::reader::Reader;

/// Maximum number of damages to list; all of them are counted.
pub(crate) const DAMAGES_MAX: usize = 1000;

/// The result of a log's recovery, from the mark at which it began to read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// Number of intact batches.
    pub batches: u64,
    /// Number of their messages.
    pub messages: u64,
    /// Damage to acknowledged data, at most 1,000 entries. Everything around it is intact.
    pub damages: Vec<Damage>,
    /// Number of all damages.
    pub damages_found: u64,
    /// The end of the log, if a crash tore it.
    pub cut: Option<Cut>,
    /// Number of chains without their last batch, which were skipped.
    pub unfinished: u64,
    /// The oldest mark in the log; None if the log has no segments.
    pub oldest_mark: Option<u64>,
    /// The mark of the next message.
    pub next_mark: u64,
}

impl Recovered {
    /// Returns whether acknowledged data cannot be read. Programs report that by exit status 3.
    pub fn is_damaged(&self) -> bool {
        self.damages_found > 0
    }

    /// Counts an event; returns its batch, if any.
    pub(crate) fn note(&mut self, event: Event) -> Option<Entry> {
        match event {
            Event::Batch(entry) => {
                self.batches += 1;
                self.messages += u64::from(entry.messages());
                return Some(entry);
            }
            Event::Damage(damage) => {
                self.damages_found += 1;
                if self.damages.len() < DAMAGES_MAX {
                    self.damages.push(damage);
                }
            }
            Event::Cut(cut) => self.cut = Some(cut),
            Event::Unfinished { .. } => self.unfinished += 1,
        }
        None
    }
}

/// Reads the log from a mark on: passes its batches to `replay`, records their publishers, and returns the
/// end of the log.
pub(super) fn recover(
    disk: &Arc<dyn Disk>,
    from: u64,
    publishers: &mut Publishers,
    replay: &mut dyn FnMut(Entry),
) -> Result<(Recovered, End)> {
    let mut reader = Reader::of(Arc::clone(disk), from)?;
    let mut recovered = Recovered { oldest_mark: reader.oldest_mark(), ..Recovered::default() };
    while let Some(event) = reader.next_event()? {
        if let Some(entry) = recovered.note(event) {
            if let Some(publication) = entry.publication() {
                publishers.note(publication, entry.marks().start);
            }
            replay(entry);
        }
    }
    recovered.next_mark = reader.next_mark();
    let end = End {
        last: reader.last().cloned(),
        next_mark: reader.next_mark(),
        time_us: reader.last_time_us(),
    };
    Ok((recovered, end))
}
