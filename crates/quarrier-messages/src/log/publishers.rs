//! The last publication of each publisher.

use std::collections::HashMap;

use super::batch::Publication;

/// Maximum number of publishers; beyond it, the least recently active ones are forgotten.
const PUBLISHERS_MAX: usize = 1 << 20;

/// The last publication of each publisher: the log drops duplicates by it, and a load resumes there.
///
/// It is rebuilt while the log is read. A reader that starts at a checkpoint must restore it from there.
#[derive(Debug, Clone, Default)]
pub struct Publishers {
    last: HashMap<u64, (Publication, u64)>,
}

impl Publishers {
    /// Returns the last publication of a publisher.
    pub fn last(&self, publisher: u64) -> Option<Publication> {
        self.last.get(&publisher).map(|(publication, _)| *publication)
    }

    /// Returns all last publications, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Publication> + '_ {
        self.last.values().map(|(publication, _)| *publication)
    }

    /// Returns all last publications with the marks of their first messages, in no order.
    pub(crate) fn noted(&self) -> impl Iterator<Item = (Publication, u64)> + '_ {
        self.last.values().copied()
    }

    /// Returns whether the log has this publication already.
    pub fn is_duplicate(&self, publication: &Publication) -> bool {
        self.last(publication.publisher).is_some_and(|last| publication.sequence <= last.sequence)
    }

    /// Records a publication whose first message has this mark.
    pub fn note(&mut self, publication: Publication, mark: u64) {
        self.last.insert(publication.publisher, (publication, mark));
        if self.last.len() > PUBLISHERS_MAX {
            let mut marks: Vec<u64> = self.last.values().map(|(_, mark)| *mark).collect();
            let middle = marks.len() / 2;
            let (_, &mut median, _) = marks.select_nth_unstable(middle);
            self.last.retain(|_, (_, mark)| *mark >= median);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(publisher: u64, sequence: u64) -> Publication {
        Publication { publisher, sequence, source_offset: sequence * 10 }
    }

    #[test]
    fn a_sequence_not_after_the_last_is_a_duplicate() {
        let mut publishers = Publishers::default();
        publishers.note(of(1, 5), 1);
        assert!(publishers.is_duplicate(&of(1, 5)) && publishers.is_duplicate(&of(1, 4)));
        assert!(!publishers.is_duplicate(&of(1, 6)) && !publishers.is_duplicate(&of(2, 1)));
        assert_eq!(publishers.last(1), Some(of(1, 5)));
    }

    #[test]
    fn any_number_of_publishers_takes_bounded_memory() {
        let mut publishers = Publishers::default();
        for publisher in 0..PUBLISHERS_MAX as u64 + 10 {
            publishers.note(of(publisher, 1), publisher + 1);
        }
        assert!(publishers.iter().count() <= PUBLISHERS_MAX);
        assert!(publishers.last(PUBLISHERS_MAX as u64 + 9).is_some());
        assert!(publishers.last(0).is_none());
    }
}
