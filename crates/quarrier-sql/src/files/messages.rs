//! Files of messages: loaded into packed columns, each source into a table of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::catalog::TableProvider;
use quarrier::{Named, Tables as Request};
use quarrier_messages::Format;

use super::{LeftOut, Loaded, Opening, Rounded};
use crate::{Error, Messages, Result};

pub(super) type Opened = (Arc<dyn TableProvider>, Loaded);

/// Loads a source of any kind, of a format that is told or that it tells itself; its name, too.
pub(super) async fn load(
    named: Named,
    shown: String,
    format: Option<Format>,
    opening: Opening,
) -> Result<(String, Opened)> {
    blocking(move || {
        let request = Request::new()
            .format(format)
            .workers(opening.workers)
            .limits(opening.limits.clone())
            .parquet(Some(&quarrier_parquet::Reader));
        let source = opening.opener().open(&named).and_then(|opened| {
            let told = request.tell(opened, &opening.stop)?;
            let name = told.name().to_string();
            Ok((name, request.load(vec![told], &opening.stop)?))
        });
        let (name, loaded) = source.map_err(|error| failed(&shown, &error, &opening))?;
        Ok((name, opened(loaded)))
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Error::Setup { reason: format!("a load ended early: {error}") }),
    }
}

fn failed(name: &str, error: &dyn std::fmt::Display, opening: &Opening) -> Error {
    if opening.stop.load(Ordering::Relaxed) {
        return Error::Cancelled;
    }
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or(&said);
    Error::table(name, said)
}

fn opened(loaded: quarrier::tables::Loaded) -> Opened {
    let rounded = loaded.rounded().map(|(column, count)| Rounded { column: column.into(), count });
    let rounded = rounded.collect();
    let table = Arc::new(loaded.table);
    let first = loaded.rejects.first().filter(|_| loaded.rejected > 0);
    let left_out = first.map(|first| LeftOut {
        source: first.source.as_ref().into(),
        count: loaded.rejected,
        line: first.line,
        reason: first.fault.to_string(),
    });
    let met = Loaded {
        rounded,
        left_out: left_out.into_iter().collect(),
        rejects: loaded.rejects,
        fields_left_out: loaded.refused.count,
        bytes: loaded.bytes,
        memory_bytes: table.nbytes(),
    };
    (Arc::new(Messages::new(table)), met)
}
