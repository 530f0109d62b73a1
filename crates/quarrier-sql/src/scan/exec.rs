//! The scan of messages as a DataFusion plan.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use quarrier_filter::{Expr, Keys, Order, Work};
use quarrier_messages::{Table, Views};

use super::ScanSpec;
use super::batches::{Maker, Part, Share};
use super::figures::Figures;
use super::key_collect::JoinKeys;
use super::selection::{Question, SelectedRows, Selection};
use super::statistics::{of_columns, of_rows, share_of_rows};
use super::translate::physical;
use crate::ceiling::Ceiling;

/// Maximum selectivity of a runtime filter. Above this share of all rows, as for a join whose other
/// side has nearly all keys, selecting rows costs more than returning all of them.
const LEARNT_SHARE_MAX: f64 = 0.5;
/// Maximum selectivity of each condition in a runtime filter; weaker ones are not worth testing.
const TESTED_SHARE_MAX: f64 = 0.9;

/// Join keys that filter a column.
#[derive(Debug, Clone)]
struct AwaitedKeys {
    /// The column's index in the table.
    column: usize,
    keys: Arc<JoinKeys>,
    /// The ID of the dynamic filter that these keys make redundant.
    instead: Option<u64>,
}

/// Scans messages, and returns the selected rows in up to as many partitions as there are threads.
#[derive(Debug, Clone)]
pub(crate) struct MessagesExec {
    views: Views,
    spec: ScanSpec,
    /// The number of threads that select rows.
    workers: usize,
    /// Dynamic filters that the plan pushed down.
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    /// Join keys that the scan waits for.
    keys: Vec<AwaitedKeys>,
    selection: Arc<Selection>,
    statistics: Arc<OnceLock<Arc<Statistics>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl MessagesExec {
    pub(crate) fn new(views: Views, spec: ScanSpec, workers: usize) -> Result<Self> {
        let schema: SchemaRef = Arc::new(views.schema().project(&spec.columns)?);
        let is_one = spec.fetch.is_some() || !spec.order.is_empty();
        let partitions = if is_one { 1 } else { workers.min(views.table().segments()).max(1) };
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        if let Some(order) = ordering(&spec, &schema) {
            equivalence.add_ordering(order);
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(MessagesExec {
            views,
            spec,
            workers,
            dynamic: Vec::new(),
            keys: Vec::new(),
            selection: Arc::default(),
            statistics: Arc::default(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The rows and columns to produce.
    pub(crate) fn spec(&self) -> &ScanSpec {
        &self.spec
    }

    /// The scanned table.
    pub(crate) fn table(&self) -> &Arc<Table> {
        self.views.table()
    }

    /// The table's columns in Arrow types.
    pub(super) fn views(&self) -> &Views {
        &self.views
    }

    /// A scan for the first `fetch` rows in this order.
    pub(crate) fn ordered(&self, order: Vec<Order>, fetch: usize) -> Result<Arc<Self>> {
        let spec = ScanSpec { order, fetch: Some(fetch), ..self.spec.clone() };
        let scan = MessagesExec::new(self.views.clone(), spec, self.workers)?;
        // Drops the dynamic filter of the sort, since the scan skips blocks on its own.
        Ok(Arc::new(scan))
    }

    /// Dynamic filters that the plan pushed down.
    pub(crate) fn dynamic(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.dynamic
    }

    /// The same scan without the dynamic filters for which `is_one` is true.
    pub(crate) fn without_dynamic(
        &self,
        is_one: impl Fn(&Arc<dyn PhysicalExpr>) -> bool,
    ) -> MessagesExec {
        let mut scan = self.clone();
        scan.dynamic.retain(|filter| !is_one(filter));
        scan.selection = Arc::default();
        scan
    }

    /// A scan that first waits for the join keys of one of its columns. `instead` is the ID of the
    /// filter in [`dynamic`](Self::dynamic) that these keys make redundant. `None` if the column's
    /// range of values is too large for a bitmap.
    pub(crate) fn with_keys(
        &self,
        column: usize,
        instead: Option<u64>,
    ) -> Option<(MessagesExec, Arc<JoinKeys>)> {
        let column = *self.spec.columns.get(column)?;
        let keys = JoinKeys::new(Keys::span_of(self.table(), column)?);
        let mut scan = self.clone();
        scan.keys.push(AwaitedKeys { column, keys: Arc::clone(&keys), instead });
        scan.selection = Arc::default();
        Some((scan, keys))
    }

    /// The query to run on the table, and the selection that receives its result. `None` if every
    /// row is selected, or dynamic filters are still to come.
    pub(super) fn question(&self) -> Option<(Arc<Table>, Question, Arc<Selection>)> {
        if !self.dynamic.is_empty() {
            return None;
        }
        let question = Question::of(&self.spec, None)?;
        Some((Arc::clone(self.views.table()), question, Arc::clone(&self.selection)))
    }

    /// The state for making batches of the selected rows.
    fn maker(&self, figures: Figures, batch_rows: usize) -> Maker {
        Maker {
            views: self.views.clone(),
            schema: self.schema(),
            columns: self.spec.columns.clone(),
            batch_rows,
            fetch: self.spec.fetch,
            figures,
        }
    }

    /// Selects rows on this thread and the scan's other threads. Returns their batches if they are
    /// few. If they are many, it returns `None`, and `execute` finds the selection done.
    ///
    /// # Errors
    /// A condition fails for a row, or `stop` became true.
    pub(crate) fn find_at_once(
        &self,
        stop: &AtomicBool,
        batch_rows: usize,
    ) -> Result<Option<Vec<RecordBatch>>> {
        let figures = Figures::new(&self.metrics, (0, 1), None);
        let found = match self.question() {
            Some((table, question, _)) => {
                let start = Instant::now();
                let (found, work) = question.found_now(&table, self.workers, stop)?;
                figures.found(work, start.elapsed());
                found
            }
            None if self.dynamic.is_empty() => SelectedRows::Everything,
            None => return Ok(None),
        };
        let found = Arc::new(found);
        let fetch = self.spec.fetch.unwrap_or(usize::MAX);
        let is_few = self.spec.columns.is_empty() || found.picked().unwrap_or(fetch) <= batch_rows;
        if !is_few {
            self.selection.set(found);
            return Ok(None);
        }
        let maker = self.maker(figures, batch_rows);
        let whole = Share { number: 0, of: 1 };
        maker.batches(&found, &whole).collect::<Result<_>>().map(Some)
    }

    /// The rows of a partition, in table order. The first call selects the rows of all partitions.
    ///
    /// # Errors
    /// A condition fails for a row.
    pub(super) async fn part(&self, partition: usize, context: &TaskContext) -> Result<Part> {
        let of = self.properties.output_partitioning().partition_count();
        let ceiling = context.session_config().get_extension::<Ceiling>();
        let ceiling = ceiling.and_then(|ceiling| ceiling.bytes_per_second());
        let figures = Figures::new(&self.metrics, (partition, of), ceiling);
        let mut keys = Vec::with_capacity(self.keys.len());
        for waited in &self.keys {
            keys.push(waited.keys.all().await);
        }
        let learnt = || self.learnt(keys);
        let (found, work) =
            self.selection.found(self.table(), &self.spec, learnt, self.workers).await?;
        if let Some((work, time)) = work {
            figures.found(work, time);
        }
        let maker = self.maker(figures, context.session_config().batch_size());
        Ok(Part { maker, found, share: Share { number: partition, of } })
    }

    /// Adds the work of a pass shared with other scans to this scan's metrics.
    pub(super) fn count(&self, work: Work, time: Duration) {
        Figures::new(&self.metrics, (0, 1), None).found(work, time);
    }

    /// The current runtime filters, if they are selective enough to be worth testing; the consumer
    /// applies them again. `keys` are the join keys that arrived.
    fn learnt(&self, keys: Vec<Option<Arc<Keys>>>) -> Option<Expr> {
        let table = self.views.table();
        let keys: Vec<(&AwaitedKeys, Arc<Keys>)> =
            self.keys.iter().zip(keys).filter_map(|(waited, keys)| Some((waited, keys?))).collect();
        let is_said = |id: u64| keys.iter().any(|(waited, _)| waited.instead == Some(id));
        let others =
            self.dynamic.iter().filter(|filter| !filter.expression_id().is_some_and(is_said));
        let others = others.filter_map(|filter| {
            let now = snapshot_physical_expr(Arc::clone(filter)).ok()?;
            physical(&now, &self.spec.columns, table.schema())
        });
        let among = |(waited, keys): &(&AwaitedKeys, Arc<Keys>)| Expr::Among {
            column: waited.column,
            keys: Arc::clone(keys),
        };
        let known = keys.iter().map(among).chain(others);
        let mut known: Vec<Expr> =
            known.filter(|expr| share_of_rows(table, expr) <= TESTED_SHARE_MAX).collect();
        let all = if known.len() > 1 { Some(Expr::And(known)) } else { known.pop() };
        all.filter(|expr| share_of_rows(table, expr) <= LEARNT_SHARE_MAX)
    }
}

/// The sort order as a property of the plan; `None` if it has a column that is not returned.
fn ordering(spec: &ScanSpec, schema: &Schema) -> Option<LexOrdering> {
    let mut sorted = Vec::new();
    for order in &spec.order {
        let place = spec.columns.iter().position(|&column| column == order.column)?;
        let column = Column::new(schema.field(place).name(), place);
        let options = datafusion::arrow::compute::SortOptions {
            descending: order.descending,
            nulls_first: order.nulls_first,
        };
        sorted.push(PhysicalSortExpr::new(Arc::new(column), options));
    }
    LexOrdering::new(sorted)
}

fn is_dynamic(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.downcast_ref::<DynamicFilterPhysicalExpr>().is_some()
}

impl DisplayAs for MessagesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.views.table();
        let name = |column: usize| &*table.schema().fields[column].name;
        let names: Vec<&str> = self.spec.columns.iter().map(|&column| name(column)).collect();
        write!(f, "MessagesExec: {} rows, columns=[{}]", table.rows(), names.join(", "))?;
        if self.spec.condition.expr().is_some() {
            write!(f, ", condition={}", self.spec.condition)?;
        }
        for (at, order) in self.spec.order.iter().enumerate() {
            let way = if order.descending { " DESC" } else { "" };
            write!(f, "{}{}{way}", if at == 0 { ", order=" } else { " " }, name(order.column))?;
        }
        if let Some(fetch) = self.spec.fetch {
            write!(f, ", limit={fetch}")?;
        }
        for waited in &self.keys {
            write!(f, ", keys={}", name(waited.column))?;
        }
        for filter in &self.dynamic {
            write!(f, ", learnt={filter}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for MessagesExec {
    fn name(&self) -> &str {
        "MessagesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut scan = Arc::unwrap_or_clone(self);
        scan.selection = Arc::default();
        scan.keys.clear();
        Ok(Arc::new(scan))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.dynamic.iter(), f)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let scan = self.clone();
        let batches = futures::stream::once(async move {
            let part = scan.part(partition, &context).await?;
            let batches = futures::stream::iter(part.batches());
            Ok::<_, datafusion::error::DataFusionError>(batches)
        })
        .try_flatten()
        .inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        let batches = RecordBatchStreamAdapter::new(schema, batches.boxed());
        Ok(Box::pin(cooperative(batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let partitions = self.properties.output_partitioning().partition_count();
        if args.partition().is_some() && partitions > 1 {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        }
        let spec = &self.spec;
        let table = self.views.table();
        let known = || {
            if spec.is_everything() && spec.fetch.is_none() {
                return Arc::new(of_columns(table, &spec.columns));
            }
            Arc::new(of_rows(table, &spec.columns, &spec.condition, spec.fetch))
        };
        Ok(Arc::clone(self.statistics.get_or_init(known)))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let spec = ScanSpec { fetch: limit, ..self.spec.clone() };
        let mut scan = MessagesExec::new(self.views.clone(), spec, self.workers).ok()?;
        scan.dynamic = self.dynamic.clone();
        scan.keys = self.keys.clone();
        Some(Arc::new(scan))
    }

    fn fetch(&self) -> Option<usize> {
        self.spec.fetch
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = pushed.parent_filters;
        // The parent evaluates the filters again; the scan uses them only to skip rows.
        let answers = vec![PushedDown::No; filters.len()];
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        // With a limit, a filter would let other rows take the place of those it drops.
        if phase != FilterPushdownPhase::Post || self.spec.fetch.is_some() {
            return Ok(propagation);
        }
        let dynamic = filters.into_iter().map(|filter| filter.filter).filter(is_dynamic);
        let dynamic: Vec<_> = dynamic.collect();
        if dynamic.is_empty() {
            return Ok(propagation);
        }
        let mut scan = self.clone();
        scan.dynamic.extend(dynamic);
        scan.selection = Arc::default();
        Ok(propagation.with_updated_node(Arc::new(scan)))
    }
}
