//! Carve: recovers files from raw bytes, into a folder or as rows only.
//!
//! ```text
//!  Carve ──start(place)──→ Carving ──run(watch)──→ Carved: the summary, skipped ranges
//!            folder, ground            └──→ rows in the order of the source, stride by stride
//! ```

mod annotation;
mod attempt;
mod ground;
mod keeper;
mod running;
mod several;
mod signatures;
mod skimmed;
mod target;
mod verify;

pub use annotation::read_known;
pub use attempt::{adopt, create_folder};
pub use ground::Free;
pub use running::{Begin, Carved, Carving, reported};
pub use several::Several;
pub use signatures::Signatures;
pub use skimmed::describe_skimmed;
pub(crate) use skimmed::to_json as skimmed_to_json;
pub use verify::{Verification, verify};

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quarrier_carve::Status;
use quarrier_carve::folder::Row;
use quarrier_files::{HashKinds, KnownHashes};
use sha2::{Digest, Sha256};

use crate::case::Notes;

/// A request to carve a source into a folder.
///
/// ```
/// use quarrier::{Carve, Machine, Place};
/// use quarrier::carve::Begin;
/// use quarrier_core::source::Memory;
///
/// let image = Memory::new("image", vec![0; 4096]);
/// let carve = Carve::new();
/// let machine = Machine::unknown();
/// let stop = false.into();
/// let Begin::Carving(carving) = carve.start(Place::Local(&image), &machine, &stop)? else {
///     unreachable!("only a folder can be finished already")
/// };
/// let carved = carving.run(&())?;
/// assert_eq!(carved.summary.files, [0, 0, 0]);
/// # Ok::<(), quarrier::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Carve {
    folder: Option<PathBuf>,
    /// The subfolder in the folder of several sources.
    part: Option<String>,
    resume: bool,
    types: Option<Vec<String>>,
    signatures: Option<Signatures>,
    keeps_broken: bool,
    statuses: Option<Vec<Status>>,
    is_digested: bool,
    file_bytes_max: Option<u64>,
    range: Range<u64>,
    embedded: bool,
    unallocated: bool,
    thorough: bool,
    locates: bool,
    known: Option<Arc<KnownHashes>>,
    skips_known: bool,
    hashes: HashKinds,
    notes: Notes,
    workers: usize,
    memory_bytes_max: u64,
}

/// Receives files as they are carved, from several threads.
pub trait Watch: Sync {
    /// Receives the files carved since the last call, in the order of the source; everything before
    /// `done_until` is done. A call without files reports progress only.
    ///
    /// # Errors
    /// An error ends the run with [`Error::Write`](crate::Error::Write).
    fn files(&self, rows: Vec<Row>, done_until: Option<u64>) -> io::Result<()>;
}

/// Ignores all files.
impl Watch for () {
    fn files(&self, _: Vec<Row>, _: Option<u64>) -> io::Result<()> {
        Ok(())
    }
}

impl Default for Carve {
    fn default() -> Self {
        Carve {
            folder: None,
            part: None,
            resume: false,
            types: None,
            signatures: None,
            keeps_broken: true,
            statuses: None,
            is_digested: true,
            file_bytes_max: None,
            range: 0..u64::MAX,
            embedded: false,
            unallocated: false,
            thorough: false,
            locates: false,
            known: None,
            skips_known: false,
            hashes: HashKinds::default(),
            notes: Notes::default(),
            workers: 0,
            memory_bytes_max: 1 << 30,
        }
    }
}

impl Carve {
    /// Creates a request for all files of all types, broken ones too, as rows only.
    pub fn new() -> Self {
        Carve::default()
    }

    /// Writes files into this folder, which must be new or empty; `None` writes nothing.
    pub fn folder(mut self, folder: Option<PathBuf>) -> Self {
        self.folder = folder;
        self
    }

    /// The folder for files, if there is one.
    #[must_use]
    pub fn output_folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Whether the request continues an earlier run.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.resume
    }

    /// The subfolder of this source, if the request is [one of several](Several::request).
    #[must_use]
    pub fn part_name(&self) -> Option<&str> {
        self.part.as_deref()
    }

    /// Resumes the earlier run that the folder holds.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Carves only files of these types, by extension or common name; `None` for all types.
    pub fn types(mut self, types: Option<Vec<String>>) -> Self {
        self.types = types.map(|types| types.into_iter().map(usual_name).collect());
        self
    }

    /// Adds the user's signatures to the built-in ones.
    pub fn signatures(mut self, signatures: Option<Signatures>) -> Self {
        self.signatures = signatures;
        self
    }

    /// Whether to keep files that are not valid.
    pub fn keep_broken(mut self, keep: bool) -> Self {
        self.keeps_broken = keep;
        self
    }

    /// Counts only files of these statuses; `None` for all. Applies to rows only: a folder keeps all
    /// files.
    pub fn statuses(mut self, statuses: Option<Vec<Status>>) -> Self {
        self.statuses = statuses;
        self
    }

    /// Whether rows have the SHA-256 of their files, which costs a read of all their bytes. Applies to
    /// rows only: the report of a folder always has it.
    pub fn digests(mut self, is_digested: bool) -> Self {
        self.is_digested = is_digested;
        self
    }

    /// Limits the size of a file: longer files are cut there and reported as partial.
    pub fn file_bytes_max(mut self, bytes: Option<u64>) -> Self {
        self.file_bytes_max = bytes;
        self
    }

    /// Carves only bytes at these offsets.
    pub fn range(mut self, range: Range<u64>) -> Self {
        self.range = range;
        self
    }

    /// Carves files inside archives, too.
    pub fn embedded(mut self, embedded: bool) -> Self {
        self.embedded = embedded;
        self
    }

    /// Carves only the bytes outside of allocated files; see
    /// [`Unallocated`](crate::files::Unallocated).
    pub fn unallocated(mut self, unallocated: bool) -> Self {
        self.unallocated = unallocated;
        self
    }

    /// Whether to search exhaustively for fragments.
    pub fn thorough(mut self, thorough: bool) -> Self {
        self.thorough = thorough;
        self
    }

    /// Adds to rows the file system entry, possibly deleted, that the first byte belongs to.
    pub fn locate(mut self, locate: bool) -> Self {
        self.locates = locate;
        self
    }

    /// Adds to rows whether the file is in this set.
    pub fn known(mut self, known: Option<KnownHashes>) -> Self {
        self.known = known.map(Arc::new);
        self
    }

    /// Leaves out known files: they are not written, and have no row.
    pub fn skip_known(mut self, skip: bool) -> Self {
        self.skips_known = skip;
        self
    }

    /// Adds hashes, besides SHA-256, to rows and to the case file.
    pub fn hashes(mut self, hashes: HashKinds) -> Self {
        self.hashes = hashes;
        self
    }

    /// Adds notes to the case file in the folder, besides the facts that this crate knows.
    pub fn notes(mut self, notes: Notes) -> Self {
        self.notes = notes;
        self
    }

    /// A hash of the options that affect the rows of a source, among them those in
    /// [`unallocated`](Self::unallocated) and [`statuses`](Self::statuses).
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let statuses = self.statuses.as_ref().map(|statuses| statuses.iter().map(|s| s.name()));
        let options = serde_json::json!({
            "settings": self.settings(&None),
            "unallocated": self.unallocated,
            "statuses": statuses.map(Iterator::collect::<Vec<_>>),
            "digests": self.is_digested,
        });
        Sha256::digest(options.to_string().as_bytes()).into()
    }

    /// The number of threads; 0, the default, means one per CPU.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// The maximum memory for reassembling files, in bytes.
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.memory_bytes_max = bytes;
        self
    }
}

/// Other names of types, besides the extensions of their files.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("bzip2", "bz2"),
    ("gzip", "gz"),
    ("htm", "html"),
    ("jpeg", "jpg"),
    ("mpeg", "mpg"),
    ("tiff", "tif"),
    ("zstd", "zst"),
];

/// The name of a type in this crate, for a common other name.
fn usual_name(name: String) -> String {
    let lower = name.to_ascii_lowercase();
    match OTHER_NAMES.iter().find(|(other, _)| *other == lower) {
        Some((_, usual)) => (*usual).to_string(),
        None => name,
    }
}
