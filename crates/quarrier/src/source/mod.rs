//! A SOURCE as users name it: a file, a device, an image, a URL, a glob of them, standard input.
//!
//! ```text
//!  "image.0*" ──→ Sources ──→ Named, one by one ──→ Opener ──→ Opened ──→ Place of a request
//!                 (globs, parts)   not opened yet     (client, O_DIRECT)
//! ```

mod failing;
mod far;
mod fill;
mod folder;
mod following;
mod index;
mod kept;
mod named;
mod opener;
mod partition;
mod shared;
mod stdin;
mod version;
mod written;

pub(crate) use failing::Failing;
pub use far::{FarImage, open_url};
pub use fill::{Filled, fill};
pub use index::{clear_indexes, index_bytes};
pub(crate) use kept::damages;
pub(crate) use named::is_part_of_image;
pub use named::{Named, Sources};
pub use opener::{OpenOptions, Opener};
pub use stdin::standard_input;
pub use version::Version;
pub(crate) use written::refuse_folder_on_source;

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use quarrier_core::source::Source;
use quarrier_messages::Format;
use quarrier_remote::{Counters, RemoteSource, is_remote as is_url, redacted};

use crate::{Error, Result};

/// Whether a name is a URL.
pub fn is_remote(name: &str) -> bool {
    is_url(name)
}

/// The name as it may be shown: a URL without password and signature.
pub fn shown(name: &str) -> String {
    if is_url(name) { redacted(name) } else { name.to_string() }
}

/// A line about a source for people: with the name of the source before it, unless it begins with that.
pub fn line_of(name: &str, line: &str) -> String {
    let is_named = line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    if is_named { line.to_string() } else { format!("{name}: {line}") }
}

/// A source that was opened.
pub enum Opened {
    /// A file, a device, an image: bytes at offsets, at the price of a read.
    Local {
        /// The source.
        source: Box<dyn Source>,
        /// Missing parts, for people: segments of an image.
        notice: Option<String>,
        /// How its messages are written, if that is known: of a log.
        format: Option<Format>,
        /// Damaged places, a line each: of a log, whose other messages are all there.
        damages: Vec<String>,
        /// The files beside the one named that it reads: of an image in several.
        beside: Vec<PathBuf>,
    },
    /// A remote object: each read costs requests.
    Remote(RemoteSource),
    /// An image or a partition in remote objects.
    FarImage {
        /// Its bytes.
        image: FarImage,
        /// Missing parts, for people.
        notice: Option<String>,
    },
    /// Standard input, a pipe, or a file of the kernel without a length: read once, in order.
    Stream {
        /// Its name; `-` for standard input.
        name: String,
        /// Its bytes.
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

    /// A notice that people should read before they trust its bytes.
    pub fn notice(&self) -> Option<&str> {
        match self {
            Opened::Local { notice, .. } | Opened::FarImage { notice, .. } => notice.as_deref(),
            Opened::Remote(_) | Opened::Stream { .. } => None,
        }
    }

    /// Its [notice](Self::notice) as a line with its name.
    pub fn notice_line(&self) -> Option<String> {
        self.notice().map(|notice| line_of(self.name(), notice))
    }

    /// The format of its messages, if it is known without reading them.
    pub fn format(&self) -> Option<&Format> {
        match self {
            Opened::Local { format, .. } => format.as_ref(),
            Opened::Remote(_) | Opened::FarImage { .. } | Opened::Stream { .. } => None,
        }
    }

    /// Damaged parts that are left out, a line each.
    pub fn damages(&self) -> &[String] {
        match self {
            Opened::Local { damages, .. } => damages,
            Opened::Remote(_) | Opened::FarImage { .. } | Opened::Stream { .. } => &[],
        }
    }

    /// The cost of reads of a remote source so far.
    pub fn counters(&self) -> Option<Counters> {
        match self {
            Opened::Remote(source) => Some(source.counters()),
            Opened::FarImage { image, .. } => Some(image.counters()),
            Opened::Local { .. } | Opened::Stream { .. } => None,
        }
    }

    /// The source of a file or device, which may be read again at no price.
    pub fn local(&self) -> Option<&dyn Source> {
        match self {
            Opened::Local { source, .. } => Some(&**source),
            Opened::Remote(_) | Opened::FarImage { .. } | Opened::Stream { .. } => None,
        }
    }

    /// Where a request works.
    pub fn place(&mut self) -> Place<'_> {
        match self {
            Opened::Local { source, .. } => Place::Local(&**source),
            Opened::Remote(source) => Place::Remote(source),
            Opened::FarImage { image, .. } => Place::Remote(image),
            Opened::Stream { name, reader } => Place::Stream { name, reader },
        }
    }

    /// The source at offsets. A remote one gets the hint that all of it will be read.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what can only be read in order.
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
    let reason = "can only be read in order, and files are read wherever they lie; write it to a \
                  file first"
        .to_string();
    Error::Unsupported { name, reason }
}

/// A source that learns which bytes will be read soon, because to fetch them one by one costs more.
pub trait Announced: Source {
    /// Everything in `range` will be read.
    fn announce(&self, range: Range<u64>);
}

impl Announced for RemoteSource {
    fn announce(&self, range: Range<u64>) {
        RemoteSource::announce(self, range);
    }
}

/// Where a request works: what kind of source it is decides what may be tried beforehand.
pub enum Place<'p> {
    /// Samples and trial reads cost next to nothing.
    Local(&'p dyn Source),
    /// Each read costs requests: nothing is sampled or tried, and reads are announced.
    Remote(&'p dyn Announced),
    /// Bytes that come once, in order.
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

    /// Tells a remote source what will be read.
    pub(crate) fn announce(&self, range: &Range<u64>) {
        if let Place::Remote(source) = self {
            source.announce(range.clone());
        }
    }

    /// The part of `range` that the source has. Of a stream that is all of it.
    ///
    /// # Errors
    /// [`Error::Range`] where it begins past the end; [`Error::Unsupported`] for a part of a
    /// stream.
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
