//! `sql_any(op, x, values)` and `sql_all(op, x, values)`: ANY, ALL and IN over the values of a
//! query, with three-valued logic. An empty list is NULL, as `array_agg` returns it.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use quarrier_filter::naive;
use quarrier_messages::Value;

use super::native::argument;
use crate::literal::{Class, class_of};
use crate::{Error, literal};

/// Both functions.
pub(super) fn all() -> Vec<ScalarUDF> {
    [false, true].into_iter().map(|all| ScalarUDF::new_from_impl(Quantified::new(all))).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantified {
    /// ALL rather than ANY.
    all: bool,
    signature: Signature,
}

impl Quantified {
    fn new(all: bool) -> Self {
        Quantified { all, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    fn truth(&self, op: &str, left: &Value, values: &[Value]) -> Result<Option<bool>> {
        let mut unknown = false;
        for value in values {
            let order = naive::compare(&left.into(), &value.into());
            match order.map_err(|fault| Error::value(fault.to_string()))? {
                None => unknown = true,
                // A single value decides.
                Some(order) if holds(op, order) != self.all => return Ok(Some(!self.all)),
                Some(_) => {}
            }
        }
        Ok((!unknown).then_some(self.all))
    }
}

fn holds(op: &str, order: Ordering) -> bool {
    match op {
        "=" => order.is_eq(),
        "<>" | "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}

impl ScalarUDFImpl for Quantified {
    fn name(&self) -> &str {
        if self.all { "sql_all" } else { "sql_any" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if let [_, left, DataType::List(values)] = types {
            let (a, b) = (class_of(left), class_of(values.data_type()));
            let is_same = a == b || [a, b].contains(&Some(Class::Null));
            if !is_same {
                let reason = format!(
                    "values of {left} and of {} cannot be compared; convert one of them with CAST",
                    values.data_type()
                );
                return Err(Error::text(reason).into());
            }
        }
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [op, left, values] = args.args.as_slice() else {
            return Err(Error::text("a quantified comparison has three parts").into());
        };
        let Value::Text(op) = argument(op, 0)? else {
            return Err(Error::text("a quantified comparison has an operator").into());
        };
        let is_scalar = [left, values].iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        // A list that is usually the same for all rows is converted once.
        let fixed = match values {
            ColumnarValue::Scalar(scalar) => Some(listed(&scalar.to_array()?, 0)?),
            ColumnarValue::Array(_) => None,
        };
        let mut truths = Vec::with_capacity(rows);
        for row in 0..rows {
            let left = argument(left, row)?;
            truths.push(match (&fixed, values) {
                (Some(values), _) => self.truth(&op, &left, values)?,
                (None, ColumnarValue::Array(array)) => {
                    self.truth(&op, &left, &listed(array, row)?)?
                }
                (None, ColumnarValue::Scalar(_)) => None,
            });
        }
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(truths.pop().flatten())));
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(truths))))
    }
}

/// The values of a row's list; empty for NULL.
fn listed(array: &dyn Array, row: usize) -> Result<Vec<Value>> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(Vec::new());
    }
    let Some(list) = array.as_list_opt::<i32>() else {
        return Err(Error::text("a quantified comparison needs a list").into());
    };
    let values = list.value(row);
    let value = |at: usize| -> Result<Value> {
        let scalar = ScalarValue::try_from_array(&values, at)?;
        literal::value(&scalar).ok_or_else(|| {
            Error::text(format!("values of {} cannot be compared", scalar.data_type())).into()
        })
    };
    (0..values.len()).map(value).collect()
}
