//! `search(source, patterns[, options])`: findings as rows.
//!
//! A condition on only `offset` becomes the range to search, one on only `pattern` and `name`
//! selects patterns, and a LIMIT ends the search.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use quarrier::search::{Searched, copy_match};
use quarrier::{Named, OpenOptions, Opened, Opener, Search as Request, Sources, read_instructions};
use quarrier_cli::{PackedSearch, SearchPart, TakeFindings};
use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern, parse_file};
use quarrier_units::{Joined, Row, SourceUnits};

use super::counting::Counting;
use super::plan::{Finds, FoundExec, Out};
use super::{Host, Notes, arguments, chosen, starts};
use crate::Error;
use crate::at_once::scan_at_once;

const USAGE: &str = "search('disk.img', 'patterns.txt'[, '--aligned 512'])";
/// Rows per batch.
const BATCH_ROWS: usize = 8192;
/// Indices of columns.
const OFFSET: usize = 1;
const PATTERN: usize = 3;
const NAME: usize = 4;
const MATCH: usize = 5;

/// The table function.
#[derive(Debug)]
pub(super) struct Search {
    notes: Notes,
    host: Host,
}

impl Search {
    pub(super) fn new(notes: &Notes, host: &Host) -> Self {
        Search { notes: notes.clone(), host: host.clone() }
    }
}

impl TableFunctionImpl for Search {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let strings = arguments::strings(USAGE, args.exprs(), 2, 3)?;
        self.host.reach.check(&strings[0])?;
        let is_file = Path::new(&strings[1]).is_file();
        if is_file {
            self.host.reach.check(&strings[1])?;
        }
        let options = strings.get(2).map_or(Ok(Vec::new()), |options| arguments::words(options))?;
        let failed = |reason| Error::text(format!("search(…): {reason}"));
        let (name, bytes) = patterns_of(&strings[1]).map_err(failed)?;
        let (request, open_options) = parsed(&name, &bytes)
            .and_then(|patterns| quarrier_cli::search_of_words(&options, patterns))
            .map_err(failed)?;
        let packed = match self.host.spread {
            Some(_) => PackedSearch::of_words(&options, (&name, &bytes)).map_err(failed)?,
            None => None,
        };
        let sources = Sources::of([&strings[0]]);
        let (notes, host) = (self.notes.clone(), self.host.clone());
        let finder = Finder { request, packed, open_options, sources, host, notes };
        let schema = Arc::new(Schema::new(vec![
            Field::new("source", DataType::Utf8View, false),
            Field::new("offset", DataType::Int64, false),
            Field::new("length", DataType::Int64, false),
            Field::new("pattern", DataType::Utf8View, false),
            Field::new("name", DataType::Utf8View, true),
            Field::new("match", DataType::Utf8View, false),
        ]));
        Ok(Arc::new(SearchTable { finder: Arc::new(finder), schema }))
    }
}

/// Reads a pattern file if `text` names one; otherwise, `text` itself is like the bytes of one, without a name. A
/// missing file is an error, so that a mistyped name is not searched for.
fn patterns_of(text: &str) -> std::result::Result<(String, Vec<u8>), String> {
    const FILE_ENDINGS: [&str; 4] = ["txt", "lst", "list", "patterns"];
    let path = Path::new(text);
    if path.is_file() {
        // Reading a file does not wait, so nothing has to stop it.
        let bytes = read_instructions(path, "patterns", &AtomicBool::new(false));
        return Ok((text.to_string(), bytes.map_err(|error| error.to_string())?));
    }
    let is_one_word = !text.contains(|character: char| character.is_whitespace());
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if is_one_word && FILE_ENDINGS.contains(&ending) && !text.starts_with("re:") {
        return Err(format!(
            "{text}: there is no such file; to search for this text write 're:{}'",
            text.replace('.', "[.]")
        ));
    }
    Ok((String::new(), text.as_bytes().to_vec()))
}

fn parsed(name: &str, bytes: &[u8]) -> std::result::Result<Vec<Pattern>, String> {
    parse_file(bytes).map_err(|error| match name {
        "" => error.to_string(),
        name => format!("{name}: {error}"),
    })
}

/// A search request with its sources, which may run any number of times.
#[derive(Debug)]
struct Finder {
    request: Request,
    /// The search for the workers of a cluster, if they can run it.
    packed: Option<PackedSearch>,
    open_options: OpenOptions,
    sources: Sources,
    host: Host,
    notes: Notes,
}

/// The part of a search that a statement needs.
#[derive(Debug, Clone)]
struct Part {
    /// Indices of the needed patterns, ascending.
    patterns: Vec<usize>,
    /// The range in which findings start.
    starts: std::ops::Range<u64>,
    /// Whether a limit may end the search early.
    is_limited: bool,
}

/// Receives the name of a source, the bytes of matches, and the findings. Findings refer to patterns by
/// their index among all patterns. `Break` ends the search.
type Take<'t> = dyn FnMut(&str, &Matches<'_>, &[Finding]) -> ControlFlow<()> + Send + 't;

/// Where the bytes of matches are.
enum Matches<'m> {
    /// Those of several findings, in a chunk of the source.
    In(&'m Chunk<'m>),
    /// Those of one finding, as another process copied them.
    Copied(&'m [u8]),
}

impl Matches<'_> {
    fn copy(&self, finding: &Finding, copy: &mut Vec<u8>) {
        match self {
            Matches::In(chunk) => copy_match(chunk, finding, copy),
            Matches::Copied(bytes) => {
                copy.clear();
                copy.extend_from_slice(bytes);
            }
        }
    }
}

impl Finder {
    /// The request for a part of the search.
    fn of(&self, part: &Part) -> Request {
        self.request.only(&part.patterns).starts(part.starts.clone())
    }

    /// Searches the sources in turn, here or on the workers of a cluster, and adds the cost to `account`.
    fn find(
        &self,
        part: &Part,
        stop: &Arc<AtomicBool>,
        take: &mut Take<'_>,
        account: &mut Account,
    ) -> Result<()> {
        if part.patterns.is_empty() || part.starts.is_empty() {
            return Ok(());
        }
        let options = self.open_options.clone().with_headers_of(&self.host.open);
        let opener = Opener::new(options, &self.host.environment, stop);
        match (&self.packed, &self.host.spread) {
            (Some(packed), Some(spread)) => {
                let packed = packed.clone().only(&part.patterns);
                let mut taking = Taking { part, take, notes: &self.notes, account };
                let (range, sources) = (self.of(part).span(), (&self.sources, &opener));
                let wanted =
                    SearchPart { packed: &packed, range: &range, is_limited: part.is_limited };
                let found = spread.on.search(wanted, sources, stop, &mut taking);
                found.map_err(|reason| Error::table("search(…)", reason).into())
            }
            _ => self.find_here(part, (&opener, stop), take, account).map_err(failed),
        }
    }

    /// Searches the sources in this process.
    fn find_here(
        &self,
        part: &Part,
        (opener, stop): (&Opener, &AtomicBool),
        take: &mut Take<'_>,
        account: &mut Account,
    ) -> quarrier::Result<()> {
        let request = self.of(part);
        let mut running = None;
        let mut is_done = false;
        for opened in self.sources.open_packed(opener, request.packed()) {
            if is_done || stop.load(Ordering::Relaxed) {
                break;
            }
            let mut opened = opened?;
            let running = match &mut running {
                Some(running) => running,
                None => {
                    let first = opened.place();
                    running.insert(request.start(&self.host.machine, Some(&first), stop)?)
                }
            };
            self.notes.add_notices(opened.notice_line());
            let name = opened.name().to_string();
            let mut wanted = Vec::new();
            let mut watch = |chunk: &Chunk<'_>, findings: &[Finding]| {
                if findings.is_empty() {
                    return ControlFlow::Continue(());
                }
                wanted.clear();
                wanted.extend(findings.iter().map(|finding| Finding {
                    pattern: part.patterns[finding.pattern as usize] as u32,
                    ..*finding
                }));
                // `Break` ends the search of this source; the loop then ends, too.
                let flow = take(&name, &Matches::In(chunk), &wanted);
                is_done = flow.is_break();
                flow
            };
            let searched = running.search(opened.place(), stop, &mut watch)?;
            account.add(self, &opened, &searched);
        }
        Ok(())
    }
}

/// Takes the findings of a cluster.
struct Taking<'t, 'k> {
    part: &'t Part,
    take: &'t mut Take<'k>,
    notes: &'t Notes,
    account: &'t mut Account,
}

impl TakeFindings for Taking<'_, '_> {
    fn take_row(&mut self, source: &str, row: &Row<'_>) -> io::Result<()> {
        let Row { offset, length, pattern, found } = *row;
        if !self.part.starts.contains(&offset) {
            return Ok(());
        }
        let pattern = self.part.patterns[pattern as usize] as u32;
        let finding = Finding { offset, pattern, length };
        match (self.take)(source, &Matches::Copied(found), &[finding]) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn take_source(&mut self, source: &SourceUnits, joined: &Joined) {
        self.notes.add_notices(source.notice_line());
        self.notes.add_unreadable(source.name(), &joined.unreadable);
        self.account.bytes += source.bytes();
    }
}

/// The table of one call.
#[derive(Debug)]
struct SearchTable {
    finder: Arc<Finder>,
    schema: SchemaRef,
}

/// The conditions that the search evaluates.
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
        let all = self.finder.request.patterns();
        let patterns = (0..all.len()).collect();
        let mut part = Part { patterns, starts: 0..u64::MAX, is_limited: false };
        for filter in filters {
            match pushed(filter) {
                Some(Pushed::Starts(range)) => part.starts = starts::both(part.starts, range),
                Some(Pushed::Patterns) => {
                    let known: [(usize, ArrayRef); 2] =
                        [(PATTERN, Arc::new(strings(all))), (NAME, Arc::new(names(all)))];
                    let is_wanted = chosen::chosen(state, filter, &self.schema, &known)?;
                    part.patterns.retain(|&place| is_wanted[place]);
                }
                None => {
                    let reason = format!("{filter} cannot be pushed down to search(…)");
                    return Err(DataFusionError::Internal(reason));
                }
            }
        }
        let search = Searching {
            finder: Arc::clone(&self.finder),
            part,
            schema: Arc::clone(&self.schema),
            strings: strings(all),
            names: names(all),
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

fn strings(patterns: &[Pattern]) -> StringViewArray {
    StringViewArray::from_iter_values(patterns.iter().map(|pattern| &pattern.text))
}

fn names(patterns: &[Pattern]) -> StringViewArray {
    StringViewArray::from_iter(patterns.iter().map(|pattern| pattern.name.as_deref()))
}

/// A search with the pushed-down conditions.
#[derive(Debug)]
pub(super) struct Searching {
    finder: Arc<Finder>,
    part: Part,
    schema: SchemaRef,
    strings: StringViewArray,
    names: StringViewArray,
}

impl Searching {
    /// The number of findings of each pattern.
    pub(super) fn counts(&self, out: &Out) -> Result<Vec<u64>> {
        let stop = Arc::clone(out.stop());
        let mut counts = vec![0_u64; self.finder.request.patterns().len()];
        let mut take = |_: &str, _: &Matches<'_>, findings: &[Finding]| {
            findings.iter().for_each(|finding| counts[finding.pattern as usize] += 1);
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let mut account = Account { is_analyzed: out.is_analyzed(), ..Account::default() };
        let found = self.finder.find(&self.part, &stop, &mut take, &mut account);
        account.give(out);
        found?;
        Ok(counts)
    }

    /// A batch of the requested columns, for findings of one source.
    fn batch(&self, out: &Out, source: &ArrayRef, waiting: &Waiting) -> Result<RecordBatch> {
        let findings = &waiting.findings;
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
                PATTERN => of_pattern(&self.strings)?,
                MATCH => Arc::new(StringViewArray::from_iter_values(&waiting.matches)),
                _ => of_pattern(&self.names)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(findings.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(out.schema()), columns, &options)?)
    }
}

/// Findings that wait for a full batch.
#[derive(Default)]
struct Waiting {
    /// The number of rows of the next batch: less than usual if a limit ends the search with it.
    rows_max: usize,
    findings: Vec<Finding>,
    /// Matched bytes as strings; empty if the column is not requested.
    matches: Vec<String>,
    copy: Vec<u8>,
}

impl Waiting {
    fn push(&mut self, finding: &Finding, of: Option<(&Matches<'_>, &Pattern)>) {
        self.findings.push(*finding);
        if let Some((matches, pattern)) = of {
            matches.copy(finding, &mut self.copy);
            let mut text = String::new();
            pattern.show_match(&self.copy, &mut text);
            self.matches.push(text);
        }
    }

    fn clear(&mut self) {
        self.findings.clear();
        self.matches.clear();
    }
}

/// The cost of a search, over all its sources.
#[derive(Default)]
struct Account {
    /// Whether to compare with ceilings.
    is_analyzed: bool,
    bytes: u64,
    /// For each source: the ceiling, the bytes read, and the bytes that the ceiling allows in the
    /// same time.
    reached: Vec<(&'static str, u64, f64)>,
}

impl Account {
    fn add(&mut self, finder: &Finder, opened: &Opened, searched: &Searched) {
        let run = &searched.run;
        self.bytes += run.bytes;
        finder.notes.add_unreadable(opened.name(), &run.unreadable);
        if let (true, Some(source)) = (self.is_analyzed, opened.local())
            && let Some(ceiling) =
                finder.host.machine.ceiling(source, &run.plan, 0..source.length())
        {
            let ceiling_bytes = ceiling.bytes_per_second * run.elapsed.as_secs_f64();
            self.reached.push((ceiling.of, run.bytes, ceiling_bytes));
        }
    }

    /// Reports the bytes searched, and the shares of ceilings.
    fn give(self, out: &Out) {
        out.touched(self.bytes);
        for (of, bytes, ceiling_bytes) in self.reached {
            out.reached(of, bytes, ceiling_bytes);
        }
    }
}

fn failed(error: quarrier::Error) -> DataFusionError {
    Error::table("search(…)", error.to_string()).into()
}

impl Finds for Searching {
    fn name(&self) -> &'static str {
        "SearchExec"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn label(&self) -> String {
        let all = self.finder.request.patterns().len();
        let mut label = format!("patterns={} of {all}", self.part.patterns.len());
        let range = self.finder.of(&self.part).span();
        if range != (0..u64::MAX) {
            let end = if range.end == u64::MAX { String::new() } else { range.end.to_string() };
            label += &format!(", range={}..{end}", range.start);
        }
        if self.is_spread() {
            label += ", on the workers of a cluster";
        }
        label
    }

    fn is_spread(&self) -> bool {
        self.finder.packed.is_some()
    }

    fn ordered_by(&self) -> Option<usize> {
        // A listing of a bucket may have several objects.
        let sources = self.finder.sources.as_slice();
        let is_one = matches!(sources, [named] if !matches!(named, Named::Objects(_)));
        is_one.then_some(OFFSET)
    }

    fn counted(self: Arc<Self>, columns: &[usize], schema: &SchemaRef) -> Option<Arc<dyn Finds>> {
        let text = |column: &usize| match *column {
            PATTERN => Some(self.strings.clone()),
            NAME => Some(self.names.clone()),
            _ => None,
        };
        let strings = columns.iter().map(text).collect::<Option<_>>()?;
        Some(Arc::new(Counting::new(self, strings, schema)))
    }

    fn find(&self, out: &mut Out) -> Result<()> {
        let stop = Arc::clone(out.stop());
        let mut account = Account { is_analyzed: out.is_analyzed(), ..Account::default() };
        let mut source: (String, ArrayRef) = (String::new(), Arc::new(strings(&[])));
        let (mut waiting, wants_matches) = (Waiting::default(), out.columns().contains(&MATCH));
        let patterns = self.finder.request.patterns();
        let mut broken = None;
        waiting.rows_max = out.left().min(BATCH_ROWS);
        let part = Part { is_limited: out.left() < usize::MAX, ..self.part.clone() };
        let found = {
            let mut hand_over = |waiting: &mut Waiting, source: &ArrayRef| {
                let batch = self.batch(out, source, waiting);
                waiting.clear();
                match batch {
                    Ok(batch) => {
                        let taken = out.take(batch);
                        waiting.rows_max = out.left().min(BATCH_ROWS);
                        taken
                    }
                    Err(error) => {
                        broken = Some(error);
                        ControlFlow::Break(())
                    }
                }
            };
            let mut take = |name: &str, matches: &Matches<'_>, findings: &[Finding]| {
                if source.0 != name {
                    if !waiting.findings.is_empty() {
                        hand_over(&mut waiting, &source.1)?;
                    }
                    let named: ArrayRef = Arc::new(StringViewArray::from_iter_values([name]));
                    source = (name.to_string(), named);
                }
                for finding in findings {
                    let pattern = &patterns[finding.pattern as usize];
                    waiting.push(finding, wants_matches.then_some((matches, pattern)));
                    if waiting.findings.len() >= waiting.rows_max {
                        hand_over(&mut waiting, &source.1)?;
                    }
                }
                ControlFlow::Continue(())
            };
            let found = self.finder.find(&part, &stop, &mut take, &mut account);
            if found.is_ok() && !waiting.findings.is_empty() {
                let _ = hand_over(&mut waiting, &source.1);
            }
            found
        };
        if let Some(error) = broken {
            return Err(error);
        }
        account.give(out);
        found
    }
}
