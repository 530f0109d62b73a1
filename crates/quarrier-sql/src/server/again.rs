//! Runs a query again when messages arrive, and sends the differences between its results.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use quarrier_wire::{Failure, Result, SubscribeText, state};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::failure::failed;
use super::statement;
use super::subscribe::Change;
use crate::{Answer, Engine, Error};

/// Maximum number of rows to compare.
const ROWS_MAX: usize = 1_000_000;
/// Maximum number of rows to send at once.
const ROWS_AT_ONCE: usize = 8_192;

/// A row, encoded so that equal rows are equal bytes.
type Row = Box<[u8]>;

/// A query that runs repeatedly, with the rows of its last run.
pub(super) struct RepeatedQuery {
    engine: Arc<Engine>,
    query: String,
    every: Duration,
    has_snapshot: bool,
    until: u64,
    /// How often each row occurred.
    rows: HashMap<Row, u64>,
    waiting: VecDeque<(Change, RecordBatch)>,
    asked: Option<Instant>,
    mark: u64,
}

fn defect() -> Failure {
    Failure::new(state::INTERNAL, "internal error in the query")
}

/// Returns the columns of a query, whose types do not depend on how columns are packed.
pub(super) async fn columns(engine: &Engine, query: &str) -> Result<SchemaRef> {
    let statement = statement::parsed(engine, query)?;
    let columns = engine.columns(&statement).await.map_err(|error| failed(&error))?;
    Ok(plain(&columns))
}

fn plain(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let kind = match field.data_type() {
            DataType::Dictionary(_, of) => (**of).clone(),
            other => other.clone(),
        };
        let kind = match kind {
            DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
            other => other,
        };
        field.as_ref().clone().with_data_type(kind).with_nullable(true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl RepeatedQuery {
    pub(super) fn new(engine: &Arc<Engine>, asked: &SubscribeText, every: Duration) -> Self {
        RepeatedQuery {
            engine: Arc::clone(engine),
            query: asked.query.clone(),
            every,
            has_snapshot: asked.has_snapshot,
            until: asked.until.unwrap_or(u64::MAX),
            rows: HashMap::new(),
            waiting: VecDeque::new(),
            asked: None,
            mark: 0,
        }
    }

    /// Returns the mark of the last message that the latest run could see.
    pub(super) fn mark(&self) -> u64 {
        self.mark
    }

    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_some() && self.mark >= self.until
    }

    /// Returns the earliest time of the next run.
    pub(super) fn due(&self) -> Instant {
        self.asked.map_or_else(Instant::now, |asked| asked + self.every)
    }

    /// Returns the next piece of the differences; `None` if there are none, or it is too early to
    /// run again. `newest` is the mark of the last message.
    pub(super) async fn next(
        &mut self,
        newest: u64,
        runtime: &Handle,
    ) -> Result<Option<(Change, u64, RecordBatch)>> {
        let is_first = self.asked.is_none();
        if self.waiting.is_empty()
            && (is_first || newest > self.mark && self.due() <= Instant::now())
        {
            let asking = asked(Arc::clone(&self.engine), self.query.clone());
            let (schema, batches) = runtime.spawn(asking).await.map_err(|_| defect())??;
            (self.asked, self.mark) = (Some(Instant::now()), newest);
            self.compare(&schema, &batches, is_first)?;
        }
        Ok(self.waiting.pop_front().map(|(change, rows)| (change, self.mark, rows)))
    }

    fn compare(
        &mut self,
        schema: &SchemaRef,
        batches: &[RecordBatch],
        is_first: bool,
    ) -> Result<()> {
        let fields = schema.fields().iter();
        let fields = fields.map(|field| SortField::new(field.data_type().clone())).collect();
        let comparing = |error: datafusion::arrow::error::ArrowError| {
            let said = format!("rows of this query cannot be compared: {error}");
            Failure::new(state::UNSUPPORTED, said)
        };
        let converter = RowConverter::new(fields).map_err(comparing)?;
        let (mut now, mut new): (HashMap<Row, u64>, Vec<Row>) = Default::default();
        for batch in batches {
            let rows = converter.convert_columns(batch.columns()).map_err(comparing)?;
            for row in &rows {
                let row: Row = row.as_ref().into();
                let count = now.entry(row.clone()).or_default();
                *count += 1;
                if *count > self.rows.get(&row).copied().unwrap_or(0) {
                    new.push(row);
                }
            }
        }
        let gone = self.rows.iter().flat_map(|(row, count)| {
            let left = now.get(row).copied().unwrap_or(0);
            (left..*count).map(move |_| row)
        });
        let gone: Vec<&Row> = gone.collect();
        let added = if is_first { Change::Snapshot } else { Change::Insert };
        let new: Vec<&Row> =
            if is_first && !self.has_snapshot { Vec::new() } else { new.iter().collect() };
        let mut waiting = VecDeque::new();
        for (change, rows) in [(Change::Delete, gone), (added, new)] {
            for some in rows.chunks(ROWS_AT_ONCE) {
                let parser = converter.parser();
                let some = some.iter().map(|row| parser.parse(row));
                let columns = converter.convert_rows(some).map_err(comparing)?;
                let batch = RecordBatch::try_new(Arc::clone(schema), columns).map_err(comparing)?;
                waiting.push_back((change, batch));
            }
        }
        (self.rows, self.waiting) = (now, waiting);
        Ok(())
    }
}

/// Runs a query and returns its current rows.
async fn asked(engine: Arc<Engine>, query: String) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let statement = statement::parsed(&engine, &query)?;
    let answer = engine.run_query(&statement).await.map_err(|error| failed(&error))?;
    let Answer::Rows(mut rows) = answer else {
        return Err(Failure::new(state::SYNTAX, "SUBSCRIBE needs a query"));
    };
    let schema = plain(rows.schema());
    let (mut batches, mut count) = (Vec::new(), 0);
    loop {
        let next: std::result::Result<_, Error> = rows.next().await;
        let Some(batch) = next.map_err(|error| failed(&error))? else { break };
        count += batch.num_rows();
        if count > ROWS_MAX {
            let said = format!("the query has more than {ROWS_MAX} rows, too many to compare");
            return Err(Failure::new(state::LIMIT, said));
        }
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type()));
        let columns: std::result::Result<Vec<ArrayRef>, _> = columns.collect();
        let columns = columns.map_err(|_| defect())?;
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|_| defect())?);
    }
    Ok((schema, batches))
}
