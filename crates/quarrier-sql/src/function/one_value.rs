//! `sql_one_value(x)`: the value of a scalar subquery. It is NULL without rows, and an error with
//! more than one.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

use crate::Error;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OneValue {
    signature: Signature,
}

impl Default for OneValue {
    fn default() -> Self {
        OneValue { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for OneValue {
    fn name(&self) -> &str {
        "sql_one_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(One { value, rows: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name: &str, kind: DataType| {
            Arc::new(Field::new(format!("{}[{name}]", args.name), kind, true))
        };
        let value = args.return_field.data_type().clone();
        Ok(vec![field("value", value), field("rows", DataType::Int64)])
    }
}

#[derive(Debug)]
struct One {
    value: ScalarValue,
    rows: i64,
}

impl One {
    fn add(&mut self, values: &ArrayRef, row: usize, rows: i64) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        self.rows += rows;
        if self.rows > 1 {
            let reason = "a scalar subquery has more than one row; add LIMIT 1 or an aggregate";
            return Err(Error::value(reason).into());
        }
        self.value = ScalarValue::try_from_array(values, row)?;
        Ok(())
    }
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        self.add(values, 0, values.len() as i64)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, rows] = states else { return Ok(()) };
        let rows = rows.as_primitive::<Int64Type>();
        for (row, count) in rows.iter().enumerate() {
            self.add(values, row, count.unwrap_or(0))?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Int64(Some(self.rows))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) - size_of_val(&self.value) + self.value.size()
    }
}
