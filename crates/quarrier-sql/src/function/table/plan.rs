//! A plan without inputs, for engines that find rows with their own threads.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, project_schema};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricValue, MetricsSet,
    RatioMetrics,
};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use quarrier_core::sync::StopOnDrop;
use tokio::sync::mpsc::Sender;

use crate::ceiling::Ceiling;

/// The number of batches that may wait for their reader: enough to keep the search running, few
/// enough to hold in memory.
const AHEAD_BATCHES: usize = 4;

/// An engine that finds rows.
pub(super) trait Finds: fmt::Debug + Send + Sync + 'static {
    /// The plan's name in EXPLAIN.
    fn name(&self) -> &'static str;

    /// All columns.
    fn schema(&self) -> &SchemaRef;

    /// The source and the pushed-down parts of the statement, for EXPLAIN.
    fn label(&self) -> String;

    /// The column by which the rows are sorted in ascending order.
    fn ordered_by(&self) -> Option<usize> {
        None
    }

    /// Whether other processes find the rows.
    fn is_spread(&self) -> bool {
        false
    }

    /// A plan that counts the rows of each group without producing them. `columns` are the grouping
    /// columns, by index; `schema` has them, then counts. Each group occurs once; without grouping
    /// columns, there is one group, which may be empty.
    fn counted(self: Arc<Self>, columns: &[usize], schema: &SchemaRef) -> Option<Arc<dyn Finds>> {
        let _ = (columns, schema);
        None
    }

    /// Finds rows, until there are no more or `out` accepts no more.
    fn find(&self, out: &mut Out) -> Result<()>;
}

/// Receives the rows.
pub(super) struct Out {
    sender: Sender<Result<RecordBatch>>,
    columns: Vec<usize>,
    schema: SchemaRef,
    left: Option<usize>,
    stop: Arc<AtomicBool>,
    baseline: BaselineMetrics,
    bytes: Count,
    metrics: ExecutionPlanMetricsSet,
    is_analyzed: bool,
}

impl Out {
    /// The requested columns, by their indices among all columns.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The schema of the requested columns.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Becomes true when no more rows are needed.
    pub(super) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Records the number of bytes examined.
    pub(super) fn touched(&self, bytes: u64) {
        self.bytes.add(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Whether a comparison with the machine's ceilings was requested.
    pub(super) fn is_analyzed(&self) -> bool {
        self.is_analyzed
    }

    /// Records the number of bytes read in a time in which the ceiling `of` would allow
    /// `ceiling_bytes`.
    pub(super) fn reached(&self, of: &str, bytes: u64, ceiling_bytes: f64) {
        let ratio_metrics = RatioMetrics::new().with_display_raw_values(false);
        ratio_metrics.add_part(usize::try_from(bytes).unwrap_or(usize::MAX));
        ratio_metrics.add_total(ceiling_bytes as usize);
        let name = format!("share_of_{}", of.replace(' ', "_")).into();
        MetricBuilder::new(&self.metrics).build(MetricValue::Ratio { name, ratio_metrics });
    }

    /// The maximum number of rows still needed.
    pub(super) fn left(&self) -> usize {
        self.left.unwrap_or(usize::MAX)
    }

    /// Sends rows of the requested columns, and blocks while too many batches are waiting. Returns
    /// `Break` if no more rows are needed.
    pub(super) fn take(&mut self, batch: RecordBatch) -> ControlFlow<()> {
        let rows = batch.num_rows().min(self.left());
        if rows > 0 {
            self.baseline.record_output(rows);
            let batch = if rows < batch.num_rows() { batch.slice(0, rows) } else { batch };
            if self.sender.blocking_send(Ok(batch)).is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        self.left = self.left.map(|left| left - rows);
        if self.left == Some(0) {
            self.stop.store(true, Ordering::Relaxed);
        }
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// A plan that runs a [`Finds`].
#[derive(Debug, Clone)]
pub(crate) struct FoundExec {
    finds: Arc<dyn Finds>,
    columns: Vec<usize>,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FoundExec {
    /// Plans the columns in `projection`, or all, with at most `fetch` rows.
    pub(super) fn new(
        finds: Arc<dyn Finds>,
        projection: Option<&Vec<usize>>,
        fetch: Option<usize>,
    ) -> Result<FoundExec> {
        let all = finds.schema();
        let schema = project_schema(all, projection)?;
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..all.fields().len()).collect(),
        };
        let place = finds.ordered_by().and_then(|by| columns.iter().position(|&c| c == by));
        let equivalences = match place {
            None => EquivalenceProperties::new(schema),
            Some(place) => ordered(schema, place)?,
        };
        let properties = Arc::new(PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(FoundExec { finds, columns, fetch, properties, metrics })
    }
}

impl FoundExec {
    /// Whether other processes find the rows.
    pub(crate) fn is_spread(&self) -> bool {
        self.finds.is_spread()
    }

    /// A plan that counts the rows of each group, if the engine can count without producing rows.
    /// `columns` are the grouping columns, by index among the requested ones; `schema` has them,
    /// then counts.
    pub(crate) fn counted(&self, columns: &[usize], schema: &SchemaRef) -> Option<FoundExec> {
        if self.fetch.is_some() {
            return None;
        }
        let place = |column: &usize| self.columns.get(*column).copied();
        let columns: Vec<usize> = columns.iter().map(place).collect::<Option<_>>()?;
        let finds = Arc::clone(&self.finds).counted(&columns, schema)?;
        FoundExec::new(finds, None, None).ok()
    }
}

/// Properties of rows sorted by a column in ascending order.
fn ordered(schema: SchemaRef, place: usize) -> Result<EquivalenceProperties> {
    use datafusion::arrow::compute::SortOptions;
    use datafusion::physical_expr::PhysicalSortExpr;
    use datafusion::physical_expr::expressions::Column;
    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(place).name(), place));
    let rising = PhysicalSortExpr::new(column, SortOptions::new(false, false));
    Ok(EquivalenceProperties::new_with_orderings(schema, [[rising]]))
}

impl DisplayAs for FoundExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.finds.name(), self.finds.label())?;
        if let Some(fetch) = self.fetch {
            write!(f, ", limit={fetch}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for FoundExec {
    fn name(&self) -> &str {
        self.finds.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(FoundExec { fetch, ..self.clone() }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let ceiling = context.session_config().get_extension::<Ceiling>();
        let mut found = RecordBatchReceiverStream::builder(Arc::clone(&schema), AHEAD_BATCHES);
        let stop = StopOnDrop::default();
        let mut out = Out {
            sender: found.tx(),
            columns: self.columns.clone(),
            schema: Arc::clone(&schema),
            left: self.fetch,
            stop: stop.flag(),
            baseline: BaselineMetrics::new(&self.metrics, partition),
            bytes: MetricBuilder::new(&self.metrics).counter("bytes_touched", partition),
            metrics: self.metrics.clone(),
            is_analyzed: ceiling.is_some_and(|ceiling| ceiling.is_asked()),
        };
        let finds = Arc::clone(&self.finds);
        found.spawn_blocking(move || match out.left {
            Some(0) => Ok(()),
            _ => finds.find(&mut out),
        });
        // The closure holds `stop`, so that dropping the stream ends the search.
        let batches = found.build().inspect(move |_| {
            let _held = &stop;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
