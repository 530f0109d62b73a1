//! Functions with the semantics of `quarrier-filter`, evaluated row by row.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Int64Array, StringViewArray,
};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use quarrier_filter::calendar::Part;
use quarrier_filter::expr::{CastTo, Function, Matcher, Pattern};
use quarrier_filter::matching::Matching;
use quarrier_filter::naive;
use quarrier_filter::{Expr, Fault};
use quarrier_messages::Value;

use crate::{Error, literal};

/// All functions of this module.
pub(super) fn all() -> Vec<ScalarUDF> {
    use NativeFunction as W;
    let all = [W::Like, W::Similar, W::Char, W::Varchar, W::Padded, W::Overlaps, W::Seconds];
    all.into_iter().map(|what| ScalarUDF::new_from_impl(Native::new(what))).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NativeFunction {
    /// `sql_like(text, pattern[, escape])`
    Like,
    /// `sql_similar(text, pattern[, escape])`
    Similar,
    /// `sql_char(text, length)`
    Char,
    /// `sql_varchar(text, length)`
    Varchar,
    /// `sql_compare_padded(text, text)`: -1, 0 or 1
    Padded,
    /// `sql_overlaps(start, end, start, end)`
    Overlaps,
    /// `sql_seconds(time)`: the seconds with their fraction
    Seconds,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Native {
    what: NativeFunction,
    signature: Signature,
}

impl Native {
    fn new(what: NativeFunction) -> Self {
        Native { what, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// The expression to evaluate, whose columns are the arguments.
    fn expr(&self, args: &[ColumnarValue]) -> Result<Expr> {
        let column = |place: usize| Expr::Column(place);
        let columns = || (0..args.len()).map(column).collect();
        Ok(match self.what {
            NativeFunction::Like => matched(args, Matcher::Like)?,
            NativeFunction::Similar => matched(args, Matcher::Similar)?,
            NativeFunction::Char => {
                Expr::Cast { operand: Box::new(column(0)), to: CastTo::Character(length(args)?) }
            }
            NativeFunction::Varchar => {
                Expr::Cast { operand: Box::new(column(0)), to: CastTo::Varying(length(args)?) }
            }
            NativeFunction::Padded => {
                Expr::Call { function: Function::ComparePadded, arguments: columns() }
            }
            NativeFunction::Overlaps => {
                Expr::Call { function: Function::Overlaps, arguments: columns() }
            }
            NativeFunction::Seconds => {
                Expr::Call { function: Function::Extract(Part::Second), arguments: columns() }
            }
        })
    }
}

fn matched(args: &[ColumnarValue], by: Matcher) -> Result<Expr> {
    let escape = match args.get(2) {
        Some(ColumnarValue::Scalar(scalar)) => match literal::value(scalar) {
            Some(Value::Text(text)) => text.chars().next(),
            _ => None,
        },
        _ => None,
    };
    let fixed = match args.get(1) {
        Some(ColumnarValue::Scalar(scalar)) => match literal::value(scalar) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let pattern = match fixed {
        Some(text) => Pattern::Fixed(Matching::new(&text, escape, by).map_err(failed)?),
        None => Pattern::Computed { text: Box::new(Expr::Column(1)), escape, by },
    };
    Ok(Expr::Match { operand: Box::new(Expr::Column(0)), pattern })
}

fn length(args: &[ColumnarValue]) -> Result<u32> {
    let length = match args.get(1) {
        Some(ColumnarValue::Scalar(scalar)) => literal::value(scalar),
        _ => None,
    };
    match length {
        Some(Value::Integer(length)) if length > 0 => Ok(length as u32),
        _ => Err(Error::text("the length of a string must be an integer literal").into()),
    }
}

fn failed(fault: Fault) -> Error {
    Error::value(fault.to_string())
}

/// The value of an argument in a row.
pub(super) fn argument(arg: &ColumnarValue, row: usize) -> Result<Value> {
    let scalar = match arg {
        ColumnarValue::Scalar(scalar) => scalar.clone(),
        ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row)?,
    };
    literal::value(&scalar).ok_or_else(|| {
        Error::text(format!("values of {} cannot be compared", scalar.data_type())).into()
    })
}

impl ScalarUDFImpl for Native {
    fn name(&self) -> &str {
        match self.what {
            NativeFunction::Like => "sql_like",
            NativeFunction::Similar => "sql_similar",
            NativeFunction::Char => "sql_char",
            NativeFunction::Varchar => "sql_varchar",
            NativeFunction::Padded => "sql_compare_padded",
            NativeFunction::Overlaps => "sql_overlaps",
            NativeFunction::Seconds => "sql_seconds",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.what {
            NativeFunction::Like | NativeFunction::Similar | NativeFunction::Overlaps => {
                DataType::Boolean
            }
            NativeFunction::Char | NativeFunction::Varchar => DataType::Utf8View,
            NativeFunction::Padded => DataType::Int64,
            NativeFunction::Seconds => DataType::Decimal128(11, 9),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let expr = self.expr(&args.args)?;
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let mut values = Vec::with_capacity(rows);
        let mut row = Vec::with_capacity(args.args.len());
        for at in 0..rows {
            row.clear();
            for arg in &args.args {
                row.push(argument(arg, at)?);
            }
            let value = naive::evaluate(&expr, &row[..]).map_err(failed)?;
            values.push(Value::from(value));
        }
        let array = self.array(values)?;
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            false => Ok(ColumnarValue::Array(array)),
        }
    }
}

impl Native {
    fn array(&self, values: Vec<Value>) -> Result<ArrayRef> {
        let values = values.into_iter();
        Ok(match self.what {
            NativeFunction::Like | NativeFunction::Similar | NativeFunction::Overlaps => {
                let truths = values.map(|value| match value {
                    Value::Boolean(truth) => Some(truth),
                    _ => None,
                });
                Arc::new(truths.collect::<BooleanArray>())
            }
            NativeFunction::Char | NativeFunction::Varchar => {
                let strings = values.map(|value| match value {
                    Value::Text(text) => Some(text),
                    _ => None,
                });
                Arc::new(strings.collect::<StringViewArray>())
            }
            NativeFunction::Padded => {
                let numbers = values.map(|value| match value {
                    Value::Integer(number) => Some(number),
                    _ => None,
                });
                Arc::new(numbers.collect::<Int64Array>())
            }
            NativeFunction::Seconds => {
                let numbers = values.map(|value| match value {
                    Value::Integer(number) => Some(i128::from(number) * 10i128.pow(9)),
                    Value::Decimal { mantissa, scale } => {
                        Some(mantissa * 10i128.pow(u32::from(9u8.saturating_sub(scale))))
                    }
                    _ => None,
                });
                let array = numbers.collect::<Decimal128Array>();
                Arc::new(array.with_precision_and_scale(11, 9)?)
            }
        })
    }
}
