//! A DataFusion table of messages.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, Statistics};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use quarrier_messages::{Table, Views};

use crate::at_once::scan_at_once;
use crate::scan::{Condition, MessagesExec, ScanSpec, logical, of_columns};

/// A DataFusion table of messages in packed columns. Its scans evaluate conditions that
/// `quarrier-filter` supports, exactly, as well as projections, limits, counts, grouping and ORDER
/// BY … LIMIT.
#[derive(Debug)]
pub struct Messages {
    views: Views,
}

impl Messages {
    /// Creates a provider of `table`.
    pub fn new(table: Arc<Table>) -> Self {
        Messages { views: Views::new(table) }
    }

    /// Creates a provider of a part of a table with these columns; `None` if `table` is none.
    pub(crate) fn of_part(table: &Table, schema: &SchemaRef) -> Option<Self> {
        Views::of_part(table, schema).map(|views| Messages { views })
    }

    pub(crate) fn views(&self) -> &Views {
        &self.views
    }

    /// The table of messages.
    pub fn table(&self) -> &Arc<Table> {
        self.views.table()
    }

    fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.table().schema();
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..schema.fields.len()).collect(),
        };
        // `supports_filters_pushdown` declared each of them exact.
        let conditions = filters.iter().filter_map(|filter| logical(filter, schema));
        let spec = ScanSpec {
            columns,
            condition: Condition::all(conditions.collect()),
            order: Vec::new(),
            fetch: limit,
        };
        let partitions = state.config().target_partitions();
        Ok(Arc::new(MessagesExec::new(self.views.clone(), spec, partitions)?))
    }
}

impl TableProvider for Messages {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.views.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    scan_at_once!();

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let schema = self.table().schema();
        let answered = |filter: &&Expr| match logical(filter, schema) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answered).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        let columns: Vec<usize> = (0..self.table().columns().len()).collect();
        Some(of_columns(self.table(), &columns))
    }
}
