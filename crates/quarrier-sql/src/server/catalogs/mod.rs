//! Answers clients' queries of PostgreSQL's catalogs. A second session runs them over small tables
//! in memory, since it has to allow comparisons that the engine refuses.

mod empty;
mod foreign;
mod functions;
mod information;
mod live;
mod names;
mod outputs;
mod roles;
mod tables;
mod without_rows;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use quarrier::DataFolder;
use quarrier_wire::{
    Asker, Board, Failure, Prepared, Reply, Result, Rows, TableInfo, Value, cast_kinds, kind,
    lists_of_names, plain, state, statement_names,
};

use super::failure::failed;
use super::parameters;
use crate::Error;

/// Batch size; catalogs have few rows.
const BATCH_ROWS: usize = 1_024;
/// Maximum memory for a query of the catalogs.
const MEMORY_BYTES: usize = 64 << 20;

/// The session for the catalogs.
pub(super) struct Catalogs {
    context: SessionContext,
    /// The version of the engine's tables when the catalogs were built.
    pub(super) version: u64,
    /// Names and OIDs of tables.
    numbers: Vec<(String, u32)>,
}

/// A query of the system catalogs.
pub(super) struct CatalogQuery {
    text: String,
    user: String,
}

impl Catalogs {
    pub(super) fn new(
        (served, version): (&[TableInfo], u64),
        board: &Arc<Board>,
        kept: Option<&Arc<DataFolder>>,
    ) -> crate::Result<Self> {
        let config = SessionConfig::new()
            .with_default_catalog_and_schema("quarrier", "pg_catalog")
            .with_target_partitions(1)
            .with_batch_size(BATCH_ROWS);
        let runtime = datafusion::execution::runtime_env::RuntimeEnvBuilder::new()
            .with_memory_limit(MEMORY_BYTES, 1.0)
            .build_arc()?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        let numbers = tables::register(&context, served)?;
        without_rows::register(&context)?;
        let own = live::register(&context, board, served, kept)?;
        roles::register(&context, board)?;
        information::register(&context, served, &own)?;
        functions::register(&context);
        Ok(Catalogs { context, version, numbers })
    }

    /// Returns whether a statement queries catalogs rather than served tables.
    pub(super) fn are_asked(text: &str, is_served: impl Fn(&String) -> bool) -> Result<bool> {
        let statement = statement_names(text)?;
        let is_own = |name: &String| name.starts_with("pg_") || name == "information_schema";
        let calls = statement.called.iter().any(|name| functions::has(name));
        let is_word = |name: &String| {
            matches!(
                name.as_str(),
                "current_user"
                    | "session_user"
                    | "current_catalog"
                    | "user"
                    | "current_role"
                    | "current_schema"
            )
        };
        let names_tables = || statement.names.iter().any(is_served);
        let names_words =
            statement.names.iter().any(is_word) && !statement.names.iter().any(|it| it == "from");
        Ok(statement.names.iter().any(is_own)
            || statement.before_points.iter().any(|it| it == live::SCHEMA)
            || ((calls || names_words) && !names_tables()))
    }

    pub(super) async fn prepared(
        &self,
        asker: &Asker,
        text: &str,
        declared: &[u32],
    ) -> Result<Prepared> {
        let count = parameters::count(text)?;
        let mut kinds: Vec<u32> =
            (0..count).map(|place| declared.get(place).copied().unwrap_or(0)).collect();
        for (place, kind) in cast_kinds(text)? {
            if let Some(known) = kinds.get_mut(place)
                && matches!(*known, 0 | kind::UNKNOWN)
            {
                *known = kind;
            }
        }
        for place in lists_of_names(text)? {
            if let Some(known) = kinds.get_mut(place)
                && matches!(*known, 0 | kind::UNKNOWN)
            {
                *known = kind::TEXTS;
            }
        }
        kinds.iter_mut().filter(|kind| matches!(**kind, 0 | kind::UNKNOWN)).for_each(|kind| {
            *kind = kind::TEXT;
        });
        let asked = CatalogQuery { text: text.to_string(), user: asker.user.clone() };
        // Placeholder values suffice to find its columns.
        let values: Vec<Value> = kinds.iter().map(|kind| nothing(*kind)).collect();
        let columns = self.begun(&asked, &values).await?.schema;
        let inner = Arc::new(asked);
        let tag = "SELECT".to_string();
        Ok(Prepared { parameters: kinds, columns: Some(columns), tag, changes: false, inner })
    }

    pub(super) async fn answered(&self, asked: &CatalogQuery, values: &[Value]) -> Result<Reply> {
        Ok(Reply::Rows(self.begun(asked, values).await?))
    }

    async fn begun(&self, asked: &CatalogQuery, values: &[Value]) -> Result<Rows> {
        let text = parameters::with_values(&asked.text, values)?;
        let number = |name: &str| self.numbers.iter().find(|it| it.0 == name).map(|it| it.1);
        let text = plain(&text, number)?;
        let text = functions::with_user(&text, &asked.user)?;
        let engine = |error: datafusion::error::DataFusionError| failed(&Error::from(error));
        let (text, known) = empty::without(&text)?;
        if let Some(schema) = known {
            return Ok(none(schema));
        }
        let frame = self.context.sql_with_options(&text, only_queries()).await.map_err(engine)?;
        let schema = outputs::renamed(frame.schema().as_arrow());
        let stream = frame.execute_stream().await.map_err(engine)?;
        let batches = stream.map(|batch| {
            let batch = batch.and_then(|batch| outputs::renamed_batch(&batch));
            batch.map(Into::into).map_err(|error| failed(&Error::from(error)))
        });
        Ok(Rows { schema, batches: batches.boxed(), is_live: false })
    }
}

fn only_queries() -> datafusion::execution::context::SQLOptions {
    datafusion::execution::context::SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
}

/// Returns no rows.
fn none(schema: SchemaRef) -> Rows {
    Rows { schema, batches: futures::stream::empty().boxed(), is_live: false }
}

/// Returns a placeholder value of a type.
fn nothing(kind: u32) -> Value {
    match kind {
        kind::BOOL => Value::Bool(false),
        kind::INT2 | kind::INT4 | kind::INT8 | kind::OID => Value::Int(0),
        kind::FLOAT4 | kind::FLOAT8 => Value::Float(0.0),
        kind::NUMERIC => Value::Decimal("0".to_string()),
        list => match kind::item(list) {
            Some(item) => Value::List(vec![nothing(item)]),
            None => Value::Text(String::new()),
        },
    }
}

/// Returns the error for text that is not a single query.
pub(super) fn no_query() -> Failure {
    Failure::new(state::SYNTAX, "expected one query")
}
