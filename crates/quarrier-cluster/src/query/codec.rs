//! Fragments of plans as bytes.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use quarrier_sql::UnitExec;

use crate::task::damaged;

/// Where the scan of a unit is in a fragment.
const UNIT: &[u8] = b"quarrier unit 1\n";

/// Writes fragments, and reads them over the scan of a unit. Functions go by their names.
#[derive(Debug)]
struct FragmentCodec {
    context: Arc<TaskContext>,
    unit: Option<Arc<dyn ExecutionPlan>>,
}

/// The fragment as bytes. `None` if a process with the functions of `context` would not read the same fragment
/// from them.
pub(crate) fn pack(
    fragment: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Option<Vec<u8>> {
    let codec = FragmentCodec { context: Arc::clone(context), unit: None };
    let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(fragment), &codec).ok()?;
    let mut place = Arc::clone(fragment);
    while let Some(input) = place.children().first().copied().cloned() {
        place = input;
    }
    let read = unpack(&bytes, place, context).ok()?;
    let shown = |plan: &Arc<dyn ExecutionPlan>| displayable(&**plan).indent(true).to_string();
    let is_same = read.schema() == fragment.schema() && shown(&read) == shown(fragment);
    is_same.then(|| bytes.to_vec())
}

/// The fragment over the scan of a unit.
///
/// # Errors
/// If the bytes are no fragment.
pub(crate) fn unpack(
    bytes: &[u8],
    unit: Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let codec = FragmentCodec { context: Arc::clone(context), unit: Some(unit) };
    physical_plan_from_bytes_with_extension_codec(bytes, context, &codec)
}

/// The refusal of a function that has another meaning elsewhere, or none.
fn only_here(name: &str) -> Result<()> {
    Err(damaged(format!("workers do not have the function {name}")))
}

impl PhysicalExtensionCodec for FragmentCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match &self.unit {
            Some(unit) if buf == UNIT && inputs.is_empty() => Ok(Arc::clone(unit)),
            _ => Err(damaged("it has an unknown operator")),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if !node.is::<UnitExec>() {
            return Err(damaged(format!("workers do not have the operator {}", node.name())));
        }
        buf.extend_from_slice(UNIT);
        Ok(())
    }

    fn try_encode_udf(&self, node: &ScalarUDF, _: &mut Vec<u8>) -> Result<()> {
        let known = self.context.scalar_functions().get(node.name());
        match known.is_some_and(|known| **known == *node) {
            true => Ok(()),
            false => only_here(node.name()),
        }
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, _: &mut Vec<u8>) -> Result<()> {
        let known = self.context.aggregate_functions().get(node.name());
        match known.is_some_and(|known| **known == *node) {
            true => Ok(()),
            false => only_here(node.name()),
        }
    }

    fn try_encode_udwf(&self, node: &WindowUDF, _: &mut Vec<u8>) -> Result<()> {
        only_here(node.name())
    }

    fn try_encode_higher_order_function(
        &self,
        node: &HigherOrderUDF,
        _: &mut Vec<u8>,
    ) -> Result<()> {
        only_here(node.name())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal, NotExpr};
    use datafusion::physical_plan::filter::FilterExec;
    use datafusion::physical_plan::{PhysicalExpr, empty::EmptyExec};
    use quarrier_sql::{Engine, Options};

    use super::*;

    fn context() -> Arc<TaskContext> {
        Engine::new(Options::default()).unwrap().context().task_ctx()
    }

    fn is_above(above: i64, levels: usize) -> Arc<dyn PhysicalExpr> {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("a", 0));
        let value: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::Int64(Some(above))));
        let one: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column, Operator::Gt, value));
        (0..levels).fold(Arc::clone(&one), |all, _| {
            Arc::new(BinaryExpr::new(all, Operator::And, Arc::clone(&one)))
        })
    }

    fn filter(levels: usize) -> Arc<dyn ExecutionPlan> {
        filter_by(is_above(7, levels))
    }

    fn filter_by(condition: Arc<dyn PhysicalExpr>) -> Arc<dyn ExecutionPlan> {
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let unit = Arc::new(UnitExec::new(Arc::new(schema)));
        Arc::new(FilterExec::try_new(condition, unit).unwrap())
    }

    #[test]
    fn a_fragment_is_read_over_the_scan_of_a_unit() {
        let context = context();
        let bytes = pack(&filter(3), &context).unwrap();
        let unit: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(filter(0).schema()));
        let read = unpack(&bytes, unit, &context).unwrap();
        let shown = displayable(&*read).indent(true).to_string();
        assert!(shown.contains("FilterExec: a@0 > 7") && shown.contains("EmptyExec"), "{shown}");
    }

    #[test]
    fn what_workers_could_not_read_is_not_sent() {
        let context = context();
        let empty: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(filter(0).schema()));
        let payload = crate::task::Payload {
            version: String::new(),
            run: String::new(),
            job: String::new(),
            request: String::new(),
            to: None,
        };
        let own: Arc<dyn ExecutionPlan> =
            Arc::new(crate::plan::UnitsExec::new(empty, Arc::new(payload)));
        assert!(pack(&own, &context).is_none());
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test without its thread has failed")]
    fn what_is_nested_deeper_than_workers_read_is_not_sent() {
        // Statements are planned on stacks that are as large as their text needs.
        let large = std::thread::Builder::new().stack_size(256 << 20);
        let is_sent = |levels: usize| {
            let nested = (0..levels).fold(is_above(7, 0), |inner, _| Arc::new(NotExpr::new(inner)));
            pack(&filter_by(nested), &context()).is_some()
        };
        let packed = large.spawn(move || [10, 200].map(is_sent)).unwrap();
        assert_eq!(packed.join().unwrap(), [true, false]);
    }

    #[test]
    fn damaged_fragments_are_errors() {
        let context = context();
        let bytes = pack(&filter(3), &context).unwrap();
        let unit: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(filter(0).schema()));
        for at in 0..bytes.len() {
            let cut = unpack(&bytes[..at], Arc::clone(&unit), &context);
            assert!(cut.is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            // Any result is fine, but no panic.
            let _ = unpack(&changed, Arc::clone(&unit), &context);
        }
    }
}
