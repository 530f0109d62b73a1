//! `mode(x)`: the most frequent value. Of several, it is the smallest; without values, NULL.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Mode {
    signature: Signature,
}

impl Default for Mode {
    fn default() -> Self {
        Mode { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let kind = args.return_field.data_type().clone();
        Ok(Box::new(Counts { kind, counts: HashMap::new(), bytes: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, kind: DataType| {
            let name = format!("{}[{name}]", args.name);
            Arc::new(Field::new_list(name, Field::new_list_field(kind, true), true))
        };
        let value = args.return_field.data_type().clone();
        Ok(vec![list("values", value), list("counts", DataType::Int64)])
    }
}

#[derive(Debug)]
struct Counts {
    kind: DataType,
    counts: HashMap<ScalarValue, i64>,
    /// The size of the values.
    bytes: usize,
}

impl Counts {
    fn add(&mut self, value: ScalarValue, times: i64) {
        if value.is_null() {
            return;
        }
        let bytes = value.size();
        let count = self.counts.entry(value).or_insert_with(|| {
            self.bytes += bytes;
            0
        });
        *count += times;
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        for row in 0..values.len() {
            self.add(ScalarValue::try_from_array(values, row)?, 1);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts] = states else { return Ok(()) };
        let (values, counts) = (values.as_list::<i32>(), counts.as_list::<i32>());
        for (values, counts) in values.iter().zip(counts.iter()) {
            let (Some(values), Some(counts)) = (values, counts) else { continue };
            for (row, count) in counts.as_primitive::<Int64Type>().iter().enumerate() {
                self.add(ScalarValue::try_from_array(&values, row)?, count.unwrap_or(0));
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<_>, Vec<_>) =
            self.counts.drain().map(|(value, count)| (value, ScalarValue::from(count))).unzip();
        let list = |values: &[ScalarValue], kind: &DataType| {
            ScalarValue::List(ScalarValue::new_list_nullable(values, kind))
        };
        Ok(vec![list(&values, &self.kind), list(&counts, &DataType::Int64)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let most = self.counts.values().max().copied().unwrap_or(0);
        let frequent = self.counts.iter().filter(|(_, count)| **count == most);
        let least = frequent
            .map(|(value, _)| value)
            .min_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
        match least {
            Some(value) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.kind),
        }
    }

    fn size(&self) -> usize {
        let slot = size_of::<(ScalarValue, i64)>();
        size_of_val(self) + self.counts.capacity() * slot + self.bytes
    }
}
