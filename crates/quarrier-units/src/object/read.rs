//! Reads objects, which may be damaged or hostile.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, BinaryArray, RecordBatch, StringArray, UInt64Array};
use quarrier::search::MATCH_BYTES_MAX;
use quarrier_core::source::Source;
use quarrier_messages::open_arrow_file;

use super::sealed::{IsRight, is_summed, meta_of};
use super::{Identity, Meta, SCHEMA};
use crate::error::{Error, Result};
use crate::label::Labels;
use crate::row::{Row, Take};

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

    fn open_if(source: Box<dyn Source>, identity: &Identity, is_right: IsRight) -> Result<Self> {
        let name = source.name().to_string();
        let json = meta_of(&*source, &SCHEMA, is_right)?;
        let meta: Meta =
            serde_json::from_str(&json).map_err(|error| Error::damaged(&name, error))?;
        match meta.fault(identity) {
            Some(fault) => Err(Error::damaged(&name, fault)),
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
