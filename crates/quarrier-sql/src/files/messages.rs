//! Files of messages: loaded into packed columns.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use quarrier::Sources;
use quarrier::source::shown;
use quarrier_core::source;
use quarrier_messages::{Format, Load};

use super::{LeftOut, Loaded, Opening, Rounded};
use crate::{Error, Messages, Result};

type Opened = (Arc<dyn TableProvider>, Loaded);
pub(super) type Tables = Vec<(String, Arc<dyn TableProvider>)>;

/// Loads a file of any kind.
pub(super) async fn load(path: &Path, opening: Opening) -> Result<Opened> {
    let path = path.to_path_buf();
    blocking(move || {
        let name = path.display().to_string();
        let wrong = |error: &dyn std::fmt::Display| failed(&name, error, &opening);
        if is_stream(&path) {
            let mut file = std::fs::File::open(&path).map_err(|error| wrong(&error))?;
            return stream(&name, &mut file, &opening);
        }
        let source = source::open(&path).map_err(|error| wrong(&error))?;
        let format = Format::of(&*source).map_err(|error| wrong(&error))?;
        let loaded = loader(format, &opening).run(&[&*source]).map_err(|error| wrong(&error))?;
        Ok(opened(loaded))
    })
    .await
}

/// Loads what a URL names, of any kind.
pub(super) async fn load_remote(url: &str, opening: Opening) -> Result<(Tables, Loaded)> {
    let url = url.to_string();
    blocking(move || {
        let shown = shown(&url);
        let wrong = |error: &dyn std::fmt::Display| failed(&shown, error, &opening);
        let mut all = Loaded::default();
        let mut tables = Tables::new();
        for source in Sources::of([&url]).open(&opening.opener()) {
            let source =
                source.and_then(quarrier::Opened::at_offsets).map_err(|error| wrong(&error))?;
            let format = Format::of(&*source).map_err(|error| wrong(&error))?;
            let loaded =
                loader(format, &opening).run(&[&*source]).map_err(|error| wrong(&error))?;
            let (table, met) = opened(loaded);
            all.add(met);
            tables.push((source.name().to_string(), table));
        }
        Ok((tables, all))
    })
    .await
}

/// Loads standard input.
pub(super) async fn load_stream(opening: Opening) -> Result<Opened> {
    blocking(move || stream("-", &mut std::io::stdin(), &opening)).await
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Error::Setup { reason: format!("a load ended early: {error}") }),
    }
}

/// A pipe, which gives its bytes once.
fn is_stream(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

/// As many bytes of a stream tell its format.
const HEAD_BYTES: u64 = 4 << 10;

fn stream(name: &str, reader: &mut (dyn Read + Send), opening: &Opening) -> Result<Opened> {
    let wrong = |error: &dyn std::fmt::Display| failed(name, error, opening);
    let mut plain = quarrier_messages::decompressed_stream(name, Box::new(reader), &opening.stop)
        .map_err(|error| wrong(&error))?;
    let mut head = Vec::new();
    plain.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(|error| wrong(&error))?;
    let format = Format::told_by(name, &head).unwrap_or_else(|| Format::guessed(&head));
    let mut whole = std::io::Cursor::new(head).chain(plain);
    let loaded = loader(format, opening).run_stream(name, &mut whole);
    Ok(opened(loaded.map_err(|error| wrong(&error))?))
}

pub(super) fn loader(format: Format, opening: &Opening) -> Load<'_> {
    Load::new(format)
        .workers(opening.workers)
        .limits(opening.limits.clone())
        .cancel(&opening.stop)
        .parquet(&quarrier_parquet::Reader)
}

pub(super) fn failed(name: &str, error: &dyn std::fmt::Display, opening: &Opening) -> Error {
    if opening.stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Error::Cancelled;
    }
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or(&said);
    Error::table(name, said)
}

pub(super) fn opened(loaded: quarrier_messages::Loaded) -> Opened {
    let table = Arc::new(loaded.table);
    let first = loaded.rejects.first().filter(|_| loaded.rejected > 0);
    let left_out = first.map(|first| LeftOut {
        source: first.source.as_ref().into(),
        count: loaded.rejected,
        line: first.line,
        reason: first.fault.to_string(),
    });
    let columns = table.schema().fields.iter().zip(table.columns());
    let rounded = columns.filter(|(_, column)| column.rounded() > 0);
    let rounded = rounded
        .map(|(field, column)| Rounded { column: field.name.clone(), count: column.rounded() });
    let met = Loaded {
        rounded: rounded.collect(),
        left_out: left_out.into_iter().collect(),
        rejects: loaded.rejects,
        fields_left_out: loaded.refused.count,
        bytes: loaded.bytes,
        memory_bytes: table.nbytes(),
    };
    (Arc::new(Messages::new(table)), met)
}
