//! `rules(source, rule file[, scopes])`: matches of YARA rules, with the rows of
//! `quarrier search --rules`.
//!
//! A LIMIT ends the search.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use quarrier::rules::{JudgedScope, RuleRun, RuleSearch, Scopes, Turn, read_rules};
use quarrier::source::line_of;
use quarrier::{Opener, Sources};

use super::plan::{Finds, FoundExec, Out};
use super::rows::{RowsOut, text, whole};
use super::{Host, Notes, arguments};
use crate::Error;
use crate::at_once::scan_at_once;

const USAGE: &str = "rules('disk.img', 'malware.yar'[, 'source,files,members'])";

/// The table function.
#[derive(Debug)]
pub(super) struct Rules {
    notes: Notes,
    host: Host,
}

impl Rules {
    pub(super) fn new(notes: &Notes, host: &Host) -> Self {
        Rules { notes: notes.clone(), host: host.clone() }
    }
}

impl TableFunctionImpl for Rules {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let strings = arguments::strings(USAGE, args.exprs(), 2, 3)?;
        let [source, file, ..] = &strings[..] else { return Err(Error::text(USAGE).into()) };
        for name in [source, file] {
            self.host.reach.check(name)?;
        }
        let scopes = match strings.get(2) {
            None => Scopes::default(),
            Some(names) => names
                .parse::<Scopes>()
                .map_err(|reason| Error::text(format!("rules(…): {reason}")))?,
        };
        let text =
            |name: &str, is_optional: bool| Field::new(name, DataType::Utf8View, is_optional);
        let whole = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![
            text("source", false),
            text("scope", false),
            text("rule", false),
            text("tags", false),
            text("string", true),
            whole("offset"),
            whole("length"),
            text("match", true),
        ]));
        let (source, file) = (source.clone(), file.clone());
        let (notes, host) = (self.notes.clone(), self.host.clone());
        let judging = Judging { source, file, scopes, schema, notes, host };
        Ok(Arc::new(RulesTable { judging: Arc::new(judging) }))
    }
}

/// The table of one call.
#[derive(Debug)]
struct RulesTable {
    judging: Arc<Judging>,
}

impl RulesTable {
    fn plan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let judging = Arc::clone(&self.judging);
        Ok(Arc::new(FoundExec::new(judging, projection, limit)?))
    }
}

impl TableProvider for RulesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.judging.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    scan_at_once!();
}

/// A search for rules.
#[derive(Debug)]
struct Judging {
    source: String,
    file: String,
    scopes: Scopes,
    schema: SchemaRef,
    notes: Notes,
    host: Host,
}

impl Finds for Judging {
    fn name(&self) -> &'static str {
        "RulesExec"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn label(&self) -> String {
        format!("{}, rules={}, scopes={}", self.source, self.file, self.scopes)
    }

    fn find(&self, out: &mut Out) -> Result<()> {
        let stop = Arc::clone(out.stop());
        let rules = match read_rules(&[PathBuf::from(&self.file)], &stop) {
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(()),
            rules => rules.map_err(failed)?,
        };
        let request = RuleSearch::new(rules).scopes(self.scopes);
        let opener = Opener::new(self.host.open.clone(), &self.host.environment, &stop);
        let sources = Sources::of([&self.source]);
        let sources = sources.listed(&opener);
        let Some(first) = sources.iter().next() else { return Ok(()) };
        let mut first = opener.open(first).map_err(failed)?;
        let started = request.start(&self.host.machine, Some(&first.place()), &stop);
        let mut run = started.map_err(failed)?;
        let mut ended = Ok(());
        run.in_turn(
            sources.as_slice(),
            Some(Ok(first)),
            &opener,
            &stop,
            &mut |run, turn| match turn
                .map_err(failed)
                .and_then(|turn| self.find_in(run, turn, &stop, out))
            {
                Ok(flow) => flow,
                Err(error) => {
                    ended = Err(error);
                    ControlFlow::Break(())
                }
            },
        );
        ended
    }
}

impl Judging {
    /// Adds the rows of one source; returns whether to continue.
    fn find_in(
        &self,
        run: &mut RuleRun<'_>,
        turn: Turn,
        stop: &AtomicBool,
        out: &mut Out,
    ) -> Result<ControlFlow<()>> {
        self.notes.add_notices(turn.notice_line());
        let name = turn.name().to_string();
        let rules = run.rules().clone();
        let mut rows = RowsOut::new(out);
        let mut error = None;
        let mut take = |scope: &JudgedScope<'_>| {
            let mut added = Ok(ControlFlow::Continue(()));
            for row in scope.rows(&rules) {
                added = rows.add(|place| match place {
                    0 => text(Some(&name)),
                    1 => text(Some(scope.name)),
                    2 => text(Some(&row.rule.name)),
                    3 => text(Some(&row.rule.tags.join(" "))),
                    4 => text(row.string),
                    5 => whole(row.offset),
                    6 => whole(row.length),
                    _ => text(row.match_text().as_deref()),
                });
                if !matches!(added, Ok(ControlFlow::Continue(()))) {
                    break;
                }
            }
            added.unwrap_or_else(|why| {
                error = Some(why);
                ControlFlow::Break(())
            })
        };
        let searched = run.search_turn(turn, stop, &mut take);
        if let Some(error) = error {
            return Err(error);
        }
        let flow = rows.flush()?;
        drop(rows);
        if flow.is_break() || stop.load(Ordering::Relaxed) {
            return Ok(ControlFlow::Break(()));
        }
        let searched = searched.map_err(failed)?;
        out.touched(searched.bytes);
        let notices = searched.notices.iter().map(|notice| line_of(&name, notice));
        match searched.is_incomplete {
            true => self.notes.add(notices),
            false => self.notes.add_notices(notices),
        }
        self.notes.add_unreadable(&name, &searched.unreadable);
        Ok(ControlFlow::Continue(()))
    }
}

fn failed(error: quarrier::Error) -> DataFusionError {
    Error::table("rules(…)", error.to_string()).into()
}
