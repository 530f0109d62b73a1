//! The sizes of arguments: bytes of strings, and integers, row by row.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

/// An argument's values by row: strings, binary values or lists.
pub(super) struct Argument<'a> {
    value: &'a ColumnarValue,
    /// The values; of a scalar, a single one.
    array: ArrayRef,
}

impl<'a> Argument<'a> {
    pub(super) fn new(value: &'a ColumnarValue) -> Result<Self> {
        let array = match value {
            ColumnarValue::Array(array) => array.clone(),
            ColumnarValue::Scalar(scalar) => scalar.to_array()?,
        };
        Ok(Argument { value, array })
    }

    /// Length of a row's string in bytes; 0 for NULL.
    pub(super) fn bytes(&self, row: usize) -> u64 {
        self.text(row).map_or(0, |text| text.len() as u64)
    }

    /// A row's string; `None` for NULL or another type.
    pub(super) fn text(&self, row: usize) -> Option<&[u8]> {
        let row = match self.value {
            ColumnarValue::Array(_) => row,
            ColumnarValue::Scalar(_) => 0,
        };
        if row >= self.array.len() || self.array.is_null(row) {
            return None;
        }
        Some(match self.array.data_type() {
            DataType::Utf8 => self.array.as_string::<i32>().value(row).as_bytes(),
            DataType::LargeUtf8 => self.array.as_string::<i64>().value(row).as_bytes(),
            DataType::Utf8View => self.array.as_string_view().value(row).as_bytes(),
            DataType::Binary => self.array.as_binary::<i32>().value(row),
            DataType::LargeBinary => self.array.as_binary::<i64>().value(row),
            DataType::BinaryView => self.array.as_binary_view().value(row),
            _ => return None,
        })
    }

    /// Size of all rows' values in bytes, whatever their type. A scalar counts once for each row.
    pub(super) fn all_bytes(&self, rows: usize) -> u64 {
        let data = self.array.to_data();
        let bytes = data.get_slice_memory_size().unwrap_or_default();
        let bytes = bytes.max(self.view_bytes()) as u64;
        match self.value {
            ColumnarValue::Array(_) => bytes,
            ColumnarValue::Scalar(_) => bytes.saturating_mul(rows as u64),
        }
    }

    /// Bytes of the strings that string views refer to, without the views.
    fn view_bytes(&self) -> usize {
        match self.array.data_type() {
            DataType::Utf8View => self.array.as_string_view().total_bytes_len(),
            DataType::BinaryView => self.array.as_binary_view().total_bytes_len(),
            _ => 0,
        }
    }

    /// Average size of a row's value in bytes.
    pub(super) fn bytes_each(&self) -> u64 {
        let rows = self.array.len().max(1) as u64;
        let data = self.array.to_data();
        let bytes = data.get_slice_memory_size().unwrap_or_default().max(self.view_bytes());
        (bytes as u64).div_ceil(rows)
    }
}

/// An argument's integers by row.
pub(super) struct Numbers {
    array: Int64Array,
    is_one: bool,
}

impl Numbers {
    /// The numbers of an argument; `None` if it has another type.
    pub(super) fn of(value: Option<&ColumnarValue>) -> Result<Option<Self>> {
        let (array, is_one) = match value {
            Some(ColumnarValue::Array(array)) => (array.clone(), false),
            Some(ColumnarValue::Scalar(scalar)) => (scalar.to_array()?, true),
            None => return Ok(None),
        };
        let Ok(array) = cast(&array, &DataType::Int64) else { return Ok(None) };
        Ok(Some(Numbers { array: array.as_primitive::<Int64Type>().clone(), is_one }))
    }

    /// The number of a row; `None` for NULL.
    pub(super) fn at(&self, row: usize) -> Option<i64> {
        let row = if self.is_one { 0 } else { row };
        (row < self.array.len() && !self.array.is_null(row)).then(|| self.array.value(row))
    }

    /// The number of a row as a count, at least 0.
    pub(super) fn count(&self, row: usize) -> u64 {
        self.at(row).map_or(0, |number| u64::try_from(number).unwrap_or_default())
    }
}
