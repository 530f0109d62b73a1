//! `files(source)`: the entries of the file systems in a source, including deleted files.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use quarrier::source::line_of;
use quarrier::{Opener, Sources};

use super::plan::{Finds, FoundExec, Out};
use super::rows::{self, RowsOut, pairs, text, whole};
use super::{Host, Notes, arguments};
use crate::Error;
use crate::at_once::scan_at_once;

const USAGE: &str = "files('disk.img')";

/// The table function.
#[derive(Debug)]
pub(super) struct Files {
    notes: Notes,
    host: Host,
}

impl Files {
    pub(super) fn new(notes: &Notes, host: &Host) -> Self {
        Files { notes: notes.clone(), host: host.clone() }
    }
}

impl TableFunctionImpl for Files {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let strings = arguments::strings(USAGE, args.exprs(), 1, 1)?;
        let text = |name: &str| Field::new(name, DataType::Utf8View, false);
        let time = |name: &str| Field::new(name, DataType::Utf8View, true);
        let whole = |name: &str| Field::new(name, DataType::Int64, false);
        let schema = Arc::new(Schema::new(vec![
            text("source"),
            whole("partition"),
            text("path"),
            whole("inode"),
            text("type"),
            text("state"),
            whole("size"),
            time("modified"),
            time("accessed"),
            time("changed"),
            time("created"),
            Field::new("extents", rows::pairs_type(), false),
        ]));
        let source = strings.into_iter().next().unwrap_or_default();
        self.host.reach.check(&source)?;
        let (notes, host) = (self.notes.clone(), self.host.clone());
        Ok(Arc::new(FilesTable { source, schema, notes, host }))
    }
}

/// The table of one call.
#[derive(Debug)]
struct FilesTable {
    source: String,
    schema: SchemaRef,
    notes: Notes,
    host: Host,
}

impl FilesTable {
    fn plan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let listing = Listing {
            source: self.source.clone(),
            schema: Arc::clone(&self.schema),
            notes: self.notes.clone(),
            host: self.host.clone(),
        };
        Ok(Arc::new(FoundExec::new(Arc::new(listing), projection, limit)?))
    }
}

impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    scan_at_once!();
}

/// A listing in progress.
#[derive(Debug)]
struct Listing {
    source: String,
    schema: SchemaRef,
    notes: Notes,
    host: Host,
}

impl Finds for Listing {
    fn name(&self) -> &'static str {
        "FilesExec"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn label(&self) -> String {
        self.source.clone()
    }

    fn find(&self, out: &mut Out) -> Result<()> {
        let stop = Arc::clone(out.stop());
        let request = quarrier::Files::new().deleted(true);
        let opener = Opener::new(self.host.open.clone(), &self.host.environment, &stop);
        for opened in Sources::of([&self.source]).open(&opener) {
            let mut opened = opened.map_err(failed)?;
            self.notes.add_notices(opened.notice_line());
            let mut rows = RowsOut::new(out);
            let mut error = None;
            let listed = request.run(opened.place(), &stop, &mut |row| {
                let (times, entry) = (row.times(), &row.entry);
                let added = rows.add(|place| match place {
                    0 => text(Some(&row.source)),
                    1 => whole(Some(row.partition.into())),
                    2 => text(Some(&entry.path)),
                    3 => whole(Some(entry.inode)),
                    4 => text(Some(entry.kind.name())),
                    5 => text(Some(entry.state.name())),
                    6 => whole(Some(entry.size)),
                    7..=10 => text(times[place - 7].as_deref()),
                    _ => pairs(&row.extents()),
                });
                match added {
                    Ok(flow) if flow.is_continue() => Ok(()),
                    Ok(_) => Err(std::io::ErrorKind::BrokenPipe.into()),
                    Err(why) => {
                        error = Some(why);
                        Err(std::io::ErrorKind::Other.into())
                    }
                }
            });
            if let Some(error) = error {
                return Err(error);
            }
            let _ = rows.flush()?;
            drop(rows);
            let listed = match listed {
                // The reader needs no more rows.
                Err(quarrier::Error::Output(_)) => return Ok(()),
                Err(_) if stop.load(Ordering::Relaxed) => return Ok(()),
                listed => listed.map_err(failed)?,
            };
            let of_source = |line: &String| line_of(opened.name(), line);
            self.notes.add_notices(listed.systems.notices().iter().map(of_source));
            self.notes.add(listed.damages.iter().map(of_source));
        }
        Ok(())
    }
}

fn failed(error: quarrier::Error) -> DataFusionError {
    Error::table("files(…)", error.to_string()).into()
}
