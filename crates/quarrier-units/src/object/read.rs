//! Reads objects, which may be damaged or hostile.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, BinaryArray, RecordBatch, StringArray, UInt64Array};
use crc_fast::Digest;
use quarrier::search::MATCH_BYTES_MAX;
use quarrier_core::source::{Source, read_full_at};
use quarrier_messages::open_arrow_file;

use super::{Identity, META_KEY, Meta, SCHEMA, SUM, SUM_KEY};
use crate::error::{Error, Result};
use crate::label::Labels;
use crate::row::{Row, Take};

/// Bytes per step of the checksum.
const SUMMED_BYTES: usize = 1 << 20;

/// An open object.
pub struct Object {
    source: Box<dyn Source>,
    identity: Identity,
    meta: Meta,
}

impl Object {
    /// Opens an object that must hold the rows of `identity`.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it does not hold them.
    pub fn open(source: Box<dyn Source>, identity: &Identity) -> Result<Self> {
        Self::open_if(source, identity, is_summed)
    }

    /// Like [`open`](Self::open), with any checksum: for tests, since hostile bytes may have a correct one.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_unsummed(source: Box<dyn Source>, identity: &Identity) -> Result<Self> {
        Self::open_if(source, identity, |_, _, _| true)
    }

    fn open_if(
        source: Box<dyn Source>,
        identity: &Identity,
        is_right: fn(&dyn Source, &str, &str) -> bool,
    ) -> Result<Self> {
        let name = source.name().to_string();
        let damaged = |reason: &str| Error::damaged(&name, reason);
        let file = open_arrow_file(&*source).map_err(|error| Error::damaged(&name, error))?;
        if file.schema.fields() != SCHEMA.fields() {
            return Err(damaged("it has other columns"));
        }
        let text = |key: &str| file.metadata.get(key).ok_or_else(|| damaged("it names no unit"));
        let (json, sum) = (text(META_KEY)?.clone(), text(SUM_KEY)?.clone());
        drop(file);
        if !is_right(&*source, &json, &sum) {
            return Err(damaged("its checksum is wrong"));
        }
        let meta: Meta =
            serde_json::from_str(&json).map_err(|error| Error::damaged(&name, error))?;
        match meta.fault(identity) {
            Some(fault) => Err(damaged(fault)),
            None => Ok(Object { source, identity: identity.clone(), meta }),
        }
    }

    /// The metadata of the object.
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Passes on the rows with offsets from `from` on, in order.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes are no such rows, and the receiver's errors.
    pub fn rows(&self, labels: &Labels<'_>, from: u64, take: &mut Take<'_>) -> Result<()> {
        let name = self.source.name();
        let file = open_arrow_file(&*self.source).map_err(|error| Error::damaged(name, error))?;
        let mut reading = Reading { object: self, labels, last: None, rows: 0, twins: 0 };
        for batch in file.batches {
            let batch = batch.map_err(|error| Error::damaged(name, error))?;
            reading.batch(&batch, from, take)?;
        }
        match reading.rows == self.meta.rows && reading.twins == self.meta.twins.len() {
            true => Ok(()),
            false => Err(Error::damaged(name, "it has another number of rows")),
        }
    }
}

/// Whether the checksum fits the file's first bytes and `json`.
fn is_summed(source: &dyn Source, json: &str, sum: &str) -> bool {
    let stated = sum.split_once(' ').and_then(|(bytes, sum)| {
        Some((bytes.parse::<u64>().ok()?, u64::from_str_radix(sum, 16).ok()?))
    });
    let Some((bytes, stated)) = stated.filter(|(bytes, _)| *bytes <= source.length()) else {
        return false;
    };
    let (mut digest, mut at, mut buffer) = (Digest::new(SUM), 0, vec![0; SUMMED_BYTES]);
    while at < bytes {
        let wanted = usize::try_from(bytes - at).unwrap_or(SUMMED_BYTES).min(SUMMED_BYTES);
        match read_full_at(source, at, &mut buffer[..wanted]) {
            Ok(read) if read == wanted => digest.update(&buffer[..wanted]),
            Ok(_) | Err(_) => return false,
        }
        at += wanted as u64;
    }
    digest.update(json.as_bytes());
    digest.finalize() == stated
}

/// The rows of an object while they are read.
struct Reading<'r> {
    object: &'r Object,
    labels: &'r Labels<'r>,
    /// Offset and pattern of the last row.
    last: Option<(u64, u32)>,
    rows: u64,
    twins: usize,
}

impl Reading<'_> {
    fn batch(&mut self, batch: &RecordBatch, from: u64, take: &mut Take<'_>) -> Result<()> {
        let name = self.object.source.name();
        let columns = Columns::of(batch).ok_or_else(|| Error::damaged(name, "other columns"))?;
        for at in 0..batch.num_rows() {
            let row = self.row(&columns, at).ok_or_else(|| {
                Error::damaged(name, format!("row {} does not belong to it", self.rows))
            })?;
            self.rows += 1;
            self.last = Some((row.offset, row.pattern));
            if row.offset >= from {
                take(&row).map_err(quarrier::Error::Output)?;
            }
        }
        Ok(())
    }

    /// A row; `None` if it cannot belong to the unit.
    fn row<'b>(&mut self, columns: &Columns<'b>, at: usize) -> Option<Row<'b>> {
        let unit = &self.object.identity.unit;
        let is_null = columns.sources.is_null(at)
            || columns.patterns.is_null(at)
            || columns.matches.is_null(at);
        if is_null || columns.sources.value(at) != unit.source {
            return None;
        }
        let name = columns.names.is_valid(at).then(|| columns.names.value(at));
        let twin = self.object.meta.twins.get(self.twins).copied();
        let pattern = self.labels.find(columns.patterns.value(at), name, || twin)?;
        self.twins += usize::from(self.labels.has_twin(pattern));
        let (offset, found) = (columns.offsets.value(at), columns.matches.value(at));
        let length = u32::try_from(columns.lengths.value(at)).ok()?;
        let is_after = self.last.is_none_or(|last| last <= (offset, pattern));
        let is_whole = found.len() == MATCH_BYTES_MAX.min(length as usize);
        (is_after && is_whole && length > 0 && unit.range.contains(&offset)).then_some(Row {
            offset,
            length,
            pattern,
            found,
        })
    }
}

/// The columns of a batch.
struct Columns<'b> {
    sources: &'b StringArray,
    offsets: &'b UInt64Array,
    lengths: &'b UInt64Array,
    patterns: &'b StringArray,
    names: &'b StringArray,
    matches: &'b BinaryArray,
}

impl<'b> Columns<'b> {
    fn of(batch: &'b RecordBatch) -> Option<Self> {
        let [sources, offsets, lengths, patterns, names, matches] = batch.columns() else {
            return None;
        };
        let offsets = offsets.as_primitive_opt::<UInt64Type>()?;
        let lengths = lengths.as_primitive_opt::<UInt64Type>()?;
        let has_nulls = offsets.null_count() + lengths.null_count() > 0;
        (!has_nulls).then_some(())?;
        Some(Columns {
            sources: sources.as_string_opt()?,
            offsets,
            lengths,
            patterns: patterns.as_string_opt()?,
            names: names.as_string_opt()?,
            matches: matches.as_binary_opt()?,
        })
    }
}
