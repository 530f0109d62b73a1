//! Parquet files. DataFusion reads them itself, and only the columns and row groups that a query
//! needs.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result as Planned, Statistics};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SpillFile;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use futures::FutureExt;
use futures::future::BoxFuture;
use quarrier_core::{name, panics};

use crate::scan::of_file;
use crate::{Error, Result};

pub(super) async fn table(context: &SessionContext, path: &Path) -> Result<Arc<dyn TableProvider>> {
    let name = name::of_path(path);
    let wrong = |error: &dyn std::fmt::Display| Error::table(&name, error);
    let whole = std::fs::canonicalize(path).map_err(|error| wrong(&error))?;
    let url = url::Url::from_file_path(&whole).map_err(|()| wrong(&"is not a path"))?;
    let url = ListingTableUrl::try_new(url, None).map_err(|error| wrong(&error))?;
    // The content decides, whatever the file's extension.
    let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
    let config = ListingTableConfig::new(url).with_listing_options(options);
    let config = AssertUnwindSafe(config.infer_schema(&context.state())).catch_unwind().await;
    let config = config.map_err(|_| damaged(&name))?;
    let config = config.map_err(|error| wrong(&Error::from(error)))?;
    let inner = Arc::new(ListingTable::try_new(config).map_err(|error| wrong(&error))?);
    Ok(Arc::new(Parquet::new(inner, name, Vec::new())))
}

/// Why a footer cannot be read.
pub(super) const NO_FOOTER: &str =
    "it is damaged, truncated, or not Parquet: its footer cannot be read";

/// The error for a panic of the Parquet reader.
pub(super) fn damaged(name: &str) -> Error {
    // Takes the panic, so that it is not reported as a bug of the statement.
    let _ = panics::take();
    Error::table(name, NO_FOOTER)
}

/// Parquet files whose metadata is read when a scan of them is planned.
pub(super) struct Parquet {
    inner: Arc<ListingTable>,
    name: String,
    /// Temporary files that are deleted when this is dropped.
    _files: Vec<Arc<dyn SpillFile>>,
}

impl Parquet {
    /// A table of Parquet files. `files` are those of them that are temporary.
    pub(super) fn new(
        inner: Arc<ListingTable>,
        name: String,
        files: Vec<Arc<dyn SpillFile>>,
    ) -> Self {
        Parquet { inner, name, _files: files }
    }
}

impl fmt::Debug for Parquet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parquet").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TableProvider for Parquet {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    fn scan<'table, 'session, 'columns, 'filters, 'scan>(
        &'table self,
        state: &'session dyn Session,
        projection: Option<&'columns Vec<usize>>,
        filters: &'filters [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'scan, Planned<Arc<dyn ExecutionPlan>>>
    where
        'table: 'scan,
        'session: 'scan,
        'columns: 'scan,
        'filters: 'scan,
    {
        let plan = self.inner.scan(state, projection, filters, limit);
        let plan = AssertUnwindSafe(plan).catch_unwind();
        let plan = plan.map(|plan| {
            let plan = plan.unwrap_or_else(|_| Err(damaged(&self.name).into()));
            plan.and_then(without_bounds_of_floats).map_err(|error| of_file(&self.name, error))
        });
        Box::pin(plan)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Planned<Vec<TableProviderFilterPushDown>> {
        self.inner.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.inner.statistics()
    }
}

/// Makes the bounds of columns of floats inexact. Writers of Parquet leave NaN out of them, so a column with
/// equal bounds is not constant, as DataFusion assumes.
fn without_bounds_of_floats(plan: Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
    let scan = |node: Arc<dyn ExecutionPlan>| {
        let source = node.downcast_ref::<DataSourceExec>();
        let Some(config) =
            source.and_then(|source| source.data_source().downcast_ref::<FileScanConfig>())
        else {
            return Ok(Transformed::no(node));
        };
        let schema = Arc::clone(config.file_schema());
        if !schema.fields().iter().any(|field| is_float(field.data_type())) {
            return Ok(Transformed::no(node));
        }
        let groups = config.file_groups.iter().map(|group| inexact_group(group, &schema));
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(groups.collect())
            .with_statistics(inexact(&config.statistics(), &schema))
            .build();
        Ok(Transformed::yes(DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>))
    };
    Ok(plan.transform_down(scan)?.data)
}

fn inexact_group(group: &FileGroup, schema: &Schema) -> FileGroup {
    let of_group = group.file_statistics(None).map(|all| Arc::new(inexact(all, schema)));
    let mut files = group.files().to_vec();
    for file in &mut files {
        file.statistics = file.statistics.as_deref().map(|all| Arc::new(inexact(all, schema)));
    }
    let group = FileGroup::new(files);
    match of_group {
        Some(statistics) => group.with_statistics(statistics),
        None => group,
    }
}

/// The statistics with inexact bounds of floats: see [`without_bounds_of_floats`].
pub(super) fn inexact(statistics: &Statistics, schema: &Schema) -> Statistics {
    let mut statistics = statistics.clone();
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        if is_float(field.data_type()) {
            column.min_value = std::mem::take(&mut column.min_value).to_inexact();
            column.max_value = std::mem::take(&mut column.max_value).to_inexact();
        }
    }
    statistics
}

fn is_float(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_float(values),
        data_type => data_type.is_floating(),
    }
}
