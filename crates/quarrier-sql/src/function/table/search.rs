//! `search(source, patterns[, options])`: findings as rows.
//!
//! A condition on `offset` alone becomes the range that is searched, one on `pattern` and `name`
//! alone chooses the patterns, and a LIMIT ends the search.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use quarrier_cli::{Finder, Part, Patterns, Searched};
use quarrier_search::{Finding, Pattern};

use super::counting::Counting;
use super::plan::{Finds, FoundExec, Out};
use super::{Notes, arguments, chosen, starts};
use crate::Error;
use crate::provider::scan_at_once;

const USAGE: &str = "search('disk.img', 'patterns.txt'[, '--aligned 512'])";
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Places of columns.
const OFFSET: usize = 1;
const PATTERN: usize = 3;
const NAME: usize = 4;

/// The function.
#[derive(Debug)]
pub(super) struct Search {
    notes: Notes,
}

impl Search {
    pub(super) fn new(notes: Notes) -> Self {
        Search { notes }
    }
}

impl TableFunctionImpl for Search {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let texts = arguments::texts(USAGE, args.exprs(), 2, 3)?;
        let options = texts.get(2).map_or(Ok(Vec::new()), |options| arguments::words(options))?;
        let finder = patterns_of(&texts[1])
            .and_then(|patterns| Finder::new(&texts[0], patterns, &options))
            .map_err(|reason| Error::text(format!("search(…): {reason}")))?;
        let schema = Arc::new(Schema::new(vec![
            Field::new("source", DataType::Utf8View, false),
            Field::new("offset", DataType::Int64, false),
            Field::new("length", DataType::Int64, false),
            Field::new("pattern", DataType::Utf8View, false),
            Field::new("name", DataType::Utf8View, true),
        ]));
        let notes = self.notes.clone();
        Ok(Arc::new(SearchTable { finder: Arc::new(finder), schema, notes }))
    }
}

/// A pattern file where there is one, else what would stand in it. Who mistypes a file's name is
/// not to search for that name.
fn patterns_of(text: &str) -> std::result::Result<Patterns<'_>, String> {
    const FILE_ENDINGS: [&str; 4] = ["txt", "lst", "list", "patterns"];
    let path = Path::new(text);
    if path.is_file() {
        return Ok(Patterns::File(text));
    }
    let is_one_word = !text.contains(|character: char| character.is_whitespace());
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if is_one_word && FILE_ENDINGS.contains(&ending) && !text.starts_with("re:") {
        return Err(format!(
            "{text}: there is no such file; to search for this text write 're:{}'",
            text.replace('.', "[.]")
        ));
    }
    Ok(Patterns::Lines(text))
}

/// Findings of one call.
#[derive(Debug)]
struct SearchTable {
    finder: Arc<Finder>,
    schema: SchemaRef,
    notes: Notes,
}

/// What of a condition the search does.
enum Pushed {
    Starts(std::ops::Range<u64>),
    Patterns,
}

fn pushed(filter: &Expr) -> Option<Pushed> {
    if let Some(range) = starts::of(filter) {
        return Some(Pushed::Starts(range));
    }
    chosen::is_of(filter, &["pattern", "name"]).then_some(Pushed::Patterns)
}

impl SearchTable {
    fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = self.finder.patterns();
        let mut part = Part { patterns: (0..all.len()).collect(), starts: 0..u64::MAX };
        for filter in filters {
            match pushed(filter) {
                Some(Pushed::Starts(range)) => part.starts = starts::both(part.starts, range),
                Some(Pushed::Patterns) => {
                    let known: [(usize, ArrayRef); 2] =
                        [(PATTERN, Arc::new(texts(all))), (NAME, Arc::new(names(all)))];
                    let is_wanted = chosen::chosen(state, filter, &self.schema, &known)?;
                    part.patterns.retain(|&place| is_wanted[place]);
                }
                None => {
                    let reason = format!("{filter} was not to be a condition of search(…)");
                    return Err(DataFusionError::Internal(reason));
                }
            }
        }
        let search = Searching {
            finder: Arc::clone(&self.finder),
            part,
            schema: Arc::clone(&self.schema),
            texts: texts(all),
            names: names(all),
            notes: self.notes.clone(),
        };
        Ok(Arc::new(FoundExec::new(Arc::new(search), projection, limit)?))
    }
}

impl TableProvider for SearchTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match pushed(filter) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    scan_at_once!();
}

fn texts(patterns: &[Pattern]) -> StringViewArray {
    StringViewArray::from_iter_values(patterns.iter().map(|pattern| &pattern.text))
}

fn names(patterns: &[Pattern]) -> StringViewArray {
    StringViewArray::from_iter(patterns.iter().map(|pattern| pattern.name.as_deref()))
}

/// A search with what is pushed into it.
#[derive(Debug)]
pub(super) struct Searching {
    finder: Arc<Finder>,
    part: Part,
    schema: SchemaRef,
    texts: StringViewArray,
    names: StringViewArray,
    notes: Notes,
}

impl Searching {
    /// How many findings each pattern has, of all that there are.
    pub(super) fn counts(&self, out: &Out) -> Result<Vec<u64>> {
        let stop = Arc::clone(out.stop());
        let mut counts = vec![0_u64; self.finder.patterns().len()];
        let searched =
            self.finder.find(&self.part, &stop, out.is_analyzed(), &mut |_, findings| {
                findings.iter().for_each(|finding| counts[finding.pattern as usize] += 1);
                match stop.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
        self.done(searched, out)?;
        Ok(counts)
    }

    /// Tells what was looked at, and what could not be.
    fn done(&self, searched: std::result::Result<Searched, String>, out: &Out) -> Result<()> {
        let searched = searched.map_err(|reason| Error::table("search(…)", reason))?;
        out.touched(searched.bytes);
        for reached in &searched.reached {
            out.reached(reached.of, reached.bytes, reached.ceiling_bytes);
        }
        self.notes.add(searched.unread);
        Ok(())
    }

    /// The wanted columns of findings of one source.
    fn batch(&self, out: &Out, source: &ArrayRef, findings: &[Finding]) -> Result<RecordBatch> {
        let whole = |of: fn(&Finding) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(findings.iter().map(of)))
        };
        let of_pattern = |values: &StringViewArray| {
            let places = findings.iter().map(|finding| finding.pattern);
            take(values, &UInt32Array::from_iter_values(places), None)
        };
        let mut columns = Vec::with_capacity(out.columns().len());
        for &place in out.columns() {
            columns.push(match place {
                0 => take(source, &UInt32Array::from(vec![0; findings.len()]), None)?,
                OFFSET => whole(|finding| finding.offset as i64),
                2 => whole(|finding| i64::from(finding.length)),
                PATTERN => of_pattern(&self.texts)?,
                _ => of_pattern(&self.names)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(findings.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(out.schema()), columns, &options)?)
    }
}

impl Finds for Searching {
    fn name(&self) -> &'static str {
        "SearchExec"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn told(&self) -> String {
        let all = self.finder.patterns().len();
        let mut told = format!("patterns={} of {all}", self.part.patterns.len());
        let range = self.finder.range(&self.part);
        if range != (0..u64::MAX) {
            let end = if range.end == u64::MAX { String::new() } else { range.end.to_string() };
            told += &format!(", range={}..{end}", range.start);
        }
        told
    }

    fn ordered_by(&self) -> Option<usize> {
        (self.finder.sources() == 1).then_some(OFFSET)
    }

    fn counted(self: Arc<Self>, columns: &[usize], schema: &SchemaRef) -> Option<Arc<dyn Finds>> {
        let text = |column: &usize| match *column {
            PATTERN => Some(self.texts.clone()),
            NAME => Some(self.names.clone()),
            _ => None,
        };
        let texts = columns.iter().map(text).collect::<Option<_>>()?;
        Some(Arc::new(Counting::new(self, texts, schema)))
    }

    fn find(&self, out: &mut Out) -> Result<()> {
        let (stop, is_analyzed) = (Arc::clone(out.stop()), out.is_analyzed());
        let mut source: (String, ArrayRef) = (String::new(), Arc::new(texts(&[])));
        let mut waiting: Vec<Finding> = Vec::with_capacity(BATCH_ROWS);
        let mut failed = None;
        let searched = {
            let mut hand_over = |waiting: &mut Vec<Finding>, source: &ArrayRef| {
                let batch = self.batch(out, source, waiting);
                waiting.clear();
                match batch {
                    Ok(batch) => out.take(batch),
                    Err(error) => {
                        failed = Some(error);
                        ControlFlow::Break(())
                    }
                }
            };
            let searched =
                self.finder.find(&self.part, &stop, is_analyzed, &mut |name, findings| {
                    if source.0 != name {
                        if !waiting.is_empty() {
                            hand_over(&mut waiting, &source.1)?;
                        }
                        let named: ArrayRef = Arc::new(StringViewArray::from_iter_values([name]));
                        source = (name.to_string(), named);
                    }
                    for finding in findings {
                        waiting.push(*finding);
                        if waiting.len() == BATCH_ROWS {
                            hand_over(&mut waiting, &source.1)?;
                        }
                    }
                    ControlFlow::Continue(())
                });
            if searched.is_ok() && !waiting.is_empty() {
                let _ = hand_over(&mut waiting, &source.1);
            }
            searched
        };
        if let Some(error) = failed {
            return Err(error);
        }
        self.done(searched, out)
    }
}
