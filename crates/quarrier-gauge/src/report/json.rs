//! A report as JSON, and the schema that says what it holds.

use super::{FORMAT, Report};
use crate::error::{Error, Result};

impl Report {
    /// The report as JSON, as [`schema`] describes it.
    ///
    /// # Errors
    /// A number of it is none that JSON can hold.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        let mut text = text.map_err(|error| Error::BadRequest(format!("the report: {error}")))?;
        text.push('\n');
        Ok(text)
    }

    /// The report that is written in `bytes`; `name` is told where it is none.
    ///
    /// # Errors
    /// It is not JSON, not a report, or of a layout that this version does not know.
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<Report> {
        /// Every layout has this.
        #[derive(serde::Deserialize)]
        struct Layout {
            format: u32,
        }
        let no_report = |error: serde_json::Error| {
            Error::BadRequest(format!("{name}: is no report of 'quarrier gauge --json': {error}"))
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

/// The JSON schema of a report, as `docs/gauge.schema.json` publishes it.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Report);
    // A schema holds nothing that JSON does not.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
