//! Plans without DataFusion the statements that one scan can answer: `SELECT columns` or `COUNT(*)`
//! of one table of messages, with conditions that would be pushed into its scan anyway. DataFusion
//! takes about a millisecond to reach the same plan, in which time a scan passes over millions of
//! rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::TableReference;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::prelude::SessionContext;
use futures::FutureExt;
use quarrier_filter::{Expr, Query, Select, sql};
use quarrier_messages::{HiddenColumns, Kind};

use crate::Messages;
use crate::plan::TOP_ROWS_MAX;
use crate::scan::{Condition, CountExec, MessagesExec, ScanSpec, is_pushed};

/// For longer statements, parsing them twice would take longer than planning.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// A plan with a single scan.
#[derive(Debug)]
pub(super) struct Direct {
    /// The plan that yields the answer.
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The scan in it.
    pub(super) scan: Arc<MessagesExec>,
    /// Whether the answer is the number of the scan's rows, rather than the rows.
    pub(super) is_count: bool,
}

/// Plans a statement directly; `None` if DataFusion has to plan it.
pub(super) fn plan(context: &SessionContext, text: &str, workers: usize) -> Option<Direct> {
    // The tables in this context have no hidden columns.
    if text.len() > TEXT_BYTES_MAX || !HiddenColumns::named_in(text).is_none() {
        return None;
    }
    let mut provider = None;
    let find = |name: &str| {
        let found = context.table_provider(TableReference::bare(name));
        // A catalog that has to await its tables holds no messages.
        provider = found.now_or_never()?.ok();
        let messages = provider.as_ref()?.downcast_ref::<Messages>()?;
        Some(Arc::clone(messages.table()))
    };
    let query = sql::statement_over(text, find).ok()?;
    planned(provider.as_ref()?.downcast_ref::<Messages>()?, query, workers)
}

/// Whether the scan of a table alone answers a query with the same values as DataFusion. It does if
/// the query selects columns or `COUNT(*)`, and its condition can be pushed into the scan.
pub fn scan_answers(query: &Query, schema: &quarrier_messages::Schema) -> bool {
    let kinds: Vec<Kind> = schema.fields.iter().map(|field| field.kind).collect();
    let are_columns = match &query.select {
        Select::Count { .. } => true,
        Select::Rows(outputs) => {
            outputs.iter().all(|output| matches!(output.expr, Expr::Column(_)))
        }
    };
    are_columns && query.condition.as_ref().is_none_or(|expr| is_pushed(expr, &kinds))
}

fn planned(messages: &Messages, query: Query, workers: usize) -> Option<Direct> {
    let kinds: Vec<Kind> = messages.table().schema().fields.iter().map(|f| f.kind).collect();
    let is_pushed = query.condition.as_ref().is_none_or(|expr| is_pushed(expr, &kinds));
    let fetch = match query.limit {
        Some(limit) => Some(usize::try_from(limit).ok().filter(|limit| *limit > 0)?),
        None => None,
    };
    let is_held = query.order.is_empty() || fetch.is_some_and(|fetch| fetch <= TOP_ROWS_MAX);
    if query.offset > 0 || !is_pushed || !is_held {
        return None;
    }
    let condition = query.condition.map_or_else(Condition::default, Condition::bound);
    let scan = |columns: Vec<usize>, order, fetch| {
        let spec = ScanSpec { columns, condition, order, fetch };
        MessagesExec::new(messages.views().clone(), spec, workers).ok().map(Arc::new)
    };
    match query.select {
        Select::Count { name } => {
            let schema = Schema::new(vec![Field::new(&*name, DataType::Int64, false)]);
            let scan = scan(Vec::new(), Vec::new(), None)?;
            let plan = Arc::new(CountExec::new(Arc::clone(&scan) as _, Arc::new(schema)));
            fetch.is_none().then_some(Direct { plan, scan, is_count: true })
        }
        Select::Rows(outputs) => {
            let mut columns = Vec::with_capacity(outputs.len());
            for output in &outputs {
                let Expr::Column(column) = output.expr else { return None };
                columns.push(column);
            }
            let scan = scan(columns, query.order, fetch)?;
            let names = outputs.iter().map(|output| &*output.name);
            let plan = named(&scan, names)?;
            Some(Direct { plan, scan, is_count: false })
        }
    }
}

/// The scan with its columns renamed to `names`.
fn named<'n>(
    scan: &Arc<MessagesExec>,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Option<Arc<dyn ExecutionPlan>> {
    let schema = scan.schema();
    let plan: Arc<dyn ExecutionPlan> = Arc::clone(scan) as _;
    if schema.fields().iter().zip(names.clone()).all(|(field, name)| field.name() == name) {
        return Some(plan);
    }
    let named = names.enumerate().map(|(place, name)| ProjectionExpr {
        expr: Arc::new(Column::new(schema.field(place).name(), place)),
        alias: name.to_string(),
    });
    let named: Vec<ProjectionExpr> = named.collect();
    Some(Arc::new(ProjectionExec::try_new(named, plan).ok()?))
}
