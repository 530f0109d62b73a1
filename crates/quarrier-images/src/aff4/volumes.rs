//! The other files of a striped image: those beside it that end in `.aff4`.

use std::sync::Arc;

use quarrier_core::source::Source;

use super::container::Container;
use super::graph::{Graph, Thing};
use super::stream::{self, Shared};
use crate::around::Around;

/// Maximum number of files to examine beside an image.
const FILES_MAX: usize = 64;

/// Another file of the same image.
pub(super) struct Volume {
    pub(super) shared: Arc<Shared>,
    pub(super) container: Container,
    graph: Graph,
}

impl Volume {
    /// Reads a file; `None` if it is not a readable AFF4 file.
    fn of(file: Arc<dyn Source>) -> Option<Volume> {
        let container = Container::open(&*file).ok()?;
        let graph = Graph::read(&*file, &container).ok()?;
        Some(Volume { shared: Shared::new(&file), container, graph })
    }

    /// The description of a stream, if this file has its segments.
    pub(super) fn stream(&self, urn: &str) -> Option<&Thing> {
        let thing = self.graph.get(urn).filter(|thing| thing.is("ImageStream"))?;
        stream::is_in(&self.container, urn).then_some(thing)
    }
}

/// The AFF4 files beside `file`, sorted by name.
pub(super) fn beside(file: &dyn Source, around: &Around<'_>) -> Vec<Volume> {
    let own = around.beside.name_of(file);
    let names = around.beside.names().into_iter();
    let names = names.filter(|name| name.to_ascii_lowercase().ends_with(".aff4") && *name != own);
    let opened = names.take(FILES_MAX).filter_map(|name| around.beside.open(&name).ok());
    opened.filter_map(|file| Volume::of(Arc::from(file))).collect()
}
