//! The plan of a job: rows that describe units, and an operator that runs them.

use std::fmt;
use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::arrow::array::{Array, RecordBatch, StringArray, UInt64Array};
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
use crate::task::{Payload, Task, answer_schema, damaged, task_schema};

/// Maximum number of partitions of a plan, each of which is a task with one or more units.
const PARTITIONS_MAX: usize = 2_000;

/// The plan that runs the units with these indexes.
///
/// # Errors
/// If memory is short.
pub(crate) fn plan(payload: Payload, units: &[(usize, Task)]) -> Result<Arc<dyn ExecutionPlan>> {
    let per_partition = units.len().div_ceil(PARTITIONS_MAX).max(1);
    let partition = |units: &[(usize, Task)]| -> Result<Vec<RecordBatch>> {
        let indexes: UInt64Array = units.iter().map(|(index, _)| *index as u64).collect();
        let tasks = units.iter().map(|(_, task)| serde_json::to_string(task));
        let tasks: Vec<String> = tasks.collect::<serde_json::Result<_>>().map_err(damaged)?;
        let columns: Vec<Arc<dyn Array>> =
            vec![Arc::new(indexes), Arc::new(StringArray::from(tasks))];
        Ok(vec![RecordBatch::try_new(task_schema(), columns)?])
    };
    let partitions = units.chunks(per_partition).map(partition).collect::<Result<Vec<_>>>()?;
    let input = MemorySourceConfig::try_new_exec(&partitions, task_schema(), None)?;
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
    use datafusion::physical_plan::collect;
    use datafusion_proto::physical_plan::{AsExecutionPlan, DefaultPhysicalProtoConverter};
    use datafusion_proto::protobuf::PhysicalPlanNode;

    use super::*;
    use crate::task::tasks_of;

    fn payload() -> Payload {
        Payload {
            version: "1".to_string(),
            run: "r".to_string(),
            job: "j".to_string(),
            request: "q".to_string(),
            to: Some(b"/\xFF".to_vec()),
        }
    }

    fn units(count: usize) -> Vec<(usize, Task)> {
        let task = |start| Task {
            at: b"/a\xFFb".to_vec(),
            name: b"a\xFFb".to_vec(),
            source: "a?secret=b".to_string(),
            length: 99,
            mark: "m".to_string(),
            start,
            end: start + 1,
        };
        (0..count).map(|index| (index, task(index as u64))).collect()
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
            let all = units(count);
            let whole = sent(plan(payload(), &all).unwrap());
            let in_total = partitions(&whole);
            assert!(in_total <= PARTITIONS_MAX && in_total >= count.min(PARTITIONS_MAX / 2));
            let mut found = Vec::new();
            for number in 0..in_total {
                let task = restrict_plan_to_partitions(Arc::clone(&whole), &[number]).unwrap();
                let task = sent(task);
                assert_eq!(partitions(&task), 1);
                let input = Arc::clone(task.children()[0]);
                assert_eq!(partitions(&input), 1);
                for batch in collect(input, Arc::default()).await.unwrap() {
                    found.extend(tasks_of(&batch).unwrap());
                }
            }
            let all: Vec<(u64, Task)> =
                all.into_iter().map(|(index, task)| (index as u64, task)).collect();
            assert_eq!(found, all);
        }
    }

    #[test]
    fn plans_show_no_names_of_sources() {
        let plan = plan(payload(), &units(3)).unwrap();
        let shown = datafusion::physical_plan::displayable(&*plan).indent(true).to_string();
        assert!(shown.contains("UnitsExec") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn damaged_payloads_are_errors() {
        let (codec, context) = (Codec::default(), TaskContext::default());
        let whole = plan(payload(), &units(2)).unwrap();
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
        assert!(tasks_of(&RecordBatch::new_empty(answer_schema())).is_err());
    }

    fn changed(bytes: &[u8], at: usize) -> Vec<u8> {
        let mut changed = bytes.to_vec();
        changed[at] ^= 0x41;
        changed
    }
}
