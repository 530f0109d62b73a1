//! The master file table: records in sequence, or by number.

use std::collections::BTreeSet;

use super::attribute::{ATTRIBUTE_LIST, Attribute, DATA, Form};
use super::record::{Record, number_of};
use super::{Boot, Runs};
use crate::entry::Content;
use crate::error::Result;
use crate::part::{Part, u16_at, u64_at};
use crate::walk::Walk;

/// Bytes of records read at once.
const STEP_BYTES: u64 = 1 << 20;
/// Maximum size of an attribute list: 256 KiB, as in Windows.
const LIST_BYTES_MAX: u64 = 256 << 10;
/// Maximum size of a compression unit.
const UNIT_BYTES_MAX: u64 = 8 << 20;

pub(super) struct Table<'v, 'p, 's> {
    part: &'p Part<'s>,
    boot: &'v Boot,
    /// The extents of the table: offset in the table, offset in the volume, length.
    pieces: Vec<(u64, u64, u64)>,
    records: u64,
}

impl<'v, 'p, 's> Table<'v, 'p, 's> {
    /// Reads record 0, which locates the table, and its extension records.
    pub(super) fn open(part: &'p Part<'s>, boot: &'v Boot, walk: &mut Walk<'_>) -> Result<Self> {
        let at = boot.table_at;
        let mut table = Table { part, boot, pieces: vec![(0, at, boot.record_bytes)], records: 1 };
        let damaged = || part.refused(at, "a damaged $MFT record");
        let mut bytes = vec![0; boot.record_bytes as usize];
        part.read(at, &mut bytes, "the $MFT record")?;
        let first = Record::mend(0, at, &mut bytes).ok_or_else(damaged)?;
        let own = first.attributes();
        let main = own.iter().find(|one| one.kind == DATA && one.name.is_empty());
        let main = main.ok_or_else(damaged)?;
        let (size, content) = content(part, boot, &own, main, walk)?;
        table.take(size, &content);
        // The remaining runs are in records within the first run.
        if own.iter().any(|one| one.kind == ATTRIBUTE_LIST) {
            let all = table.gather(&first, walk)?;
            let main = all.iter().find(|one| one.kind == DATA && one.name.is_empty());
            let (size, content) = self::content(part, boot, &all, main.ok_or_else(damaged)?, walk)?;
            table.take(size, &content);
        }
        Ok(table)
    }

    fn take(&mut self, size: u64, content: &Content) {
        let base = self.part.place(0);
        self.pieces.clear();
        let mut at = 0u64;
        for run in &content.runs {
            if let Some(place) = run.place {
                self.pieces.push((at, place - base, run.length));
            }
            at = at.saturating_add(run.length);
        }
        self.records = size.min(at) / self.boot.record_bytes;
    }

    /// Reads bytes of the table; returns the offset of the first one, or `None` if some are unmapped.
    fn read(&self, mut at: u64, mut buffer: &mut [u8]) -> Result<Option<u64>> {
        let mut first = None;
        while !buffer.is_empty() {
            let index = self.pieces.partition_point(|piece| piece.0 <= at);
            let Some(&(start, place, length)) = index.checked_sub(1).map(|one| &self.pieces[one])
            else {
                return Ok(None);
            };
            let inside = at - start;
            if inside >= length {
                return Ok(None);
            }
            let bytes = (buffer.len() as u64).min(length - inside) as usize;
            let (now, later) = buffer.split_at_mut(bytes);
            self.part.read(place + inside, now, "the master file table")?;
            first = first.or(Some(place + inside));
            buffer = later;
            at += bytes as u64;
        }
        Ok(first)
    }

    /// Passes every base record to `see`.
    pub(super) fn each<'w>(
        &self,
        walk: &mut Walk<'w>,
        see: &mut dyn FnMut(Record<'_>, &mut Walk<'w>) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        (0..self.steps()).try_for_each(|step| self.step(step, &mut buffer, walk, see))
    }

    /// The number of records that are read at once.
    fn at_once(&self) -> u64 {
        (STEP_BYTES / self.boot.record_bytes).max(1)
    }

    /// The number of steps in which all records are read.
    pub(super) fn steps(&self) -> u64 {
        self.records.div_ceil(self.at_once())
    }

    /// Passes the base records of a step to `see`; steps share the buffer.
    pub(super) fn step<'w>(
        &self,
        step: u64,
        buffer: &mut Vec<u8>,
        walk: &mut Walk<'w>,
        see: &mut dyn FnMut(Record<'_>, &mut Walk<'w>) -> Result<()>,
    ) -> Result<()> {
        let (each, number) = (self.boot.record_bytes, step * self.at_once());
        let records = self.at_once().min(self.records - number);
        buffer.resize((records * each) as usize, 0);
        let whole = self.read(number * each, buffer);
        let place = matches!(whole, Ok(Some(_))) && self.is_together(number * each, buffer.len());
        for (record, bytes) in (number..).zip(buffer.chunks_exact_mut(each as usize)) {
            walk.step(self.part)?;
            let at = match (&whole, place) {
                (Ok(Some(first)), true) => Some(first + (record - number) * each),
                _ => match self.read(record * each, bytes) {
                    Ok(at) => at,
                    Err(error) => {
                        walk.tolerate(Err(error))?;
                        None
                    }
                },
            };
            let Some(at) = at else { continue };
            let is_record = bytes.starts_with(b"FILE");
            match Record::mend(record, at, bytes) {
                Some(record) if record.base() == 0 => {
                    let seen = see(record, walk);
                    walk.tolerate(seen)?;
                }
                None if is_record => {
                    walk.damaged(self.part, at, "a damaged record of the master file table");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a range of the table is contiguous on disk.
    fn is_together(&self, at: u64, bytes: usize) -> bool {
        let index = self.pieces.partition_point(|piece| piece.0 <= at);
        let piece = index.checked_sub(1).map(|one| self.pieces[one]);
        piece.is_some_and(|(start, _, length)| at - start + bytes as u64 <= length)
    }

    /// The attributes of a record and its extension records.
    pub(super) fn gather<'b>(
        &self,
        record: &Record<'b>,
        walk: &mut Walk<'_>,
    ) -> Result<Vec<Attribute<'b>>> {
        let mut all = record.attributes();
        let Some(list) = all.iter().find(|one| one.kind == ATTRIBUTE_LIST) else {
            return Ok(all);
        };
        let list = match &list.form {
            Form::Here { bytes, .. } => bytes.to_vec(),
            Form::Runs { .. } => {
                let (size, content) = content(self.part, self.boot, &all, list, walk)?;
                self.bytes_of(&content, size.min(LIST_BYTES_MAX))?
            }
        };
        let mut others = BTreeSet::new();
        let mut rest = &list[..];
        while rest.len() >= 26 {
            walk.step(self.part)?;
            let length = usize::from(u16_at(rest, 4));
            others.insert(number_of(u64_at(rest, 16)));
            match rest.get(length..) {
                Some(next) if length >= 26 => rest = next,
                _ => break,
            }
        }
        others.remove(&record.number);
        let mut bytes = vec![0; self.boot.record_bytes as usize];
        for number in others {
            walk.step(self.part)?;
            let Some(from) = number.checked_mul(self.boot.record_bytes) else { continue };
            let Some(at) = self.read(from, &mut bytes)? else { continue };
            if let Some(other) = Record::mend(number, at, &mut bytes)
                && number_of(other.base()) == record.number
            {
                all.extend(other.attributes().into_iter().map(|one| one.into_owned()));
            }
        }
        Ok(all)
    }

    /// Reads the bytes of runs; holes are zeros.
    fn bytes_of(&self, content: &Content, size: u64) -> Result<Vec<u8>> {
        let base = self.part.place(0);
        let mut bytes = Vec::new();
        for run in &content.runs {
            let from = bytes.len();
            let length = run.length.min(size - from as u64) as usize;
            bytes.resize(from + length, 0);
            if let Some(place) = run.place {
                self.part.read(place - base, &mut bytes[from..], "an attribute list")?;
            }
        }
        Ok(bytes)
    }
}

/// The size and locations of the stream that begins with `main`; `all` contains its other parts.
pub(super) fn content(
    part: &Part<'_>,
    boot: &Boot,
    all: &[Attribute<'_>],
    main: &Attribute<'_>,
    walk: &mut Walk<'_>,
) -> Result<(u64, Content)> {
    let mut content = Content::default();
    if let Form::Here { at, bytes } = &main.form {
        content.push(Some(part.place(*at)), bytes.len() as u64);
        content.inline = Some(bytes.as_ref().into());
        return Ok((bytes.len() as u64, content));
    }
    let mut parts: Vec<&Attribute<'_>> =
        all.iter().filter(|one| one.kind == main.kind && one.name == main.name).collect();
    parts.sort_by_key(|one| one.first());
    let (mut size, mut cluster) = (0, 0u64);
    for one in parts {
        let Form::Runs { first, runs, size: bytes, written, packed_clusters } = &one.form else {
            continue;
        };
        if *first != cluster {
            content.lost = Some("a part of its run list is missing");
            break;
        }
        if *first == 0 {
            size = *bytes;
            content.written = (*written < *bytes).then_some(*written);
            content.packed_unit = packed_clusters
                .map(|clusters| clusters * boot.cluster_bytes)
                .filter(|bytes| *bytes <= UNIT_BYTES_MAX)
                .map(|bytes| bytes as u32);
        }
        for (place, clusters) in Runs::new(runs) {
            walk.step(part)?;
            cluster = cluster.saturating_add(clusters);
            let bytes = clusters.saturating_mul(boot.cluster_bytes);
            let place = place.map(|place| place.saturating_mul(boot.cluster_bytes));
            if place
                .is_some_and(|place| place.checked_add(bytes).is_none_or(|end| end > part.length()))
            {
                content.lost = Some("its clusters lie beyond the end of the volume");
                return Ok((size, content));
            }
            content.push(place.map(|place| part.place(place)), bytes);
        }
    }
    let found = content.runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.length));
    if found < size {
        content.lost = content.lost.or(Some("its clusters end before its last byte"));
    }
    Ok((size, content))
}
