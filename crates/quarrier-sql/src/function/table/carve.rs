//! `carve(source)`: recoverable files, with the columns of the report. It writes no files.
//!
//! Conditions on only `type` or only `status` restrict the search, digests are computed only if
//! selected, and a LIMIT ends the run.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use quarrier::carve::{Begin, Watch, describe_skimmed};
use quarrier::{Opener, Sources};
use quarrier_carve::folder::Row;
use quarrier_carve::{Status, format};
use quarrier_cli::{PackedCarve, TakeCarvedFiles};
use quarrier_core::sync::{into_inner, lock};
use quarrier_units::{Remarks, SourceUnits};

use super::plan::{Finds, FoundExec, Out};
use super::rows::{self, RowsOut, pairs, text, whole};
use super::{Host, Notes, arguments, chosen};
use crate::Error;
use crate::at_once::scan_at_once;
use crate::files::Spreading;

const USAGE: &str = "carve('disk.img')";
const TYPE: usize = 1;
const STATUS: usize = 5;
/// The only column that needs all bytes of a file.
const DIGEST: usize = 7;

/// The table function.
#[derive(Debug)]
pub(super) struct Carve {
    notes: Notes,
    host: Host,
}

impl Carve {
    pub(super) fn new(notes: &Notes, host: &Host) -> Self {
        Carve { notes: notes.clone(), host: host.clone() }
    }
}

impl TableFunctionImpl for Carve {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let strings = arguments::strings(USAGE, args.exprs(), 1, 1)?;
        let text = |name: &str| Field::new(name, DataType::Utf8View, false);
        let whole = |name: &str| Field::new(name, DataType::Int64, false);
        let schema = Arc::new(Schema::new(vec![
            text("source"),
            text("type"),
            whole("offset"),
            whole("length"),
            Field::new("extents", rows::pairs_type(), false),
            text("status"),
            text("reason"),
            text("sha256"),
            text("path"),
        ]));
        let source = strings.into_iter().next().unwrap_or_default();
        self.host.reach.check(&source)?;
        let (notes, host) = (self.notes.clone(), self.host.clone());
        Ok(Arc::new(CarveTable { source, schema, notes, host }))
    }
}

/// The table of one call.
#[derive(Debug)]
struct CarveTable {
    source: String,
    schema: SchemaRef,
    notes: Notes,
    host: Host,
}

impl CarveTable {
    fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let kinds = format::ALL.iter().flat_map(|format| format.kinds());
        let mut kinds: Vec<&'static str> = kinds.map(|kind| kind.name).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let all = kinds.len();
        let mut statuses = vec![Status::Valid, Status::Partial, Status::Header];
        for filter in filters {
            let is_of_type = chosen::is_of(filter, &["type"]);
            let (place, values): (_, ArrayRef) = match is_of_type {
                true => (TYPE, Arc::new(StringViewArray::from_iter_values(&kinds))),
                false => {
                    let names = statuses.iter().map(|status| status.name());
                    (STATUS, Arc::new(StringViewArray::from_iter_values(names)))
                }
            };
            let is_wanted =
                chosen::chosen(state, filter, &self.schema, &[(place, values)])?.into_iter();
            match is_of_type {
                true => kinds = picked(kinds, is_wanted),
                false => statuses = picked(statuses, is_wanted),
            }
        }
        let carving = Carving {
            source: self.source.clone(),
            kinds: (kinds.len() < all).then_some(kinds),
            statuses,
            schema: Arc::clone(&self.schema),
            notes: self.notes.clone(),
            host: self.host.clone(),
        };
        Ok(Arc::new(FoundExec::new(Arc::new(carving), projection, limit)?))
    }
}

impl TableProvider for CarveTable {
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
        let is_pushed =
            |filter: &Expr| ["type", "status"].iter().any(|name| chosen::is_of(filter, &[name]));
        let support = |filter: &&Expr| match is_pushed(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    scan_at_once!();
}

/// The elements of `all` for which `is_wanted` yields true.
fn picked<T>(all: Vec<T>, is_wanted: impl Iterator<Item = bool>) -> Vec<T> {
    all.into_iter().zip(is_wanted).filter_map(|(one, is_wanted)| is_wanted.then_some(one)).collect()
}

/// A run of the carver with the pushed-down conditions.
#[derive(Debug)]
struct Carving {
    source: String,
    /// The types to search for; `None` means all.
    kinds: Option<Vec<&'static str>>,
    statuses: Vec<Status>,
    schema: SchemaRef,
    notes: Notes,
    host: Host,
}

impl Finds for Carving {
    fn name(&self) -> &'static str {
        "CarveExec"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn label(&self) -> String {
        let statuses: Vec<_> = self.statuses.iter().map(|status| status.name()).collect();
        let kinds = self.kinds.as_ref().map_or_else(|| "all".to_string(), |kinds| kinds.join(","));
        let on = if self.is_spread() { ", on the workers of a cluster" } else { "" };
        format!("types={kinds}, status={}{on}", statuses.join(","))
    }

    fn is_spread(&self) -> bool {
        self.host.spread.is_some()
    }

    fn find(&self, out: &mut Out) -> Result<()> {
        if self.kinds.as_ref().is_some_and(Vec::is_empty) || self.statuses.is_empty() {
            return Ok(());
        }
        let stop = Arc::clone(out.stop());
        let opener = Opener::new(self.host.open.clone(), &self.host.environment, &stop);
        match &self.host.spread {
            Some(spread) => self.find_on(spread, &opener, out),
            None => self.find_here(&opener, out),
        }
    }
}

impl Carving {
    /// The names of the types, broken files included or not, and whether rows have digests.
    fn wanted(&self, out: &Out) -> (Option<Vec<String>>, bool, bool) {
        let kinds = self.kinds.as_ref();
        let kinds = kinds.map(|kinds| kinds.iter().map(|kind| kind.to_string()).collect());
        let is_any_broken = self.statuses.iter().any(|&status| status != Status::Valid);
        (kinds, is_any_broken, out.columns().contains(&DIGEST))
    }

    /// Carves on the workers of a cluster.
    fn find_on(&self, spread: &Spreading, opener: &Opener, out: &mut Out) -> Result<()> {
        let (kinds, is_any_broken, is_digested) = self.wanted(out);
        let packed = PackedCarve::of_types(kinds, is_any_broken, is_digested);
        let (stop, sources) = (Arc::clone(out.stop()), Sources::of([&self.source]));
        let (statuses, notes) = (&self.statuses, &self.notes);
        let mut bytes = 0;
        let rows = (RowsOut::new(out), None);
        let mut taking = Taking { rows, statuses, notes, bytes: &mut bytes };
        let found = spread.on.carve(&packed, (&sources, opener), &stop, &mut taking);
        let (mut rows, error) = taking.rows;
        if let Some(error) = error {
            return Err(error);
        }
        let _ = rows.flush()?;
        drop(rows);
        out.touched(bytes);
        match found {
            // The reader needs no more rows.
            Err(_) if stop.load(Ordering::Relaxed) => Ok(()),
            found => found.map_err(|reason| Error::table("carve(…)", reason).into()),
        }
    }

    /// Carves in this process.
    fn find_here(&self, opener: &Opener, out: &mut Out) -> Result<()> {
        let stop = Arc::clone(out.stop());
        let (kinds, is_any_broken, is_digested) = self.wanted(out);
        let request = quarrier::Carve::new()
            .types(kinds)
            .keep_broken(is_any_broken)
            .statuses(Some(self.statuses.clone()))
            .digests(is_digested);
        for opened in Sources::of([&self.source]).open(opener) {
            let mut opened = opened.map_err(failed)?;
            self.notes.add_notices(opened.notice_line());
            let begin = request.start(opened.place(), &self.host.machine, &stop);
            let Begin::Carving(carving) = begin.map_err(failed)? else { continue };
            let taker = Taker(Mutex::new((RowsOut::new(out), None)));
            let carved = carving.run(&taker);
            let (mut rows, error) = into_inner(taker.0);
            if let Some(error) = error {
                return Err(error);
            }
            let _ = rows.flush()?;
            drop(rows);
            let summary = match carved {
                // The reader needs no more rows.
                Err(_) if stop.load(Ordering::Relaxed) => return Ok(()),
                carved => carved.map_err(failed)?.summary,
            };
            out.touched(summary.bytes);
            self.notes.add_unreadable(opened.name(), &summary.unreadable);
            let skimmed = describe_skimmed(&summary.skimmed).into_iter();
            self.notes.add(skimmed.map(|(_, line)| format!("{}: {line}", opened.name())));
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }
}

fn failed(error: quarrier::Error) -> DataFusionError {
    Error::table("carve(…)", error.to_string()).into()
}

/// Rows for the reader, and why they ended.
type Rows<'o> = (RowsOut<'o>, Option<DataFusionError>);

/// Collects rows of carved files from several threads.
struct Taker<'o>(Mutex<Rows<'o>>);

impl Watch for Taker<'_> {
    fn files(&self, found: Vec<Row>, _: Option<u64>) -> io::Result<()> {
        let rows = &mut *lock(&self.0);
        found.iter().try_for_each(|row| add(rows, row))
    }
}

/// Takes the carved files of a cluster.
struct Taking<'t, 'o> {
    rows: Rows<'o>,
    statuses: &'t [Status],
    notes: &'t Notes,
    bytes: &'t mut u64,
}

impl TakeCarvedFiles for Taking<'_, '_> {
    fn take_file(&mut self, file: Row) -> io::Result<()> {
        match self.statuses.contains(&file.status) {
            true => add(&mut self.rows, &file),
            false => Ok(()),
        }
    }

    fn take_source(&mut self, source: &SourceUnits, remarks: &Remarks) {
        self.notes.add_notices(source.notice_line());
        self.notes.add(remarks.problems.iter().cloned());
        *self.bytes += source.bytes();
    }
}

/// Adds a row; an error if the reader needs no more, or if it is kept in `rows`.
fn add((rows, failed): &mut Rows<'_>, row: &Row) -> io::Result<()> {
    let extents: Vec<_> = row.extents.iter().map(|e| [e.offset, e.length]).collect();
    let added = rows.add(|place| match place {
        0 => text(Some(&row.source)),
        TYPE => text(Some(&row.kind)),
        2 => whole(Some(row.offset)),
        3 => whole(Some(row.length)),
        4 => pairs(&extents),
        STATUS => text(Some(row.status.name())),
        6 => text(Some(&row.reason)),
        DIGEST => text(Some(&row.sha256)),
        _ => text(Some(&row.path)),
    });
    match added {
        Ok(flow) if flow.is_continue() => Ok(()),
        Ok(_) => Err(io::ErrorKind::BrokenPipe.into()),
        Err(error) => {
            *failed = Some(error);
            Err(io::ErrorKind::Other.into())
        }
    }
}
