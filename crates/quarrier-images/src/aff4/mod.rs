//! AFF4: disks in compressed streams inside a ZIP file.
//!
//! ```text
//!  information.turtle ─→ the image ─→ its map ─→ streams ─→ segments of chunks, members of the ZIP file
//!                                         └──→ zeros, bytes that repeat, bytes that nobody could read
//! ```
//!
//! *Schatz, AFF4 Standard v1.0*, for disks and memory, with streams in this file or in other files
//! beside it. [`StoredHashes`] verifies an image.

mod container;
mod graph;
mod hashes;
mod map;
mod stream;
mod symbolic;
mod turtle;
mod volumes;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::Result;
use quarrier_core::source::Source;

use crate::around::{Around, shown};
use crate::disk::{Disk, Layout, Place, Run};
use crate::fault::{damaged, refused};
use container::Container;
use graph::{Graph, Thing};
pub use hashes::{Check, StoredHashes};
use map::{Map, Target};
use stream::Shared;
use symbolic::{Filled, Symbolic, Unreadable};
use volumes::Volume;

/// Maximum streams of an image: each has its own chunk cache.
const STREAMS_MAX: usize = 16;

/// Types of images, the most specific first: an image has several.
const IMAGES: [&str; 4] = ["DiskImage", "ContiguousImage", "DiscontiguousImage", "Image"];
/// Types of streams, for images without an image object.
const STREAMS: [&str; 2] = ["Map", "ImageStream"];
/// Types of objects that an encrypted image has.
const ENCRYPTED: [&str; 5] = [
    "EncryptedStream",
    "KeyBag",
    "PasswordWrappedKeyBag",
    "PublicKeyEncryptedKeyBag",
    "CertEncryptedKeyBag",
];

/// Opens an image, and returns a notice if parts of the disk were not acquired.
pub(crate) fn open(
    file: &Arc<dyn Source>,
    around: &Around<'_>,
) -> Result<(Disk<impl Layout + use<>>, Option<String>)> {
    let Parts { disk, unknown_bytes, .. } = parts(file, Some(around), around.stop)?;
    let notice = (unknown_bytes > 0).then(|| {
        format!(
            "{unknown_bytes} of its {} bytes were not acquired (AFF4: UnknownData), and read as zeros",
            disk.length
        )
    });
    Ok((disk, notice))
}

/// An opened image.
struct Parts {
    disk: Disk<Map>,
    /// The URNs of the objects that describe the bytes of the disk.
    described: Vec<String>,
    /// The streams that hold its bytes.
    streams: Vec<(String, Arc<dyn Source>)>,
    graph: Graph,
    /// The number of bytes that were never acquired.
    unknown_bytes: u64,
}

fn parts(file: &Arc<dyn Source>, around: Option<&Around<'_>>, stop: &AtomicBool) -> Result<Parts> {
    let container = Container::open(&**file)?;
    let graph = Graph::read(&**file, &container)?;
    let (image, data) = image(&**file, &graph)?;
    let mut targets = Targets::new(file, &container, &graph, around);
    let map = match graph.get(&data).filter(|thing| thing.is("Map")) {
        Some(thing) => {
            let names = map::names(&**file, &container, &data)?;
            let numbers = names.iter().map(|name| targets.of(name)).collect::<Result<Vec<_>>>()?;
            let gaps = thing.iri("mapGapDefaultStream").map_or(Ok(Target::Zeros), |name| {
                // A regular stream cannot fill gaps: its offsets would be those of the disk.
                match Symbolic::of(name) {
                    Some(_) => targets.of(name),
                    None => Err(refused(&**file, "has a map with non-standard gaps")),
                }
            })?;
            Map::read(&**file, &container, &data, (&numbers, gaps), stop)?
        }
        None => {
            let target = targets.of(&data)?;
            let bytes = targets.streams.last().map_or(0, |(_, stream)| stream.length());
            Map::whole(target, bytes)
        }
    };
    let described = if image == data { vec![data] } else { vec![image, data] };
    let sizes = described.iter().rev().filter_map(|urn| graph.get(urn)?.number("size"));
    let length = match sizes.into_iter().next() {
        Some(size) => size.filter(|&size| size <= i64::MAX as u64),
        None => Some(map.end()),
    };
    let length = length.ok_or_else(|| damaged(&**file, 0, "the size of its disk is impossible"))?;
    let unknown_bytes = map.unknown_bytes(length);
    let Targets { files, streams, chunk_bytes, is_packed, .. } = targets;
    let sector_bytes = map.alignment(length, chunk_bytes).max(512);
    let mut disk = match is_packed {
        true => Disk::packed(file.name(), length, map, files, sector_bytes),
        false => Disk::stored(file.name(), length, map, files),
    };
    disk.sector_bytes = sector_bytes;
    Ok(Parts { disk, described, streams, graph, unknown_bytes })
}

/// The URNs of the image and of the stream with its bytes.
fn image(file: &dyn Source, graph: &Graph) -> Result<(String, String)> {
    if ENCRYPTED.iter().any(|kind| graph.of_type(kind).next().is_some()) {
        let reason =
            "is an encrypted AFF4 image; decrypt it with the tool that made it, and search that";
        return Err(refused(file, reason));
    }
    if graph.is_before_standard() {
        let reason = "is an AFF4 image of a version before the standard, which is not supported; export it \
                      as raw or E01, and search that";
        return Err(refused(file, reason));
    }
    let mut found = IMAGES.iter().map(|kind| images(graph, kind)).find(|found| !found.is_empty());
    let has_files = graph.of_type("FileImage").next().is_some();
    if found.is_none() && !has_files {
        let all = STREAMS.iter().map(|kind| images(graph, kind));
        found = all.into_iter().find(|found| !found.is_empty());
    }
    match found {
        None if has_files => Err(refused(
            file,
            "is a logical AFF4 image (AFF4-L), which holds files and no disk; export the files from it",
        )),
        None => Err(refused(file, "is an AFF4 file that describes no image of a disk")),
        Some(mut images) if images.len() == 1 => Ok(images.remove(0)),
        Some(images) => Err(refused(
            file,
            format!(
                "holds {} images, and one can be searched; export them as raw or E01",
                images.len()
            ),
        )),
    }
}

/// The objects of a type that have data streams, and those streams.
fn images(graph: &Graph, kind: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |image: &str, data: &str| {
        if found.iter().all(|(_, known)| known != data) {
            found.push((image.to_string(), data.to_string()));
        }
    };
    for (urn, thing) in graph.of_type(kind).filter(|(_, thing)| !thing.is("FileImage")) {
        let streams = thing.all("dataStream").filter_map(|value| match value {
            turtle::Term::Iri(data) => Some(data.as_str()),
            _ => None,
        });
        let before = STREAMS.iter().any(|kind| thing.is(kind));
        let mut streams = streams.peekable();
        match streams.peek() {
            Some(_) => streams.for_each(|data| add(urn, data)),
            None if before => add(urn, urn),
            None => {}
        }
    }
    found
}

/// The files of a disk, as numbered in its map.
struct Targets<'i> {
    container: &'i Container,
    graph: &'i Graph,
    around: Option<&'i Around<'i>>,
    /// The other files of the image, once they were needed.
    others: Option<Vec<Volume>>,
    shared: Arc<Shared>,
    files: Vec<Arc<dyn Source>>,
    streams: Vec<(String, Arc<dyn Source>)>,
    known: HashMap<String, Target>,
    /// Size of the largest chunk.
    chunk_bytes: usize,
    is_packed: bool,
}

impl<'i> Targets<'i> {
    fn new(
        file: &Arc<dyn Source>,
        container: &'i Container,
        graph: &'i Graph,
        around: Option<&'i Around<'i>>,
    ) -> Self {
        Targets {
            container,
            graph,
            around,
            others: None,
            shared: Shared::new(file),
            files: Vec::new(),
            streams: Vec::new(),
            known: HashMap::new(),
            chunk_bytes: 4096,
            is_packed: false,
        }
    }

    /// Resolves a stream name of a map.
    fn of(&mut self, urn: &str) -> Result<Target> {
        if let Some(&known) = self.known.get(urn) {
            return Ok(known);
        }
        let target = match Symbolic::of(urn) {
            Some(Symbolic::Zeros) => Target::Zeros,
            Some(Symbolic::Unknown) => Target::Unknown,
            Some(Symbolic::Unreadable) => Target::Anywhere(self.file(Arc::new(Unreadable))),
            Some(Symbolic::Filled(byte)) => Target::Anywhere(self.file(Arc::new(Filled { byte }))),
            None => {
                let stream = self.stream(urn)?;
                self.streams.push((urn.to_string(), Arc::clone(&stream)));
                Target::File(self.file(stream))
            }
        };
        self.known.insert(urn.to_string(), target);
        Ok(target)
    }

    fn file(&mut self, file: Arc<dyn Source>) -> usize {
        self.files.push(file);
        self.files.len() - 1
    }

    fn stream(&mut self, urn: &str) -> Result<Arc<dyn Source>> {
        let file = Arc::clone(&self.shared.file);
        if self.streams.len() == STREAMS_MAX {
            let reason =
                format!("has its bytes in more than {STREAMS_MAX} streams; export it as raw");
            return Err(refused(&*file, reason));
        }
        if let Some(stream) = self.stream_beside(urn)? {
            return Ok(stream);
        }
        let is = |kind: &str| self.graph.get(urn).is_some_and(|thing: &Thing| thing.is(kind));
        if let Some(thing) = self.graph.get(urn).filter(|_| is("ImageStream")) {
            let stream = stream::open(&self.shared, self.container, (urn, thing))?;
            self.chunk_bytes = self.chunk_bytes.max(stream.sector_bytes);
            self.is_packed |= stream.is_packed();
            return Ok(Arc::new(stream));
        }
        if is("Map") {
            let reason = "is a map of parts of another image, which is not supported; export it as raw or E01";
            return Err(refused(&*file, reason));
        }
        let Some(member) = self.container.find(urn).filter(|member| member.is_stored()) else {
            let reason = format!(
                "needs {}, which is not in the file or of an unsupported type; export it as raw \
                 or E01, and search that",
                shown(urn)
            );
            return Err(refused(&*file, reason));
        };
        let at = member.data_at(&*file).map_err(|error| {
            damaged(&*file, member.header_at, format!("a part of the disk: {error}"))
        })?;
        let files = vec![Arc::clone(&file)];
        Ok(Arc::new(Disk::stored(file.name(), member.bytes, Inside { at }, files)))
    }
}

impl Targets<'_> {
    /// The stream `urn`, if it is in another file of the image.
    fn stream_beside(&mut self, urn: &str) -> Result<Option<Arc<dyn Source>>> {
        let is_here = stream::is_in(self.container, urn) || self.container.find(urn).is_some();
        let Some(around) = self.around.filter(|_| !is_here) else { return Ok(None) };
        let file = &self.shared.file;
        let others = self.others.get_or_insert_with(|| volumes::beside(&**file, around));
        let found = others.iter().find_map(|volume| Some((volume, volume.stream(urn)?)));
        let Some((volume, thing)) = found else { return Ok(None) };
        let stream = stream::open(&volume.shared, &volume.container, (urn, thing))?;
        self.chunk_bytes = self.chunk_bytes.max(stream.sector_bytes);
        self.is_packed |= stream.is_packed();
        Ok(Some(Arc::new(stream)))
    }
}

/// A range of a file.
struct Inside {
    at: u64,
}

impl Layout for Inside {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let place = Place::Stored { file: 0, at: self.at.saturating_add(offset) };
        Ok(Run { bytes: u64::MAX - offset, place })
    }
}
