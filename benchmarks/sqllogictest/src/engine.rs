//! quarrier-sql as a database of sqllogictest.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Fields};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use quarrier_sql::{Answer, Options};
use sqllogictest::{AsyncDB, ColumnType, DBOutput};

use crate::{packed, shown};

/// Number of partitions that the files expect.
const WORKERS: usize = 4;

/// The column types that the files state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind(char);

impl ColumnType for Kind {
    fn from_char(value: char) -> Option<Self> {
        Some(Kind(if "BDIPRT".contains(value) { value } else { '?' }))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

fn kinds(fields: &Fields) -> Vec<Kind> {
    let kind = |data_type: &DataType| match data_type {
        DataType::Boolean => 'B',
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => 'D',
        DataType::Timestamp(..) => 'P',
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 'T',
        DataType::Dictionary(_, values) if values.is_string() => 'T',
        data_type if data_type.is_integer() => 'I',
        data_type if data_type.is_numeric() => 'R',
        _ => '?',
    };
    fields.iter().map(|field| Kind(kind(field.data_type()))).collect()
}

/// An error message.
#[derive(Debug)]
pub(crate) struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// An engine that packs the tables that a file creates.
#[derive(Clone)]
pub(crate) struct Engine {
    inner: Arc<quarrier_sql::Engine>,
    /// The packed tables in their original form.
    made: Arc<Mutex<HashMap<TableReference, Arc<dyn TableProvider>>>>,
}

impl Engine {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let options = Options { workers: WORKERS, ..Options::default() };
        let inner = Arc::new(quarrier_sql::Engine::new(options)?);
        Ok(Engine { inner, made: Arc::default() })
    }

    async fn answer(&self, sql: &str) -> anyhow::Result<DBOutput<Kind>> {
        let mut output = DBOutput::StatementComplete(0);
        for statement in self.inner.statements(sql)? {
            let changed = self.changed(&statement).await;
            if let Some(name) = &changed {
                self.unpack(name)?;
            }
            let mut rows = match self.inner.run(&statement).await? {
                Answer::Rows(rows) => rows,
                Answer::Copy { mut rows, target, format } => {
                    std::fs::create_dir_all(target.parent().unwrap_or(&target))?;
                    let mut file = std::fs::File::create(&target)?;
                    let name = target.display().to_string();
                    let written = quarrier_sql::write(&mut rows, format, &name, &mut file).await?;
                    let rows = vec![vec![written.rows.to_string()]];
                    output = DBOutput::Rows { types: vec![Kind('I')], rows };
                    continue;
                }
            };
            let fields = rows.schema().fields().clone();
            let mut batches: Vec<RecordBatch> = Vec::new();
            while let Some(batch) = rows.next().await? {
                batches.push(batch);
            }
            if let Some(name) = changed {
                self.pack(name).await?;
            }
            let types = kinds(&fields);
            output = match (types.is_empty(), shown::rows(&batches)?) {
                (true, rows) if rows.is_empty() => DBOutput::StatementComplete(0),
                (_, rows) => DBOutput::Rows { types, rows },
            };
        }
        Ok(output)
    }

    /// Returns the table that a statement creates, fills or drops.
    async fn changed(&self, statement: &quarrier_sql::Statement) -> Option<TableReference> {
        match self.inner.plan(statement).await.ok()? {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(made)) => Some(made.name),
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(made)) => {
                (!made.unbounded).then_some(made.name)
            }
            LogicalPlan::Ddl(DdlStatement::DropTable(dropped)) => Some(dropped.name),
            LogicalPlan::Dml(filled) => Some(filled.table_name),
            _ => None,
        }
    }

    /// Replaces the packed rows of a table by its original form.
    fn unpack(&self, name: &TableReference) -> anyhow::Result<()> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        if let Some(made) = made {
            self.inner.context().deregister_table(name.clone())?;
            self.inner.context().register_table(name.clone(), made)?;
        }
        Ok(())
    }

    /// Replaces a table by packed columns, if these can hold its rows.
    async fn pack(&self, name: TableReference) -> anyhow::Result<()> {
        let context = self.inner.context();
        let Ok(made) = context.table_provider(name.clone()).await else { return Ok(()) };
        if made.constraints().is_some_and(|constraints| !constraints.is_empty()) {
            return Ok(());
        }
        let table = context.table(name.clone()).await?;
        let schema = Arc::new(table.schema().as_arrow().clone());
        let batches = table.collect().await?;
        if let Some(packed) = packed::table(&schema, batches)? {
            context.deregister_table(name.clone())?;
            context.register_table(name.clone(), packed)?;
            self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(name, made);
        }
        Ok(())
    }
}

#[async_trait]
impl AsyncDB for Engine {
    type Error = Failed;
    type ColumnType = Kind;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Kind>, Failed> {
        self.answer(sql).await.map_err(|error| Failed(format!("{error:#}")))
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "DataFusion"
    }
}
