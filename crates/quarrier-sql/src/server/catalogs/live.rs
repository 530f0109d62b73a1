//! Tables over the server itself, rebuilt for every query: `quarrier.queries`, `quarrier.connections`,
//! `quarrier.tables`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{MemorySchemaProvider, Session, TableProvider};
use datafusion::common::{Result, TableReference};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use quarrier_wire::{Board, TableInfo};

use crate::at_once::scan_at_once;

/// The schema of these tables.
pub(super) const SCHEMA: &str = "quarrier";

/// Makes a table's rows.
type Make = Box<dyn Fn(SchemaRef) -> Result<RecordBatch> + Send + Sync>;

struct Live {
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

/// Registers the tables.
pub(super) fn register(
    context: &SessionContext,
    board: Arc<Board>,
    served: &[TableInfo],
) -> crate::Result<()> {
    let catalog = context.catalog("quarrier").ok_or_else(|| crate::Error::Setup {
        reason: "there is no catalog to put tables in".to_string(),
    })?;
    catalog.register_schema(SCHEMA, Arc::new(MemorySchemaProvider::new()))?;
    let add = |name: &str, fields: &[(&str, DataType)], make: Make| {
        let table = Live { schema: schema(fields), make };
        context.register_table(TableReference::partial(SCHEMA, name), Arc::new(table))
    };
    let (text, whole, float) = (DataType::Utf8, DataType::Int64, DataType::Float64);
    let seen = Arc::clone(&board);
    add(
        "queries",
        &[
            ("connection", whole.clone()),
            ("user", text.clone()),
            ("statement", text.clone()),
            ("seconds", float.clone()),
            ("rows", whole.clone()),
        ],
        Box::new(move |schema| {
            let all = seen.running();
            let rows = all.iter().map(|it| it.rows.load(Ordering::Relaxed) as i64);
            let columns = (
                Int64Array::from_iter_values(all.iter().map(|it| i64::from(it.asker.connection))),
                StringArray::from_iter_values(all.iter().map(|it| &it.asker.user)),
                StringArray::from_iter_values(all.iter().map(|it| &it.text)),
                Float64Array::from_iter_values(
                    all.iter().map(|it| it.since.elapsed().as_secs_f64()),
                ),
                Int64Array::from_iter_values(rows),
            );
            Ok(RecordBatch::try_new(
                schema,
                vec![
                    Arc::new(columns.0),
                    Arc::new(columns.1),
                    Arc::new(columns.2),
                    Arc::new(columns.3),
                    Arc::new(columns.4),
                ],
            )?)
        }),
    )?;
    let seen = Arc::clone(&board);
    add(
        "connections",
        &[
            ("connection", whole.clone()),
            ("user", text.clone()),
            ("application", text.clone()),
            ("address", text.clone()),
            ("seconds", float),
        ],
        Box::new(move |schema| {
            let all = seen.clients();
            Ok(RecordBatch::try_new(
                schema,
                vec![
                    Arc::new(Int64Array::from_iter_values(
                        all.iter().map(|it| i64::from(it.asker.connection)),
                    )),
                    Arc::new(StringArray::from_iter_values(all.iter().map(|it| &it.asker.user))),
                    Arc::new(StringArray::from_iter_values(
                        all.iter().map(|it| &it.asker.application),
                    )),
                    Arc::new(StringArray::from_iter_values(all.iter().map(|it| &it.asker.peer))),
                    Arc::new(Float64Array::from_iter_values(
                        all.iter().map(|it| it.since.elapsed().as_secs_f64()),
                    )),
                ],
            )?)
        }),
    )?;
    let served = served.to_vec();
    add(
        "tables",
        &[("table_name", text), ("rows", whole.clone()), ("columns", whole)],
        Box::new(move |schema| {
            let rows = served.iter().map(|it| it.rows.map(|rows| rows as i64));
            let columns = served.iter().map(|it| it.columns.fields().len() as i64);
            Ok(RecordBatch::try_new(
                schema,
                vec![
                    Arc::new(StringArray::from_iter_values(served.iter().map(|it| &it.name))),
                    Arc::new(Int64Array::from_iter(rows)),
                    Arc::new(Int64Array::from_iter_values(columns)),
                ],
            )?)
        }),
    )?;
    let fields: Vec<(&str, DataType)> = [
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
    ]
    .map(|name| {
        let is_number = matches!(name, "datid" | "pid" | "usesysid");
        (name, if is_number { DataType::Int64 } else { DataType::Utf8 })
    })
    .to_vec();
    let activity =
        Live { schema: schema(&fields), make: Box::new(move |schema| activity(&board, &schema)) };
    context.register_table(
        TableReference::partial("pg_catalog", "pg_stat_activity"),
        Arc::new(activity),
    )?;
    Ok(())
}

/// Clients with their queries, under PostgreSQL's names.
fn activity(board: &Board, schema: &SchemaRef) -> Result<RecordBatch> {
    let (clients, running) = (board.clients(), board.running());
    let asked = |connection: u32| {
        running.iter().find(|it| it.asker.connection == connection).map(|it| it.text.clone())
    };
    let columns = schema.fields().iter().map(|field| -> datafusion::arrow::array::ArrayRef {
        match field.name().as_str() {
            "pid" => Arc::new(Int64Array::from_iter_values(
                clients.iter().map(|it| i64::from(it.asker.connection)),
            )),
            "datid" => Arc::new(Int64Array::from_iter_values(clients.iter().map(|_| 16_384))),
            "usesysid" => Arc::new(Int64Array::from_iter_values(clients.iter().map(|_| 10))),
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
