//! Detects the format of messages: by their first bytes, then by the file's extension.

use quarrier_messages::Format;

use crate::{Error, Result};

/// Detects the format of a source, unless it is `requested`.
///
/// # Errors
/// [`Error::Unsupported`] for Arrow and Parquet, with what to use instead.
pub(super) fn format_of(name: &str, head: &[u8], requested: Option<&Format>) -> Result<Format> {
    let format = requested.cloned().or_else(|| Format::detect(name, head));
    let format = format.unwrap_or_else(|| Format::guessed(head));
    match format {
        Format::Arrow | Format::Parquet => Err(Error::Unsupported {
            name: name.to_string(),
            reason: format!(
                "{format:?} has columns and no messages to print; ask for rows of it with \
                 `quarrier query`, or load it with Python's quarrier.Table"
            ),
        }),
        format => Ok(format),
    }
}

#[cfg(test)]
mod tests {
    use super::format_of;

    #[test]
    fn undetected_formats_are_json_or_csv_with_a_header() {
        for (head, expected) in
            [("a,b\n1,2\n", "Csv"), ("[1,2]\n", "Json"), ("no message\n", "Json"), ("", "Json")]
        {
            let found = format!("{:?}", format_of("-", head.as_bytes(), None).unwrap());
            assert!(found.starts_with(expected), "{head}: {found}");
        }
        assert!(format_of("f", b"PAR1", None).unwrap_err().to_string().contains("Parquet"));
    }
}
