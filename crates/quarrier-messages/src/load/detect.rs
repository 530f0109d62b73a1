//! Detects the format of a source.

use std::io::Read;
use std::sync::Arc;

use quarrier_core::source::{Source, read_full_at};

use super::{Format, compressed};
use crate::format::csv::Csv;
use crate::format::fix::Dictionary;
use crate::format::xml::Xml;
use crate::{Error, Result};

/// Bytes of a source to examine.
const HEAD_BYTES: u64 = 4 << 10;

impl Format {
    /// The names of all formats, as [`Format::named`] accepts and [`Format::name`] returns them.
    pub const NAMES: [&'static str; 7] = ["json", "fix", "nvfix", "csv", "xml", "arrow", "parquet"];

    /// Returns the format with a name: one of [`Format::NAMES`] or of their file extensions
    /// (`ndjson`, `jsonl`, `tsv`, `feather`), ignoring case. FIX gets the built-in dictionary.
    /// `None` for `auto`, which means to detect each source's format: see [`Format::of`].
    ///
    /// ```
    /// use quarrier_messages::Format;
    ///
    /// assert_eq!(Format::named("NDJSON")?.map(|format| format.name()), Some("json"));
    /// assert!(Format::named("auto")?.is_none());
    /// assert!(Format::named("yaml").is_err());
    /// # Ok::<(), quarrier_messages::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`] for any other name.
    pub fn named(name: &str) -> Result<Option<Format>> {
        let lower = name.to_ascii_lowercase();
        match Format::of_ending(&lower) {
            None if lower == "auto" => Ok(None),
            None => Err(Error::Format { name: name.to_string(), known: &Format::NAMES }),
            known => Ok(known),
        }
    }

    /// Returns the format's name for users.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Fix(_) => "fix",
            Format::Nvfix(_) => "nvfix",
            Format::Csv(_) => "csv",
            Format::Xml(_) => "xml",
            Format::Arrow => "arrow",
            Format::Parquet => "parquet",
        }
    }

    /// Detects the format of a source: by its first bytes, after decompression, or else by the
    /// extension of its name, or else by a guess. FIX gets the built-in dictionary.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn of(source: &dyn Source) -> Result<Format> {
        let mut head = Vec::new();
        match compressed::reader(source)? {
            Some(reader) => {
                // Damage is not an error here: the load reports it, with its position.
                let _ = reader.take(HEAD_BYTES).read_to_end(&mut head);
            }
            None => {
                head.resize(HEAD_BYTES.min(source.length()) as usize, 0);
                let read = read_full_at(source, 0, &mut head);
                read.map_err(|e| quarrier_core::Error::io(source.name(), "read at byte 0", e))?;
            }
        }
        Ok(Format::detect(source.name(), &head).unwrap_or_else(|| Format::guessed(&head)))
    }

    /// Returns the format that the name or the first bytes indicate; `None` if neither does.
    pub fn detect(name: &str, head: &[u8]) -> Option<Format> {
        let text = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).trim_ascii_start();
        let starts = |with: &[u8]| text.starts_with(with);
        if head.starts_with(b"PAR1") {
            return Some(Format::Parquet);
        }
        if head.starts_with(b"ARROW1") || head.starts_with(&[0xFF; 4]) {
            return Some(Format::Arrow);
        }
        if starts(b"8=FIX") {
            return Some(Format::Fix(Arc::new(Dictionary::builtin())));
        }
        if starts(b"BeginString=") {
            return Some(Format::Nvfix(Arc::new(Dictionary::builtin())));
        }
        Format::of_name(name).or(match text.first() {
            Some(b'{' | b'[') => Some(Format::Json),
            Some(b'<') => Some(Format::Xml(Xml::default())),
            _ => None,
        })
    }

    /// Guesses the format of bytes that indicate none: CSV if the first line looks like a header, with a
    /// delimiter and without brackets; else JSON.
    pub fn guessed(head: &[u8]) -> Format {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has = |bytes: &[u8]| line.iter().any(|byte| bytes.contains(byte));
        let has_columns = has(b",;\t|") && !has(b"{}[]");
        if has_columns { Format::Csv(Csv::default()) } else { Format::Json }
    }

    fn of_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        Format::of_ending(name.rsplit_once('.')?.1)
    }

    /// Returns the format of a file extension, in lower case and without the dot.
    fn of_ending(ending: &str) -> Option<Format> {
        Some(match ending {
            "ndjson" | "jsonl" | "json" => Format::Json,
            "fix" => Format::Fix(Arc::new(Dictionary::builtin())),
            "nvfix" => Format::Nvfix(Arc::new(Dictionary::builtin())),
            "csv" => Format::Csv(Csv::default()),
            "tsv" => Format::Csv(Csv { delimiter: Some(b'\t'), has_header: true }),
            "xml" => Format::Xml(Xml::default()),
            "parquet" => Format::Parquet,
            "arrow" | "arrows" | "feather" => Format::Arrow,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn a_format_has_one_name_and_all_its_extensions() {
        for name in Format::NAMES {
            let format = Format::named(name).unwrap().unwrap();
            assert_eq!(format.name(), name);
        }
        for (other, name) in
            [("jsonl", "json"), ("Tsv", "csv"), ("FIX", "fix"), ("feather", "arrow")]
        {
            assert_eq!(Format::named(other).unwrap().unwrap().name(), name, "{other}");
        }
        assert!(Format::named("AUTO").unwrap().is_none());
        let refused = Format::named("yaml").unwrap_err().to_string();
        assert!(refused.contains("'yaml'") && refused.contains("auto, json, "), "{refused}");
    }

    #[test]
    fn certain_content_precedes_names_and_names_precede_guesses() {
        let cases: [(&str, &[u8], &str); 11] = [
            ("a.csv", b"PAR1", "Parquet"),
            ("a", b"ARROW1\0\0", "Arrow"),
            ("a.log", b"8=FIX.4.4\x01", "Fix"),
            ("a", b"BeginString=FIX.4.4\x01", "Nvfix"),
            ("a.csv", b"{\"a\"\n", "Csv"),
            ("a.CSV.gz", b"a,b\n", "Csv"),
            ("a.jsonl.zst", b"", "Json"),
            ("a.xml", b"", "Xml"),
            ("a", b"\xEF\xBB\xBF \n{}", "Json"),
            ("a", b"<a/>", "Xml"),
            ("a", b"a,b\n", "None"),
        ];
        for (name, head, expected) in cases {
            let detected = Format::detect(name, head)
                .map_or("None".into(), |detected| format!("{detected:?}"));
            assert!(detected.starts_with(expected), "{name} {detected}");
        }
    }

    #[test]
    fn unmarked_bytes_are_json_or_have_a_header() {
        for (head, expected) in
            [("a,b\n1,2\n", "Csv"), ("[1,2]\n", "Json"), ("no message\n", "Json"), ("", "Json")]
        {
            let guessed = format!("{:?}", Format::guessed(head.as_bytes()));
            assert!(guessed.starts_with(expected), "{head}: {guessed}");
        }
    }
}
