//! The other files of an image that is striped over several: those beside it that end in `.aff4`.

use std::sync::Arc;

use quarrier_core::source::Source;

use super::container::Container;
use super::graph::{Graph, Thing};
use super::stream::{self, Shared};
use crate::around::Around;

/// Files beside an image that are examined, at most.
const FILES_MAX: usize = 64;

/// A file of the image beside the first one.
pub(super) struct Volume {
    pub(super) shared: Arc<Shared>,
    pub(super) container: Container,
    graph: Graph,
}

impl Volume {
    /// Reads a file; `None` if it is no AFF4 file that can be read.
    fn of(file: Arc<dyn Source>) -> Option<Volume> {
        let container = Container::open(&*file).ok()?;
        let graph = Graph::read(&*file, &container).ok()?;
        Some(Volume { shared: Shared::new(&file), container, graph })
    }

    /// The description of a stream, if its bytes are in this file.
    pub(super) fn stream(&self, urn: &str) -> Option<&Thing> {
        let thing = self.graph.get(urn).filter(|thing| thing.is("ImageStream"))?;
        stream::is_in(&self.container, urn).then_some(thing)
    }
}

/// The files beside `file` that are AFF4 files, in the order of their names.
pub(super) fn beside(file: &dyn Source, around: &Around<'_>) -> Vec<Volume> {
    let own = file.name().rsplit('/').next().unwrap_or_default();
    let names = around.beside.names().into_iter();
    let names = names.filter(|name| name.to_ascii_lowercase().ends_with(".aff4") && name != own);
    let opened = names.take(FILES_MAX).filter_map(|name| around.beside.open(&name).ok());
    opened.filter_map(|file| Volume::of(Arc::from(file))).collect()
}
