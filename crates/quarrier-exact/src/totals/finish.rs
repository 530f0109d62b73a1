//! Converts totals to the results of SUM and AVG.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};

use super::total::Total;

/// SUM or AVG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Finish {
    Sum,
    Avg,
}

impl Finish {
    /// A column of results; `None` becomes NULL. `scale` is that of the summed values.
    pub(super) fn column(
        self,
        totals: impl Iterator<Item = Option<Total>>,
        result: &DataType,
        scale: i8,
    ) -> Result<ArrayRef> {
        Ok(match (self, result) {
            (Finish::Sum, DataType::Int64) => {
                let sums = totals.map(|total| total.map(Total::whole).transpose());
                Arc::new(sums.collect::<Result<Int64Array>>()?)
            }
            (Finish::Sum, DataType::Decimal128(digits, _)) => {
                let sums = totals.map(|total| total.map(|it| it.decimal(*digits)).transpose());
                let sums = sums.collect::<Result<Decimal128Array>>()?;
                Arc::new(sums.with_data_type(result.clone()))
            }
            (Finish::Avg, DataType::Float64) => {
                Arc::new(totals.map(|total| total.map(Total::mean)).collect::<Float64Array>())
            }
            (Finish::Avg, DataType::Decimal128(digits, finer)) => {
                let finer = finer.saturating_sub(scale).unsigned_abs();
                let mean = |total: Option<Total>| {
                    total.map(|total| total.decimal_mean(finer, *digits)).transpose()
                };
                let means = totals.map(mean).collect::<Result<Decimal128Array>>()?;
                Arc::new(means.with_data_type(result.clone()))
            }
            (_, other) => return internal_err!("no total is a {other}"),
        })
    }

    /// One result.
    pub(super) fn value(
        self,
        total: Option<Total>,
        result: &DataType,
        scale: i8,
    ) -> Result<ScalarValue> {
        let column = self.column(std::iter::once(total), result, scale)?;
        ScalarValue::try_from_array(&column, 0)
    }
}
