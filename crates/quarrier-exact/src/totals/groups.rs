//! Totals for many groups.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, UInt64Array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::NullState;

use super::finish::Finish;
use super::one::{STATE_DIGITS, StateColumns, Task};
use super::total::Total;
use super::values::Exact;

/// The sums of groups. Sums of integers have 64 bits, and move to 128 bits when they overflow.
#[derive(Debug, Default)]
struct Sums {
    /// Sums of integers; empty if values are wider.
    near: Vec<i64>,
    /// Sums that do not fit in `near`; empty, or as long as `near`.
    far: Vec<i128>,
    /// Carries out of `far`, in units of 2^128.
    carries: Vec<i64>,
}

impl Sums {
    fn resize(&mut self, groups: usize, is_near: bool) {
        if is_near {
            self.near.resize(groups, 0);
        } else {
            self.far.resize(groups, 0);
        }
    }

    #[inline]
    fn add_near(&mut self, group: usize, value: i64) {
        match self.near[group].checked_add(value) {
            Some(sum) => self.near[group] = sum,
            None => self.add_far(group, value.into()),
        }
    }

    #[cold]
    fn add_far(&mut self, group: usize, value: i128) {
        self.far.resize(self.near.len(), 0);
        self.far[group] += value;
    }

    #[inline]
    fn add_wide(&mut self, group: usize, value: i128) {
        match self.far[group].checked_add(value) {
            Some(sum) => self.far[group] = sum,
            None => self.carry(group, value),
        }
    }

    #[cold]
    fn carry(&mut self, group: usize, value: i128) {
        self.far[group] = self.far[group].wrapping_add(value);
        self.add_carry(group, if value < 0 { -1 } else { 1 });
    }

    fn add_carry(&mut self, group: usize, carry: i64) {
        if carry != 0 {
            self.carries.resize(self.far.len(), 0);
            self.carries[group] += carry;
        }
    }

    fn add_part(&mut self, group: usize, low: i128, is_near: bool) {
        match (is_near, i64::try_from(low)) {
            (true, Ok(low)) => self.add_near(group, low),
            (true, Err(_)) => self.add_far(group, low),
            (false, _) => self.add_wide(group, low),
        }
    }

    fn take(&mut self, emit: EmitTo) -> Sums {
        let groups = self.near.len().max(self.far.len());
        if !self.far.is_empty() {
            self.far.resize(groups, 0);
        }
        if !self.carries.is_empty() {
            self.carries.resize(groups, 0);
        }
        Sums {
            near: taken(emit, &mut self.near),
            far: taken(emit, &mut self.far),
            carries: taken(emit, &mut self.carries),
        }
    }

    fn len(&self) -> usize {
        self.near.len().max(self.far.len())
    }

    fn total(&self, group: usize) -> Total {
        let near = self.near.get(group).copied().unwrap_or(0);
        let far = self.far.get(group).copied().unwrap_or(0);
        let carry = self.carries.get(group).copied().unwrap_or(0);
        Total { low: far.wrapping_add(near.into()), carry, count: 1 }
    }

    fn size(&self) -> usize {
        (self.near.capacity() + self.carries.capacity()) * size_of::<i64>()
            + self.far.capacity() * size_of::<i128>()
    }
}

/// SUM or AVG by group.
#[derive(Debug)]
pub(super) struct Groups {
    task: Task,
    sums: Sums,
    /// The number of values of each group, for AVG.
    counts: Vec<u64>,
    seen: NullState,
}

impl Groups {
    pub(super) fn new(task: Task) -> Self {
        Groups { task, sums: Sums::default(), counts: Vec::new(), seen: NullState::new() }
    }

    fn is_near(&self) -> bool {
        self.task.exact == Exact::Signed
    }

    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, self.is_near());
        if self.task.finish == Finish::Avg {
            self.counts.resize(groups, 0);
        }
    }

    fn state_type(&self) -> DataType {
        DataType::Decimal128(STATE_DIGITS, self.task.exact.scale())
    }

    /// The state columns.
    fn states(&self, lows: Decimal128Array, carries: Vec<i64>, counts: Vec<u64>) -> Vec<ArrayRef> {
        let mut states: Vec<ArrayRef> = Vec::with_capacity(3);
        if self.task.finish == Finish::Avg {
            states.push(Arc::new(UInt64Array::new(counts.into(), lows.nulls().cloned())));
        }
        if self.task.exact.has_carry() {
            let mut carries = carries;
            carries.resize(lows.len(), 0);
            let nulls = lows.nulls().cloned();
            states.push(Arc::new(lows.with_data_type(self.state_type())));
            states.push(Arc::new(Int64Array::new(carries.into(), nulls)));
        } else {
            states.push(Arc::new(lows.with_data_type(self.state_type())));
        }
        states
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.resize(groups);
        let Groups { task, sums, counts, seen } = self;
        let is_counted = task.finish == Finish::Avg;
        let mut count = |group: usize| {
            if is_counted {
                counts[group] += 1;
            }
        };
        let values = &values[0];
        match task.exact {
            Exact::Signed => {
                let values = values.as_primitive::<Int64Type>();
                seen.accumulate(group_indices, values, filter, groups, |group, value| {
                    sums.add_near(group, value);
                    count(group);
                });
            }
            Exact::Unsigned => {
                let values = values.as_primitive::<UInt64Type>();
                seen.accumulate(group_indices, values, filter, groups, |group, value| {
                    sums.add_wide(group, value.into());
                    count(group);
                });
            }
            Exact::Decimal { .. } => {
                let values = values.as_primitive::<Decimal128Type>();
                seen.accumulate(group_indices, values, filter, groups, |group, value| {
                    sums.add_wide(group, value);
                    count(group);
                });
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let nulls = self.seen.build(emit);
        let sums = self.sums.take(emit);
        if sums.far.is_empty() && self.task.result == DataType::Int64 {
            return Ok(Arc::new(Int64Array::new(sums.near.into(), nulls)));
        }
        let counts = taken(emit, &mut self.counts);
        let is_there = |group: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(group));
        let total = |group: usize| {
            let count = counts.get(group).copied().unwrap_or(1);
            is_there(group).then(|| Total { count, ..sums.total(group) })
        };
        let totals = (0..sums.len()).map(total);
        self.task.finish.column(totals, &self.task.result, self.task.exact.scale())
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let nulls = self.seen.build(emit);
        let sums = self.sums.take(emit);
        let counts = taken(emit, &mut self.counts);
        let lows: Vec<i128> = match sums.near.is_empty() {
            true => sums.far,
            false => (0..sums.len()).map(|group| sums.total(group).low).collect(),
        };
        Ok(self.states(Decimal128Array::new(lows.into(), nulls), sums.carries, counts))
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.resize(groups);
        let is_near = self.is_near();
        let Groups { task, sums, counts, seen } = self;
        let columns = StateColumns::of(states, task)?;
        if let Some(parts) = columns.counts {
            seen.accumulate(group_indices, parts, None, groups, |group, count| {
                counts[group] += count;
            });
        }
        seen.accumulate(group_indices, columns.lows, None, groups, |group, low| {
            sums.add_part(group, low, is_near);
        });
        if let Some(carries) = columns.carries {
            seen.accumulate(group_indices, carries, None, groups, |group, carry| {
                sums.add_carry(group, carry);
            });
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = &values[0];
        let lows: Vec<i128> = match self.task.exact {
            Exact::Signed => widened(values.as_primitive::<Int64Type>().values()),
            Exact::Unsigned => widened(values.as_primitive::<UInt64Type>().values()),
            Exact::Decimal { .. } => values.as_primitive::<Decimal128Type>().values().to_vec(),
        };
        let kept = filter.map(|filter| match filter.nulls() {
            Some(nulls) => NullBuffer::new(filter.values() & nulls.inner()),
            None => NullBuffer::new(filter.values().clone()),
        });
        let nulls = NullBuffer::union(values.nulls(), kept.as_ref());
        let rows = lows.len();
        if nulls.as_ref().is_some_and(|nulls| nulls.len() != rows) {
            return internal_err!("a filter of other rows");
        }
        let lows = Decimal128Array::new(lows.into(), nulls);
        Ok(self.states(lows, vec![0; rows], vec![1; rows]))
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.sums.size()
            + self.counts.capacity() * size_of::<u64>()
            + self.seen.size()
    }
}

/// Takes the values of the emitted groups. An empty column stays empty: DataFusion would take the first
/// groups of it, and panic.
fn taken<T>(emit: EmitTo, all: &mut Vec<T>) -> Vec<T> {
    if all.is_empty() { Vec::new() } else { emit.take_needed(all) }
}

fn widened<T: Copy + Into<i128>>(values: &[T]) -> Vec<i128> {
    values.iter().map(|&value| value.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 600;
    const GROUPS: usize = 40;

    /// The group of a row: rows are sorted by group.
    fn group_of(row: usize) -> usize {
        row * GROUPS / ROWS
    }

    fn value_of(row: usize) -> Option<u32> {
        (!row.is_multiple_of(7)).then(|| u32::try_from(row * row % 1_000 * 31).unwrap())
    }

    fn values(exact: Exact, rows: std::ops::Range<usize>) -> ArrayRef {
        let values = rows.map(value_of);
        match exact {
            Exact::Signed => {
                Arc::new(values.map(|value| value.map(i64::from)).collect::<Int64Array>())
            }
            Exact::Unsigned => {
                Arc::new(values.map(|value| value.map(u64::from)).collect::<UInt64Array>())
            }
            Exact::Decimal { digits, scale } => {
                let values = values.map(|value| value.map(i128::from)).collect::<Decimal128Array>();
                Arc::new(values.with_data_type(DataType::Decimal128(digits, scale)))
            }
        }
    }

    fn task(finish: Finish, exact: Exact) -> Task {
        let result = match (finish, exact) {
            (Finish::Sum, Exact::Signed) => DataType::Int64,
            (Finish::Sum, _) => DataType::Decimal128(38, exact.scale()),
            (Finish::Avg, _) => DataType::Decimal128(38, exact.scale() + 4),
        };
        Task { finish, exact, result }
    }

    /// Adds sorted rows in batches, and emits all finished groups after each, as DataFusion does with
    /// sorted input and with states that it has spilled.
    fn emitted_early(
        task: &Task,
        batch_rows: usize,
        mut add: impl FnMut(&mut Groups, std::ops::Range<usize>, &[usize], usize),
        mut emit: impl FnMut(&mut Groups, EmitTo),
    ) {
        let mut groups = Groups::new(task.clone());
        let mut first = 0;
        for start in (0..ROWS).step_by(batch_rows) {
            let rows = start..ROWS.min(start + batch_rows);
            let last = group_of(rows.end - 1);
            let indices: Vec<usize> = rows.clone().map(|row| group_of(row) - first).collect();
            add(&mut groups, rows, &indices, last - first + 1);
            if last > first {
                emit(&mut groups, EmitTo::First(last - first));
                first = last;
            }
        }
        emit(&mut groups, EmitTo::All);
    }

    fn joined(columns: &[ArrayRef]) -> ArrayRef {
        let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
        datafusion::arrow::compute::concat(&columns).unwrap()
    }

    #[test]
    fn groups_emitted_early_equal_groups_emitted_at_the_end() {
        let exacts = [
            Exact::Signed,
            Exact::Unsigned,
            Exact::Decimal { digits: 10, scale: 2 },
            Exact::Decimal { digits: 38, scale: 2 },
        ];
        for (finish, exact) in [Finish::Sum, Finish::Avg]
            .into_iter()
            .flat_map(|finish| exacts.into_iter().map(move |exact| (finish, exact)))
        {
            let task = task(finish, exact);
            let mut all = Groups::new(task.clone());
            let indices: Vec<usize> = (0..ROWS).map(group_of).collect();
            all.update_batch(&[values(exact, 0..ROWS)], &indices, None, GROUPS).unwrap();
            let expected = all.evaluate(EmitTo::All).unwrap();
            for batch_rows in [1, 7, 64, ROWS] {
                let mut results = Vec::new();
                let mut states = Vec::new();
                emitted_early(
                    &task,
                    batch_rows,
                    |groups, rows, indices, count| {
                        let column = values(exact, rows);
                        groups.update_batch(&[column], indices, None, count).unwrap();
                    },
                    |groups, emit| results.push(groups.evaluate(emit).unwrap()),
                );
                assert_eq!(&joined(&results), &expected, "{finish:?} {exact:?} {batch_rows}");
                emitted_early(
                    &task,
                    batch_rows,
                    |groups, rows, indices, count| {
                        let column = values(exact, rows);
                        let parts = groups.convert_to_state(&[column], None).unwrap();
                        groups.merge_batch(&parts, indices, count).unwrap();
                    },
                    |groups, emit| states.push(groups.state(emit).unwrap()),
                );
                let mut merged = Groups::new(task.clone());
                let columns = (0..states[0].len()).map(|column| {
                    joined(
                        &states.iter().map(|parts| Arc::clone(&parts[column])).collect::<Vec<_>>(),
                    )
                });
                let columns: Vec<ArrayRef> = columns.collect();
                let indices: Vec<usize> = (0..columns[0].len()).collect();
                merged.merge_batch(&columns, &indices, indices.len()).unwrap();
                let results = merged.evaluate(EmitTo::All).unwrap();
                assert_eq!(&results, &expected, "states: {finish:?} {exact:?} {batch_rows}");
            }
        }
    }
}
