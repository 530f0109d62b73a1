//! A remote Parquet file as a table.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as Planned, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::ExecutionPlan;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::super::parquet::inexact;
use super::object::ParquetObject;
use super::reader::Readers;
use crate::scan::{FileName, of_file};
use crate::{Error, Result};

/// A Parquet file behind a URL. It stays the version that was opened: if the object changes, reading it fails.
pub(super) struct RemoteParquet {
    object: Arc<ParquetObject>,
    schema: SchemaRef,
    statistics: Arc<Statistics>,
}

impl fmt::Debug for RemoteParquet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteParquet").field("name", &self.object.name).finish_non_exhaustive()
    }
}

impl RemoteParquet {
    /// The table of a file.
    ///
    /// # Errors
    /// The schema cannot be represented.
    pub(super) fn of(object: ParquetObject) -> Result<Self> {
        let of_file = |error| Error::from(of_file(&object.name, error));
        let schema = schema_of(&object.footer).map_err(of_file)?;
        let statistics =
            DFParquetMetadata::statistics_from_parquet_metadata(&object.footer, &schema);
        let statistics = Arc::new(inexact(&statistics.map_err(of_file)?, &schema));
        Ok(RemoteParquet { object: Arc::new(object), schema, statistics })
    }

    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let readers = Readers { object: Arc::clone(&self.object) };
        let source =
            ParquetSource::new(&self.schema).with_parquet_file_reader_factory(Arc::new(readers));
        let file = PartitionedFile::new(&*self.object.name, self.object.length())
            .with_statistics(Arc::clone(&self.statistics))
            .with_extension(FileName(Arc::clone(&self.object.name)));
        let group = FileGroup::new(vec![file]).with_statistics(Arc::clone(&self.statistics));
        // The readers know the object; nothing is read from this store.
        let store = ObjectStoreUrl::local_filesystem();
        let config = FileScanConfigBuilder::new(store, Arc::new(source))
            .with_file_group(group)
            .with_statistics(self.statistics.as_ref().clone())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// The schema that DataFusion gives a local file with this footer.
fn schema_of(footer: &ParquetMetaData) -> Planned<SchemaRef> {
    let file = footer.file_metadata();
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
    let fields = schema.fields().iter();
    let plain = fields.map(|field| field.as_ref().clone().with_metadata(HashMap::new()));
    let schema = Schema::new(plain.collect::<Fields>());
    Ok(Arc::new(transform_schema_to_view(&schema)))
}

impl TableProvider for RemoteParquet {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'table, 'session, 'columns, 'filters, 'scan>(
        &'table self,
        _: &'session dyn Session,
        projection: Option<&'columns Vec<usize>>,
        _: &'filters [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'scan, Planned<Arc<dyn ExecutionPlan>>>
    where
        'table: 'scan,
        'session: 'scan,
        'columns: 'scan,
        'filters: 'scan,
    {
        ready(self.plan(projection, limit)).boxed()
    }

    /// DataFusion pushes conditions into the plan, which skips row groups and pages by them.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Planned<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
