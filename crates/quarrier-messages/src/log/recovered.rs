//! What opening a log found.

use std::sync::Arc;

use super::appender::End;
use super::disk::Disk;
use super::entry::{Cut, Damage, Entry, Event};
use super::error::Result;
use super::publishers::Publishers;
use super::reader::Reader;

/// Damages that are kept; all of them are counted.
pub(crate) const DAMAGES_MAX: usize = 1000;

/// What was found in a log, from the mark on where reading began.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// Batches that are whole.
    pub batches: u64,
    /// Their messages.
    pub messages: u64,
    /// Damage to what was acknowledged, at most 1,000 of them. What lies around it is kept.
    pub damages: Vec<Damage>,
    /// How many there are.
    pub damages_found: u64,
    /// The end of the log, where a crash tore it.
    pub cut: Option<Cut>,
    /// Chains of batches whose last one never came, and which are left out.
    pub unfinished: u64,
    /// The oldest mark that is kept; None in a log without segments.
    pub oldest_mark: Option<u64>,
    /// The mark that the next message gets.
    pub next_mark: u64,
}

impl Recovered {
    /// Whether something that was acknowledged cannot be read: a program says so by its exit status
    /// of 3.
    pub fn is_damaged(&self) -> bool {
        self.damages_found > 0
    }

    /// Counts what was read; the batch, where it is one.
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

/// Reads the whole log from a mark on: hands its batches to `replay`, notes who sent them, and says
/// where it ends.
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
