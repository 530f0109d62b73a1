//! How messages are written: told by their first bytes, then by the file's ending.

use std::sync::Arc;

use quarrier_messages::Format;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;

use crate::args::InputFormat;

/// The format of a source.
///
/// # Errors
/// Where it is none that is read here, with what to try.
pub(super) fn format_of(
    name: &str,
    head: &[u8],
    wish: Option<InputFormat>,
) -> Result<Format, String> {
    let found = match wish {
        Some(wish) => wish,
        None => by_content(name, head)?.or_else(|| by_ending(name)).unwrap_or_else(|| {
            if has_columns(head) { InputFormat::Csv } else { InputFormat::Json }
        }),
    };
    Ok(match found {
        InputFormat::Json => Format::Json,
        InputFormat::Fix => Format::Fix(Arc::new(Dictionary::builtin())),
        InputFormat::Nvfix => Format::Nvfix(Arc::new(Dictionary::builtin())),
        InputFormat::Csv => Format::Csv(Csv::default()),
    })
}

/// What the first bytes say, if they leave no doubt.
fn by_content(name: &str, head: &[u8]) -> Result<Option<InputFormat>, String> {
    for (magic, what) in
        [(&b"PAR1"[..], "Parquet"), (b"ARROW1", "Arrow"), (b"\xFF\xFF\xFF\xFF", "Arrow")]
    {
        if head.starts_with(magic) {
            return Err(format!(
                "{name}: {what} has columns and no messages to print; ask it with Python's \
                 quarrier.Table.from_arrow"
            ));
        }
    }
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).trim_ascii_start();
    Ok(match head.first() {
        Some(b'{') => Some(InputFormat::Json),
        _ if head.starts_with(b"8=FIX") => Some(InputFormat::Fix),
        _ if head.starts_with(b"BeginString=") => Some(InputFormat::Nvfix),
        _ => None,
    })
}

/// What the name says, without the ending of what is compressed.
fn by_ending(name: &str) -> Option<InputFormat> {
    let lower = name.to_ascii_lowercase();
    let plain = [".gz", ".zst"].iter().find_map(|packed| lower.strip_suffix(packed));
    let (_, ending) = plain.unwrap_or(&lower).rsplit_once('.')?;
    match ending {
        "ndjson" | "jsonl" | "json" => Some(InputFormat::Json),
        "fix" => Some(InputFormat::Fix),
        "nvfix" => Some(InputFormat::Nvfix),
        "csv" | "tsv" => Some(InputFormat::Csv),
        _ => None,
    }
}

/// Whether the first line looks like a header: with a delimiter, and no brackets.
fn has_columns(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_value = |byte: &u8| matches!(byte, b'{' | b'}' | b'[' | b']');
    line.iter().any(|byte| matches!(byte, b',' | b';' | b'\t' | b'|')) && !line.iter().any(is_value)
}

#[cfg(test)]
mod tests {
    use super::format_of;

    #[test]
    fn a_format_is_told_by_content_then_by_ending() {
        for (name, head, expected) in [
            ("f", "{\"a\":1}", "Json"),
            ("f.csv", "\u{feff} {\"a\":1}", "Json"),
            ("f", "8=FIX.4.4\u{1}", "Fix"),
            ("f", "BeginString=FIX.4.4\u{1}", "Nvfix"),
            ("f.fix.gz", "garbage", "Fix"),
            ("F.CSV", "a\n1\n", "Csv"),
            ("-", "a,b\n1,2\n", "Csv"),
            ("-", "[1,2]\n", "Json"),
            ("-", "no message\n", "Json"),
        ] {
            let found = format!("{:?}", format_of(name, head.as_bytes(), None).unwrap());
            assert!(found.starts_with(expected), "{name} {head}: {found}");
        }
        assert!(format_of("f", b"PAR1", None).unwrap_err().contains("Parquet"));
    }
}
