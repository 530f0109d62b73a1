//! The files in a source, as scopes: those of its file systems, and carved ones.

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;
use quarrier_files::{Entry, Error as FilesError, Extent, Kind, Reach, State, Systems, find};
use quarrier_rules::{Hits, ScopeName};
use quarrier_search::Finding;

use super::outcome::ScopeKind;
use crate::{Error, Result};

/// Maximum number of files of a source.
pub(super) const FILES_MAX: usize = 2_000_000;
/// Maximum number of extents, over all files.
pub(super) const RUNS_MAX: usize = 1 << 24;

/// A file.
#[derive(Debug)]
pub(super) struct File {
    /// The path; `#N` of the partition precedes it if there are several file systems.
    pub(super) path: String,
    pub(super) entry: Entry,
}

/// Files of one type, with the patterns found in them.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) kind: ScopeKind,
    /// Whether the files are scopes, or only candidates for archives.
    pub(super) is_judged: bool,
    pub(super) files: Vec<File>,
    whole: Whole,
    /// The hits of each file; `None` for a file that is searched when it is read.
    pub(super) hits: Vec<Option<Hits>>,
}

impl Group {
    pub(super) fn new(kind: ScopeKind, is_judged: bool, files: Vec<File>) -> Self {
        let whole = if is_judged { Whole::of(&files) } else { Whole::default() };
        let hits = whole.hits(files.len());
        Group { kind, is_judged, files, whole, hits }
    }

    /// Records a pattern found in the source.
    pub(super) fn add(&mut self, finding: &Finding) {
        let end = finding.offset.saturating_add(u64::from(finding.length));
        let file = self.whole.file(finding.offset..end);
        if let Some(Some(hits)) = file.and_then(|file| self.hits.get_mut(file)) {
            hits.add(finding.pattern);
        }
    }

    /// The name of a file's scope.
    pub(super) fn name(&self, file: &File) -> String {
        match self.kind {
            ScopeKind::Deleted => format!("{} (deleted)", file.path),
            _ => file.path.clone(),
        }
    }
}

impl File {
    /// The scope's name as rules can refer to it.
    pub(super) fn scope_name(&self) -> ScopeName {
        ScopeName::of(&self.path)
    }
}

/// The files of the file systems in a source.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) allocated: Vec<File>,
    pub(super) deleted: Vec<File>,
    /// Whether any file system was found.
    pub(super) is_known: bool,
    /// Skipped partitions, a line each.
    pub(super) notices: Vec<String>,
    /// Damage, a line each: files may be missing.
    pub(super) damages: Vec<String>,
}

impl Files {
    /// Lists the files of all file systems, in the order of the file systems; those within `reach`
    /// whose extents are known.
    ///
    /// # Errors
    /// [`Error::Source`] if the source cannot be read; [`Error::Stopped`] soon after `stop` becomes true.
    pub(super) fn list(source: &dyn Source, reach: Reach, stop: &AtomicBool) -> Result<Self> {
        let systems = match find(source) {
            // Most sources have no file system.
            Err(FilesError::FileSystem { .. }) => return Ok(Files::default()),
            systems => systems?,
        };
        let mut all = Files { is_known: true, notices: systems.notices(), ..Files::default() };
        let mut runs = 0;
        for system in &systems.systems {
            let prefix = prefix(&systems, system.partition);
            let mut take = |entry: Entry| {
                if entry.kind != Kind::File || is_gone(&entry) {
                    return Ok(());
                }
                runs += entry.content.runs.len();
                if all.count() >= FILES_MAX || runs > RUNS_MAX {
                    return Err(io::ErrorKind::QuotaExceeded.into());
                }
                let path = format!("{prefix}{}", entry.path);
                let files = match entry.state {
                    State::Allocated => &mut all.allocated,
                    State::Deleted => &mut all.deleted,
                };
                files.push(File { path, entry });
                Ok(())
            };
            match system.list(source, reach, stop, &mut take) {
                Ok(damages) => all.damages.extend(damages.describe()),
                Err(FilesError::Taken(error)) if error.kind() == io::ErrorKind::QuotaExceeded => {
                    all.damages.push(format!(
                        "{}: more than {FILES_MAX} files, or {RUNS_MAX} extents; the others are not evaluated",
                        source.name()
                    ));
                    break;
                }
                Err(FilesError::Taken(_)) => {
                    return Err(Error::Stopped { name: source.name().to_string(), offset: 0 });
                }
                Err(error) => all.damages.push(error.to_string()),
            }
        }
        Ok(all)
    }

    pub(super) fn count(&self) -> usize {
        self.allocated.len() + self.deleted.len()
    }
}

/// Whether only the name of a deleted file remains.
fn is_gone(entry: &Entry) -> bool {
    let content = &entry.content;
    let is_known = content.inline.is_some() || content.runs.iter().any(|run| run.place.is_some());
    entry.state == State::Deleted && (content.lost.is_some() || !is_known)
}

/// The prefix of a file system's paths, if there are several.
fn prefix(systems: &Systems, partition: u32) -> String {
    if systems.are_several() { format!("#{partition}") } else { String::new() }
}

/// Files whose bytes lie verbatim in one extent of the source that no other file shares: a match in that
/// range is a match in the file.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Sorted, disjoint ranges, each with the index of its file.
    spans: Vec<(Range<u64>, u32)>,
}

impl Whole {
    pub(super) fn of(files: &[File]) -> Self {
        let span = |(place, file): (u32, &File)| Some((whole_span(&file.entry)?, place));
        let mut spans: Vec<(Range<u64>, u32)> = (0..).zip(files).filter_map(span).collect();
        spans.sort_unstable_by_key(|(span, _)| (span.start, span.end));
        // Files that share bytes are searched individually.
        let mut shared = vec![false; spans.len()];
        let (mut end, mut last) = (0, 0);
        for place in 0..spans.len() {
            if place > 0 && spans[place].0.start < end {
                (shared[place], shared[last]) = (true, true);
            }
            if spans[place].0.end > end {
                (end, last) = (spans[place].0.end, place);
            }
        }
        let mut places = shared.into_iter();
        spans.retain(|_| !places.next().unwrap_or(false));
        Whole { spans }
    }

    /// The file that contains all of `span`.
    pub(super) fn file(&self, span: Range<u64>) -> Option<usize> {
        let next = self.spans.partition_point(|(of_file, _)| of_file.end <= span.start);
        let (of_file, file) = self.spans.get(next)?;
        (of_file.start <= span.start && span.end <= of_file.end).then_some(*file as usize)
    }

    /// Empty hits for each file in this index, and `None` for the others, which must be searched.
    pub(super) fn hits(&self, files: usize) -> Vec<Option<Hits>> {
        let mut hits: Vec<Option<Hits>> = (0..files).map(|_| None).collect();
        self.spans.iter().for_each(|(_, file)| hits[*file as usize] = Some(Hits::default()));
        hits
    }
}

/// The extents of a file, if all of its bytes lie verbatim in the source.
pub(super) fn plain_extents(entry: &Entry) -> Option<Vec<Extent>> {
    let content = &entry.content;
    let is_plain = content.inline.is_none() && !content.is_packed() && content.lost.is_none();
    let is_written = content.written.is_none_or(|written| written >= entry.size);
    let extents = (is_plain && is_written).then(|| entry.extents())?;
    let bytes = extents.iter().fold(0u64, |sum, extent| sum.saturating_add(extent.length));
    (bytes == entry.size).then_some(extents)
}

/// The range of a file's bytes, if they lie in one piece.
fn whole_span(entry: &Entry) -> Option<Range<u64>> {
    match plain_extents(entry)?[..] {
        [extent] => Some(extent.offset..extent.offset.checked_add(extent.length)?),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use quarrier_files::{Content, Run, Times};

    use super::*;

    pub(in crate::rules) fn file(size: u64, runs: &[(Option<u64>, u64)]) -> File {
        let run = |&(place, length): &(Option<u64>, u64)| Run { place, length };
        let content = Content { runs: runs.iter().map(run).collect(), ..Content::default() };
        let entry = Entry {
            path: "/f".to_string(),
            inode: 0,
            kind: Kind::File,
            state: State::Allocated,
            size,
            times: Times::default(),
            access: Default::default(),
            content,
        };
        File { path: "/f".to_string(), entry }
    }

    #[test]
    fn a_finding_belongs_to_the_file_that_contains_all_of_it() {
        let whole = Whole::of(&[
            file(1000, &[(Some(4096), 1024)]),
            file(2000, &[(Some(8192), 1024), (Some(0), 1024)]),
            file(512, &[(Some(16_384), 512)]),
            file(100, &[(Some(20_000), 100)]),
            file(300, &[(Some(20_050), 300)]),
            file(10, &[(Some(20_300), 10)]),
            file(10, &[(None, 10)]),
        ]);
        assert_eq!(whole.file(4096..4100), Some(0));
        assert_eq!(whole.file(5092..5096), Some(0));
        assert_eq!(whole.file(5093..5097), None, "slack");
        assert_eq!(whole.file(8192..8200), None, "two pieces");
        assert_eq!(whole.file(16_384..16_896), Some(2));
        assert_eq!(whole.file(20_000..20_004), None, "shared");
        assert_eq!(whole.file(20_301..20_302), None, "shared");
        let hits = whole.hits(7);
        let searched: Vec<usize> = (0..7).filter(|file| hits[*file].is_none()).collect();
        assert_eq!(searched, [1, 3, 4, 5, 6]);
    }

    #[test]
    fn deleted_files_are_scopes_as_far_as_their_bytes_are_known() {
        let mut gone = file(10, &[(Some(512), 10)]).entry;
        assert!(!is_gone(&gone));
        gone.state = State::Deleted;
        assert!(!is_gone(&gone));
        gone.content.lost = Some("taken");
        assert!(is_gone(&gone));
        gone.content = Content { inline: Some(vec![1].into()), ..Content::default() };
        assert!(!is_gone(&gone));
        gone.content = file(10, &[(None, 10)]).entry.content;
        assert!(is_gone(&gone), "zeros");
    }
}
