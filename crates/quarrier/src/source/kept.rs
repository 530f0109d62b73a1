//! Messages of a durable log as sources.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use quarrier_core::source::{Memory, Source};
use quarrier_core::sync::{into_inner, lock};
use quarrier_messages::Format;
use quarrier_messages::kept::{Run, SegmentFolder, SegmentObject, Store};
use quarrier_remote::RemoteSource;

use super::far::FarMessages;
use super::spooled::Spooled;
use super::url::{beside, last_of_url};
use super::{FarImage, Opened, Opener};
use crate::{Error, Result};

/// The messages of a log.
struct Messages {
    source: Box<dyn Source>,
    /// `None` without messages.
    format: Option<Format>,
    damages: Vec<String>,
}

impl Messages {
    fn of(store: &Store) -> Result<Messages> {
        let damages = damages(store);
        let name = store.place().to_string();
        let mut runs = store.all_runs()?;
        let Some(run) = runs.pop() else {
            let source = Box::new(Memory::new(name, Vec::<u8>::new()));
            return Ok(Messages { source, format: None, damages });
        };
        if !runs.is_empty() {
            let tables: Vec<String> =
                store.tables()?.iter().map(|table| table.name.clone()).collect();
            let reason = format!(
                "it holds messages in several formats, of the tables {}; name one of them, with \
                 --data and the data folder",
                tables.join(", ")
            );
            return Err(Error::Unsupported { name, reason });
        }
        let format = Some(run.format().clone());
        Ok(Messages { source: Box::new(run), format, damages })
    }
}

/// Opens all messages of a data folder, or of one segment of its log or of the copy of a log.
pub(super) fn opened(path: &Path) -> Result<Opened> {
    let store = Store::read(path)?;
    let notice = if path.is_file() { notice(&store) } else { None };
    let Messages { source, format, damages } = Messages::of(&store)?;
    Ok(Opened::Local { source, notice, format, damages, beside: Vec::new() })
}

/// Opens the messages of a segment in a remote object. Reads it once, to verify the checksums of all batches and to
/// find their places.
///
/// # Errors
/// The object cannot be read, or it holds messages of several types.
pub(super) fn opened_object(url: &str, object: RemoteSource, opener: &Opener) -> Result<Opened> {
    let folder = FolderOf { url, opener, spools: Mutex::default() };
    let store = Store::read_object(folder.segment(url, object), &folder);
    let spools = into_inner(folder.spools);
    // The log takes bytes that cannot be read for damage.
    if let Some(error) = spools.iter().find_map(|spooled| spooled.error()) {
        return Err(error.into());
    }
    let store = store?;
    let notice = notice(&store);
    let Messages { source, format, damages } = Messages::of(&store)?;
    let objects = spools.iter().map(|spooled| spooled.object().clone()).collect();
    let of_log = FarMessages { format, damages };
    let image = FarImage::of_messages(source, objects, opener.client()?, of_log);
    Ok(Opened::FarImage { image, notice })
}

/// The folder of a segment in a bucket.
struct FolderOf<'f> {
    url: &'f str,
    opener: &'f Opener,
    spools: Mutex<Vec<Arc<Spooled>>>,
}

impl FolderOf<'_> {
    fn segment(&self, url: &str, object: RemoteSource) -> SegmentObject {
        let (folder, stop) = (self.opener.temporary_folder(), self.opener.stop());
        let spooled = Arc::new(Spooled::new(object, folder, stop));
        lock(&self.spools).push(Arc::clone(&spooled));
        SegmentObject::new(name_of(url), spooled)
    }
}

fn name_of(url: &str) -> String {
    String::from_utf8_lossy(&last_of_url(url)).into_owned()
}

impl SegmentFolder for FolderOf<'_> {
    fn names(&self, beginning: &str) -> io::Result<Vec<String>> {
        let urls = self.opener.segments_beside(self.url, beginning).map_err(io::Error::other)?;
        Ok(urls.iter().map(|url| name_of(url)).collect())
    }

    fn open(&self, name: &str) -> io::Result<SegmentObject> {
        let url = beside(self.url, name);
        let object = self.opener.client().map_err(io::Error::other)?;
        let object = object.open_unless(&url, self.opener.stop()).map_err(io::Error::other)?;
        Ok(self.segment(&url, object))
    }
}

/// Opens the messages of a table.
pub(super) fn opened_run(run: &Run) -> Opened {
    let format = Some(run.format().clone());
    let (source, damages, beside) = (Box::new(run.clone()), Vec::new(), Vec::new());
    Opened::Local { source, notice: None, format, damages, beside }
}

fn notice(store: &Store) -> Option<String> {
    let notices = store.take_notices();
    (!notices.is_empty()).then(|| notices.join("; "))
}

/// Lists damaged places, a line each, with the marks of the lost messages.
pub(crate) fn damages(store: &Store) -> Vec<String> {
    let found = store.found();
    let mut lines: Vec<String> = found.damages.iter().map(ToString::to_string).collect();
    let more = found.damages_found.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push(format!("{}: {more} more places are damaged", store.place()));
    }
    lines
}
