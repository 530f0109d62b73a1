//! The segments of an image: sources, or files of which only a few are open at a time.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use quarrier_core::name;
use quarrier_core::source::{FileSource, Source, read_full_at};
use quarrier_core::sync::lock;

/// Maximum open segments: an image of 2 TB may have 1,400, and a process may open 1,024 files.
const OPEN_FILES_MAX: usize = 64;

pub(crate) enum Parts {
    Sources(Vec<Box<dyn Source>>),
    Files {
        paths: Vec<PathBuf>,
        /// Recently used segments, the newest first.
        open: Mutex<VecDeque<(usize, Arc<FileSource>)>>,
    },
}

impl Parts {
    pub(crate) fn files(paths: Vec<PathBuf>) -> Parts {
        Parts::Files { paths, open: Mutex::new(VecDeque::new()) }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Parts::Sources(sources) => sources.len(),
            Parts::Files { paths, .. } => paths.len(),
        }
    }

    pub(crate) fn name(&self, index: usize) -> String {
        match self {
            Parts::Sources(sources) => sources.get(index).map(|source| source.name().to_string()),
            Parts::Files { paths, .. } => paths.get(index).map(name::of_path),
        }
        .unwrap_or_default()
    }

    /// Opens segment `index`, unless it is still open.
    ///
    /// # Errors
    /// As [`FileSource::open`].
    pub(crate) fn get(&self, index: usize) -> quarrier_core::Result<Held<'_>> {
        match self {
            Parts::Sources(sources) => {
                sources.get(index).map(|source| Held::Source(&**source)).ok_or_else(|| none(index))
            }
            Parts::Files { paths, open } => {
                let path = paths.get(index).ok_or_else(|| none(index))?;
                let mut open = lock(open);
                let at = open.iter().position(|(held, _)| *held == index);
                let file = match at.and_then(|at| open.remove(at)) {
                    Some((_, file)) => file,
                    None => Arc::new(FileSource::open(path)?),
                };
                open.truncate(OPEN_FILES_MAX - 1);
                open.push_front((index, Arc::clone(&file)));
                Ok(Held::File(file))
            }
        }
    }
}

/// A segment that stays open while this exists.
pub(crate) enum Held<'a> {
    Source(&'a dyn Source),
    File(Arc<FileSource>),
}

impl Held<'_> {
    pub(crate) fn length(&self) -> u64 {
        self.source().length()
    }

    /// Fills `buffer` from `offset` of the segment.
    ///
    /// # Errors
    /// Those of the segment, and `UnexpectedEof` if the segment ends early.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if read_full_at(self.source(), offset, buffer)? == buffer.len() {
            return Ok(());
        }
        let why = format!("it ends before byte {}", offset.saturating_add(buffer.len() as u64));
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, why))
    }

    fn source(&self) -> &dyn Source {
        match self {
            Held::Source(source) => *source,
            Held::File(file) => &**file,
        }
    }
}

fn none(index: usize) -> quarrier_core::Error {
    quarrier_core::Error::BadPlan(format!("there is no segment {}", index + 1))
}
