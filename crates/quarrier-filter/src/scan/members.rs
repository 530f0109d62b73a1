//! Sets of many values, as bitmaps.

use std::sync::Arc;

use quarrier_messages::{Kind, Table};

use super::bind::RANGES_MAX;
use crate::Keys;
use crate::predicate::Node;

/// Maximum number of bits of a bitmap: 1 MiB, which fits a cache. A join on numbered keys tests
/// some thousand values.
const VALUES_MAX: i64 = 1 << 23;
/// Maximum size of a bitmap for each range in it, in bytes, so that a statement with many short
/// lists cannot use memory out of proportion to its length.
const RANGE_BYTES_MAX: i64 = 128;

/// Returns the bitmap of a node: of keys that already have one, and of sets with too many ranges to
/// compare each. `None` if the column's values are too far apart, or not integers.
pub(crate) fn of(node: &Node, table: &Table) -> Option<Arc<Keys>> {
    let (column, set) = match node {
        Node::Among { keys, .. } => return Some(Arc::clone(keys)),
        Node::Set { column, set } | Node::Mixed { column, set, .. } => (*column, set),
        _ => return None,
    };
    let (kind, column) = (table.schema().fields[column].kind, &table.columns()[column]);
    let (first, last) = match (kind, column.dictionary()) {
        (Kind::Text, dictionary) => (0, dictionary?.len() as i64 - 1),
        (Kind::Integer | Kind::Decimal { .. } | Kind::Date | Kind::Timestamp, _) => {
            let zones = column.segments().iter().map(|segment| segment.zone());
            let zones = zones.filter(|zone| !zone.is_without_values());
            let ends = zones.map(|zone| (zone.min, zone.max));
            let (first, last) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
            (i64::try_from(first).ok()?, i64::try_from(last).ok()?)
        }
        _ => return None,
    };
    let within = set.narrow_within(first, last);
    let values_max = VALUES_MAX.min(8 * RANGE_BYTES_MAX * within.len() as i64);
    let is_near = last.checked_sub(first).is_some_and(|span| span < values_max);
    if within.len() <= RANGES_MAX || !(is_near || kind == Kind::Text) {
        return None;
    }
    let mut keys = Keys::of_span(first, last.abs_diff(first) + 1);
    for (from, to) in within {
        (from..=to).for_each(|key| keys.insert(key));
    }
    Some(Arc::new(keys))
}
