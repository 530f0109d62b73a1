//! The plan of a job: rows that name units on sheets, and an operator that runs them.

use std::fmt;
use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::run;
use crate::sheet::{Slice, row_of, slice_schema};
use crate::task::{Payload, answer_schema, damaged};

/// The plan that runs the units of these slices, each of which is a task.
///
/// # Errors
/// If memory is short.
pub(crate) fn plan(payload: Payload, slices: &[Slice]) -> Result<Arc<dyn ExecutionPlan>> {
    let partition = |slice: &Slice| Ok(vec![row_of(slice)?]);
    let partitions = slices.iter().map(partition).collect::<Result<Vec<_>>>()?;
    let input = MemorySourceConfig::try_new_exec(&partitions, slice_schema(), None)?;
    Ok(Arc::new(UnitsExec::new(input, Arc::new(payload))))
}

/// Runs units, and answers for each of them.
#[derive(Debug)]
pub(crate) struct UnitsExec {
    input: Arc<dyn ExecutionPlan>,
    payload: Arc<Payload>,
    properties: Arc<PlanProperties>,
}

impl UnitsExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, payload: Arc<Payload>) -> Self {
        // As many partitions as the input: the scheduler counts them to cut the plan into tasks.
        let partitions = input.properties().output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(answer_schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        UnitsExec { input, payload, properties: Arc::new(properties) }
    }
}

impl DisplayAs for UnitsExec {
    // Names of sources may hold secrets, and plans are shown in logs.
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnitsExec: job={}", self.payload.job)
    }
}

impl ExecutionPlan for UnitsExec {
    fn name(&self) -> &'static str {
        "UnitsExec"
    }

    fn schema(&self) -> SchemaRef {
        answer_schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(UnitsExec::new(input, Arc::clone(&self.payload)))),
            _ => Err(damaged("the operator has one input")),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        run::execute(Arc::clone(&self.payload), self.input.execute(partition, context)?)
    }
}

/// Writes plans for other processes, and reads them.
#[derive(Debug, Default)]
pub(crate) struct Codec {
    others: BallistaPhysicalExtensionCodec,
}

/// The first bytes of our operator.
const MAGIC: &[u8] = b"quarrier units 1\n";

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(json) = buf.strip_prefix(MAGIC) else {
            return self.others.try_decode(buf, inputs, ctx, proto_converter);
        };
        let payload = serde_json::from_slice(json).map_err(damaged)?;
        match inputs {
            [input] => Ok(Arc::new(UnitsExec::new(Arc::clone(input), Arc::new(payload)))),
            _ => Err(damaged("the operator has one input")),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(units) = node.downcast_ref::<UnitsExec>() else {
            return self.others.try_encode(node, buf, proto_converter);
        };
        buf.extend_from_slice(MAGIC);
        serde_json::to_writer(buf, &*units.payload).map_err(damaged)
    }
}

#[cfg(test)]
mod tests {
    use ballista_scheduler::state::task_builder::restrict_plan_to_partitions;
    use datafusion::arrow::array::RecordBatch;
    use datafusion::physical_plan::collect;
    use datafusion_proto::physical_plan::{AsExecutionPlan, DefaultPhysicalProtoConverter};
    use datafusion_proto::protobuf::PhysicalPlanNode;

    use super::*;
    use crate::sheet::slices_of;
    use crate::sheet::tests::{units, written};

    fn payload() -> Payload {
        Payload {
            version: "1".to_string(),
            run: "r".to_string(),
            job: "j".to_string(),
            request: "q".to_string(),
            to: Some(b"/\xFF".to_vec()),
        }
    }

    fn slices(count: usize) -> Vec<Slice> {
        written(&units(count)).1
    }

    fn sent(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let codec = Codec::default();
        let node = PhysicalPlanNode::try_from_physical_plan(plan, &codec).unwrap();
        node.try_into_physical_plan(&TaskContext::default(), &codec).unwrap()
    }

    fn partitions(plan: &Arc<dyn ExecutionPlan>) -> usize {
        plan.properties().output_partitioning().partition_count()
    }

    // A plan that the scheduler does not cut would run all units in every task.
    #[tokio::test]
    async fn every_task_has_exactly_the_units_of_its_slice() {
        for count in [1, 2, 10, 5_000] {
            let all = slices(count);
            let whole = sent(plan(payload(), &all).unwrap());
            assert_eq!(partitions(&whole), all.len());
            let mut found = Vec::new();
            for number in 0..all.len() {
                let task = restrict_plan_to_partitions(Arc::clone(&whole), &[number]).unwrap();
                let task = sent(task);
                assert_eq!(partitions(&task), 1);
                let input = Arc::clone(task.children()[0]);
                assert_eq!(partitions(&input), 1);
                for batch in collect(input, Arc::default()).await.unwrap() {
                    found.extend(slices_of(&batch).unwrap());
                }
            }
            assert_eq!(found, all);
        }
    }

    // Messages have a maximum size.
    #[test]
    fn the_plan_of_a_million_units_is_small() {
        let plan = plan(payload(), &slices(1_000_000)).unwrap();
        let node = PhysicalPlanNode::try_from_physical_plan(plan, &Codec::default()).unwrap();
        let mut bytes = Vec::new();
        node.try_encode(&mut bytes).unwrap();
        assert!(bytes.len() < 4 << 20, "{} bytes", bytes.len());
    }

    #[test]
    fn plans_show_no_names_of_sources() {
        let plan = plan(payload(), &slices(3)).unwrap();
        let shown = datafusion::physical_plan::displayable(&*plan).indent(true).to_string();
        assert!(shown.contains("UnitsExec") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn damaged_payloads_are_errors() {
        let (codec, context) = (Codec::default(), TaskContext::default());
        let whole = plan(payload(), &slices(2)).unwrap();
        let input = Arc::clone(whole.children()[0]);
        let mut bytes = Vec::new();
        codec.try_encode(whole, &mut bytes, &DefaultPhysicalProtoConverter {}).unwrap();
        let decode = |bytes: &[u8], inputs: &[Arc<dyn ExecutionPlan>]| {
            codec.try_decode(bytes, inputs, &context, &DefaultPhysicalProtoConverter {})
        };
        assert!(decode(&bytes, &[Arc::clone(&input)]).is_ok());
        assert!(decode(&bytes, &[]).is_err());
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at], &[Arc::clone(&input)]).is_err());
            // Any result is fine, but no panic.
            let _ = decode(&changed(&bytes, at), &[Arc::clone(&input)]);
        }
        assert!(slices_of(&RecordBatch::new_empty(answer_schema())).is_err());
    }

    fn changed(bytes: &[u8], at: usize) -> Vec<u8> {
        let mut changed = bytes.to_vec();
        changed[at] ^= 0x41;
        changed
    }
}
