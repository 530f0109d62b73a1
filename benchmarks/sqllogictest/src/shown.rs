//! Formats values as sqllogictest files write them.

use std::str::FromStr;

use anyhow::Result;
use bigdecimal::BigDecimal;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use sqllogictest::Normalizer;

/// Decimals of rounded numbers.
const DIGITS: i64 = 12;

/// Formats rows as strings.
pub(crate) fn rows(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| cell(column, row));
            rows.push(cells.collect::<Result<Vec<_>>>()?);
        }
    }
    Ok(rows)
}

fn cell(column: &ArrayRef, row: usize) -> Result<String> {
    if column.is_null(row) {
        return Ok("NULL".to_string());
    }
    let options = FormatOptions::default().with_null("NULL");
    let text = || -> Result<String> {
        Ok(ArrayFormatter::try_new(column.as_ref(), &options)?.value(row).to_string())
    };
    Ok(match column.data_type() {
        DataType::Null => "NULL".to_string(),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => match text()?.as_str() {
            "NaN" => "NaN".to_string(),
            "inf" => "Infinity".to_string(),
            "-inf" => "-Infinity".to_string(),
            number => rounded(number, DIGITS)?,
        },
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            rounded(&text()?, i64::from(*scale))?
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = text()?;
            if text.is_empty() { "(empty)".to_string() } else { text.replace('\0', "\\0") }
        }
        _ => text()?,
    })
}

fn rounded(number: &str, digits: i64) -> Result<String> {
    Ok(BigDecimal::from_str(number)?.round(digits).normalized().to_plain_string())
}

/// Removes blanks at the end of a line, which do not count.
pub(crate) fn trimmed(text: &String) -> String {
    text.trim_end().to_string()
}

/// Whether the rows are the expected ones, one per line.
pub(crate) fn are_same(normalize: Normalizer, rows: &[Vec<String>], expected: &[String]) -> bool {
    let rows: Vec<String> = rows.iter().map(|row| row.join(" ").trim_end().to_string()).collect();
    rows == expected.iter().map(normalize).collect::<Vec<_>>()
}
