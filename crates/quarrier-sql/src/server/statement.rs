//! Prepares clients' statements: finds their parameters and columns, and substitutes values.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use futures::StreamExt;
use quarrier_wire::{Batch, Failure, Prepared, Result, Rows, Value, kind, sql_name, state};

use super::failure::failed;
use super::parameters;
use crate::{Engine, Statement};

/// A statement as written, and its parsed form if it has no parameters.
pub(super) struct ClientStatement {
    text: String,
    statement: Option<Statement>,
}

/// Parses text that must be a single statement.
pub(super) fn parsed(engine: &Engine, text: &str) -> Result<Statement> {
    let mut statements = engine.statements(text).map_err(|error| failed(&error))?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(Failure::new(state::SYNTAX, "expected one statement")),
    }
}

/// Parses a statement. It is planned now if `describes`, and otherwise when it runs.
pub(super) async fn prepare(
    engine: &Engine,
    text: &str,
    declared: &[u32],
    describes: bool,
) -> Result<Prepared> {
    let count = parameters::count(text)?;
    let kinds = match count {
        0 => Vec::new(),
        _ => parameters::kinds(engine, text, count, declared).await?,
    };
    let statement = match count {
        0 => parsed(engine, text)?,
        // Substitute NULLs: only the types of values count.
        _ => parsed(engine, &with_nulls(text, &kinds)?)?,
    };
    let columns = match describes {
        true => Some(columns_of(engine, &statement, &kinds).await?),
        false => None,
    };
    let tag = if statement.is_explain() { "EXPLAIN" } else { "SELECT" }.to_string();
    let statement = (count == 0).then_some(statement);
    let inner = Arc::new(ClientStatement { text: text.to_string(), statement });
    Ok(Prepared { parameters: kinds, columns, tag, changes: false, inner })
}

/// Substitutes NULLs of the right types for parameters.
fn with_nulls(text: &str, kinds: &[u32]) -> Result<String> {
    parameters::replaced(text, |place| {
        let kind = kinds.get(place).copied().unwrap_or(kind::TEXT);
        match (sql_name(kind), kind::item(kind)) {
            (Some(name), _) => format!(" CAST(NULL AS {name}) "),
            (None, Some(item)) => {
                let name = sql_name(item).unwrap_or("VARCHAR");
                format!(" ARRAY[CAST(NULL AS {name})] ")
            }
            (None, None) => " NULL ".to_string(),
        }
    })
}

async fn columns_of(engine: &Engine, statement: &Statement, kinds: &[u32]) -> Result<SchemaRef> {
    let columns = engine.columns(statement).await.map_err(|error| failed(&error));
    match columns {
        Ok(columns) => Ok(columns),
        // NULL is not a valid LIMIT or pattern, so try other values.
        Err(_) if !kinds.is_empty() => {
            let text = statement.to_string();
            let plain = replaced_nulls(&text);
            let statement = parsed(engine, &plain)?;
            engine.columns(&statement).await.map_err(|error| failed(&error))
        }
        Err(failure) => Err(failure),
    }
}

/// Replaces NULLs of integer types by 1.
fn replaced_nulls(text: &str) -> String {
    let mut text = text.to_string();
    for name in ["BIGINT", "INTEGER", "SMALLINT", "INT"] {
        text = text.replace(&format!("CAST(NULL AS {name})"), "1");
    }
    text
}

impl ClientStatement {
    /// Returns the statement with values for its parameters.
    pub(super) fn with(&self, engine: &Engine, values: &[Value]) -> Result<Statement> {
        if let Some(statement) = &self.statement {
            return Ok(statement.clone());
        }
        parsed(engine, &parameters::with_values(&self.text, values)?)
    }
}

/// Casts rows to the described columns, since a value may differ from the type of its parameter.
pub(super) fn as_described(rows: Rows, described: Option<SchemaRef>) -> Rows {
    let Some(described) = described else { return rows };
    let kinds = |schema: &Schema| -> Vec<_> {
        schema.fields().iter().map(|field| field.data_type().clone()).collect()
    };
    if kinds(&described) == kinds(&rows.schema) {
        return rows;
    }
    let schema = Arc::clone(&described);
    let batches = rows.batches.map(move |batch| {
        let batch = batch?;
        recast(&batch, &schema).map(Batch::from)
    });
    Rows { schema: described, batches: batches.boxed(), is_live: rows.is_live }
}

fn recast(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let changed = |_| Failure::new(state::UNSUPPORTED, "the columns are not those described");
    if batch.num_columns() != schema.fields().len() {
        return Err(Failure::new(state::UNSUPPORTED, "the columns are not those described"));
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>().map_err(changed)?;
    let nullable = schema.fields().iter().map(|it| it.as_ref().clone().with_nullable(true));
    let schema = Arc::new(Schema::new(nullable.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(changed)
}
