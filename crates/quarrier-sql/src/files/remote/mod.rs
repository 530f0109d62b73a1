//! Parquet files behind URLs. A table has the footer of its file, and queries fetch the column chunks that they
//! read; other files behind URLs are loaded.
//!
//! ```text
//!  URL ─→ object: footer ─→ table: schema, statistics ─→ scan of DataFusion
//!            ▲                                             │ ranges of a row group
//!            └──────────────── reader ←────────────────────┘
//! ```

mod object;
mod reader;
mod table;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use quarrier::source::RemoteSource;
use quarrier::{Named, Opened};
use quarrier_messages::Format;

use self::object::ParquetObject;
use self::table::RemoteParquet;
use super::messages::failed;
use super::{Opening, damaged};
use crate::net::blocking;
use crate::{Error, Result};

/// What was found behind a URL.
pub(super) enum Found {
    /// A table whose columns are fetched when queries read them.
    Table(Arc<dyn TableProvider>),
    /// A source to load.
    Source(Opened),
}

/// Opens a URL; errors call it `name`. Reads the footer if it has a Parquet file.
///
/// # Errors
/// It cannot be opened, or its footer cannot be read.
pub(super) async fn open(named: &Named, name: String, opening: &Opening) -> Result<Found> {
    let (named, opening, shown) = (named.clone(), opening.clone(), name.clone());
    let found = blocking(move || {
        let opened = opening.opener.open_messages(&named);
        let opened = opened.map_err(|error| failed(&name, &error, &opening))?;
        let Opened::Remote(source) = opened else { return Ok(Found::Source(opened)) };
        if !is_parquet(&source) {
            return Ok(Found::Source(Opened::Remote(source)));
        }
        opening.room.take_remote()?;
        let object = ParquetObject::open(source, &name, &opening.stop)?;
        Ok(Found::Table(Arc::new(RemoteParquet::of(object)?)))
    })
    .await;
    found.map_err(|error| match error {
        // The Parquet library panics at some footers.
        Error::Internal(_) => damaged(&shown),
        error => error,
    })
}

/// Whether a source has the magic number of Parquet. Reads it from the end that was fetched when the source was
/// opened: Parquet files have it at both ends. If it cannot be read, the load reports why.
fn is_parquet(source: &RemoteSource) -> bool {
    use quarrier_core::source::{Source, read_full_at};
    const MAGIC_BYTES: u64 = 4;
    let at = match source.holds(0..MAGIC_BYTES) {
        true => 0,
        false => source.length().saturating_sub(MAGIC_BYTES),
    };
    let mut magic = [0; MAGIC_BYTES as usize];
    let read = read_full_at(source, at, &mut magic);
    read.is_ok_and(|count| count == magic.len())
        && matches!(Format::detect("", &magic), Some(Format::Parquet))
}
