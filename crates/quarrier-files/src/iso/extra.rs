//! Rock Ridge extensions of directory records: names, times, links, relocated folders.

use quarrier_core::name;

use super::record::Record;
use super::{Volume, long_time, short_time};
use crate::entry::{Access, Kind, Times};
use crate::error::Result;
use crate::part::u32_at;
use crate::walk::Walk;

/// Maximum continuation areas per record.
const PIECES_MAX: usize = 64;
const PIECE_BYTES_MAX: u32 = 1 << 16;
/// Maximum length of names and link targets.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The Rock Ridge extensions of a record.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) name: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) times: Option<Times>,
    pub(super) access: Access,
    pub(super) target: Option<String>,
    /// The folder was relocated to this block.
    pub(super) moved_to: Option<u32>,
    /// The folder is listed under another parent.
    pub(super) is_relocated: bool,
}

/// The number of bytes to skip before Rock Ridge entries, if the disc has any.
pub(super) fn begins(volume: &Volume<'_, '_>) -> Result<Option<usize>> {
    let mut own = [0; 255];
    let at = volume.byte(volume.root.block);
    let room = volume.part.length().saturating_sub(at).min(255) as usize;
    volume.part.read(at, &mut own[..room], "the root directory")?;
    let length = usize::from(own[0]);
    let Some(record) = Record::read(&own[..length.min(room)], at) else { return Ok(None) };
    let extra = record.extra(&own[..length.min(room)]);
    let is_it = extra.starts_with(b"SP") && extra.get(4..6) == Some(&[0xBE, 0xEF]);
    Ok(is_it.then(|| extra.get(6).map_or(0, |skip| (*skip).into())))
}

/// Reads the extensions of a record.
pub(super) fn read(
    volume: &Volume<'_, '_>,
    record: &Record,
    bytes: &[u8],
    skip: usize,
    walk: &mut Walk<'_>,
) -> Result<Extra> {
    let mut found = EntryExtra::default();
    let mut next = found.piece(record.extra(bytes).get(skip..).unwrap_or_default());
    for _ in 0..PIECES_MAX {
        let Some((block, offset, length)) = next else { break };
        walk.step(volume.part)?;
        let mut piece = vec![0; length.min(PIECE_BYTES_MAX) as usize];
        let at = volume.byte(block).saturating_add(offset.into());
        volume.part.read(at, &mut piece, "the continuation of a record")?;
        next = found.piece(&piece);
    }
    Ok(found.finish())
}

#[derive(Default)]
struct EntryExtra {
    extra: Extra,
    name: Vec<u8>,
    target: Vec<u8>,
    /// Whether the last component of the target continues in the next entry.
    is_part_begun: bool,
}

impl EntryExtra {
    /// Parses one area; returns the location of its continuation.
    fn piece(&mut self, bytes: &[u8]) -> Option<(u32, u32, u32)> {
        let mut rest = bytes;
        let mut next = None;
        while let Some(entry) = rest.get(2).and_then(|length| rest.get(..usize::from(*length))) {
            if entry.len() < 4 {
                break;
            }
            match &entry[..2] {
                b"CE" if entry.len() >= 28 => {
                    next = Some((u32_at(entry, 4), u32_at(entry, 12), u32_at(entry, 20)));
                }
                b"NM" if entry.len() >= 5 && self.name.len() < TEXT_BYTES_MAX => {
                    self.name.extend(&entry[5..]);
                }
                b"PX" if entry.len() >= 12 => {
                    self.extra.access = Access {
                        mode: Some(u32_at(entry, 4) as u16),
                        user: u32_at(entry, 20),
                        group: u32_at(entry, 28),
                    };
                    self.extra.kind = Some(match u32_at(entry, 4) >> 12 & 15 {
                        4 => Kind::Folder,
                        8 => Kind::File,
                        10 => Kind::Link,
                        _ => Kind::Other,
                    });
                }
                b"SL" if entry.len() >= 5 && self.target.len() < TEXT_BYTES_MAX => {
                    self.link(&entry[5..]);
                }
                b"TF" if entry.len() >= 5 => self.times(entry[4], &entry[5..]),
                b"CL" if entry.len() >= 12 => self.extra.moved_to = Some(u32_at(entry, 4)),
                b"RE" => self.extra.is_relocated = true,
                b"ST" => break,
                _ => {}
            }
            rest = &rest[entry.len()..];
        }
        next
    }

    /// Parses link target components: flags, length, bytes.
    fn link(&mut self, mut parts: &[u8]) {
        while let [flags, length, rest @ ..] = parts {
            let (part, after) = rest.split_at(usize::from(*length).min(rest.len()));
            if !self.is_part_begun && !self.target.is_empty() && self.target != b"/" {
                self.target.push(b'/');
            }
            match flags & 0x0E {
                2 => self.target.push(b'.'),
                4 => self.target.extend(b".."),
                8 => self.target = b"/".to_vec(),
                _ => self.target.extend(part),
            }
            self.is_part_begun = flags & 1 != 0;
            parts = after;
        }
    }

    fn times(&mut self, flags: u8, bytes: &[u8]) {
        let each = if flags & 0x80 != 0 { 17 } else { 7 };
        let mut all = bytes.chunks_exact(each).map(|time| match each {
            17 => long_time(time),
            _ => short_time(time),
        });
        let mut time = |bit: u8| if flags & bit != 0 { all.next().flatten() } else { None };
        let times = self.extra.times.get_or_insert_default();
        times.created = time(1).or(times.created);
        times.modified = time(2).or(times.modified);
        times.accessed = time(4).or(times.accessed);
        times.changed = time(8).or(times.changed);
    }

    fn finish(mut self) -> Extra {
        if !self.name.is_empty() {
            self.extra.name = Some(name::of_bytes(&self.name));
        }
        if !self.target.is_empty() {
            self.extra.target = Some(name::of_bytes(&self.target));
        }
        self.extra
    }
}
