//! What one side of a join has is told to the scans on the other: the engine by itself tells the least
//! key and the greatest, and of few keys which, and does not wait for them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result, ScalarValue};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use quarrier_filter::Keys;

use super::misled::told;
use crate::scan::{Asked, JoinKeys, KeepExec, KeysExec, MessagesExec, Wish, is_whole};

/// Puts what gathers keys above the side of a join that is read first, where scans below the other side
/// can look for them.
pub(super) fn instead(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    // Where NULL counts as equal, or one NULL decides all, rows without a partner matter.
    let is_plain = !join.null_aware && join.null_equality() == NullEquality::NullEqualsNothing;
    let produced = join.dynamic_expressions_produced();
    let Some(id) = produced.first().and_then(|filter| filter.expression_id()) else {
        return Ok(None);
    };
    if !is_plain || join.left().downcast_ref::<KeysExec>().is_some() {
        return Ok(None);
    }
    let mut asking = Asking { join, id, asked: Vec::new() };
    let right = Arc::clone(join.right()).transform_down(|part| {
        Ok(match asking.waiting(&part) {
            // What stands in its place may have the part below it.
            Some(other) => Transformed::new(other, true, TreeNodeRecursion::Jump),
            None => Transformed::no(part),
        })
    });
    let (right, asked) = (right.data()?, asking.asked);
    if asked.is_empty() {
        return Ok(None);
    }
    let left = Arc::new(KeysExec::new(Arc::clone(join.left()), asked));
    replace_children_if_necessary(Arc::clone(plan), vec![left, right]).map(Some)
}

/// What is to be gathered for scans that have been told of a join's filter.
struct Asking<'p> {
    join: &'p HashJoinExec,
    /// The filter's.
    id: u64,
    asked: Vec<Asked>,
}

impl Asking<'_> {
    /// What waits for keys of the join in the place of a scan.
    fn waiting(&mut self, part: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        if let Some(scan) = part.downcast_ref::<MessagesExec>() {
            return self.messages(part, scan).map(|scan| Arc::new(scan) as _);
        }
        let (file, wishes) = match part.downcast_ref::<KeepExec>() {
            Some(keep) => (keep.input(), keep.wishes().to_vec()),
            None => (part, Vec::new()),
        };
        file.downcast_ref::<DataSourceExec>()?;
        let more = self.wishes(file);
        if more.is_empty() {
            return None;
        }
        let wishes = [wishes, more].concat();
        Some(Arc::new(KeepExec::new(Arc::clone(file), wishes)))
    }

    /// The keys of the join that can be gathered, each with the column that `leaf` has of it.
    fn pairs(&self, leaf: &Arc<dyn ExecutionPlan>) -> Vec<(Arc<dyn PhysicalExpr>, Column)> {
        let told = told(leaf).into_iter().find(|told| told.expression_id() == Some(self.id));
        let Some(told) = told else { return Vec::new() };
        // They stand for the keys on this side, one after the other, as the leaf has them.
        let pairs = told.children().into_iter().cloned().zip(self.join.on().iter().cloned());
        pairs
            .filter(|(_, (key, _))| KeysExec::can_gather(&**self.join.left(), key))
            .filter_map(|(child, (key, _))| Some((key, child.downcast_ref::<Column>()?.clone())))
            .collect()
    }

    fn messages(
        &mut self,
        part: &Arc<dyn ExecutionPlan>,
        scan: &MessagesExec,
    ) -> Option<MessagesExec> {
        // Of one key they say all that the filter does.
        let instead = (self.join.on().len() == 1).then_some(self.id);
        let mut waiting: Option<MessagesExec> = None;
        for (key, column) in self.pairs(part) {
            let scan = waiting.as_ref().unwrap_or(scan);
            if let Some((scan, keys)) = scan.with_keys(column.index(), instead) {
                self.asked.push(Asked { key, keys });
                waiting = Some(scan);
            }
        }
        waiting
    }

    /// Of what a file has.
    fn wishes(&mut self, file: &Arc<dyn ExecutionPlan>) -> Vec<Wish> {
        let mut wishes = Vec::new();
        for (key, column) in self.pairs(file) {
            let Ok(column) = file.schema().index_of(column.name()) else { continue };
            let Some(span) = span(file, column) else { continue };
            let keys = JoinKeys::new(span);
            self.asked.push(Asked { key, keys: Arc::clone(&keys) });
            wishes.push(Wish { column, keys });
        }
        wishes
    }
}

/// Between which numbers a column of a file lies, if it says so.
fn span(file: &Arc<dyn ExecutionPlan>, column: usize) -> Option<RangeInclusive<i64>> {
    if !is_whole(file.schema().field(column).data_type()) {
        return None;
    }
    let statistics = file.statistics_from_inputs(&[], &StatisticsArgs::new()).ok()?;
    let known = statistics.column_statistics.get(column)?;
    let whole = |value: Option<&ScalarValue>| match value? {
        ScalarValue::Int64(value) => *value,
        ScalarValue::Int32(value) => value.map(i64::from),
        _ => None,
    };
    let (least, greatest) =
        (whole(known.min_value.get_value())?, whole(known.max_value.get_value())?);
    Some(least..=greatest).filter(Keys::have_bits)
}
