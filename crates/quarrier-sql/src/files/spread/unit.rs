//! The scan of a unit by a worker.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result as Planned, Statistics};
use datafusion::datasource::listing::FileRange;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use quarrier_messages::HiddenColumns;

use super::super::FILENAME;
use crate::{Error, Result};

/// What a unit has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitContent {
    /// The row groups of a Parquet file that start in its range.
    RowGroups,
    /// The messages that start in its range.
    Messages(UnitMessages),
    /// The description of those messages: columns, types and bounds, which give all units the same columns.
    Description(UnitMessages),
}

/// How messages are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitMessages {
    /// The name of their format; `None` to detect it.
    pub format: Option<String>,
    /// The columns in addition to their fields.
    pub hidden: HiddenColumns,
}

/// The columns that a scan returns of each unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitScan {
    /// What is scanned.
    pub content: UnitContent,
    /// The columns of the source, which must have exactly these. Messages have no others.
    pub table: SchemaRef,
    /// Whether the table has another column, the last, with the name of the source.
    pub has_name: bool,
    /// The columns to return, by their indices in the table.
    pub columns: Vec<usize>,
    /// The number of rows that suffice.
    pub limit: Option<usize>,
}

impl UnitScan {
    fn is_name(&self, column: usize) -> bool {
        self.has_name && column == self.table.fields().len()
    }

    /// The columns to read of the source.
    pub(crate) fn columns_of_file(&self) -> Vec<usize> {
        self.columns.iter().copied().filter(|column| !self.is_name(*column)).collect()
    }

    /// The columns that the scan returns.
    pub fn rows(&self) -> SchemaRef {
        let field = |column: &usize| -> Option<FieldRef> {
            match self.is_name(*column) {
                true => Some(Arc::new(Field::new(FILENAME, DataType::Utf8View, false))),
                false => self.table.fields().get(*column).cloned(),
            }
        };
        Arc::new(Schema::new(self.columns.iter().filter_map(field).collect::<Vec<_>>()))
    }

    /// Whether all columns exist.
    pub(crate) fn is_valid(&self) -> bool {
        let count = self.table.fields().len() + usize::from(self.has_name);
        self.columns.iter().all(|column| *column < count)
    }

    /// Adds the name of the source to the columns that were read of it.
    pub(crate) fn with_name(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        name: &str,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        if !self.columns.iter().any(|column| self.is_name(*column)) {
            return Ok(plan);
        }
        let schema = plan.schema();
        let mut next = 0;
        let output = |column: &usize| -> ProjectionExpr {
            if self.is_name(*column) {
                let name = ScalarValue::Utf8View(Some(name.to_string()));
                let expr: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(name));
                return ProjectionExpr { expr, alias: FILENAME.to_string() };
            }
            let alias = schema.field(next).name().clone();
            next += 1;
            ProjectionExpr { expr: Arc::new(Column::new(&alias, next - 1)), alias }
        };
        let outputs: Vec<ProjectionExpr> = self.columns.iter().map(output).collect();
        Ok(Arc::new(ProjectionExec::try_new(outputs, plan)?))
    }
}

/// The plan of the scan of a file, limited to row groups that start in a range of its bytes.
pub(crate) fn within(
    plan: Arc<dyn ExecutionPlan>,
    range: &Range<u64>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let end = |offset: u64| i64::try_from(offset).unwrap_or(i64::MAX);
    let range = FileRange { start: end(range.start), end: end(range.end) };
    let mut is_found = false;
    let limited = plan.transform_down(|node: Arc<dyn ExecutionPlan>| {
        let source = node.downcast_ref::<DataSourceExec>();
        let config = source.and_then(|it| it.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = config else { return Ok(Transformed::no(node)) };
        is_found = true;
        let part = |group: &FileGroup| {
            let mut files = group.files().to_vec();
            files.iter_mut().for_each(|file| file.range = Some(range.clone()));
            FileGroup::new(files)
        };
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(config.file_groups.iter().map(part).collect())
            // Those of the file are not those of the range.
            .with_statistics(Statistics::new_unknown(config.file_schema()))
            .build();
        Ok(Transformed::yes(DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>))
    })?;
    match is_found {
        true => Ok(limited.data),
        false => Err(Error::text("the unit is no part of a file")),
    }
}
