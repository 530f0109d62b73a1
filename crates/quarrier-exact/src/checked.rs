//! Arithmetic on 64-bit integers that fails on overflow, where DataFusion's own wraps.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use quarrier_filter::Fault;

use crate::Refusal;

/// A checked arithmetic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checked {
    /// `sql_add(a, b)`
    Add,
    /// `sql_subtract(a, b)`
    Subtract,
    /// `sql_multiply(a, b)`
    Multiply,
    /// `sql_negate(a)`
    Negate,
}

use Checked::{Add, Multiply, Negate, Subtract};

const ALL: [Checked; 4] = [Add, Subtract, Multiply, Negate];

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> =
    LazyLock::new(|| ALL.map(|what| Arc::new(ScalarUDF::new_from_impl(Function::new(what)))));

impl Checked {
    /// The operation with this function name.
    pub fn of(name: &str) -> Option<Checked> {
        ALL.into_iter().find(|what| what.name() == name)
    }

    /// Calls the operation on 64-bit integers.
    pub fn call(self, arguments: Vec<Expr>) -> Expr {
        FUNCTIONS[self as usize].call(arguments)
    }

    fn name(self) -> &'static str {
        match self {
            Add => "sql_add",
            Subtract => "sql_subtract",
            Multiply => "sql_multiply",
            Negate => "sql_negate",
        }
    }

    /// The operation as SQL, so that columns are named as if DataFusion calculated them.
    fn shown(self, arguments: &[String]) -> String {
        let sign = match self {
            Add => "+",
            Subtract | Negate => "-",
            Multiply => "*",
        };
        match arguments {
            [left, right] => format!("{left} {sign} {right}"),
            [one] => format!("(- {one})"),
            _ => self.name().to_string(),
        }
    }

    fn checked(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Add => left.checked_add(right),
            Subtract | Negate => left.checked_sub(right),
            Multiply => left.checked_mul(right),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    what: Checked,
    signature: Signature,
}

impl Function {
    fn new(what: Checked) -> Self {
        let arguments = if what == Negate { 1 } else { 2 };
        let types = vec![DataType::Int64; arguments];
        Function { what, signature: Signature::exact(types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.what.name()
    }

    fn display_name(&self, arguments: &[Expr]) -> Result<String> {
        let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        Ok(self.what.shown(&shown))
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let shown: Vec<String> =
            arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
        Ok(self.what.shown(&shown))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let zero = ColumnarValue::Scalar(ScalarValue::Int64(Some(0)));
        let (left, right) = match args.args.as_slice() {
            [one] => (&zero, one),
            [left, right] => (left, right),
            _ => return internal_err!("{} takes two numbers", self.name()),
        };
        calculated(self.what, left, right)
    }
}

/// One operand, for all rows.
enum Side<'a> {
    Each(&'a Int64Array),
    Same(i64),
}

fn calculated(what: Checked, left: &ColumnarValue, right: &ColumnarValue) -> Result<ColumnarValue> {
    let (Some(a), Some(b)) = (side(left)?, side(right)?) else {
        return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None)));
    };
    if let (Side::Same(left), Side::Same(right)) = (&a, &b) {
        let value = what.checked(*left, *right).ok_or_else(|| overflow(what, *left, *right))?;
        return Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(value))));
    }
    let nulls = NullBuffer::union(nulls(&a), nulls(&b));
    let (values, is_over) = match what {
        Add => each(&a, &b, |a, b| {
            let sum = a.wrapping_add(b);
            (sum, (a ^ sum) & (b ^ sum))
        }),
        Subtract | Negate => each(&a, &b, |a, b| {
            let difference = a.wrapping_sub(b);
            (difference, (a ^ b) & (a ^ difference))
        }),
        Multiply => each(&a, &b, |a, b| {
            let (product, is_over) = a.overflowing_mul(b);
            (product, -i64::from(is_over))
        }),
    };
    if is_over {
        // Values at NULLs may overflow.
        let is_there = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        for row in (0..values.len()).filter(|&row| is_there(row)) {
            let (left, right) = (at(&a, row), at(&b, row));
            what.checked(left, right).ok_or_else(|| overflow(what, left, right))?;
        }
    }
    Ok(ColumnarValue::Array(Arc::new(Int64Array::new(values.into(), nulls))))
}

/// The operand; `None` for a NULL constant.
fn side(value: &ColumnarValue) -> Result<Option<Side<'_>>> {
    Ok(match value {
        ColumnarValue::Scalar(scalar) if scalar.is_null() => None,
        ColumnarValue::Scalar(ScalarValue::Int64(Some(value))) => Some(Side::Same(*value)),
        ColumnarValue::Array(array) => match array.as_primitive_opt::<Int64Type>() {
            Some(array) => Some(Side::Each(array)),
            None => return internal_err!("a column of {}", array.data_type()),
        },
        ColumnarValue::Scalar(scalar) => {
            return internal_err!("a value of {}", scalar.data_type());
        }
    })
}

fn nulls<'a>(side: &'a Side<'a>) -> Option<&'a NullBuffer> {
    match side {
        Side::Each(array) => array.nulls(),
        Side::Same(_) => None,
    }
}

fn at(side: &Side<'_>, row: usize) -> i64 {
    match side {
        Side::Each(array) => array.value(row),
        Side::Same(value) => *value,
    }
}

/// The results of all rows, and whether any overflowed. `step` returns a result with a number that
/// is negative on overflow.
fn each(a: &Side<'_>, b: &Side<'_>, step: impl Fn(i64, i64) -> (i64, i64)) -> (Vec<i64>, bool) {
    let mut over = 0;
    let mut one = |a: i64, b: i64| {
        let (value, is_over) = step(a, b);
        over |= is_over;
        value
    };
    let values = match (a, b) {
        (Side::Each(a), Side::Each(b)) => {
            a.values().iter().zip(b.values()).map(|(&a, &b)| one(a, b)).collect()
        }
        (Side::Each(a), Side::Same(b)) => a.values().iter().map(|&a| one(a, *b)).collect(),
        (Side::Same(a), Side::Each(b)) => b.values().iter().map(|&b| one(*a, b)).collect(),
        (Side::Same(a), Side::Same(b)) => vec![one(*a, *b)],
    };
    (values, over < 0)
}

fn overflow(what: Checked, left: i64, right: i64) -> datafusion::error::DataFusionError {
    let fault = Fault::Overflow { what: "a 64-bit integer" };
    let shown = match what {
        Negate => format!("-({right})"),
        _ => what.shown(&[left.to_string(), right.to_string()]),
    };
    Refusal::new(format!("{fault}: {shown}; CAST one side to DECIMAL(38, 0)")).into()
}

/// All operations as functions.
pub fn all() -> Vec<ScalarUDF> {
    FUNCTIONS.iter().map(|function| (**function).clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers near the bounds at which operations overflow.
    const NUMBERS: [i64; 12] = [
        0,
        1,
        -1,
        2,
        3_037_000_499,
        3_037_000_500,
        -3_037_000_500,
        i64::MAX,
        i64::MAX - 1,
        i64::MIN,
        i64::MIN + 1,
        1 << 32,
    ];

    fn exactly(what: Checked, left: i64, right: i64) -> Option<i64> {
        let (left, right) = (i128::from(left), i128::from(right));
        let value = match what {
            Add => left + right,
            Subtract | Negate => left - right,
            Multiply => left * right,
        };
        value.try_into().ok()
    }

    fn array(values: &[i64], nulls: Option<Vec<bool>>) -> ColumnarValue {
        let nulls = nulls.map(NullBuffer::from);
        ColumnarValue::Array(Arc::new(Int64Array::new(values.to_vec().into(), nulls)))
    }

    #[test]
    fn results_are_those_of_128_bits_or_an_error() {
        for what in [Add, Subtract, Multiply] {
            for (left, right) in NUMBERS.iter().flat_map(|&a| NUMBERS.map(|b| (a, b))) {
                let scalar = |value| ColumnarValue::Scalar(ScalarValue::Int64(Some(value)));
                let exact = exactly(what, left, right);
                for (a, b) in [
                    (array(&[0, left], None), array(&[0, right], None)),
                    (array(&[0, left], None), scalar(right)),
                    (scalar(left), array(&[0, right], None)),
                ] {
                    let (a0, b0) =
                        (if matches!(a, ColumnarValue::Scalar(_)) { left } else { 0 }, 0);
                    let b0 = if matches!(b, ColumnarValue::Scalar(_)) { right } else { b0 };
                    let exact = exactly(what, a0, b0).and(exact);
                    let got = calculated(what, &a, &b);
                    assert_eq!(got.is_ok(), exact.is_some(), "{what:?} {left} {right}");
                    if let (Ok(ColumnarValue::Array(array)), Some(exact)) = (got, exact) {
                        assert_eq!(array.as_primitive::<Int64Type>().value(1), exact);
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_under_null_never_overflow() {
        let left = array(&[i64::MAX, 1], Some(vec![false, true]));
        let Ok(ColumnarValue::Array(sums)) = calculated(Add, &left, &array(&[1, 1], None)) else {
            panic!("an error")
        };
        assert!(sums.is_null(0));
        assert_eq!(sums.as_primitive::<Int64Type>().value(1), 2);
    }
}
