//! What one side of a join has is told to the scan of messages on the other: the engine by itself tells
//! the least key and the greatest, and of few keys which.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{NullEquality, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::scan::{Asked, KeysExec, MessagesExec};

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
    let mut asked = Vec::new();
    let right = Arc::clone(join.right()).transform_down(|part| {
        let Some(scan) = part.downcast_ref::<MessagesExec>() else {
            return Ok(Transformed::no(part));
        };
        Ok(match told(join, id, scan, &mut asked) {
            Some(scan) => Transformed::yes(Arc::new(scan) as _),
            None => Transformed::no(part),
        })
    });
    let right = right.data()?;
    if asked.is_empty() {
        return Ok(None);
    }
    let left = Arc::new(KeysExec::new(Arc::clone(join.left()), asked));
    replace_children_if_necessary(Arc::clone(plan), vec![left, right]).map(Some)
}

/// The scan that waits for keys of the join, and in `asked` what is to be gathered for it.
fn told(
    join: &HashJoinExec,
    id: u64,
    scan: &MessagesExec,
    asked: &mut Vec<Asked>,
) -> Option<MessagesExec> {
    let filter = scan.dynamic().iter().find(|filter| filter.expression_id() == Some(id))?;
    let mut told: Option<MessagesExec> = None;
    // They stand for the keys on this side, one after the other, as the scan has them.
    for (child, (key, _)) in filter.children().into_iter().zip(join.on()) {
        let Some(column) = child.downcast_ref::<Column>() else { continue };
        if !KeysExec::can_gather(&**join.left(), key) {
            continue;
        }
        let is_whole = join.on().len() == 1;
        let scan = told.as_ref().unwrap_or(scan);
        if let Some((scan, keys)) = scan.with_keys(column.index(), is_whole.then_some(id)) {
            asked.push(Asked { key: Arc::clone(key), keys });
            told = Some(scan);
        }
    }
    told
}
