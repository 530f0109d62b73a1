//! The open source of a tree, from which many threads read.

use quarrier_core::source::Source;
use quarrier_remote::{Counters, RemoteSource};

use crate::Result;
use crate::source::{FarImage, Opened, only_in_order};

/// An open source that is read at offsets. Unlike [`Opened::at_offsets`], a remote one gets no hint that
/// all of it will be read.
pub(super) enum Held {
    Local(Box<dyn Source>),
    Remote(RemoteSource),
    Far(FarImage),
}

impl Held {
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for a stream.
    pub(super) fn new(opened: Opened) -> Result<Held> {
        Ok(match opened {
            Opened::Local { source, .. } => Held::Local(source),
            Opened::Remote(source) => Held::Remote(source),
            Opened::FarImage { image, .. } => Held::Far(image),
            Opened::Stream { name, .. } => return Err(only_in_order(name)),
        })
    }

    pub(super) fn source(&self) -> &dyn Source {
        match self {
            Held::Local(source) => &**source,
            Held::Remote(source) => source,
            Held::Far(image) => image,
        }
    }

    /// The cost of reads so far, for a remote source.
    pub(super) fn counters(&self) -> Option<Counters> {
        match self {
            Held::Local(_) => None,
            Held::Remote(source) => Some(source.counters()),
            Held::Far(image) => Some(image.counters()),
        }
    }

    /// Whether the bytes cannot change. Reads of a remote object fail if its version changes; a local file
    /// can be written to.
    pub(super) fn is_fixed(&self) -> bool {
        !matches!(self, Held::Local(_))
    }
}
