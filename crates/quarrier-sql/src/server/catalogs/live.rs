//! Tables about the server itself, rebuilt for every query: `quarrier.queries`,
//! `quarrier.connections`, `quarrier.tables`, `quarrier.rates`, `quarrier.log`, `quarrier.copies`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{MemorySchemaProvider, Session, TableProvider};
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use quarrier::DataFolder;
use quarrier::kept::{CopyState, LogState};
use quarrier_wire::{Board, TableInfo};

use crate::at_once::scan_at_once;

/// The schema of these tables.
pub(super) const SCHEMA: &str = "quarrier";

/// Makes a table's rows.
type Make = Box<dyn Fn(SchemaRef) -> Result<RecordBatch> + Send + Sync>;

pub(super) struct Live {
    schema: SchemaRef,
    make: Make,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Live {
    fn plan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batch = (self.make)(Arc::clone(&self.schema))?;
        let schema = Arc::clone(&self.schema);
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, projection.cloned())?)
    }
}

impl TableProvider for Live {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    scan_at_once!();
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    let fields = fields.iter().map(|(name, data)| Field::new(*name, data.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Registers the tables. Returns the names and columns of those in [`SCHEMA`].
pub(super) fn register(
    context: &SessionContext,
    board: &Arc<Board>,
    served: &[TableInfo],
    kept: Option<&Arc<DataFolder>>,
) -> crate::Result<Vec<(&'static str, SchemaRef)>> {
    let catalog = context.catalog("quarrier").ok_or_else(|| crate::Error::Setup {
        reason: "there is no catalog to put tables in".to_string(),
    })?;
    catalog.register_schema(SCHEMA, Arc::new(MemorySchemaProvider::new()))?;
    let mut own = Vec::new();
    for (name, table) in [
        ("queries", queries(Arc::clone(board))),
        ("connections", connections(Arc::clone(board))),
        ("tables", tables(served.to_vec())),
        ("rates", rates(Arc::clone(board))),
        ("log", log(kept.map(Arc::clone))),
        ("copies", copies(kept.map(Arc::clone))),
    ] {
        own.push((name, Arc::clone(&table.schema)));
        context.register_table(TableReference::partial(SCHEMA, name), Arc::new(table))?;
    }
    let activity = TableReference::partial("pg_catalog", "pg_stat_activity");
    context.register_table(activity, Arc::new(activities(Arc::clone(board))))?;
    Ok(own)
}

/// Makes a column with a value for each item.
fn whole<T>(items: &[T], of: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    let numbers = items.iter().map(|it| of(it).map(|it| i64::try_from(it).unwrap_or(i64::MAX)));
    Arc::new(Int64Array::from_iter(numbers))
}

fn float<T>(items: &[T], of: impl Fn(&T) -> f64) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(items.iter().map(of)))
}

fn text<T>(items: &[T], of: impl Fn(&T) -> Option<String>) -> ArrayRef {
    Arc::new(StringArray::from_iter(items.iter().map(of)))
}

pub(super) fn live(
    fields: &[(&str, DataType)],
    columns: impl Fn() -> Result<Vec<ArrayRef>> + Send + Sync + 'static,
) -> Live {
    let make = move |schema| Ok(RecordBatch::try_new(schema, columns()?)?);
    Live { schema: schema(fields), make: Box::new(make) }
}

/// The running statements.
fn queries(board: Arc<Board>) -> Live {
    let fields = [
        ("connection", DataType::Int64),
        ("user", DataType::Utf8),
        ("statement", DataType::Utf8),
        ("seconds", DataType::Float64),
        ("rows", DataType::Int64),
    ];
    live(&fields, move || {
        let all = board.running();
        Ok(vec![
            whole(&all, |it| Some(u64::from(it.asker.connection))),
            text(&all, |it| Some(it.asker.user.clone())),
            text(&all, |it| Some(it.text.clone())),
            float(&all, |it| it.since.elapsed().as_secs_f64()),
            whole(&all, |it| Some(it.rows.load(Ordering::Relaxed))),
        ])
    })
}

/// The connections over PostgreSQL's protocol.
fn connections(board: Arc<Board>) -> Live {
    let fields = [
        ("connection", DataType::Int64),
        ("user", DataType::Utf8),
        ("application", DataType::Utf8),
        ("address", DataType::Utf8),
        ("seconds", DataType::Float64),
    ];
    live(&fields, move || {
        let all = board.clients();
        Ok(vec![
            whole(&all, |it| Some(u64::from(it.asker.connection))),
            text(&all, |it| Some(it.asker.user.clone())),
            text(&all, |it| Some(it.asker.application.clone())),
            text(&all, |it| Some(it.asker.peer.clone())),
            float(&all, |it| it.since.elapsed().as_secs_f64()),
        ])
    })
}

fn tables(served: Vec<TableInfo>) -> Live {
    let fields =
        [("table_name", DataType::Utf8), ("rows", DataType::Int64), ("columns", DataType::Int64)];
    live(&fields, move || {
        Ok(vec![
            text(&served, |it| Some(it.name.clone())),
            whole(&served, |it| it.rows),
            whole(&served, |it| Some(it.columns.fields().len() as u64)),
        ])
    })
}

/// The server's counters, and their rates over the last ten seconds.
fn rates(board: Arc<Board>) -> Live {
    let fields =
        [("name", DataType::Utf8), ("total", DataType::Int64), ("per_second", DataType::Float64)];
    live(&fields, move || {
        let all = board.rates();
        Ok(vec![
            text(&all, |(it, _)| Some(it.name.trim_end_matches("_total").to_string())),
            whole(&all, |(it, _)| Some(it.total)),
            float(&all, |(_, rate)| *rate),
        ])
    })
}

/// The log: one row if the server has a data folder.
fn log(kept: Option<Arc<DataFolder>>) -> Live {
    let fields = [
        ("last_mark", DataType::Int64),
        ("segments", DataType::Int64),
        ("bytes", DataType::Int64),
        ("has_room", DataType::Boolean),
        ("stopped", DataType::Utf8),
    ];
    live(&fields, move || {
        let state = kept.as_ref().map(|kept| kept.log_state()).transpose();
        let state = state.map_err(|error| DataFusionError::External(Box::new(error)))?.flatten();
        let all: Vec<LogState> = state.into_iter().collect();
        let has_room = all.iter().map(|it| Some(it.has_room));
        Ok(vec![
            whole(&all, |it| Some(it.last_mark)),
            whole(&all, |it| Some(it.segments)),
            whole(&all, |it| Some(it.bytes)),
            Arc::new(BooleanArray::from_iter(has_room)),
            text(&all, |it| it.stopped.clone()),
        ])
    })
}

/// The copy of the log: one row if the server makes one.
fn copies(kept: Option<Arc<DataFolder>>) -> Live {
    let fields = [
        ("place", DataType::Utf8),
        ("copied_mark", DataType::Int64),
        ("last_mark", DataType::Int64),
        ("behind_bytes", DataType::Int64),
        ("behind_seconds", DataType::Float64),
        ("sent_bytes", DataType::Int64),
        ("failures", DataType::Int64),
        ("error", DataType::Utf8),
        ("has_ended", DataType::Boolean),
    ];
    live(&fields, move || {
        let all: Vec<CopyState> =
            kept.as_ref().and_then(|kept| kept.copy_state()).into_iter().collect();
        let has_ended = all.iter().map(|it| Some(it.has_ended));
        Ok(vec![
            text(&all, |it| Some(it.place.clone())),
            whole(&all, |it| Some(it.lag.copied_mark)),
            whole(&all, |it| Some(it.lag.last_mark)),
            whole(&all, |it| it.lag.bytes),
            float(&all, |it| it.lag.time.as_secs_f64()),
            whole(&all, |it| Some(it.lag.bytes_copied)),
            whole(&all, |it| Some(it.failures)),
            text(&all, |it| it.error.clone()),
            Arc::new(BooleanArray::from_iter(has_ended)),
        ])
    })
}

/// The connections, as PostgreSQL's `pg_stat_activity`.
fn activities(board: Arc<Board>) -> Live {
    let names = [
        "datid",
        "datname",
        "pid",
        "usesysid",
        "usename",
        "application_name",
        "client_addr",
        "backend_start",
        "query_start",
        "state",
        "query",
        "wait_event_type",
        "wait_event",
        "backend_type",
    ];
    let fields = names.map(|name| {
        let is_number = matches!(name, "datid" | "pid" | "usesysid");
        (name, if is_number { DataType::Int64 } else { DataType::Utf8 })
    });
    Live { schema: schema(&fields), make: Box::new(move |schema| activity(&board, &schema)) }
}

/// Returns the rows of `pg_stat_activity`: the connections, with their running statements.
fn activity(board: &Board, schema: &SchemaRef) -> Result<RecordBatch> {
    let (clients, running) = (board.clients(), board.running());
    let roles = super::roles::numbered(board);
    let asked = |connection: u32| {
        running.iter().find(|it| it.asker.connection == connection).map(|it| it.text.clone())
    };
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match field.name().as_str() {
            "pid" => Arc::new(Int64Array::from_iter_values(
                clients.iter().map(|it| i64::from(it.asker.connection)),
            )),
            "datid" => Arc::new(Int64Array::from_iter_values(clients.iter().map(|_| 16_384))),
            "usesysid" => {
                Arc::new(Int64Array::from_iter(clients.iter().map(|it| {
                    roles.iter().find(|role| role.0 == it.asker.user).map(|role| role.1)
                })))
            }
            name => Arc::new(StringArray::from_iter(clients.iter().map(|it| match name {
                "datname" => Some("quarrier".to_string()),
                "usename" => Some(it.asker.user.clone()),
                "application_name" => Some(it.asker.application.clone()),
                "client_addr" => it.asker.peer.rsplit_once(':').map(|(host, _)| host.to_string()),
                "state" => {
                    let state =
                        if asked(it.asker.connection).is_some() { "active" } else { "idle" };
                    Some(state.to_string())
                }
                "query" => asked(it.asker.connection),
                "backend_type" => Some("client backend".to_string()),
                _ => None,
            }))),
        }
    });
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
}
