//! Zip: members stored and deflated, with sizes before or after them, narrow or wide; as an archive
//! and as documents.

use arbitrary::{Result, Unstructured};

use super::deflate::{data, deflate};
use super::draft::Draft;
use crate::checksum::crc32;

/// The properties of a member that the directory repeats.
struct Member {
    name: String,
    method: usize,
    flags: usize,
    crc: [u8; 4],
    packed: usize,
    unpacked: usize,
    offset: usize,
}

/// The first names in documents.
const NAMES: [&[&str]; 5] = [
    &["a.txt", "b/c.bin"],
    &["[Content_Types].xml", "_rels/.rels", "word/document.xml"],
    &["[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"],
    &["META-INF/MANIFEST.MF", "A.class"],
    &["mimetype", "content.xml"],
];

pub(super) fn build(u: &mut Unstructured<'_>, draft: &mut Draft) -> Result<()> {
    let names = *u.choose(&NAMES)?;
    let mut members = Vec::new();
    for name in names {
        members.push(member(u, draft, name)?);
    }
    for number in 0..u.int_in_range(0..=3)? {
        members.push(member(u, draft, &format!("more/{number}"))?);
    }
    let start = draft.length();
    members.iter().for_each(|member| entry(draft, member));
    end(u, draft, members.len(), start)
}

fn member(u: &mut Unstructured<'_>, draft: &mut Draft, name: &str) -> Result<Member> {
    let offset = draft.length();
    let data = match name {
        "mimetype" => b"application/vnd.oasis.opendocument.text".to_vec(),
        _ => data(u)?,
    };
    let crc = crc32(&data);
    let is_deflated = name != "mimetype" && u.arbitrary()?;
    let is_behind = is_deflated && u.ratio(1, 3)?;
    let is_wide = !is_behind && u.ratio(1, 4)?;
    let body = draft.part(|part| match is_deflated {
        true => deflate(u, part, &data),
        false => {
            part.put(&data);
            Ok(())
        }
    })?;
    let (method, flags) = (8 * usize::from(is_deflated), 8 * usize::from(is_behind));
    draft.put(b"PK\x03\x04");
    draft.le16(20);
    draft.le16(flags);
    draft.le16(method);
    draft.put([0; 4]);
    let (packed, unpacked) = (body.len(), data.len());
    if is_behind {
        draft.put([0; 12]);
    } else {
        draft.put(crc);
        let narrow = |size| if is_wide { 0xFFFF_FFFF } else { size };
        draft.le32(narrow(packed));
        draft.le32(narrow(unpacked));
    }
    draft.le16(name.len());
    draft.le16(if is_wide { 20 } else { 0 });
    draft.put(name);
    if is_wide {
        draft.le16(1);
        draft.le16(16);
        draft.le64(unpacked);
        draft.le64(packed);
    }
    draft.put(&body);
    if is_behind {
        draft.put(b"PK\x07\x08");
        draft.put(crc);
        draft.le32(packed);
        draft.le32(unpacked);
    }
    Ok(Member { name: name.to_string(), method, flags, crc, packed, unpacked, offset })
}

fn entry(draft: &mut Draft, member: &Member) {
    draft.put(b"PK\x01\x02");
    draft.le16(20);
    draft.le16(20);
    draft.le16(member.flags);
    draft.le16(member.method);
    draft.put([0; 4]);
    draft.put(member.crc);
    draft.le32(member.packed);
    draft.le32(member.unpacked);
    draft.le16(member.name.len());
    draft.le16(0);
    draft.le16(0);
    draft.put([0; 8]);
    draft.le32(member.offset);
    draft.put(&member.name);
}

fn end(u: &mut Unstructured<'_>, draft: &mut Draft, entries: usize, start: usize) -> Result<()> {
    let at = draft.length();
    let size = at - start;
    if u.ratio(1, 4)? {
        draft.put(b"PK\x06\x06");
        draft.le64(44);
        draft.le16(45);
        draft.le16(45);
        draft.put([0; 8]);
        draft.le64(entries);
        draft.le64(entries);
        draft.le64(size);
        draft.le64(start);
        draft.put(b"PK\x06\x07\0\0\0\0");
        draft.le64(at);
        draft.put([1, 0, 0, 0]);
    }
    let comment = u.int_in_range(0..=30)?;
    draft.put(b"PK\x05\x06\0\0\0\0");
    draft.le16(entries);
    draft.le16(entries);
    draft.le32(size);
    draft.le32(start);
    draft.le16(comment);
    draft.put(vec![b'c'; comment]);
    Ok(())
}
