//! The plans of a table that other processes read.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use quarrier_core::sync::StopOnDrop;

use super::{Spread, SpreadFragment, SpreadSource, UnitScan};
use crate::Error;

/// The number of batches that may wait for their reader.
const AHEAD_BATCHES: usize = 4;

/// In a fragment, the place of the scan of a unit.
#[derive(Debug)]
pub struct UnitExec {
    properties: Arc<PlanProperties>,
}

impl UnitExec {
    /// The place of a scan with these columns.
    pub fn new(schema: SchemaRef) -> Self {
        UnitExec { properties: properties(schema) }
    }
}

/// Those of one partition of rows in no known order.
fn properties(schema: SchemaRef) -> Arc<PlanProperties> {
    let properties = PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    );
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for UnitExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnitExec")
    }
}

/// The methods of a plan without children.
macro_rules! leaf {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
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
    };
}

impl ExecutionPlan for UnitExec {
    leaf!("UnitExec");

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("the fragment has no unit")
    }
}

/// Runs a fragment over all units of a table, and returns their rows in the order of the units.
#[derive(Debug, Clone)]
pub(crate) struct SpreadExec {
    on: Arc<dyn Spread>,
    /// The fragment over a [`UnitExec`].
    plan: Arc<dyn ExecutionPlan>,
    fragment: SpreadFragment,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SpreadExec {
    /// Scans the units of some sources. `None` if no fragment can be sent.
    pub(super) fn new(
        on: Arc<dyn Spread>,
        sources: Arc<[SpreadSource]>,
        scan: UnitScan,
        statistics: Statistics,
    ) -> Option<Self> {
        let rows = scan.rows();
        let plan: Arc<dyn ExecutionPlan> = Arc::new(UnitExec::new(Arc::clone(&rows)));
        let packed = on.pack(&plan)?.into();
        let properties = properties(Arc::clone(&rows));
        let is_limited = scan.limit.is_some();
        let fragment = SpreadFragment { sources, packed, scan, rows, is_limited };
        let (statistics, metrics) = (Arc::new(statistics), ExecutionPlanMetricsSet::new());
        Some(SpreadExec { on, plan, fragment, statistics, properties, metrics })
    }

    /// The scan alone as a fragment.
    pub(super) fn into_fragment(self) -> SpreadFragment {
        self.fragment
    }

    /// The fragment.
    pub(crate) fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// The same scan with a larger fragment, unless that cannot be sent.
    pub(crate) fn with_plan(&self, plan: Arc<dyn ExecutionPlan>) -> Option<Self> {
        let packed = self.on.pack(&plan)?.into();
        let rows = plan.schema();
        let properties = properties(Arc::clone(&rows));
        let statistics = Arc::new(Statistics::new_unknown(&rows));
        let is_limited = self.fragment.is_limited || plan.fetch().is_some();
        let fragment = SpreadFragment { packed, rows, is_limited, ..self.fragment.clone() };
        Some(SpreadExec { plan, fragment, statistics, properties, ..self.clone() })
    }
}

impl DisplayAs for SpreadExec {
    // Names of sources may hold secrets.
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpreadExec: sources={}, fragment=[", self.fragment.sources.len())?;
        let mut part = Some(&self.plan);
        let mut is_first = true;
        while let Some(plan) = part {
            f.write_str(if is_first { "" } else { " < " })?;
            plan.fmt_as(DisplayFormatType::Default, f)?;
            is_first = false;
            part = plan.children().first().copied();
        }
        f.write_str("]")
    }
}

impl ExecutionPlan for SpreadExec {
    leaf!("SpreadExec");

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&self.statistics))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let mut rows = RecordBatchReceiverStream::builder(Arc::clone(&schema), AHEAD_BATCHES);
        let (on, fragment, sender) = (Arc::clone(&self.on), self.fragment.clone(), rows.tx());
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let stopping = StopOnDrop::default();
        let stop = stopping.flag();
        rows.spawn_blocking(move || {
            let ran = on.run(&fragment, &stop, &mut |batch| {
                baseline.record_output(batch.num_rows());
                match sender.blocking_send(Ok(batch)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
            match ran {
                Ok(()) => Ok(()),
                Err(_) if sender.is_closed() => Err(Error::Cancelled.into()),
                Err(reason) => Err(Error::value(reason).into()),
            }
        });
        // The closure holds `stopping`, so that dropping the stream ends the run.
        let rows = rows.build().inspect(move |_| {
            let _held = &stopping;
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, rows))))
    }
}
