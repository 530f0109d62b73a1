//! A report as JSON. Its schema is published in `docs/gauge.schema.json`.

use super::{FORMAT, Report};
use crate::error::{Error, Result};

impl Report {
    /// Formats the report as JSON; its schema is `docs/gauge.schema.json`.
    ///
    /// # Errors
    /// If one of its numbers cannot be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        let mut text = text.map_err(|error| Error::BadRequest(format!("the report: {error}")))?;
        text.push('\n');
        Ok(text)
    }

    /// Parses the report in `bytes`; `name` is the file's name in errors.
    ///
    /// # Errors
    /// If the bytes are not JSON, not a report, or in a layout that this version does not know.
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<Report> {
        /// The field that every layout has.
        #[derive(serde::Deserialize)]
        struct Layout {
            format: u32,
        }
        let no_report = |error: serde_json::Error| {
            Error::BadRequest(format!(
                "{name}: is not a report of 'quarrier gauge --json': {error}"
            ))
        };
        let layout: Layout = serde_json::from_slice(bytes).map_err(no_report)?;
        if layout.format != FORMAT {
            return Err(Error::BadRequest(format!(
                "{name}: the report has format {}, and this version reads {FORMAT}; measure again",
                layout.format
            )));
        }
        serde_json::from_slice(bytes).map_err(no_report)
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn the_published_schema_is_the_one_that_this_version_writes() {
        let schema = schemars::schema_for!(Report);
        let schema = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gauge.schema.json");
        if std::env::var_os("QUARRIER_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap();
        let how = "QUARRIER_WRITE_SCHEMA=1 cargo test -p quarrier-gauge schema";
        assert!(published == schema, "docs/gauge.schema.json is stale; write it by: {how}");
    }
}
