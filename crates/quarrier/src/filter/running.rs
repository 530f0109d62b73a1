//! Runs a request over all of its sources.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::pipeline::Run;
use quarrier_core::source::Source;
use quarrier_filter::Sieve;
use quarrier_filter::sql::Lists;
use quarrier_messages::{Field, Format, HiddenColumns, Kind, Schema};

use super::again::{Origin, Printed, RereadReason, Tape};
use super::conditions::{Bound, Conditions, Rebinding, Unknown};
use super::drain::{Drain, Ended, Tally};
use super::hidden::HiddenNames;
use super::pass::Bytes;
use super::record::Wanted;
use super::rejects::List;
use super::sample::{Sample, Subject};
use super::show::{OutputKind, RowFormat};
use super::watch::{Done, Header, Watch};
use super::worker::{FilterKernel, Setup, Worker};
use super::{Filter, Form, kind};
use crate::account::RemoteCost;
use crate::{Error, Named, Opened, Opener, Place, Result, Sources};

/// The outcome of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Filtered {
    /// The conditions.
    pub conditions: Arc<Conditions>,
    /// The number of messages for which each condition is true.
    pub counts: Vec<u64>,
    /// The number of evaluated messages.
    pub messages: u64,
    /// The number of rejected messages.
    pub rejected: u64,
    /// The runs over the sources, in order.
    pub runs: Vec<Run>,
    /// The cost of remote sources and listings of buckets, if there were any.
    pub remote: Option<RemoteCost>,
    /// Time spent binding and indexing conditions and taking samples.
    pub bind: Duration,
    /// Whether the run was stopped.
    pub is_stopped: bool,
    /// The largest source, if reading it again is nearly free.
    pub(super) largest: Option<Largest>,
}

/// The source with the most bytes read.
pub(super) struct Largest {
    pub(super) source: Option<Box<dyn Source>>,
    /// The index of its run.
    pub(super) run: usize,
}

impl std::fmt::Debug for Largest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.source.as_ref().map(|source| source.name());
        f.debug_struct("Largest").field("source", &name).field("run", &self.run).finish()
    }
}

impl Filtered {
    fn new(conditions: &Arc<Conditions>) -> Self {
        Filtered {
            conditions: Arc::clone(conditions),
            counts: Vec::new(),
            messages: 0,
            rejected: 0,
            runs: Vec::new(),
            remote: None,
            bind: Duration::ZERO,
            is_stopped: false,
            largest: None,
        }
    }

    /// Makes the outcome of conditions that were evaluated elsewhere.
    pub(crate) fn counted(conditions: &Arc<Conditions>, counts: Vec<u64>, messages: u64) -> Self {
        Filtered { counts, messages, ..Filtered::new(conditions) }
    }

    /// Adds a run, and keeps its source if it is the largest so far.
    fn add(&mut self, run: Run, source: Option<Box<dyn Source>>) {
        let most = self.largest.as_ref().map_or(0, |largest| self.runs[largest.run].bytes);
        if self.largest.is_none() || run.bytes >= most {
            self.largest = Some(Largest { source, run: self.runs.len() });
        }
        self.runs.push(run);
    }
}

/// State that all sources of one request share.
pub(super) struct Session<'f, 'w> {
    pub(super) filter: &'f Filter,
    pub(super) stop: &'f Arc<AtomicBool>,
    pub(super) watch: &'w mut dyn Watch,
    /// The format of the current source, if it is known.
    source_format: Option<Format>,
    /// Columns seen so far.
    schema: Schema,
    output_kind: Option<OutputKind>,
    is_open: bool,
    pub(super) list: Option<List>,
    pub(super) tally: Tally,
    /// Requested columns that no message has had yet.
    unknown: Vec<Unknown>,
    /// Whether every source was read to its end.
    is_whole: bool,
    bind: Duration,
}

impl<'f, 'w> Session<'f, 'w> {
    pub(super) fn new(
        filter: &'f Filter,
        stop: &'f Arc<AtomicBool>,
        watch: &'w mut dyn Watch,
    ) -> Self {
        let tally = Tally {
            counts: vec![0; filter.conditions.len()],
            messages: 0,
            rejected: 0,
            limit: filter.matches_max,
        };
        Session {
            filter,
            stop,
            watch,
            source_format: None,
            schema: Schema::default(),
            output_kind: None,
            is_open: false,
            list: None,
            tally,
            unknown: Vec::new(),
            is_whole: true,
            bind: Duration::ZERO,
        }
    }

    /// Returns the requested columns that no message has had yet.
    pub(super) fn into_unknown(self) -> Vec<Unknown> {
        self.unknown
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn run(mut self, sources: &Sources, opener: &Opener) -> Result<Filtered> {
        let cost = opener.remote_cost();
        let sources = sources.listed(opener);
        let mut filtered = Filtered::new(&self.filter.conditions);
        for (index, named) in sources.iter().enumerate() {
            if self.tally.is_full() || self.is_stopped() {
                break;
            }
            let is_last = index + 1 == sources.len();
            match self.open_and_filter(named, opener, is_last, &mut filtered) {
                Ok(()) => {}
                Err(Ended::Output(error)) => {
                    // A receiver that accepts no more rows may still want the list of rejects so far.
                    self.list.take().map_or(Ok(()), List::finish)?;
                    return Err(Error::Output(error));
                }
                Err(Ended::Failed(error)) => self.fail(error)?,
                Err(Ended::Again(RereadReason { said: reason, .. })) => {
                    let name = String::new();
                    self.fail(Error::Kinds { name, reason })?;
                }
            }
        }
        if let Some(error) = self.not_there() {
            self.fail(error)?;
        }
        if let Some(list) = self.list.take()
            && let Err(error) = list.finish()
        {
            self.fail(error)?;
        }
        let Tally { counts, messages, rejected, .. } = std::mem::take(&mut self.tally);
        let (bind, is_stopped) = (self.bind, self.is_stopped());
        let remote = opener.remote_cost().and_then(|now| now.since(cost));
        Ok(Filtered { counts, messages, rejected, remote, bind, is_stopped, ..filtered })
    }

    fn fail(&mut self, error: Error) -> Result<()> {
        self.is_whole = false;
        self.watch.failed(error)
    }

    fn open_and_filter(
        &mut self,
        named: &Named,
        opener: &Opener,
        is_last: bool,
        filtered: &mut Filtered,
    ) -> std::result::Result<(), Ended> {
        let opened = match self.filter.follows {
            true => opener.follow(named),
            false => opener.open_messages(named),
        };
        let mut opened = opened.map_err(Ended::Failed)?;
        let (run, is_plain) = self.filter_opened(&mut opened, is_last)?;
        let source = match opened {
            Opened::Local { source, .. } if is_plain => Some(source),
            _ => None,
        };
        filtered.add(run, source);
        Ok(())
    }

    /// Filters a source; returns the run, and whether its bytes are read uncompressed.
    fn filter_opened(
        &mut self,
        opened: &mut Opened,
        is_last: bool,
    ) -> std::result::Result<(Run, bool), Ended> {
        let name = opened.name().to_string();
        self.source_format = opened.format().cloned();
        if let Some(notice) = opened.notice_line() {
            self.watch.notice(&notice);
        }
        for damage in opened.damages() {
            self.watch.damaged(&name, damage);
        }
        let place = opened.place();
        place.announce(&(0..u64::MAX));
        let source = match place {
            Place::Local(source) => source,
            Place::Remote(source) => source as &dyn Source,
            Place::Stream { reader, .. } => {
                let (reader, stop) = (Box::new(reader), Arc::clone(self.stop));
                let plain = quarrier_messages::decompressed_stream(&name, reader, &stop);
                let plain = plain.map_err(|error| Ended::Failed(error.into()))?;
                let run = self.passes(&name, Origin::Stream(Tape::new(plain)), is_last)?;
                return Ok((run, false));
            }
        };
        // The reader of the whole source reports an error at its start.
        match quarrier_messages::decompressed(source) {
            Ok(Some(_)) => Ok((self.passes(&name, Origin::Compressed(source), is_last)?, false)),
            Ok(None) | Err(_) => Ok((self.passes(&name, Origin::Source(source), is_last)?, true)),
        }
    }

    pub(super) fn subject<'n>(&'n self, name: &'n str) -> Subject<'n> {
        Subject { name, requested: self.requested_format(), limits: &self.filter.limits }
    }

    /// The detected or requested format of the current source.
    pub(super) fn requested_format(&self) -> Option<&Format> {
        self.source_format.as_ref().or(self.filter.format.as_ref())
    }

    /// Binds the conditions to the column types of the sample, or of all messages.
    pub(super) fn setup(
        &mut self,
        name: &str,
        sample: &Sample,
        all: Option<&Schema>,
        is_last: bool,
    ) -> std::result::Result<Setup, Ended> {
        let started = Instant::now();
        let filter = self.filter;
        let format = kind::format_of(name, &sample.bytes, self.requested_format());
        let format = format.map_err(Ended::Failed)?;
        let (seen, opening, first) =
            sample.opened(&format, &filter.limits).map_err(Ended::Failed)?;
        let is_all = sample.is_all || all.is_some();
        widen(&mut self.schema, &seen);
        all.iter().for_each(|all| widen(&mut self.schema, all));
        let has_fields = !self.schema.fields.is_empty();
        let (tested, shown) = filter.hidden();
        (tested | shown).add_to(&mut self.schema);
        let mut schema = self.schema.clone();
        let bound = filter.conditions.bind(&mut schema, Lists::new(!is_all));
        // A condition that is wrong for the types in the sample may be right for those of all messages.
        let may_be_right = || !is_all && filter.conditions.are_right_somewhere(&self.schema);
        let Bound { exprs, unknown, lists } = bound.map_err(|error| match may_be_right() {
            true => {
                Ended::Again(RereadReason { said: error.to_string(), printed: Printed::default() })
            }
            false => Ended::Failed(error),
        })?;
        self.unknown = unknown.into_iter().chain(self.unknown_columns()).collect();
        if is_last
            && is_all
            && has_fields
            && let Some(unknown) = self.unknown.first()
        {
            return Err(Ended::Failed(unknown.error()));
        }
        let output_kind = match &self.output_kind {
            Some(output_kind) => output_kind.clone(),
            None => self.output_kind.insert(self.output_kind()).clone(),
        };
        let sieve = Sieve::of(&schema, exprs.into()).with_lists(&lists);
        self.bind += started.elapsed();
        // A word of a condition may be part of a string rather than a column name.
        let is_tested = |field: &Field| {
            schema.fields.iter().position(|known| known == field).is_some_and(|at| sieve.names(at))
        };
        let tested = tested.fields().filter(is_tested);
        let tested = tested.map(|field| HiddenColumns::of_name(&field.name));
        let tested = tested.fold(HiddenColumns::default(), |all, one| all | one);
        Ok(Setup {
            format,
            limits: filter.limits.clone(),
            opening,
            first,
            rebinding: Rebinding::new(Arc::clone(&filter.conditions), (schema, lists), &sieve),
            sieve,
            output_kind,
            hidden: HiddenNames { tested, shown },
            lists_rejects: filter.rejects.is_some(),
        })
    }

    /// Requested output columns that no message has had yet.
    fn unknown_columns(&self) -> Vec<Unknown> {
        let wanted = self.filter.columns.iter().flatten();
        let unknown = wanted.filter(|name| self.schema.position(name).is_none());
        let said = |name: &String| {
            let names = self.schema.fields.iter().map(|field| &*field.name);
            format!("--columns: {}", quarrier_filter::sql::unknown_column(name, names))
        };
        unknown.map(|name| Unknown { name: name.clone(), reason: said(name) }).collect()
    }

    /// The visible columns of the messages so far.
    fn visible(&self) -> impl Iterator<Item = &Field> {
        let (tested, shown) = self.filter.hidden();
        let is_hidden = move |field: &&Field| (tested | shown).has(&field.name);
        self.schema.fields.iter().filter(move |field| !is_hidden(field))
    }

    /// The type of output, with the columns of the sample.
    fn output_kind(&self) -> OutputKind {
        let filter = self.filter;
        let known = |field: &Field| Wanted { name: field.name.to_string(), is_known: true };
        let wanted = |name: &String| match self.schema.position(name) {
            Some(column) => known(&self.schema.fields[column]),
            None => Wanted { name: name.clone(), is_known: false },
        };
        let columns = || match &filter.columns {
            Some(names) => names.iter().map(wanted).collect(),
            None => self.visible().map(known).collect::<Vec<Wanted>>(),
        };
        match filter.form {
            Form::Matches => OutputKind::Matches,
            _ if filter.conditions.len() != 1 => OutputKind::Count,
            Form::Count => OutputKind::Count,
            Form::Messages => OutputKind::Bytes,
            Form::Json if filter.columns.is_none() => OutputKind::Objects,
            Form::Text => OutputKind::Rows(RowFormat::Text, columns()),
            Form::Json => OutputKind::Rows(RowFormat::Json, columns()),
            Form::Csv => OutputKind::Rows(RowFormat::Csv, columns()),
            Form::Arrow => {
                let kind = |name: &str| {
                    let column = self.schema.position(name);
                    column.map_or(Kind::Null, |column| self.schema.fields[column].kind)
                };
                let field = |wanted: &Wanted| Field {
                    name: wanted.name.as_str().into(),
                    kind: kind(&wanted.name),
                };
                OutputKind::Batches(Schema { fields: columns().iter().map(field).collect() })
            }
        }
    }

    /// Runs over one source, and reports its errors.
    pub(super) fn filter_one(
        &mut self,
        name: &str,
        setup: &Setup,
        bytes: Bytes<'_>,
        earlier: Printed,
    ) -> std::result::Result<Run, Ended> {
        // Write nothing, not even a header, before a source could be opened.
        if !self.is_open {
            let is_certain = self.unknown.is_empty() || matches!(bytes, Bytes::Stream(_));
            let header = Header::new(&setup.output_kind, is_certain, &self.filter.conditions);
            self.watch.open(&header).map_err(Ended::Output)?;
            self.is_open = true;
        }
        if let (Some(path), None) = (&self.filter.rejects, &self.list) {
            self.list = Some(List::create(path).map_err(Ended::Failed)?);
        }
        let end = bytes.end();
        self.watch.begin(name, end);
        let to = (&mut self.tally, &mut self.list);
        let mut drain = Drain::new(name, setup, self.watch, to, earlier);
        let kernel = FilterKernel::new(setup);
        let run = bytes.run(name, self.filter.workers, self.stop, &kernel, &mut drain);
        let is_over = run.as_ref().is_ok_and(|run| !run.stopped);
        if is_over {
            drain.finish();
        } else {
            drain.clear();
        }
        let (ended, position) = (drain.ended.take(), drain.offset());
        // The types seen before the reread do not cover all messages.
        if let Some(again @ Ended::Again(_)) = ended {
            return Err(again);
        }
        drain.watch.rejected(name, &drain.source_rejects);
        let mut workers = kernel.into_workers();
        workers.push(drain.into_worker());
        self.learn(&setup.rebinding, &workers);
        if self.unknown.is_empty() {
            self.watch.certain().map_err(Ended::Output)?;
        }
        let run = run.map_err(|error| Ended::Failed(error.into()))?;
        if let Some(ended) = ended {
            return Err(ended);
        }
        self.tell_done(name, &run, (position, end), &workers);
        Ok(run)
    }

    /// Adds columns that occurred after the sample.
    fn learn(&mut self, rebinding: &Rebinding, workers: &[Worker<'_>]) {
        let stage = rebinding.stage();
        let schema = &stage.schema;
        let has_seen = |name: &str| {
            let column = schema.position(name);
            workers.iter().any(|worker| {
                column.is_some_and(|column| worker.has_seen(column)) || worker.has_shown(name)
            })
        };
        self.unknown.retain(|unknown| {
            let name = unknown.name.as_str();
            let is_seen = has_seen(name);
            if is_seen {
                self.schema.fields.push(Field { name: name.into(), kind: Kind::Null });
            }
            !is_seen
        });
    }

    fn tell_done(
        &mut self,
        name: &str,
        run: &Run,
        (position, end): (u64, u64),
        workers: &[Worker<'_>],
    ) {
        let interrupted_at = (self.is_stopped() && position < end).then_some(position);
        self.is_whole &= run.unreadable.is_empty() && interrupted_at.is_none();
        // Rows keep their initial columns.
        let mut left_out = Vec::new();
        if self.filter.columns.is_none() {
            left_out.extend(workers.iter().flat_map(Worker::fields_left_out));
            left_out.sort();
            left_out.dedup();
        }
        self.watch.done(&Done { name, run, interrupted_at, fields_left_out: left_out });
    }

    /// The error for a column that no message had, if all messages were seen.
    fn not_there(&self) -> Option<Error> {
        let is_whole = !self.is_stopped() && !self.tally.is_full() && self.is_whole;
        let unknown = self.unknown.first().filter(|_| is_whole && self.tally.messages > 0)?;
        Some(unknown.error())
    }
}

impl Unknown {
    fn error(&self) -> Error {
        Error::NoColumn { name: self.name.clone(), reason: self.reason.clone() }
    }
}

/// Adds the columns of further messages to the schema.
fn widen(schema: &mut Schema, seen: &Schema) {
    for field in &seen.fields {
        match schema.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => known.kind = known.kind.widened(field.kind),
            None => schema.fields.push(field.clone()),
        }
    }
}
