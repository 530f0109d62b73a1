//! Plans runtime filters (semi-join reduction) for joins: the exact keys of the build side filter
//! the scans of the probe side. DataFusion's own dynamic filters have only the range of keys, or a
//! short list, and scans do not wait for them.

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

use super::misrouted::filters_at;
use crate::scan::{
    JoinKeyCollectExec, JoinKeyColumn, JoinKeyFilterExec, JoinKeys, MessagesExec, RequestedKey,
    is_whole,
};

/// Adds a [`JoinKeyCollectExec`] above the build side of a join, if scans below the probe side can
/// filter by its keys.
pub(super) fn instead(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    // If NULL equals NULL, or one NULL decides all (NOT IN), rows without a partner matter.
    let is_plain = !join.null_aware && join.null_equality() == NullEquality::NullEqualsNothing;
    let produced = join.dynamic_expressions_produced();
    let Some(id) = produced.first().and_then(|filter| filter.expression_id()) else {
        return Ok(None);
    };
    if !is_plain || join.left().downcast_ref::<JoinKeyCollectExec>().is_some() {
        return Ok(None);
    }
    let mut requests = KeyRequests { join, id, requested: Vec::new() };
    let right = Arc::clone(join.right()).transform_down(|part| {
        Ok(match requests.waiting(&part) {
            // The replacement may contain the part itself.
            Some(other) => Transformed::new(other, true, TreeNodeRecursion::Jump),
            None => Transformed::no(part),
        })
    });
    let (right, requested) = (right.data()?, requests.requested);
    if requested.is_empty() {
        return Ok(None);
    }
    let left = Arc::new(JoinKeyCollectExec::new(Arc::clone(join.left()), requested));
    replace_children_if_necessary(Arc::clone(plan), vec![left, right]).map(Some)
}

/// The keys to collect for the scans that a join's filter reaches.
struct KeyRequests<'p> {
    join: &'p HashJoinExec,
    /// The ID of the join's dynamic filter.
    id: u64,
    requested: Vec<RequestedKey>,
}

impl KeyRequests<'_> {
    /// A replacement for `part` whose scan waits for keys of the join.
    fn waiting(&mut self, part: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        if let Some(scan) = part.downcast_ref::<MessagesExec>() {
            return self.messages(part, scan).map(|scan| Arc::new(scan) as _);
        }
        let (file, key_columns) = match part.downcast_ref::<JoinKeyFilterExec>() {
            Some(keep) => (keep.input(), keep.key_columns().to_vec()),
            None => (part, Vec::new()),
        };
        file.downcast_ref::<DataSourceExec>()?;
        let more = self.key_columns(file);
        if more.is_empty() {
            return None;
        }
        let key_columns = [key_columns, more].concat();
        Some(Arc::new(JoinKeyFilterExec::new(Arc::clone(file), key_columns)))
    }

    /// The keys of the join that can be collected, each with the column of `leaf` that it filters.
    fn pairs(&self, leaf: &Arc<dyn ExecutionPlan>) -> Vec<(Arc<dyn PhysicalExpr>, Column)> {
        let filter =
            filters_at(leaf).into_iter().find(|filter| filter.expression_id() == Some(self.id));
        let Some(filter) = filter else { return Vec::new() };
        // The filter's children are the keys of this side, in order, as columns of the leaf.
        let pairs = filter.children().into_iter().cloned().zip(self.join.on().iter().cloned());
        pairs
            .filter(|(_, (key, _))| JoinKeyCollectExec::can_collect(&**self.join.left(), key))
            .filter_map(|(child, (key, _))| Some((key, child.downcast_ref::<Column>()?.clone())))
            .collect()
    }

    fn messages(
        &mut self,
        part: &Arc<dyn ExecutionPlan>,
        scan: &MessagesExec,
    ) -> Option<MessagesExec> {
        // With a single key column, its exact keys make the dynamic filter redundant.
        let instead = (self.join.on().len() == 1).then_some(self.id);
        let mut waiting: Option<MessagesExec> = None;
        for (key, column) in self.pairs(part) {
            let scan = waiting.as_ref().unwrap_or(scan);
            if let Some((scan, keys)) = scan.with_keys(column.index(), instead) {
                self.requested.push(RequestedKey { key, keys });
                waiting = Some(scan);
            }
        }
        waiting
    }

    /// The key columns by which the rows of a file can be filtered.
    fn key_columns(&mut self, file: &Arc<dyn ExecutionPlan>) -> Vec<JoinKeyColumn> {
        let mut key_columns = Vec::new();
        for (key, column) in self.pairs(file) {
            let Ok(column) = file.schema().index_of(column.name()) else { continue };
            let Some(span) = span(file, column) else { continue };
            let keys = JoinKeys::new(span);
            self.requested.push(RequestedKey { key, keys: Arc::clone(&keys) });
            key_columns.push(JoinKeyColumn { column, keys });
        }
        key_columns
    }
}

/// The range of a column's integers according to the file's statistics.
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
