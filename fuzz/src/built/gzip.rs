//! Gzip: members with every kind of header.

use arbitrary::{Result, Unstructured};

use super::deflate::{data, deflate};
use super::draft::Draft;
use crate::checksum::crc32;

pub(super) fn build(u: &mut Unstructured<'_>, draft: &mut Draft) -> Result<()> {
    for _ in 0..u.int_in_range(1..=3)? {
        member(u, draft)?;
    }
    Ok(())
}

fn member(u: &mut Unstructured<'_>, draft: &mut Draft) -> Result<()> {
    let flags = u.int_in_range(0..=15u8)? << 1;
    draft.put(b"\x1F\x8B\x08");
    draft.u8(flags);
    draft.put(b"\0\0\0\0");
    draft.u8(*u.choose(&[0, 2, 4])?);
    draft.u8(*u.choose(&[3, 0, 255])?);
    if flags & 4 != 0 {
        let extra = u.int_in_range(0..=20)?;
        draft.le16(extra);
        draft.put(vec![b'x'; extra]);
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            draft.put(b"name\0");
        }
    }
    if flags & 2 != 0 {
        draft.le16(0x1234);
    }
    let data = data(u)?;
    deflate(u, draft, &data)?;
    draft.put(crc32(&data));
    draft.le32(data.len());
    Ok(())
}
