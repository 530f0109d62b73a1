//! Reads a remote Parquet file for DataFusion.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use datafusion::common::Result as Planned;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::object::ParquetObject;
use crate::net::blocking;

/// Makes readers of one file.
#[derive(Debug)]
pub(super) struct Readers {
    pub(super) object: Arc<ParquetObject>,
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        _: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Planned<Box<dyn AsyncFileReader + Send>> {
        let metrics = ParquetFileMetrics::new(partition, file.path().as_ref(), metrics);
        Ok(Box::new(Reader { object: Arc::clone(&self.object), metrics }))
    }
}

struct Reader {
    object: Arc<ParquetObject>,
    metrics: ParquetFileMetrics,
}

/// Ends a read when the future that waits for it is dropped.
#[derive(Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Reader {
    /// Reads ranges, of which the caller needs the first `wanted`.
    fn read(
        &self,
        ranges: Vec<Range<u64>>,
        wanted: usize,
    ) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        let bytes = ranges[..wanted].iter().map(|range| range.end.saturating_sub(range.start));
        self.metrics.bytes_scanned.add(usize::try_from(bytes.sum::<u64>()).unwrap_or(usize::MAX));
        let object = Arc::clone(&self.object);
        async move {
            let over = Over::default();
            let is_over = Arc::clone(&over.0);
            let read = blocking(move || Ok(object.read(&ranges, &is_over))).await;
            let read = read.map_err(|error| ParquetError::External(Box::new(error)))?;
            drop(over);
            read
        }
        .boxed()
    }
}

impl AsyncFileReader for Reader {
    /// Reads a page index or a Bloom filter; column chunks are read by
    /// [`get_byte_ranges`](Self::get_byte_ranges).
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        let filters = self.object.filters_with(&range);
        let ranges = std::iter::once(range).chain(filters).collect();
        let read = self.read(ranges, 1);
        read.map(|read| Ok(read?.swap_remove(0))).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        let wanted = ranges.len();
        self.read(ranges, wanted)
    }

    /// The footer. DataFusion itself reads the page index, if a condition can use it.
    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        ready(Ok(Arc::clone(&self.object.footer))).boxed()
    }
}
