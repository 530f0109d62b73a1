//! The chunk tables in the property list, encoded in base64.

/// Why a list is invalid.
type Wrong = &'static str;

/// The decoded tables of the list `blkx`.
pub(super) fn tables(list: &[u8]) -> impl Iterator<Item = Result<Vec<u8>, Wrong>> + '_ {
    let start = find(list, b"<key>blkx</key>").map(|at| &list[at..]);
    let inside = start.map(|list| &list[..find(list, b"</array>").unwrap_or(list.len())]);
    let mut rest = inside.unwrap_or_default();
    std::iter::from_fn(move || {
        let from = find(rest, b"<data>")? + b"<data>".len();
        let data = &rest[from..];
        let Some(end) = find(data, b"</data>") else {
            rest = &[];
            return Some(Err("the property list ends inside a table"));
        };
        rest = &data[end..];
        Some(decode(&data[..end]))
    })
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

/// Decodes base64, ignoring white space.
fn decode(text: &[u8]) -> Result<Vec<u8>, Wrong> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for &letter in text.iter().filter(|letter| !letter.is_ascii_whitespace()) {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => break,
            _ => return Err("a table of the property list is not base64"),
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::tables;

    #[test]
    fn tables_are_those_of_the_list_of_blocks() {
        let list =
            b"<key>plst</key><data>YQ==</data><key>blkx</key><array><dict><data>\n\tYWJj\n\tZA==\n\
                     </data></dict><data>*</data></array><data>YQ==</data>";
        let found: Vec<_> = tables(list).collect();
        assert_eq!(found[0].as_deref(), Ok(&b"abcd"[..]));
        assert!(found[1].is_err() && found.len() == 2);
    }
}
