//! `messages('source', 'format')`: messages whose format is told, from a source of any kind.

use std::sync::Arc;

use quarrier::{Opened, Sources};
use quarrier_messages::Format;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::format::xml::Xml;

use super::messages::{Tables, blocking, failed, loader, opened};
use super::{Loaded, Opening};
use crate::rewrite::Told;
use crate::{Error, Result};

/// Loads all sources that are named, each into a table of its own.
pub(super) async fn load(told: Told, opening: Opening) -> Result<(Tables, Loaded)> {
    let format = format_of(&told.format)?;
    blocking(move || {
        let mut all = Loaded::default();
        let mut tables = Tables::new();
        for source in Sources::of([&told.source]).open(&opening.opener()) {
            let source = source.and_then(Opened::at_offsets);
            let source = source.map_err(|error| failed(&told.source, &error, &opening))?;
            let loaded = loader(format.clone(), &opening).run(&[&*source]);
            let loaded = loaded.map_err(|error| failed(source.name(), &error, &opening))?;
            let (table, met) = opened(loaded);
            all.add(met);
            tables.push((source.name().to_string(), table));
        }
        Ok((tables, all))
    })
    .await
}

fn format_of(name: &str) -> Result<Format> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "json" | "ndjson" => Format::Json,
        "fix" => Format::Fix(Arc::new(Dictionary::builtin())),
        "nvfix" => Format::Nvfix(Arc::new(Dictionary::builtin())),
        "csv" => Format::Csv(Csv::default()),
        "xml" => Format::Xml(Xml::default()),
        "arrow" => Format::Arrow,
        "parquet" => Format::Parquet,
        _ => {
            return Err(Error::text(format!(
                "messages(…): no format '{name}'; there are: json, fix, nvfix, csv, xml, arrow, \
                 parquet"
            )));
        }
    })
}
