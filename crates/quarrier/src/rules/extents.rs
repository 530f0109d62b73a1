//! The extents of a scope in the source.

use quarrier_files::Entry;

/// The extents of a scope in the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extents {
    /// Offset in the scope, length, offset in the source.
    runs: Vec<(u64, u64, u64)>,
}

impl Extents {
    /// The extents of a whole source of `length` bytes.
    pub(super) fn whole(length: u64) -> Self {
        Extents { runs: vec![(0, length, 0)] }
    }

    /// The extents of a file's bytes.
    pub(super) fn of(entry: &Entry) -> Self {
        let content = &entry.content;
        let mut runs = Vec::new();
        if content.inline.is_some() || content.is_packed() {
            return Extents { runs };
        }
        let end = content.written.unwrap_or(u64::MAX).min(entry.size);
        let mut at = 0u64;
        for run in &content.runs {
            let length = run.length.min(end.saturating_sub(at));
            if let (Some(place), 1..) = (run.place, length) {
                runs.push((at, length, place));
            }
            at = at.saturating_add(run.length);
        }
        Extents { runs }
    }

    /// The extents of the `length` bytes from `offset` on.
    pub(super) fn part(&self, offset: u64, length: u64) -> Self {
        let end = offset.saturating_add(length);
        let first = self.runs.partition_point(|(start, bytes, _)| start + bytes <= offset);
        let inside = self.runs[first..].iter().take_while(|(start, ..)| *start < end);
        let runs = inside.map(|&(start, bytes, place)| {
            let (from, to) = (start.max(offset), (start + bytes).min(end));
            (from - offset, to - from, place.saturating_add(from - start))
        });
        Extents { runs: runs.collect() }
    }

    /// The offset in the source of the byte at `offset` of the scope; `None` if the source does not
    /// hold it verbatim.
    pub(super) fn at(&self, offset: u64) -> Option<u64> {
        let next = self.runs.partition_point(|(start, _, _)| *start <= offset);
        let (start, length, place) = *self.runs.get(next.checked_sub(1)?)?;
        let within = offset - start;
        (within < length).then(|| place.checked_add(within))?
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::tests::file;
    use super::*;

    #[test]
    fn offsets_of_a_file_are_those_of_its_extents() {
        let file = file(2500, &[(Some(8192), 1024), (None, 1024), (Some(512), 1024)]);
        let extents = Extents::of(&file.entry);
        assert_eq!(extents.at(0), Some(8192));
        assert_eq!(extents.at(1023), Some(9215));
        assert_eq!(extents.at(1024), None);
        assert_eq!(extents.at(2048), Some(512));
        assert_eq!(extents.at(2499), Some(963));
        assert_eq!(extents.at(2500), None, "slack");
        let mut packed = file.entry.clone();
        packed.content.packed_unit = Some(65_536);
        assert_eq!(Extents::of(&packed).at(0), None);
    }

    #[test]
    fn a_part_has_the_places_of_the_whole() {
        let file = file(2500, &[(Some(8192), 1024), (None, 1024), (Some(512), 1024)]);
        let extents = Extents::of(&file.entry);
        for offset in [0, 1, 1023, 1024, 1500, 2047, 2048, 2499, 2500, 4000] {
            for length in [0, 1, 600, 1024, 1025, 2500, u64::MAX] {
                let part = extents.part(offset, length);
                for at in [0, 1, 500, 1023, 1024, 1700, 2499] {
                    let expected = extents.at(offset + at).filter(|_| at < length);
                    assert_eq!(part.at(at), expected, "{at} of {length} from {offset}");
                }
            }
        }
        assert_eq!(Extents::whole(10).part(4, 3).at(2), Some(6));
    }
}
