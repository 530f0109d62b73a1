//! Converts exact numbers to floats, rounded once, and gives floats a total order.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type,
};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A function on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Floats {
    /// `sql_double(x)`: the float nearest to an exact number.
    Double,
    /// `sql_ordered(x)`: the canonical form of a float, with one zero and one NaN, which is the
    /// greatest. In that form, equal floats are also equal in grouping, joining and sorting, where
    /// DataFusion compares bits.
    Ordered,
    /// `sql_key(x)`: an integer that sorts like the float. DataFusion's MIN and MAX of floats
    /// depend on the order of rows if there is a NaN.
    Key,
    /// `sql_of_key(k)`: the float with this key.
    OfKey,
}

use Floats::{Double, Key, OfKey, Ordered};

const ALL: [Floats; 4] = [Double, Ordered, Key, OfKey];

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> =
    LazyLock::new(|| ALL.map(|what| Arc::new(ScalarUDF::new_from_impl(Function::new(what)))));

impl Floats {
    /// The function with this name.
    pub fn of(name: &str) -> Option<Floats> {
        ALL.into_iter().find(|what| what.name() == name)
    }

    /// Calls the function on an argument.
    pub fn call(self, argument: Expr) -> Expr {
        FUNCTIONS[self as usize].call(vec![argument])
    }

    fn name(self) -> &'static str {
        match self {
            Double => "sql_double",
            Ordered => "sql_ordered",
            Key => "sql_key",
            OfKey => "sql_of_key",
        }
    }
}

/// The float nearest to a decimal; `None` for other values.
pub fn nearest(decimal: &ScalarValue) -> Option<ScalarValue> {
    let float = match decimal {
        ScalarValue::Decimal128(mantissa, _, scale) => mantissa.map(|it| of_128(it, *scale)),
        ScalarValue::Decimal256(mantissa, _, scale) => {
            mantissa.map(|it| of_digits(&it.to_string(), *scale))
        }
        _ => return None,
    };
    Some(ScalarValue::Float64(float))
}

/// The largest exponent of ten for which the power is exact as a float.
const POWER_MAX: i8 = 22;

fn of_128(mantissa: i128, scale: i8) -> f64 {
    // Both operands are exact within these bounds, so that the quotient is rounded once.
    if mantissa.unsigned_abs() <= 1 << 53 && (0..=POWER_MAX).contains(&scale) {
        return mantissa as f64 / 10_f64.powi(scale.into());
    }
    of_digits(&mantissa.to_string(), scale)
}

fn of_digits(digits: &str, scale: i8) -> f64 {
    format!("{digits}e{}", -i16::from(scale)).parse().unwrap_or(f64::NAN)
}

fn ordered(float: f64) -> f64 {
    // The sum of the two zeros is positive.
    if float.is_nan() { f64::NAN } else { float + 0.0 }
}

fn key(float: f64) -> i64 {
    flipped(ordered(float).to_bits() as i64)
}

fn of_key(key: i64) -> f64 {
    f64::from_bits(flipped(key) as u64)
}

/// Inverts the other bits of negative numbers, whose order is reversed. Its own inverse.
fn flipped(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    what: Floats,
    signature: Signature,
}

impl Function {
    fn new(what: Floats) -> Self {
        Function { what, signature: Signature::any(1, Volatility::Immutable) }
    }

    fn made(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let made: Float64Array = match (self.what, column.data_type()) {
            (Double, DataType::Decimal128(_, scale)) => {
                column.as_primitive::<Decimal128Type>().unary(|mantissa| of_128(mantissa, *scale))
            }
            (Double, DataType::Decimal256(_, scale)) => column
                .as_primitive::<Decimal256Type>()
                .unary(|mantissa| of_digits(&mantissa.to_string(), *scale)),
            (Ordered, DataType::Float64) => column.as_primitive::<Float64Type>().unary(ordered),
            (OfKey, DataType::Int64) => column.as_primitive::<Int64Type>().unary(of_key),
            (Key, DataType::Float64) => {
                let keys: Int64Array = column.as_primitive::<Float64Type>().unary(key);
                return Ok(Arc::new(keys));
            }
            (_, other) => return exec_err!("{} of {other}", self.name()),
        };
        Ok(Arc::new(made))
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.what.name()
    }

    fn display_name(&self, arguments: &[Expr]) -> Result<String> {
        let shown = arguments.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Ok(match self.what {
            Double => format!("CAST({shown} AS Float64)"),
            Ordered | Key | OfKey => shown,
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.what == Key { DataType::Int64 } else { DataType::Float64 })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(argument) = args.args.first() else { return exec_err!("no argument") };
        Ok(match argument {
            ColumnarValue::Array(column) => ColumnarValue::Array(self.made(column)?),
            ColumnarValue::Scalar(scalar) => {
                let column = self.made(&scalar.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&column, 0)?)
            }
        })
    }
}

/// All functions of this module.
pub fn all() -> Vec<ScalarUDF> {
    FUNCTIONS.iter().map(|function| (**function).clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_become_the_nearest_floats() {
        for (text, mantissa, scale) in [
            ("903.6635458094711", 9_036_635_458_094_711, 13),
            ("9007199254740993", 9_007_199_254_740_993, 0),
            ("0.1", 1, 1),
            ("-12345678.9", -123_456_789, 1),
        ] {
            assert_eq!(of_128(mantissa, scale), text.parse::<f64>().unwrap(), "{text}");
        }
    }

    #[test]
    fn zeros_are_one_and_nan_is_the_greatest() {
        assert_eq!(ordered(-0.0).to_bits(), 0);
        let nan = ordered(-f64::NAN);
        assert!(nan.is_nan() && nan.is_sign_positive());
        assert_eq!(ordered(-1.5), -1.5);
    }

    #[test]
    fn keys_sort_like_their_numbers() {
        let rising =
            [f64::NEG_INFINITY, -1e300, -1.5, -5e-324, 0.0, 5e-324, 2.0, f64::INFINITY, f64::NAN];
        let keys = rising.map(key);
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        assert_eq!(keys.map(of_key).map(f64::to_bits), rising.map(f64::to_bits));
        assert_eq!(key(-0.0), key(0.0));
    }
}
