//! A single total: of all rows, or of a moving window frame.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int64Array, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

use super::finish::Finish;
use super::total::Total;
use super::values::Exact;

/// The precision of sums in states.
pub(super) const STATE_DIGITS: u8 = 38;

/// The aggregate, and the types of its values and result.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) finish: Finish,
    pub(super) exact: Exact,
    pub(super) result: DataType,
}

impl Task {
    fn value(&self, total: Total) -> Result<ScalarValue> {
        let total = Some(total).filter(|total| total.count > 0);
        self.finish.value(total, &self.result, self.exact.scale())
    }
}

/// A total of all values.
#[derive(Debug)]
pub(super) struct One {
    pub(super) task: Task,
    pub(super) total: Total,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (exact, total) = (self.task.exact, &mut self.total);
        match exact.quick_sum(&values[0]) {
            Some((sum, count)) => total.add(sum, count),
            None => exact.each(&values[0], |value| total.add(value, 1))?,
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (exact, total) = (self.task.exact, &mut self.total);
        exact.each(&values[0], |value| total.subtract(value, 1))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.task.value(self.total)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let Total { low, carry, count } = self.total;
        let is_there = count > 0;
        let low = is_there.then_some(low);
        let mut state = match self.task.finish {
            Finish::Sum => Vec::new(),
            Finish::Avg => vec![ScalarValue::UInt64(is_there.then_some(count))],
        };
        state.push(ScalarValue::Decimal128(low, STATE_DIGITS, self.task.exact.scale()));
        if self.task.exact.has_carry() {
            state.push(ScalarValue::Int64(is_there.then_some(carry)));
        }
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns = StateColumns::of(states, &self.task)?;
        for row in 0..columns.rows() {
            if let Some(part) = columns.total(row) {
                self.total.add(part.low, part.count);
                self.total.carry += part.carry;
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The columns of partial states.
pub(super) struct StateColumns<'s> {
    pub(super) counts: Option<&'s UInt64Array>,
    pub(super) lows: &'s Decimal128Array,
    pub(super) carries: Option<&'s Int64Array>,
}

impl<'s> StateColumns<'s> {
    pub(super) fn of(states: &'s [ArrayRef], task: &Task) -> Result<Self> {
        let (counts, rest) = match (task.finish, states) {
            (Finish::Avg, [counts, rest @ ..]) => (counts.as_primitive_opt::<UInt64Type>(), rest),
            (_, rest) => (None, rest),
        };
        let lows = rest.first().and_then(|lows| lows.as_primitive_opt::<Decimal128Type>());
        let carries = rest.get(1).and_then(|carries| carries.as_primitive_opt::<Int64Type>());
        match lows {
            Some(lows) => Ok(StateColumns { counts, lows, carries }),
            None => internal_err!("states of another type"),
        }
    }

    fn rows(&self) -> usize {
        self.lows.len()
    }

    /// The total of a row. The state of a SUM has no count, so the count is 1.
    fn total(&self, row: usize) -> Option<Total> {
        if self.lows.is_null(row) {
            return None;
        }
        let count = self.counts.map_or(1, |counts| counts.value(row));
        let carry = self.carries.map_or(0, |carries| carries.value(row));
        Some(Total { low: self.lows.value(row), carry, count })
    }
}

/// A total of distinct values.
#[derive(Debug)]
pub(super) struct Distinct {
    pub(super) task: Task,
    /// How often each value occurs.
    pub(super) times: HashMap<i128, u64>,
    pub(super) total: Total,
    pub(super) input: DataType,
}

impl Distinct {
    fn add(times: &mut HashMap<i128, u64>, total: &mut Total, value: i128) {
        let times = times.entry(value).or_default();
        *times += 1;
        if *times == 1 {
            total.add(value, 1);
        }
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (times, total) = (&mut self.times, &mut self.total);
        self.task.exact.each(&values[0], |value| Distinct::add(times, total, value))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (all, total) = (&mut self.times, &mut self.total);
        self.task.exact.each(&values[0], |value| {
            let Some(times) = all.get_mut(&value) else { return };
            *times -= 1;
            if *times == 0 {
                all.remove(&value);
                total.subtract(value, 1);
            }
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.task.value(self.total)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let scalar = |value: &i128| match self.task.exact {
            Exact::Signed => ScalarValue::Int64(Some(*value as i64)),
            Exact::Unsigned => ScalarValue::UInt64(Some(*value as u64)),
            Exact::Decimal { digits, scale } => {
                ScalarValue::Decimal128(Some(*value), digits, scale)
            }
        };
        let values: Vec<ScalarValue> = self.times.keys().map(scalar).collect();
        let list = ScalarValue::new_list_nullable(&values, &self.input);
        Ok(vec![ScalarValue::List(list)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|lists| lists.as_list_opt::<i32>()) else {
            return internal_err!("states of another type");
        };
        for list in lists.iter().flatten() {
            self.update_batch(&[Arc::clone(&list)])?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.times.capacity() * size_of::<(i128, u64)>()
    }
}
