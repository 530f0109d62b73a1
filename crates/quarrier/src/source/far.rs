//! Images in remote objects: fetches bytes when they are read.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quarrier_core::source::{Source, SplitSource};
use quarrier_core::sync::lock;
use quarrier_images::{Content, Kind, ScratchFolder, Siblings};
use quarrier_messages::Format;
use quarrier_remote::{Counters, Error as RemoteError, Remote, RemoteSource, redacted};

use super::index::IndexFile;
use super::opener::Packed;
use super::partition::PartitionSource;
use super::url::{beside, last_of_url};
use super::{Announced, Opened};
use crate::{Environment, Result};

/// An image, a partition, or the messages of a log, whose bytes are in remote objects.
pub struct FarImage {
    source: Arc<dyn Source>,
    /// The remote objects that the image reads.
    objects: Vec<RemoteSource>,
    /// The client that makes their requests.
    _remote: Arc<Remote>,
    /// What is known of its messages, if it is a log.
    messages: Option<FarMessages>,
}

/// What is known of the messages of a log.
pub(super) struct FarMessages {
    /// `None` without messages.
    pub(super) format: Option<Format>,
    /// Damaged places, a line each.
    pub(super) damages: Vec<String>,
}

impl FarImage {
    /// Makes the messages of a log, in some objects.
    pub(super) fn of_messages(
        source: Box<dyn Source>,
        objects: Vec<RemoteSource>,
        remote: &Arc<Remote>,
        messages: FarMessages,
    ) -> FarImage {
        let (source, _remote) = (Arc::from(source), Arc::clone(remote));
        FarImage { source, objects, _remote, messages: Some(messages) }
    }

    /// The format of its messages, if it is a log.
    pub(super) fn format(&self) -> Option<&Format> {
        self.messages.as_ref()?.format.as_ref()
    }

    /// Damaged places of a log, a line each.
    pub(super) fn damages(&self) -> &[String] {
        self.messages.as_ref().map_or(&[], |messages| &messages.damages)
    }

    /// The cost of all reads so far, over all objects.
    pub(crate) fn counters(&self) -> Counters {
        let mut all = Counters::default();
        for object in &self.objects {
            let one = object.counters();
            all.requests += one.requests;
            all.bytes_fetched += one.bytes_fetched;
            all.bytes_asked += one.bytes_asked;
            all.bytes_from_disk += one.bytes_from_disk;
            all.retries += one.retries;
        }
        all
    }

    /// The remote objects that the image reads.
    pub(super) fn objects(&self) -> &[RemoteSource] {
        &self.objects
    }

    /// Narrows the image to the partition of this number.
    ///
    /// # Errors
    /// Those of [`PartitionSource::open`].
    pub(super) fn partition(self, number: u32) -> Result<FarImage> {
        let source = Arc::new(PartitionSource::open(self.source, number)?);
        Ok(FarImage { source, ..self })
    }

    /// Wraps a single object unchanged.
    pub(super) fn plain(object: RemoteSource, remote: &Arc<Remote>) -> FarImage {
        let source: Arc<dyn Source> = Arc::new(object.clone());
        FarImage { source, objects: vec![object], _remote: Arc::clone(remote), messages: None }
    }
}

/// Opens the object at a URL according to its content. Gives up soon after `stop` becomes true.
///
/// # Errors
/// Why the object cannot be opened.
pub fn open_url(
    remote: &Arc<Remote>,
    url: &str,
    environment: &Environment,
    stop: &Arc<AtomicBool>,
) -> Result<Opened> {
    let scratch = ScratchFolder::new(environment.temporary_folder(), stop);
    let how = Unwrapping { kinds_left: &[], cache: None, scratch, packed: Packed::Unpacked };
    open_with(remote, url, &how, stop)
}

/// How to open an image.
pub(super) struct Unwrapping<'u> {
    /// Formats that are not unwrapped.
    pub(super) kinds_left: &'u [Kind],
    /// The folder for indexes of compressed images.
    pub(super) cache: Option<&'u Path>,
    pub(super) scratch: ScratchFolder,
    pub(super) packed: Packed,
}

/// Like [`open_url`], in another way.
pub(super) fn open_with(
    remote: &Arc<Remote>,
    url: &str,
    how: &Unwrapping<'_>,
    stop: &AtomicBool,
) -> Result<Opened> {
    let Parts { file, mut objects, notice } = Parts::open(remote, url, stop)?;
    if is_of_another_format(url)
        || Kind::of(&*file, true).is_none_or(|kind| how.kinds_left.contains(&kind))
    {
        return Ok(match (objects.len(), objects.pop()) {
            (1, Some(object)) => Opened::Remote(object),
            (_, last) => {
                objects.extend(last);
                let _remote = Arc::clone(remote);
                let image = FarImage { source: file, objects, _remote, messages: None };
                Opened::FarImage { image, notice }
            }
        });
    }
    // An index is of one object.
    let index = match &objects[..] {
        [object] => IndexFile::of_object(how.cache, object),
        _ => None,
    };
    let scratch = &how.scratch;
    let beside = UrlSiblings { remote, url, stop, index, scratch, opened: Mutex::new(objects) };
    let image = quarrier_images::open(file, &beside, how.kinds_left, stop)?;
    let objects = quarrier_core::sync::into_inner(beside.opened);
    let _remote = Arc::clone(remote);
    let (source, of_image) = match (image.content, how.packed) {
        (Content::Disk(source), _) => (source, image.notice),
        (Content::Stream(sequential), Packed::Unpacked) => sequential.unpacked(scratch)?,
        (Content::Stream(sequential), Packed::InOrder) => {
            let reader = Box::new(FarStream { reader: sequential.reader()?, _remote });
            return Ok(Opened::Stream { name: redacted(url), reader });
        }
    };
    let image = FarImage { source, objects, _remote, messages: None };
    Ok(Opened::FarImage { image, notice: notice.or(of_image) })
}

/// Maximum number of parts after the first of a split image.
const PARTS_MAX: usize = 10_000;

/// The object at a URL, or the parts of a split image if it is the first of them.
struct Parts {
    file: Arc<dyn Source>,
    objects: Vec<RemoteSource>,
    /// Why further parts may exist nevertheless.
    notice: Option<String>,
}

impl Parts {
    fn open(remote: &Remote, url: &str, stop: &AtomicBool) -> Result<Parts> {
        let first = remote.open_unless(url, stop)?;
        let name = String::from_utf8(last_of_url(url)).unwrap_or_default();
        let (mut objects, mut notice) = (vec![first], None);
        let name = Path::new(&name);
        let parts_max = if SplitSource::is_first_part(name) { PARTS_MAX } else { 0 };
        for next in SplitSource::following(name).take(parts_max) {
            let Some(next) = next.to_str() else { break };
            match remote.open_unless(&beside(url, next), stop) {
                Ok(part) => objects.push(part),
                Err(RemoteError::NotFound { .. }) => break,
                // Buckets deny objects that do not exist to users who may not list them.
                Err(error @ (RemoteError::Denied { .. } | RemoteError::NotCached { .. })) => {
                    notice = Some(format!("ends before the part {next}: {error}"));
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if objects.len() > PARTS_MAX {
            notice = Some(format!("only the first {} parts are read", objects.len()));
        }
        let file: Arc<dyn Source> = match &objects[..] {
            [object] => Arc::new(object.clone()),
            several => {
                let parts = several.iter().map(|part| Box::new(part.clone()) as Box<dyn Source>);
                Arc::new(SplitSource::new(several[0].name(), parts.collect())?)
            }
        };
        Ok(Parts { file, objects, notice })
    }
}

/// Extensions of files that are read in parts but wrap no disk: reading their first bytes would cost a
/// request.
const OTHER_ENDINGS: [&str; 23] = [
    "arrow", "csv", "feather", "grib", "h5", "hdf5", "html", "jpeg", "jpg", "json", "jsonl", "nc",
    "ndjson", "npy", "npz", "parquet", "pdf", "png", "qlog", "tif", "tiff", "xml", "zip",
];

/// Whether the extension of a URL names a format that wraps no disk.
pub(super) fn is_of_another_format(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit('/').next().unwrap_or_default().rsplit_once('.');
    ending.is_some_and(|(_, ending)| {
        OTHER_ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
    })
}

/// An object that is decompressed in order.
struct FarStream {
    reader: Box<dyn io::Read + Send>,
    _remote: Arc<Remote>,
}

impl io::Read for FarStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// The objects whose URLs differ only after the last slash.
struct UrlSiblings<'u> {
    remote: &'u Remote,
    url: &'u str,
    stop: &'u AtomicBool,
    index: Option<IndexFile>,
    scratch: &'u ScratchFolder,
    opened: Mutex<Vec<RemoteSource>>,
}

impl Siblings for UrlSiblings<'_> {
    fn open(&self, name: &str) -> quarrier_core::Result<Box<dyn Source>> {
        let url = beside(self.url, name);
        match self.remote.open_unless(&url, self.stop) {
            Ok(object) => {
                lock(&self.opened).push(object.clone());
                Ok(Box::new(object))
            }
            Err(error @ RemoteError::NotFound { .. }) => {
                let error = io::Error::new(io::ErrorKind::NotFound, error.to_string());
                Err(quarrier_core::Error::io(redacted(&url), "open", error))
            }
            Err(error) => {
                let (source_name, reason) = (redacted(&url), error.reason());
                Err(quarrier_core::Error::NotReadable { source_name, reason })
            }
        }
    }

    fn is_far(&self) -> bool {
        true
    }

    fn scratch(&self) -> Option<&ScratchFolder> {
        Some(self.scratch)
    }

    fn name_of(&self, file: &dyn Source) -> String {
        String::from_utf8_lossy(&last_of_url(file.name())).into_owned()
    }

    fn keeps_indexes(&self) -> bool {
        self.index.is_some()
    }

    fn kept_index(&self) -> Option<Vec<u8>> {
        self.index.as_ref()?.read()
    }

    fn keep_index(&self, index: &[u8]) {
        if let Some(file) = &self.index {
            file.write(index);
        }
    }
}

impl Source for FarImage {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn length(&self) -> u64 {
        self.source.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read_at(offset, buffer)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.source.next_data(offset)
    }

    fn readable_end(&self) -> u64 {
        self.source.readable_end()
    }

    fn sector_bytes(&self) -> usize {
        self.source.sector_bytes()
    }
}

impl Announced for FarImage {
    /// Does nothing: the ranges of the objects are known only when they are read.
    fn announce(&self, _range: Range<u64>) {}
}
