//! Sets of many values as a table of bits.

use quarrier_messages::{Kind, Table};

use super::bind::RANGES_MAX;
use crate::arch;
use crate::predicate::Node;

/// Values that a table has a bit for at most: as many as a cache holds, 1 MiB. A join on keys that
/// are numbered asks for some thousand of them.
const VALUES_MAX: i64 = 1 << 23;
/// Bytes of a table for each range in it at most: a statement of many short lists must not take more
/// memory than lies in proportion to its text.
const RANGE_BYTES_MAX: i64 = 128;

/// A bit for each value between the least and the greatest of a column.
#[derive(Debug)]
pub(crate) struct Members {
    /// The value of the first bit.
    first: i64,
    bits: Box<[u32]>,
}

impl Members {
    /// Those of a set that has too many ranges to compare each; none where the column's values are
    /// too far apart, or no whole numbers.
    pub(crate) fn of(node: &Node, table: &Table) -> Option<Members> {
        let Node::Set { column, set } = node else { return None };
        let (kind, column) = (table.schema().fields[*column].kind, &table.columns()[*column]);
        let (first, last) = match (kind, column.dictionary()) {
            (Kind::Text, dictionary) => (0, dictionary?.len() as i64 - 1),
            (Kind::Integer | Kind::Decimal { .. } | Kind::Date | Kind::Timestamp, _) => {
                let zones = column.segments().iter().map(|segment| segment.zone());
                let zones = zones.filter(|zone| !zone.is_without_values());
                zones
                    .map(|zone| (zone.min, zone.max))
                    .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?
            }
            _ => return None,
        };
        let within = set.within(first, last);
        let values_max = VALUES_MAX.min(8 * RANGE_BYTES_MAX * within.len() as i64);
        let is_near = last.checked_sub(first).is_some_and(|span| span < values_max);
        if within.len() <= RANGES_MAX || !(is_near || kind == Kind::Text) {
            return None;
        }
        let mut bits = vec![0_u32; ((last - first) as usize + 1).div_ceil(32)];
        for (from, to) in within {
            for place in (from - first) as usize..=(to - first) as usize {
                bits[place / 32] |= 1 << (place % 32);
            }
        }
        Some(Members { first, bits: bits.into() })
    }

    /// The bits, and the place among them of `value`; none where it lies before all of them.
    pub(crate) fn from(&self, value: i64) -> Option<(&[u32], u32)> {
        let place = u32::try_from(value.checked_sub(self.first)?).ok()?;
        Some((&self.bits, place))
    }

    /// Whether `value` is one of them.
    pub(crate) fn contains(&self, value: i64) -> bool {
        self.from(value).is_some_and(|(bits, place)| arch::bit(bits, place as usize) == 1)
    }
}
