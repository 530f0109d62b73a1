//! Counts the findings of a search, in total or by pattern, without making a row for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;

use super::plan::{Finds, Out};
use super::search::Searching;

/// A search that counts its findings.
#[derive(Debug)]
pub(super) struct Counting {
    search: Arc<Searching>,
    /// For each grouping column, the string of each pattern.
    strings: Vec<StringViewArray>,
    schema: SchemaRef,
}

impl Counting {
    /// Groups by these columns, which have a value for each pattern. `schema` has them, then the
    /// counts.
    pub(super) fn new(
        search: Arc<Searching>,
        strings: Vec<StringViewArray>,
        schema: &SchemaRef,
    ) -> Self {
        Counting { search, strings, schema: Arc::clone(schema) }
    }
}

impl Finds for Counting {
    fn name(&self) -> &'static str {
        self.search.name()
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn label(&self) -> String {
        format!("{}, counted", self.search.label())
    }

    fn is_spread(&self) -> bool {
        self.search.is_spread()
    }

    fn find(&self, out: &mut Out) -> Result<()> {
        let of_patterns = self.search.counts(out)?;
        // Several patterns may have the same text or name.
        let mut kinds: BTreeMap<Vec<Option<&str>>, u64> = BTreeMap::new();
        if self.strings.is_empty() {
            kinds.insert(Vec::new(), 0);
        }
        for (pattern, count) in of_patterns.into_iter().enumerate().filter(|(_, count)| *count > 0)
        {
            let kind = self
                .strings
                .iter()
                .map(|strings| strings.is_valid(pattern).then(|| strings.value(pattern)));
            *kinds.entry(kind.collect()).or_default() += count;
        }
        if kinds.is_empty() {
            return Ok(());
        }
        let column = |at: usize| -> ArrayRef {
            Arc::new(kinds.keys().map(|kind| kind[at]).collect::<StringViewArray>())
        };
        let mut columns: Vec<ArrayRef> = (0..self.strings.len()).map(column).collect();
        let counts = kinds.values().map(|&count| i64::try_from(count).unwrap_or(i64::MAX));
        let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(counts));
        columns.resize(self.schema.fields().len(), counts);
        let _ = out.take(RecordBatch::try_new(Arc::clone(&self.schema), columns)?);
        Ok(())
    }
}
