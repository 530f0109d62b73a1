//! The ZIP file around an AFF4 image: locates members from the central directory, without reading their
//! data.
//!
//! *PKWARE, APPNOTE.TXT*, with ZIP64 sizes. Members are found by the URN that their name encodes:
//! writers differ in which characters they escape, and may leave out the URN of the volume.

use std::cmp::Ordering;
use std::io;
use std::iter;

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};

use crate::bytes::{u16_le, u32_le, u64_le};
use crate::fault::{damaged, invalid, refused, room, structure};
use crate::unpack::Unpacker;

const END_BYTES: u64 = 22;
const END64_BYTES: u64 = 56;
const LOCATOR_BYTES: u64 = 20;
const ENTRY_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// The end of a file that can contain the end of central directory record, which may have a comment.
const TAIL_BYTES: u64 = END_BYTES + LOCATOR_BYTES + u16::MAX as u64;
/// Enough for 10 TiB with the usual segments of 64 MiB.
const DIRECTORY_BYTES_MAX: u64 = 128 << 20;
const DESCRIPTION_BYTES_MAX: u64 = 4096;

/// The 32-bit value that marks a number as stored in the ZIP64 field.
const FULL: u64 = u32::MAX as u64;
const DEFLATED: u16 = 8;
const IS_ENCRYPTED: u16 = 1;

/// A member of the ZIP file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// The offset of its local header.
    pub(super) header_at: u64,
    /// Its stored size in bytes.
    pub(super) bytes: u64,
    unpacked_bytes: u64,
    method: u16,
    is_encrypted: bool,
}

impl Member {
    /// Whether it is stored uncompressed.
    pub(super) fn is_stored(&self) -> bool {
        self.method == 0 && !self.is_encrypted
    }

    /// The offset of its data in the file.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` if no member begins there.
    pub(super) fn data_at(&self, file: &dyn Source) -> io::Result<u64> {
        let mut header = [0; LOCAL_BYTES];
        let read = read_full_at(file, self.header_at, &mut header)?;
        if read < header.len() || !header.starts_with(b"PK\x03\x04") {
            let at = self.header_at;
            return Err(invalid(format!("no member of the ZIP file begins at byte {at}")));
        }
        let names = u64::from(u16_le(&header, 26)) + u64::from(u16_le(&header, 28));
        Ok(self.header_at.saturating_add(LOCAL_BYTES as u64 + names))
    }

    /// Its whole contents, inflated if necessary; for small members.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` if it has more than `bytes_max`, or is damaged.
    pub(super) fn whole(&self, file: &dyn Source, bytes_max: u64) -> io::Result<Vec<u8>> {
        let bytes = self.bytes.max(self.unpacked_bytes);
        if bytes > bytes_max {
            return Err(invalid(format!("it has {bytes} bytes, more than the maximum")));
        }
        if !self.is_stored() && (self.method != DEFLATED || self.is_encrypted) {
            return Err(invalid(format!(
                "it is encrypted, or compressed with an unsupported method ({})",
                self.method
            )));
        }
        let at = self.data_at(file)?;
        let mut packed = room(file.length().saturating_sub(at).min(self.bytes) as usize)?;
        if read_full_at(file, at, &mut packed)? as u64 != self.bytes {
            return Err(invalid("the file is truncated"));
        }
        if self.is_stored() {
            return Ok(packed);
        }
        let mut unpacked = room(self.unpacked_bytes as usize)?;
        if !unpacked.is_empty() {
            Unpacker::default().deflate(&packed, &mut unpacked)?;
        }
        Ok(unpacked)
    }
}

/// The members of the file, by the URNs that their names encode.
pub(super) struct Container {
    directory: Vec<u8>,
    /// Offsets of directory entries, sorted by unescaped name. Entries of the same name keep their
    /// order.
    entries: Vec<u32>,
    directory_at: u64,
    /// The URN of the volume; empty if it has none.
    pub(super) volume: String,
}

impl Container {
    /// Reads the directory at the end of `file`.
    pub(super) fn open(file: &dyn Source) -> Result<Container> {
        let (end, comment) = End::read(file)?;
        let length = file.length();
        if end.bytes > DIRECTORY_BYTES_MAX {
            let reason = format!("its directory of {} bytes is too large", end.bytes);
            return Err(damaged(file, end.at.min(length), reason));
        }
        let directory = structure(file, end.at, end.bytes, "the directory of the ZIP file")?;
        let entries = entries(&directory, end.count);
        let mut entries = entries
            .ok_or_else(|| damaged(file, end.at, "the directory of the ZIP file is truncated"))?;
        entries.sort_by(|&one, &other| {
            decoded(name(&directory, one)).cmp(decoded(name(&directory, other)))
        });
        let mut container =
            Container { directory, entries, directory_at: end.at, volume: String::new() };
        container.volume = match container.find("container.description") {
            Some(member) => {
                let text = member.whole(file, DESCRIPTION_BYTES_MAX);
                let text = text.map_err(|error| {
                    damaged(file, member.header_at, format!("container.description: {error}"))
                })?;
                urn(&text)
            }
            None => urn(&comment),
        };
        Ok(container)
    }

    /// Finds a member by URN or by a name within the volume. If several exist, the last one written
    /// counts.
    pub(super) fn find(&self, urn: &str) -> Option<Member> {
        self.names(urn).into_iter().flatten().find_map(|wanted| self.named(wanted))
    }

    /// A member that must exist; errors call it `what`.
    pub(super) fn needed(&self, file: &dyn Source, urn: &str, what: &str) -> Result<Member> {
        let member = self.find(urn).ok_or_else(|| {
            damaged(file, self.directory_at, format!("the ZIP file has no {what}"))
        })?;
        match member.is_encrypted {
            true => Err(refused(file, "is encrypted; decrypt it with the tool that made it")),
            false => Ok(member),
        }
    }

    /// The whole contents of a small member that must exist.
    pub(super) fn small(
        &self,
        file: &dyn Source,
        urn: &str,
        what: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>> {
        let member = self.needed(file, urn, what)?;
        let bytes = member.whole(file, bytes_max);
        bytes.map_err(|error| damaged(file, member.header_at, format!("{what}: {error}")))
    }

    /// The members below a URN: the part of their names after the slash, of at most `rest_bytes_max`
    /// bytes.
    pub(super) fn below(&self, urn: &str, rest_bytes_max: usize) -> Vec<(Vec<u8>, Member)> {
        let mut found = Vec::new();
        for above in self.names(urn).into_iter().flatten() {
            let above = [above, "/"].concat();
            let first = self.entries.partition_point(|&entry| {
                decoded(name(&self.directory, entry)).lt(decoded(above.as_bytes()))
            });
            found.extend(self.entries[first..].iter().map_while(|&entry| {
                let mut rest = decoded(name(&self.directory, entry));
                let is_below = decoded(above.as_bytes()).all(|byte| rest.next() == Some(byte));
                let rest: Vec<u8> = rest.take(rest_bytes_max + 1).collect();
                is_below.then(|| (rest, self.member(entry)))
            }));
        }
        found.retain(|(rest, _)| rest.len() <= rest_bytes_max);
        found
    }

    /// The two names that a URN may have: the full one, and the part after the volume's URN.
    fn names<'a>(&self, urn: &'a str) -> [Option<&'a str>; 2] {
        let within = urn.strip_prefix(&self.volume).filter(|_| !self.volume.is_empty());
        let within = within.and_then(|rest| rest.strip_prefix('/'));
        [Some(urn), within.map(|rest| rest.trim_start_matches('/'))]
    }

    fn named(&self, wanted: &str) -> Option<Member> {
        let compared =
            |entry: u32| decoded(name(&self.directory, entry)).cmp(decoded(wanted.as_bytes()));
        let end = self.entries.partition_point(|&entry| compared(entry) != Ordering::Greater);
        let last = self.entries[end.checked_sub(1)?];
        (compared(last) == Ordering::Equal).then(|| self.member(last))
    }

    fn member(&self, entry: u32) -> Member {
        let entry = &self.directory[entry as usize..];
        let mut member = Member {
            header_at: u32_le(entry, 42).into(),
            bytes: u32_le(entry, 20).into(),
            unpacked_bytes: u32_le(entry, 24).into(),
            method: u16_le(entry, 10),
            is_encrypted: u16_le(entry, 8) & IS_ENCRYPTED != 0,
        };
        // ZIP64 values follow in this order, one for each field that is saturated.
        let mut wide = wide_numbers(entry);
        for number in [&mut member.unpacked_bytes, &mut member.bytes, &mut member.header_at] {
            if *number == FULL && wide.len() >= 8 {
                *number = u64_le(wide, 0);
                wide = &wide[8..];
            }
        }
        member
    }
}

/// The location of the central directory.
struct End {
    at: u64,
    bytes: u64,
    count: u64,
}

impl End {
    /// Reads the end of central directory record, and its comment.
    fn read(file: &dyn Source) -> Result<(End, Vec<u8>)> {
        let tail_at = file.length().saturating_sub(TAIL_BYTES);
        let tail = structure(file, tail_at, file.length() - tail_at, "the end of the ZIP file")?;
        let is_end = |at: &usize| {
            let end = &tail[*at..];
            end.starts_with(b"PK\x05\x06")
                && END_BYTES as usize + usize::from(u16_le(end, 20)) == end.len()
        };
        let last = tail.len().checked_sub(END_BYTES as usize);
        let Some(at) = last.and_then(|last| (0..=last).rev().find(is_end)) else {
            let reason = "the directory at the end of the ZIP file is missing";
            return Err(damaged(file, file.length(), reason));
        };
        let end = &tail[at..];
        let narrow = End {
            at: u32_le(end, 16).into(),
            bytes: u32_le(end, 12).into(),
            count: u16_le(end, 10).into(),
        };
        let comment = end[END_BYTES as usize..].to_vec();
        let is_full =
            narrow.at == FULL || narrow.bytes == FULL || narrow.count == u64::from(u16::MAX);
        let locator = at.checked_sub(LOCATOR_BYTES as usize).map(|from| &tail[from..at]);
        match locator.filter(|locator| is_full && locator.starts_with(b"PK\x06\x07")) {
            None => Ok((narrow, comment)),
            Some(locator) => {
                let at = u64_le(locator, 8);
                let end = structure(file, at, END64_BYTES, "the end of the ZIP file")?;
                if !end.starts_with(b"PK\x06\x06") {
                    return Err(damaged(file, at, "the directory of the ZIP file has no end"));
                }
                let wide =
                    End { at: u64_le(&end, 48), bytes: u64_le(&end, 40), count: u64_le(&end, 32) };
                Ok((wide, comment))
            }
        }
    }
}

/// The offsets of the directory's entries; `None` if there are fewer than `count`.
fn entries(directory: &[u8], count: u64) -> Option<Vec<u32>> {
    let (mut entries, mut at) = (Vec::new(), 0usize);
    for _ in 0..count {
        let entry = directory
            .get(at..)
            .filter(|entry| entry.len() >= ENTRY_BYTES && entry.starts_with(b"PK\x01\x02"))?;
        let lengths = [28, 30, 32].map(|at| usize::from(u16_le(entry, at)));
        let bytes = ENTRY_BYTES + lengths.iter().sum::<usize>();
        if bytes > entry.len() {
            return None;
        }
        entries.push(u32::try_from(at).ok()?);
        at += bytes;
    }
    Some(entries)
}

fn name(directory: &[u8], entry: u32) -> &[u8] {
    let entry = &directory[entry as usize..];
    &entry[ENTRY_BYTES..ENTRY_BYTES + usize::from(u16_le(entry, 28))]
}

/// The ZIP64 extra field of an entry, empty if it has none.
fn wide_numbers(entry: &[u8]) -> &[u8] {
    let from = ENTRY_BYTES + usize::from(u16_le(entry, 28));
    let mut extra = &entry[from..from + usize::from(u16_le(entry, 30))];
    while extra.len() >= 4 {
        let (kind, bytes) = (u16_le(extra, 0), usize::from(u16_le(extra, 2)));
        let rest = &extra[4..];
        let Some(data) = rest.get(..bytes) else { break };
        if kind == 1 {
            return data;
        }
        extra = &rest[bytes..];
    }
    &[]
}

/// Decodes percent escapes (`%3A`) in a name.
fn decoded(name: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mut rest = name;
    iter::from_fn(move || {
        let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
        let (&byte, after) = rest.split_first()?;
        match (byte, digit(1).zip(digit(2))) {
            (b'%', Some((high, low))) => {
                rest = &rest[3..];
                Some((high * 16 + low) as u8)
            }
            _ => {
                rest = after;
                Some(byte)
            }
        }
    })
}

/// The URN in the description or comment of a container; some writers add a zero or a newline.
fn urn(text: &[u8]) -> String {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text).trim().trim_end_matches('/').to_string();
    if text.starts_with("aff4://") { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_a_name_do_not_matter() {
        let same = |one: &str, other: &str| decoded(one.as_bytes()).eq(decoded(other.as_bytes()));
        assert!(same("aff4%3A%2F%2Fa/b", "aff4://a/b"));
        assert!(same("aff4%3a%2f%2fa%2Fb", "aff4://a/b"));
        assert!(same("%", "%25") && same("%zz", "%25zz") && same("%4", "%254"));
        assert!(!same("a", "b"));
    }

    #[test]
    fn the_urn_of_a_volume_ends_at_a_zero_or_a_line() {
        assert_eq!(urn(b"aff4://a\0\0"), "aff4://a");
        assert_eq!(urn(b"aff4://a/\r\n"), "aff4://a");
        assert_eq!(urn(b"a comment"), "");
    }
}
