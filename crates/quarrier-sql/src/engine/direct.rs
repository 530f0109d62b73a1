//! Statements that the scan alone answers, planned without the engine: `SELECT columns` or
//! `COUNT(*)` of one table of messages, with conditions that are pushed into its scan anyway. The
//! engine takes about a millisecond to come to the same plan, in which a scan goes through millions
//! of rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::TableReference;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::prelude::SessionContext;
use quarrier_filter::expr::{Arithmetic, Pattern};
use quarrier_filter::{Expr, Query, Select, sql};
use quarrier_messages::{Kind, Value};

use crate::Messages;
use crate::plan::TOP_ROWS_MAX;
use crate::provider::Condition;
use crate::scan::{CountExec, MessagesExec, Wanted};

/// Longer texts take longer to read twice than to plan.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The plan of a statement, as it is written; none where the engine has to make it. `caption` is
/// what a count is called that has no name.
pub(super) async fn plan(
    context: &SessionContext,
    text: &str,
    caption: Option<String>,
    workers: usize,
) -> Option<Arc<dyn ExecutionPlan>> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let name = sql::table(text).ok()?.name;
    let table = context.table_provider(TableReference::bare(name.as_str())).await.ok()?;
    let messages = table.downcast_ref::<Messages>()?;
    let mut query = sql::statement(text, &name, messages.table().schema()).ok()?;
    if let (Select::Count { name }, Some(caption)) = (&mut query.select, caption) {
        *name = caption.into();
    }
    planned(messages, query, workers)
}

fn planned(messages: &Messages, query: Query, workers: usize) -> Option<Arc<dyn ExecutionPlan>> {
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
        let wanted = Wanted { columns, condition, order, fetch };
        MessagesExec::new(messages.views().clone(), wanted, workers).ok().map(Arc::new)
    };
    match query.select {
        Select::Count { name } => {
            let schema = Schema::new(vec![Field::new(&*name, DataType::Int64, false)]);
            let scan = scan(Vec::new(), Vec::new(), None)?;
            fetch.is_none().then(|| Arc::new(CountExec::new(scan, Arc::new(schema))) as _)
        }
        Select::Rows(outputs) => {
            let mut columns = Vec::with_capacity(outputs.len());
            for output in &outputs {
                let Expr::Column(column) = output.expr else { return None };
                columns.push(column);
            }
            let scan = scan(columns, query.order, fetch)?;
            let schema = scan.schema();
            let mut names = schema.fields().iter().zip(&outputs);
            if names.all(|(field, output)| field.name() == &*output.name) {
                return Some(scan);
            }
            let named = outputs.iter().enumerate().map(|(place, output)| ProjectionExpr {
                expr: Arc::new(Column::new(schema.field(place).name(), place)),
                alias: output.name.to_string(),
            });
            let named: Vec<ProjectionExpr> = named.collect();
            Some(Arc::new(ProjectionExec::try_new(named, scan).ok()?))
        }
    }
}

/// Whether the provider would have it pushed: everything else is the engine's to evaluate, whatever
/// statement it stands in.
fn is_pushed(expr: &Expr, kinds: &[Kind]) -> bool {
    let all = |parts: &[Expr]| parts.iter().all(|part| is_pushed(part, kinds));
    match expr {
        Expr::Literal(_) | Expr::Column(_) => true,
        Expr::Not(operand) | Expr::IsNull(operand) | Expr::Is { operand, .. } => {
            is_pushed(operand, kinds)
        }
        Expr::And(parts) | Expr::Or(parts) => all(parts),
        Expr::In { operand, list } => {
            all(list) && list.iter().all(|value| compare_as_they_are(operand, value, kinds))
        }
        Expr::Compare { left, right, .. } => compare_as_they_are(left, right, kinds),
        Expr::Match { operand, pattern: Pattern::Fixed(_) } => is_pushed(operand, kinds),
        Expr::Arithmetic { .. } => is_number(expr, kinds),
        Expr::Match { .. }
        | Expr::Negate(_)
        | Expr::Case { .. }
        | Expr::Cast { .. }
        | Expr::Call { .. } => false,
    }
}

/// Whether no side is made floating for the other's sake, which the provider says to the scan.
fn compare_as_they_are(left: &Expr, right: &Expr, kinds: &[Kind]) -> bool {
    let is_mixed = is_number(left, kinds)
        && is_number(right, kinds)
        && is_floating(left, kinds) != is_floating(right, kinds);
    !is_mixed && is_pushed(left, kinds) && is_pushed(right, kinds)
}

fn is_floating(expr: &Expr, kinds: &[Kind]) -> bool {
    match expr {
        Expr::Literal(value) => matches!(value, Value::Float(_)),
        Expr::Column(column) => kinds[*column] == Kind::Float,
        Expr::Arithmetic { left, right, .. } => {
            is_floating(left, kinds) || is_floating(right, kinds)
        }
        _ => false,
    }
}

fn is_number(expr: &Expr, kinds: &[Kind]) -> bool {
    match expr {
        Expr::Literal(value) => {
            matches!(value, Value::Integer(_) | Value::Decimal { .. } | Value::Float(_))
        }
        Expr::Column(column) => {
            matches!(kinds[*column], Kind::Integer | Kind::Decimal { .. } | Kind::Float)
        }
        Expr::Arithmetic { op, left, right } => {
            matches!(op, Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply)
                && is_number(left, kinds)
                && is_number(right, kinds)
        }
        _ => false,
    }
}
