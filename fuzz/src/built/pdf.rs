//! PDF: objects with streams, a cross-reference table, and incremental updates.

use arbitrary::{Result, Unstructured};

use super::deflate::{data, zlib};
use super::draft::Draft;

pub(super) fn build(u: &mut Unstructured<'_>, draft: &mut Draft) -> Result<()> {
    draft.put("%PDF-1.4\n%\u{e2}\u{e3}\u{cf}\u{d3}\n");
    let count = u.int_in_range(2..=8)?;
    let mut places = Vec::new();
    for number in 1..=count {
        places.push(draft.length());
        object(u, draft, number, count)?;
    }
    let mut table = table(draft, &[(1, &places[..])], count + 1, None);
    // Each update replaces one object.
    for _ in 0..u.int_in_range(0..=2)? {
        let number = u.int_in_range(2..=count)?;
        let place = draft.length();
        object(u, draft, number, count)?;
        table = self::table(draft, &[(number, &[place])], count + 1, Some(table));
    }
    Ok(())
}

fn object(u: &mut Unstructured<'_>, draft: &mut Draft, number: usize, count: usize) -> Result<()> {
    draft.decimal(number, 1);
    draft.put(" 0 obj\n");
    match number {
        1 => {
            draft.put("<< /Type /Catalog /Pages ");
            draft.decimal(2, 1);
            draft.put(" 0 R >>\n");
        }
        2 => draft.put("<< /Type /Pages /Kids [] /Count 0 >>\n"),
        _ if u.arbitrary()? => {
            let data = data(u)?;
            let is_packed = u.arbitrary()?;
            let body = draft.part(|part| match is_packed {
                true => zlib(u, part, &data),
                false => {
                    part.put(data.iter().map(|byte| b'a' + byte % 26).collect::<Vec<u8>>());
                    Ok(())
                }
            })?;
            draft.put("<< /Length ");
            draft.decimal(body.len(), 1);
            draft.put(if is_packed {
                " /Filter /FlateDecode >>\nstream\n"
            } else {
                " >>\nstream\n"
            });
            draft.put(&body);
            draft.put("\nendstream\n");
        }
        _ => {
            draft.put("<< /Kind (text \\) in it) /Next ");
            draft.decimal(1 + number % count, 1);
            draft.put(" 0 R /Many [1 2.5 <AB0> /Name null true] >>\n");
        }
    }
    draft.put("endobj\n");
    Ok(())
}

/// Writes a table of sections, the trailer and the end; returns where the table begins.
fn table(
    draft: &mut Draft,
    sections: &[(usize, &[usize])],
    size: usize,
    before: Option<usize>,
) -> usize {
    let start = draft.length();
    draft.put("xref\n");
    if before.is_none() {
        draft.put("0 1\n0000000000 65535 f \n");
    }
    for (first, places) in sections {
        draft.decimal(*first, 1);
        draft.put(" ");
        draft.decimal(places.len(), 1);
        draft.put("\n");
        for place in *places {
            draft.decimal(*place, 10);
            draft.put(" 00000 n \n");
        }
    }
    draft.put("trailer\n<< /Size ");
    draft.decimal(size, 1);
    draft.put(" /Root 1 0 R");
    if let Some(before) = before {
        draft.put(" /Prev ");
        draft.decimal(before, 1);
    }
    draft.put(" >>\nstartxref\n");
    draft.decimal(start, 1);
    draft.put("\n%%EOF\n");
    start
}
