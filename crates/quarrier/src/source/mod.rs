//! A SOURCE as users name it: a file, a device, an image, a URL, a glob of them, standard input.
//!
//! ```text
//!  "image.0*" ──→ Sources ──→ Named, one by one ──→ Opener ──→ Opened ──→ Place of a request
//!                 (globs, parts)   not opened yet     (client, O_DIRECT)
//! ```

mod ahead;
mod failing;
mod far;
mod fill;
mod folder;
mod following;
mod index;
mod kept;
mod named;
mod notes;
mod object_folder;
mod objects;
mod opener;
mod partition;
mod shared;
mod small;
mod spooled;
mod stdin;
mod url;
mod version;
mod written;

pub(crate) use ahead::Ahead;
pub(crate) use failing::Failing;
pub use far::{FarImage, open_url};
pub use fill::{Filled, fill};
pub use index::{clear_indexes, index_bytes};
pub(crate) use kept::damages;
pub(crate) use named::is_part_of_image;
pub use named::{Named, Sources};
pub use notes::{LINES_MAX, Notes, RANGES_MAX, unreadable_line};
pub use object_folder::ObjectFolder;
pub use objects::selects;
pub use opener::{OpenOptions, Opener, Packed};
pub use quarrier_remote::RemoteSource;
pub(crate) use small::{SmallReader, Whole};
pub use stdin::standard_input;
pub(crate) use url::last_of_url;
pub use version::Version;
pub(crate) use written::refuse_folder_on_source;

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use quarrier_core::source::Source;
use quarrier_messages::Format;
use quarrier_messages::kept::is_segment_name;
use quarrier_remote::{Counters, is_remote as is_url, redacted};

use crate::{Error, Result};

/// Whether a name is a URL.
pub fn is_remote(name: &str) -> bool {
    is_url(name)
}

/// Whether a name is the URL of a bucket, or of an object in one: `s3://`, `gs://` or `az://`.
pub fn is_bucket(name: &str) -> bool {
    quarrier_remote::is_bucket(name)
}

/// Whether the name of a file, or a URL, is that of a segment of a log: `.qlog`.
pub fn is_segment(name: &str) -> bool {
    match is_url(name) {
        true => String::from_utf8(last_of_url(name)).is_ok_and(|name| is_segment_name(&name)),
        false => is_segment_name(name),
    }
}

/// The name as shown to people: a URL without password and signature.
pub fn shown(name: &str) -> String {
    if is_url(name) { redacted(name) } else { name.to_string() }
}

/// A line about a source for people. It begins with the name of the source, which is added if absent.
pub fn line_of(name: &str, line: &str) -> String {
    let is_named = line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    if is_named { line.to_string() } else { format!("{name}: {line}") }
}

/// An open source.
pub enum Opened {
    /// A file, a device or an image: bytes at offsets, cheap to read.
    Local {
        /// The source.
        source: Box<dyn Source>,
        /// Missing parts, for people, such as segments of an image.
        notice: Option<String>,
        /// The format of its messages, if known: that of a log.
        format: Option<Format>,
        /// Damaged places of a log, a line each; all other messages are present.
        damages: Vec<String>,
        /// Further files that it reads, for an image in several files.
        beside: Vec<PathBuf>,
    },
    /// A remote object: each read costs requests.
    Remote(RemoteSource),
    /// An image, a partition, or the messages of a log in remote objects.
    FarImage {
        /// Its bytes.
        image: FarImage,
        /// Missing parts, for people.
        notice: Option<String>,
    },
    /// Standard input, a pipe, or a kernel file without a length: read once, in order.
    Stream {
        /// The name; `-` for standard input.
        name: String,
        /// The bytes.
        reader: Box<dyn Read + Send>,
    },
}

impl Opened {
    /// The name in findings and errors.
    pub fn name(&self) -> &str {
        match self {
            Opened::Local { source, .. } => source.name(),
            Opened::Remote(source) => source.name(),
            Opened::FarImage { image, .. } => image.name(),
            Opened::Stream { name, .. } => name,
        }
    }

    /// A notice that people should read before they trust the bytes.
    pub fn notice(&self) -> Option<&str> {
        match self {
            Opened::Local { notice, .. } | Opened::FarImage { notice, .. } => notice.as_deref(),
            Opened::Remote(_) | Opened::Stream { .. } => None,
        }
    }

    /// The [notice](Self::notice) as a line that begins with the name.
    pub fn notice_line(&self) -> Option<String> {
        self.notice().map(|notice| line_of(self.name(), notice))
    }

    /// The format of its messages, if known without reading them.
    pub fn format(&self) -> Option<&Format> {
        match self {
            Opened::Local { format, .. } => format.as_ref(),
            Opened::FarImage { image, .. } => image.format(),
            Opened::Remote(_) | Opened::Stream { .. } => None,
        }
    }

    /// Damaged parts that were skipped, a line each.
    pub fn damages(&self) -> &[String] {
        match self {
            Opened::Local { damages, .. } => damages,
            Opened::FarImage { image, .. } => image.damages(),
            Opened::Remote(_) | Opened::Stream { .. } => &[],
        }
    }

    /// The cost of reads so far, for a remote source.
    pub fn counters(&self) -> Option<Counters> {
        match self {
            Opened::Remote(source) => Some(source.counters()),
            Opened::FarImage { image, .. } => Some(image.counters()),
            Opened::Local { .. } | Opened::Stream { .. } => None,
        }
    }

    /// The source of a file or device, which is nearly free to read again.
    pub fn local(&self) -> Option<&dyn Source> {
        match self {
            Opened::Local { source, .. } => Some(&**source),
            Opened::Remote(_) | Opened::FarImage { .. } | Opened::Stream { .. } => None,
        }
    }

    /// The place for a request to work on.
    pub fn place(&mut self) -> Place<'_> {
        match self {
            Opened::Local { source, .. } => Place::Local(&**source),
            Opened::Remote(source) => Place::Remote(source),
            Opened::FarImage { image, .. } => Place::Remote(image),
            Opened::Stream { name, reader } => Place::Stream { name, reader },
        }
    }

    /// The source, read at offsets. A remote source gets the hint that all of it will be read.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a stream.
    pub fn at_offsets(self) -> Result<Box<dyn Source>> {
        match self {
            Opened::Local { source, .. } => Ok(source),
            Opened::Remote(source) => {
                source.announce(0..source.length());
                Ok(Box::new(source))
            }
            Opened::FarImage { image, .. } => Ok(Box::new(image)),
            Opened::Stream { name, .. } => Err(only_in_order(name)),
        }
    }
}

pub(crate) fn only_in_order(name: String) -> Error {
    let reason = "can only be read sequentially, but this needs random access; write it to a file \
                  first"
        .to_string();
    Error::Unsupported { name, reason }
}

/// A source that accepts hints about the bytes to read next, because fetching them in small requests is
/// slow.
pub trait Announced: Source {
    /// Hints that everything in `range` will be read.
    fn announce(&self, range: Range<u64>);
}

impl Announced for RemoteSource {
    fn announce(&self, range: Range<u64>) {
        RemoteSource::announce(self, range);
    }
}

/// Where a request works. The variant determines what a run may try beforehand.
pub enum Place<'p> {
    /// Samples and trial reads are nearly free.
    Local(&'p dyn Source),
    /// Each read costs requests: nothing is sampled or tried, and reads are announced.
    Remote(&'p dyn Announced),
    /// Bytes that arrive once, in order.
    Stream {
        /// The name in findings and errors.
        name: &'p str,
        /// The bytes.
        reader: &'p mut (dyn Read + Send),
    },
}

impl<'p> Place<'p> {
    /// The name in findings and errors.
    pub fn name(&self) -> &str {
        match self {
            Place::Local(source) => source.name(),
            Place::Remote(source) => source.name(),
            Place::Stream { name, .. } => name,
        }
    }

    /// The source at offsets, unless it is a stream.
    pub fn source(&self) -> Option<&'p dyn Source> {
        match self {
            Place::Local(source) => Some(*source),
            Place::Remote(source) => Some(*source),
            Place::Stream { .. } => None,
        }
    }

    /// Tells a remote source which range will be read.
    pub(crate) fn announce(&self, range: &Range<u64>) {
        if let Place::Remote(source) = self {
            source.announce(range.clone());
        }
    }

    /// The part of `range` that the source has. For a stream, `range` must cover all of it.
    ///
    /// # Errors
    /// [`Error::Range`] if it begins past the end; [`Error::Unsupported`] for a part of a stream.
    pub fn range(&self, range: &Range<u64>) -> Result<Range<u64>> {
        let name = || self.name().to_string();
        let Some(source) = self.source() else {
            return match *range == (0..u64::MAX) {
                true => Ok(range.clone()),
                false => {
                    let reason = "--range needs a source with offsets".to_string();
                    Err(Error::Unsupported { name: name(), reason })
                }
            };
        };
        let length = source.length();
        if range.start > length {
            return Err(Error::Range { name: name(), start: range.start, length });
        }
        Ok(range.start..range.end.min(length))
    }
}
