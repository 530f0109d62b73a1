//! The report as DFXML, which forensic tools read.

use std::io::{self, Write};

use super::Row;

/// Approximate maximum of the additional size of a row compared with JSON, in bytes.
pub(super) const BYTES_AROUND: u64 = 400;

/// Writes the whole document.
pub(super) fn write(
    out: &mut dyn Write,
    source_name: &str,
    rows: impl Iterator<Item = io::Result<Row>>,
) -> io::Result<()> {
    write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <dfxml xmlns=\"http://www.forensicswiki.org/wiki/Category:Digital_Forensics_XML\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" version=\"1.2.0\">\n\
         <metadata><dc:type>Carve Report</dc:type></metadata>\n\
         <creator><program>quarrier</program><version>{}</version></creator>\n\
         <source><image_filename>{}</image_filename></source>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(source_name),
    )?;
    for row in rows {
        object(out, &row?)?;
    }
    out.write_all(b"</dfxml>\n")
}

fn object(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    write!(out, "<fileobject><filename>{}</filename>", escaped(&row.path))?;
    if !row.reason.is_empty() {
        write!(out, "<error>{}: {}</error>", row.status.name(), escaped(&row.reason))?;
    }
    write!(out, "<filesize>{}</filesize>", row.length)?;
    out.write_all(b"<byte_runs>")?;
    let mut at = 0;
    for extent in &row.extents {
        write!(
            out,
            "<byte_run file_offset=\"{at}\" img_offset=\"{}\" len=\"{}\"/>",
            extent.offset, extent.length
        )?;
        at += extent.length;
    }
    out.write_all(b"</byte_runs>")?;
    for (name, hash) in row.hashes.iter().chain([("sha256", &*row.sha256)]) {
        write!(out, "<hashdigest type=\"{name}\">{hash}</hashdigest>")?;
    }
    out.write_all(b"</fileobject>\n")
}

/// Escapes text for XML, and drops characters that XML does not allow.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", u32::from(c))),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
