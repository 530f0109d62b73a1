//! A table whose files other processes read.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Result as Planned, Statistics};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::FILENAME;
use super::{SpreadExec, SpreadSource, Spreading, UnitContent, UnitScan};
use crate::Error;

/// A file whose units workers read.
#[derive(Debug, Clone)]
pub(in crate::files) struct SpreadFile {
    pub(in crate::files) source: SpreadSource,
    pub(in crate::files) content: UnitContent,
    pub(in crate::files) schema: SchemaRef,
    pub(in crate::files) rows: KnownRows,
}

/// What this process knows of the rows of a file.
#[derive(Debug, Clone)]
pub(in crate::files) enum KnownRows {
    /// What a table of this process knows that could read the file, too.
    Of(Arc<dyn TableProvider>),
    /// Their number.
    Count(u64),
}

/// One or more files with the same columns.
pub(in crate::files) struct SpreadTable {
    spreading: Spreading,
    sources: Arc<[SpreadSource]>,
    content: UnitContent,
    known: Vec<KnownRows>,
    /// The columns of each file.
    of_file: SchemaRef,
    /// Those of the table: of several files, the last is the file's name.
    schema: SchemaRef,
}

impl fmt::Debug for SpreadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpreadTable").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

impl SpreadTable {
    /// The table of one file, without its name.
    pub(in crate::files) fn single(spreading: &Spreading, file: SpreadFile) -> Self {
        let SpreadFile { source, content, schema, rows } = file;
        SpreadTable {
            spreading: spreading.clone(),
            sources: [source].into(),
            content,
            known: vec![rows],
            of_file: Arc::clone(&schema),
            schema,
        }
    }

    /// The table of several files, with a column for their names. `None` if they have different columns, or
    /// one of that name.
    pub(in crate::files) fn several(spreading: &Spreading, files: Vec<SpreadFile>) -> Option<Self> {
        let SpreadFile { content, schema: of_file, .. } = files.first()?.clone();
        let is_like_first = |file: &SpreadFile| file.schema == of_file && file.content == content;
        if !files.iter().all(is_like_first) || of_file.field_with_name(FILENAME).is_ok() {
            return None;
        }
        let (sources, known): (Vec<_>, Vec<_>) =
            files.into_iter().map(|file| (file.source, file.rows)).unzip();
        let name: FieldRef = Arc::new(Field::new(FILENAME, DataType::Utf8View, false));
        let fields: Vec<FieldRef> = of_file.fields().iter().cloned().chain([name]).collect();
        let schema = Arc::new(Schema::new(fields));
        let (spreading, sources) = (spreading.clone(), sources.into());
        Some(SpreadTable { spreading, sources, content, known, of_file, schema })
    }

    async fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let scan = UnitScan {
            content: self.content.clone(),
            table: Arc::clone(&self.of_file),
            has_name: self.schema.fields().len() > self.of_file.fields().len(),
            columns,
            limit,
        };
        let statistics = self.statistics_of(state, &scan).await?;
        let on = Arc::clone(&self.spreading.on);
        let exec = SpreadExec::new(on, Arc::clone(&self.sources), scan, statistics);
        let exec = exec.ok_or_else(|| Error::text("a plan cannot be sent to workers"))?;
        Ok(Arc::new(exec))
    }

    /// What this process knows of the rows.
    async fn statistics_of(&self, state: &dyn Session, scan: &UnitScan) -> Planned<Statistics> {
        let own: Vec<usize> = scan.columns_of_file();
        let mut all: Option<Statistics> = None;
        for known in &self.known {
            let one = match known {
                KnownRows::Of(table) => {
                    let plan = table.scan(state, Some(&own), &[], None).await?;
                    StatisticsContext::new().compute(&*plan, &StatisticsArgs::new())?
                }
                KnownRows::Count(count) => {
                    let schema = Arc::new(self.of_file.project(&own)?);
                    let unknown = Statistics::new_unknown(&schema);
                    let count = usize::try_from(*count).unwrap_or(usize::MAX);
                    Arc::new(Statistics { num_rows: Precision::Exact(count), ..unknown })
                }
            };
            all = Some(match all {
                None => one.as_ref().clone(),
                Some(before) => Statistics {
                    num_rows: before.num_rows.add(&one.num_rows),
                    total_byte_size: before.total_byte_size.add(&one.total_byte_size),
                    ..Statistics::new_unknown(&scan.rows())
                },
            });
        }
        let mut all = all.unwrap_or_else(|| Statistics::new_unknown(&scan.rows()));
        if scan.has_name {
            // The statistics of columns have no place for that of the name.
            let unknown = Statistics::new_unknown(&scan.rows());
            all.column_statistics = unknown.column_statistics;
        }
        if scan.limit.is_some() {
            all = all.to_inexact();
            all.total_byte_size = Precision::Absent;
        }
        Ok(all)
    }
}

impl TableProvider for SpreadTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'table, 'session, 'columns, 'filters, 'scan>(
        &'table self,
        state: &'session dyn Session,
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
        self.plan(state, projection, limit).boxed()
    }
}
