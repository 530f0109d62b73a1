//! An object with a Parquet file: its footer, and ranges of its bytes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use datafusion::parquet::DecodeResult;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder,
    RowGroupMetaData,
};
use quarrier::source::RemoteSource;
use quarrier_core::source::Source;

use crate::Error;
use crate::files::parquet::NO_FOOTER;

/// The longest hole between two column chunks that a request fetches with them. A longer one is the chunk of
/// another column, which no query may need.
const HOLE_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of bytes that are fetched before they are copied.
const STEP_BYTES: u64 = 32 << 20;

/// Maximum size of a footer. A malicious server may claim any length.
const FOOTER_BYTES_MAX: u64 = 512 << 20;

/// Minimum size of a Bloom filter that is worth a request: its header and two blocks.
const FILTER_BYTES_MIN: i32 = 15 + 2 * 32;

/// Maximum size of Bloom filters that are fetched together.
const FILTERS_BYTES_MAX: u64 = 1 << 20;

/// A Parquet file behind a URL.
#[derive(Debug)]
pub(super) struct ParquetObject {
    /// The URL without its secrets.
    pub(super) name: Arc<str>,
    /// The metadata of the footer, without page indexes.
    pub(super) footer: Arc<ParquetMetaData>,
    source: RemoteSource,
    stop: Arc<AtomicBool>,
}

impl ParquetObject {
    /// Reads the footer, of which the request that opened the source may have fetched all.
    ///
    /// # Errors
    /// The footer is damaged, too long, or cannot be fetched.
    pub(super) fn open(
        source: RemoteSource,
        name: &str,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let footer = footer(&source, stop).map_err(|error| match error {
            Failure::Parquet(error) => Error::table(name, format!("{NO_FOOTER}: {error}")),
            Failure::Fetch(reason) => failed(name, stop, reason),
        })?;
        let footer = without_small_filters(footer)
            .map_err(|error| Error::table(name, format!("its footer cannot be used: {error}")))?;
        let (footer, stop) = (Arc::new(footer), Arc::clone(stop));
        Ok(ParquetObject { name: name.into(), footer, source, stop })
    }

    /// The length of the file in bytes.
    pub(super) fn length(&self) -> u64 {
        self.source.length()
    }

    /// Reads ranges, and fetches the missing ones by few requests. Gives up soon after `is_over` becomes true.
    ///
    /// # Errors
    /// A range ends after the file, or cannot be fetched; the latter is an [`Error`] of this crate.
    pub(super) fn read(
        &self,
        ranges: &[Range<u64>],
        is_over: &AtomicBool,
    ) -> Result<Vec<Bytes>, ParquetError> {
        read(&self.source, ranges, is_over).map_err(|failure| match failure {
            Failure::Parquet(error) => error,
            Failure::Fetch(reason) => {
                ParquetError::External(Box::new(failed(&self.name, &self.stop, reason)))
            }
        })
    }

    /// If `range` begins with a Bloom filter that is not in memory, the filters of its column in all row groups:
    /// whoever reads one reads the others next.
    pub(super) fn filters_with(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        if self.source.holds(range.clone()) {
            return Vec::new();
        }
        let groups = self.footer.row_groups();
        let is_it = |column: &ColumnChunkMetaData| {
            filter(column).is_some_and(|filter| filter.start == range.start)
        };
        let Some(at) = groups.iter().find_map(|group| group.columns().iter().position(is_it))
        else {
            return Vec::new();
        };
        let mut bytes_left = FILTERS_BYTES_MAX;
        groups
            .iter()
            .filter_map(|group| filter(group.columns().get(at)?))
            .filter(|filter| filter.end <= self.length())
            .take_while(|filter| {
                let left = bytes_left.checked_sub(filter.end - filter.start);
                bytes_left = left.unwrap_or(0);
                left.is_some()
            })
            .collect()
    }
}

/// The footer without the Bloom filters that cost more than they save: a filter of one block has few values, and
/// nearly every row group has each of them.
fn without_small_filters(footer: ParquetMetaData) -> Result<ParquetMetaData, ParquetError> {
    let is_small = |column: &ColumnChunkMetaData| {
        column.bloom_filter_length().is_some_and(|bytes| bytes < FILTER_BYTES_MIN)
    };
    let has_small = |group: &RowGroupMetaData| group.columns().iter().any(is_small);
    if !footer.row_groups().iter().any(has_small) {
        return Ok(footer);
    }
    let mut builder = footer.into_builder();
    let mut groups = Vec::new();
    for group in builder.take_row_groups() {
        let mut group = group.into_builder();
        let mut columns = Vec::new();
        for column in group.take_columns() {
            columns.push(match is_small(&column) {
                true => column
                    .into_builder()
                    .set_bloom_filter_offset(None)
                    .set_bloom_filter_length(None)
                    .build()?,
                false => column,
            });
        }
        groups.push(group.set_column_metadata(columns).build()?);
    }
    Ok(builder.set_row_groups(groups).build())
}

/// The place of a column chunk's Bloom filter.
fn filter(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = u64::try_from(column.bloom_filter_offset()?).ok()?;
    let length = u64::try_from(column.bloom_filter_length()?).ok()?;
    Some(start..start.checked_add(length)?)
}

/// Why bytes could not be read.
enum Failure {
    /// The file is damaged.
    Parquet(ParquetError),
    /// The reason of the source.
    Fetch(String),
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        Failure::Parquet(error)
    }
}

fn failed(name: &str, stop: &AtomicBool, reason: String) -> Error {
    match stop.load(Ordering::Relaxed) {
        true => Error::Cancelled,
        false => Error::table(name, reason),
    }
}

fn footer(source: &RemoteSource, stop: &AtomicBool) -> Result<ParquetMetaData, Failure> {
    let decoder = ParquetMetaDataPushDecoder::try_new(source.length())?;
    let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Skip);
    loop {
        match decoder.try_decode()? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                if ranges.iter().any(|range| length_of(range) > FOOTER_BYTES_MAX) {
                    return Err(ParquetError::General("it is too long".to_string()).into());
                }
                let bytes = read(source, &ranges, stop)?;
                decoder.push_ranges(ranges, bytes)?;
            }
            DecodeResult::Finished => {
                return Err(ParquetError::General("it has no metadata".to_string()).into());
            }
        }
    }
}

fn length_of(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Reads ranges, in steps, so that memory grows only with the bytes that arrive.
fn read(
    source: &RemoteSource,
    ranges: &[Range<u64>],
    stop: &AtomicBool,
) -> Result<Vec<Bytes>, Failure> {
    let length = source.length();
    if let Some(wrong) = ranges.iter().find(|range| range.start > range.end || range.end > length) {
        let Range { start, end } = wrong;
        let reason = format!("bytes {start} to {end} of a file with {length} bytes");
        return Err(ParquetError::EOF(reason).into());
    }
    let mut buffers: Vec<Vec<u8>> = vec![Vec::new(); ranges.len()];
    let mut at = 0;
    while at < ranges.len() {
        let (first, mut left) = (at, STEP_BYTES);
        let mut reads: Vec<(u64, &mut [u8])> = Vec::new();
        for (range, buffer) in ranges[first..].iter().zip(&mut buffers[first..]) {
            let held = buffer.len();
            let offset = range.start + held as u64;
            let count = (range.end - offset).min(left);
            let grown = held + usize::try_from(count).unwrap_or(usize::MAX);
            let more = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
            buffer.try_reserve_exact(more).map_err(|_| {
                Failure::Fetch(format!("there is not enough memory for {more} bytes of it"))
            })?;
            buffer.resize(grown, 0);
            reads.push((offset, &mut buffer[held..]));
            left -= count;
            if offset + count < range.end {
                break;
            }
            at += 1;
        }
        source
            .read_apart_unless(&mut reads, HOLE_BYTES_MAX, stop)
            .map_err(|error| Failure::Fetch(error.reason()))?;
    }
    Ok(buffers.into_iter().map(Bytes::from).collect())
}
