//! Signatures in TOML.

use quarrier_core::size::{SizeError, parse_size};
use serde::Deserialize;
use toml::Spanned;

use super::Fault;
use super::format::{End, Length, Rules};
use super::masked::Masked;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    signature: Vec<Spanned<Row>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    extension: Option<String>,
    header: Option<Spanned<String>>,
    header_text: Option<String>,
    #[serde(default)]
    offset: u64,
    footer: Option<Spanned<String>>,
    footer_text: Option<String>,
    #[serde(default)]
    footer_is: FooterIs,
    #[serde(default)]
    any_case: bool,
    #[serde(default)]
    min_size: Size,
    max_size: Size,
    length: Option<LengthRow>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum FooterIs {
    #[default]
    First,
    Last,
    Before,
}

/// A size in bytes.
#[derive(Deserialize, Default)]
#[serde(try_from = "Written")]
struct Size(u64);

/// A size in its written form.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a size is a number of bytes, or a text such as \"10 MiB\"")]
enum Written {
    Bytes(u64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LengthRow {
    at: u64,
    bytes: u8,
    #[serde(default)]
    endian: Endian,
    #[serde(default)]
    plus: i64,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Endian {
    #[default]
    Little,
    Big,
}

/// Parses all signatures; returns each with its line.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<(usize, Rules)>, Fault> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Fault::new(line_of(bytes, error.valid_up_to()), "is not UTF-8"))?;
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(bytes, span.start));
        Fault::new(line, error.message())
    })?;
    let mut all = Vec::new();
    for row in file.signature {
        let line = line_of(bytes, row.span().start);
        let fault = |place: usize, what: String| Fault::new(line_of(bytes, place), what);
        all.push((line, rules(row.into_inner(), line, fault)?));
    }
    Ok(all)
}

fn rules(row: Row, line: usize, fault: impl Fn(usize, String) -> Fault) -> Result<Rules, Fault> {
    let bytes = |what: &str, hex: Option<Spanned<String>>, text: Option<String>| match (hex, text) {
        (Some(hex), None) => {
            let wrong = |why| fault(hex.span().start, format!("{what} {:?} {why}", hex.get_ref()));
            Masked::hex(hex.get_ref()).map(Some).map_err(wrong)
        }
        (None, Some(text)) => Ok(Some(Masked::exact(text.as_bytes()))),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Fault::new(line, format!("both {what} and {what}_text"))),
    };
    let header = bytes("header", row.header, row.header_text)?;
    let footer = bytes("footer", row.footer, row.footer_text)?.unwrap_or_default();
    let mut header = header.ok_or_else(|| Fault::new(line, "no header, and no header_text"))?;
    if row.any_case {
        header = header.in_any_case();
    }
    let length = row.length.map(|length| Length {
        at: length.at,
        bytes: length.bytes,
        is_big: length.endian == Endian::Big,
        plus: length.plus,
    });
    Ok(Rules {
        extension: row.extension.unwrap_or_else(|| row.name.clone()),
        name: row.name,
        header,
        offset: row.offset,
        size_bytes_min: row.min_size.0,
        size_bytes_max: row.max_size.0,
        length,
        footer: if row.any_case { footer.in_any_case() } else { footer },
        end: match row.footer_is {
            FooterIs::First => End::First,
            FooterIs::Last => End::Last,
            FooterIs::Before => End::Before,
        },
    })
}

impl TryFrom<Written> for Size {
    type Error = SizeError;

    fn try_from(written: Written) -> Result<Self, SizeError> {
        match written {
            Written::Bytes(bytes) => Ok(Size(bytes)),
            Written::Text(text) => parse_size(&text).map(Size),
        }
    }
}

/// Returns the line of the byte at `place`, from 1.
fn line_of(bytes: &[u8], place: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &bytes[..place.min(bytes.len())]).count()
}
