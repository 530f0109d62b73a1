//! A checkpoint of the index: a file of the data folder with the places of all batches, so that opening the
//! log need not read all of it again.
//!
//! ```text
//!    0  8  "QUARRIDX"                         the rest of the head: `whole`
//!   16  8  the mark after the last batch    4096    segments: their first marks, their salts
//!   24  8  bytes of all batches in the log          headers of CSV: 4, each a list
//!   32  8  batches                                  tables: 4, each its number, 4, and lists of its batches
//!   40  16 zeros                                    publishers: lists
//! ```
//!
//! A list has its length before it, 8 bytes. The file belongs to this log if the folder has its segments with
//! the same salts, except the oldest ones, which retention may have removed.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

use super::index::{Extent, Index};
use super::whole::{self, Head, Unused};
use crate::column::{Input, Output, wrong};
use crate::log::disk::Disk;
use crate::log::{
    EXTENSION_BYTES, Encoding, PAYLOAD_BYTES_MAX, Place, Publication, Publishers, Recovered,
    Result, Sealing, sealings,
};

const MAGIC: &[u8; 8] = b"QUARRIDX";
pub(super) const NAME: &str = "index";
/// Approximate length of a batch in bytes.
const EXTENT_BYTES: usize = 88;

const COMPRESSED: u8 = 1;
const EXTENDED: u8 = 2;
const PUBLISHED: u8 = 4;

/// The state of a log up to a mark.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexState {
    pub(super) index: Index,
    pub(super) publishers: Publishers,
    /// The mark of the oldest segment.
    pub(super) oldest_mark: Option<u64>,
}

impl IndexState {
    /// Returns whether the rest of the log, read from the last mark on, continues this state. If anything is
    /// damaged, the whole log must be read to report it.
    pub(super) fn is_continued_by(&self, rest: &Recovered) -> bool {
        !rest.is_damaged() && rest.next_mark >= self.index.next_mark
    }
}

/// Writes the file. All batches are durable, and nothing in the log is damaged.
///
/// # Errors
/// The disk's error. The earlier file then remains.
pub(super) fn write(
    (disk, logs): (&dyn Disk, &dyn Disk),
    index: &Index,
    publishers: &Publishers,
) -> Result<()> {
    // Segments that are newer have none of these batches.
    let Some(mut segments) = sealings(logs)? else { return Ok(()) };
    segments.retain(|segment| segment.first_mark < index.next_mark);
    let batches: usize = index.numbers().map(|number| index.extents(number).len()).sum();
    let numbers = [index.next_mark, index.stored_bytes, batches as u64, 0, 0];
    let head = Head { magic: MAGIC, table: 0, numbers };
    let about = batches * EXTENT_BYTES + publishers.noted().count() * 32;
    whole::replace(disk, (NAME, about), head, |sink| put(sink, &segments, index, publishers))
}

/// Reads the file if it is intact and belongs to this log.
///
/// # Errors
/// The reason why it is not used.
pub(super) fn read(disk: &dyn Disk, logs: &dyn Disk) -> std::result::Result<IndexState, Unused> {
    let body = |bytes: &mut dyn Read, count| take(bytes, count);
    let (head, (segments, mut known)) = whole::read(disk, NAME, MAGIC, |_| Ok(()), body)?;
    let [next_mark, ..] = head.numbers;
    known.index.next_mark = next_mark;
    let is_possible = known.index.numbers().all(|number| {
        let last = known.index.extents(number).last();
        last.is_none_or(|last| last.marks.end <= next_mark)
    });
    if !is_possible {
        return Err(Unused::damaged());
    }
    let another = || Unused::For("belongs to another log, or to a damaged one".to_string());
    let there = sealings(logs).ok().flatten().ok_or_else(another)?;
    let oldest = there.first().map(|segment| segment.first_mark);
    let is_kept = |segment: &&Sealing| oldest.is_some_and(|oldest| segment.first_mark >= oldest);
    let is_there = segments
        .iter()
        .filter(is_kept)
        .eq(there.iter().take_while(|segment| segment.first_mark < next_mark));
    if !is_there {
        return Err(another());
    }
    known.oldest_mark = oldest;
    known.index.forget_before(oldest.unwrap_or(0));
    Ok(known)
}

/// Removes the file, so that the whole log is read.
pub(super) fn remove(disk: &dyn Disk) {
    let _ = disk.remove(NAME);
}

fn put(
    sink: &mut dyn Write,
    segments: &[Sealing],
    index: &Index,
    publishers: &Publishers,
) -> io::Result<()> {
    let mut out = Output::new(sink);
    out.list(&segments.iter().map(|it| it.first_mark).collect::<Vec<u64>>())?;
    out.list(&segments.iter().map(|it| it.salt).collect::<Vec<u64>>())?;
    let headers = index.headers();
    out.number(headers.len() as u32)?;
    for header in &headers {
        out.list(header)?;
    }
    let places = headers.iter().zip(0..);
    let places = places.map(|(header, at)| (&**header, at)).collect();
    let numbers: Vec<u32> = index.numbers().collect();
    out.number(numbers.len() as u32)?;
    for number in numbers {
        out.number(number)?;
        put_extents(&mut out, index.extents(number), &places)?;
    }
    let noted: Vec<(Publication, u64)> = publishers.noted().collect();
    put_publications(&mut out, noted.iter().map(|(publication, _)| publication))?;
    out.list(&noted.iter().map(|(_, mark)| *mark).collect::<Vec<u64>>())
}

fn put_publications<'p>(
    out: &mut Output<'_>,
    all: impl Iterator<Item = &'p Publication> + Clone,
) -> io::Result<()> {
    out.list(&all.clone().map(|it| it.publisher).collect::<Vec<u64>>())?;
    out.list(&all.clone().map(|it| it.sequence).collect::<Vec<u64>>())?;
    out.list(&all.map(|it| it.source_offset).collect::<Vec<u64>>())
}

fn put_extents(
    out: &mut Output<'_>,
    extents: &[Extent],
    headers: &HashMap<&[u8], u32>,
) -> io::Result<()> {
    let numbers = |of: &dyn Fn(&Extent) -> u64| extents.iter().map(of).collect::<Vec<u64>>();
    out.list(&numbers(&|it| it.marks.start))?;
    out.list(&numbers(&|it| it.marks.end))?;
    out.list(&numbers(&|it| it.place.segment))?;
    out.list(&numbers(&|it| it.place.offset))?;
    out.list(&numbers(&|it| it.place.checksum))?;
    out.list(&numbers(&|it| it.time_us.cast_unsigned()))?;
    let small = |of: &dyn Fn(&Extent) -> u32| extents.iter().map(of).collect::<Vec<u32>>();
    out.list(&small(&|it| it.place.bytes))?;
    out.list(&small(&|it| it.place.bytes_unpacked))?;
    out.list(&small(&|it| headers.get(&*it.header).copied().unwrap_or_default()))?;
    out.list(&extents.iter().map(|it| it.encoding.code()).collect::<Vec<u8>>())?;
    let flags = |it: &Extent| {
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        flag(it.place.is_compressed, COMPRESSED)
            | flag(it.place.extension_bytes > 0, EXTENDED)
            | flag(it.publication.is_some(), PUBLISHED)
    };
    out.list(&extents.iter().map(flags).collect::<Vec<u8>>())?;
    put_publications(out, extents.iter().filter_map(|it| it.publication.as_ref()))
}

fn take(bytes: &mut dyn Read, count: u64) -> io::Result<(Vec<Sealing>, IndexState)> {
    let mut input = Input::new(bytes, count);
    let (marks, salts): (Vec<u64>, Vec<u64>) = (input.list()?, input.list()?);
    check(marks.len() == salts.len())?;
    let segment = |(first_mark, salt)| Sealing { first_mark, salt };
    let segments = marks.into_iter().zip(salts).map(segment).collect();
    let mut headers: Vec<Arc<[u8]>> = Vec::new();
    for _ in 0..input.number::<u32>()? {
        headers.push(input.list::<u8>()?.into());
    }
    let mut known = IndexState::default();
    for _ in 0..input.number::<u32>()? {
        let number = input.number::<u32>()?;
        let extents = take_extents(&mut input, &headers)?;
        known.index.put(number, extents);
    }
    let publications = take_publications(&mut input)?;
    let marks: Vec<u64> = input.list()?;
    check(marks.len() == publications.len() && input.left() == 0)?;
    for (publication, mark) in publications.into_iter().zip(marks) {
        known.publishers.note(publication, mark);
    }
    Ok((segments, known))
}

fn take_publications(input: &mut Input<'_>) -> io::Result<Vec<Publication>> {
    let (publishers, sequences): (Vec<u64>, Vec<u64>) = (input.list()?, input.list()?);
    let offsets: Vec<u64> = input.list()?;
    check(publishers.len() == sequences.len() && sequences.len() == offsets.len())?;
    let all = publishers.into_iter().zip(sequences).zip(offsets);
    let of =
        |((publisher, sequence), source_offset)| Publication { publisher, sequence, source_offset };
    Ok(all.map(of).collect())
}

fn take_extents(input: &mut Input<'_>, headers: &[Arc<[u8]>]) -> io::Result<Vec<Extent>> {
    let mut wide: Vec<Vec<u64>> = Vec::new();
    for _ in 0..6 {
        wide.push(input.list()?);
    }
    let mut small: Vec<Vec<u32>> = Vec::new();
    for _ in 0..3 {
        small.push(input.list()?);
    }
    let (encodings, flags): (Vec<u8>, Vec<u8>) = (input.list()?, input.list()?);
    let mut publications = take_publications(input)?.into_iter();
    let count = encodings.len();
    let are_all = wide.iter().all(|list| list.len() == count)
        && small.iter().all(|list| list.len() == count)
        && flags.len() == count;
    check(are_all)?;
    let mut extents: Vec<Extent> = Vec::with_capacity(count);
    for at in 0..count {
        let [start, end, segment, offset, checksum, time] =
            std::array::from_fn(|list| wide[list][at]);
        let [bytes, bytes_unpacked, header] = std::array::from_fn(|list| small[list][at]);
        let has = |flag: u8| flags[at] & flag != 0;
        let is_possible = start < end
            && extents.last().is_none_or(|last| last.marks.end <= start)
            && bytes as usize <= PAYLOAD_BYTES_MAX
            && bytes_unpacked as usize <= PAYLOAD_BYTES_MAX
            && offset < 1 << 40;
        check(is_possible)?;
        let header = headers.get(header as usize).cloned();
        let publication = if has(PUBLISHED) { publications.next() } else { None };
        check(header.is_some() && publication.is_some() == has(PUBLISHED))?;
        let extension_bytes = if has(EXTENDED) { EXTENSION_BYTES as u32 } else { 0 };
        let is_compressed = has(COMPRESSED);
        extents.push(Extent {
            place: Place {
                segment,
                offset,
                bytes,
                bytes_unpacked,
                is_compressed,
                extension_bytes,
                checksum,
            },
            marks: start..end,
            time_us: time.cast_signed(),
            encoding: Encoding::of(encodings[at]),
            publication,
            header: header.unwrap_or_default(),
        });
    }
    check(publications.next().is_none())?;
    Ok(extents)
}

fn check(is_right: bool) -> io::Result<()> {
    if is_right { Ok(()) } else { Err(wrong("an invalid index")) }
}
