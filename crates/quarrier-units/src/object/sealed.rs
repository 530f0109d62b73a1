//! Arrow IPC files whose footer has the data for the join, and a checksum.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Schema};
use crc_fast::Digest;
use quarrier_core::source::{Source, read_full_at};
use quarrier_messages::open_arrow_file;

use crate::error::{Error, Result};

/// The key of the JSON in the footer.
const META_KEY: &str = "quarrier.unit";

/// The key of the checksum.
const SUM_KEY: &str = "quarrier.sum";

/// The checksum algorithm of objects.
const SUM: crc_fast::CrcAlgorithm = crc_fast::CrcAlgorithm::Crc64Nvme;

/// Bytes per step of the checksum.
const SUMMED_BYTES: usize = 1 << 20;

/// Writes batches, then the footer.
pub(crate) struct SealedWriter<W: Write> {
    writer: FileWriter<Summed<W>>,
}

impl<W: Write> SealedWriter<W> {
    pub(crate) fn new(out: W, schema: &Schema) -> io::Result<Self> {
        let out = Summed { out, digest: Digest::new(SUM), bytes: 0 };
        Ok(SealedWriter { writer: FileWriter::try_new(out, schema).map_err(to_io)? })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.write(batch).map_err(to_io)
    }

    /// Writes the footer, with `meta` as JSON.
    pub(crate) fn finish(mut self, meta: String) -> io::Result<W> {
        let summed = self.writer.get_mut();
        let bytes = summed.bytes;
        summed.digest.update(meta.as_bytes());
        let sum = summed.digest.finalize();
        self.writer.write_metadata(META_KEY, meta);
        self.writer.write_metadata(SUM_KEY, format!("{bytes} {sum:016x}"));
        self.writer.finish().map_err(to_io)?;
        Ok(self.writer.into_inner().map_err(to_io)?.out)
    }
}

/// A writer that computes the checksum of its bytes.
struct Summed<W> {
    out: W,
    digest: Digest,
    bytes: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a checksum fits a file's first bytes and its JSON.
pub(crate) type IsRight = fn(&dyn Source, &str, &str) -> bool;

/// The JSON in the footer of a file with these columns.
///
/// # Errors
/// [`Error::Damaged`] if the file is not one.
pub(crate) fn meta_of(source: &dyn Source, schema: &Schema, is_right: IsRight) -> Result<String> {
    let name = source.name();
    let damaged = |reason: &str| Error::damaged(name, reason);
    let file = open_arrow_file(source).map_err(|error| Error::damaged(name, error))?;
    if file.schema.fields() != schema.fields() {
        return Err(damaged("it has other columns"));
    }
    let text = |key: &str| file.metadata.get(key).ok_or_else(|| damaged("it names no unit"));
    let (json, sum) = (text(META_KEY)?.clone(), text(SUM_KEY)?.clone());
    drop(file);
    match is_right(source, &json, &sum) {
        true => Ok(json),
        false => Err(damaged("its checksum is wrong")),
    }
}

/// Whether the checksum fits the file's first bytes and `json`.
pub(crate) fn is_summed(source: &dyn Source, json: &str, sum: &str) -> bool {
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

pub(crate) fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
