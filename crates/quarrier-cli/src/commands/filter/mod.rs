//! `quarrier filter`.
//!
//! ```text
//!  file ─→ sample ─→ conditions bound to its columns ─→ Sieve
//!    └──→ pipeline: workers parse and evaluate ─→ drain: in order ─→ out
//! ```

mod account;
mod again;
mod columns;
pub(in crate::commands) mod conditions;
mod drain;
mod kind;
mod out;
mod passes;
mod record;
mod rejects;
mod sample;
mod show;
mod worker;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quarrier::{Named, OpenOptions, Opened, Opener, Sources};
use quarrier_core::pipeline::{Need, Pipeline, Run};
use quarrier_core::source::{Memory, Source};
use quarrier_filter::Sieve;
use quarrier_messages::{Field, Kind, Limits, Schema};

use super::search::progress::Progress;
use super::{broken_output, is_closed_pipe};
use crate::args::{Asked, Filter};
use crate::output;
use crate::output::rows::{self, Column, Layout, Value};
use crate::{Outcome, complain, host, interrupt};
use again::{Again, Origin, Printed, Tape};
use conditions::{Bound, Conditions, Rebinding};
use drain::{Drain, Ended, Tally};
use out::{Held, Out};
use record::Wanted;
use rejects::List;
use sample::{Sample, Subject};
use show::{RowFormat, Wish};
use worker::{FilterKernel, Setup, Worker};

/// Runs the command.
pub(crate) fn run(filter: &Filter) -> Outcome {
    let stop = interrupt::watch();
    match Session::new(filter, &stop) {
        Ok(session) => session.run(),
        Err(message) => {
            complain(&message);
            Outcome::Failed
        }
    }
}

/// Messages own at most so much of a chunk: what is found in one is held until its turn.
const CHUNK_BYTES: usize = 4 << 20;

/// What all files of one command share.
struct Session<'f> {
    filter: &'f Filter,
    stop: &'f Arc<AtomicBool>,
    opener: Opener,
    conditions: Arc<Conditions>,
    sources: Sources,
    limits: Limits,
    /// Columns that were seen so far.
    schema: Schema,
    wish: Option<Wish>,
    out: Option<Out>,
    held: Arc<Held>,
    list: Option<List>,
    tally: Tally,
    /// Columns that are asked for and no message had yet, with what is to be said of it.
    unknown: Vec<(String, String)>,
    /// Whether that was said already.
    is_refused: bool,
    outcome: Option<Outcome>,
    /// Time to bind conditions, and to take samples.
    bind_seconds: f64,
}

impl<'f> Session<'f> {
    fn new(filter: &'f Filter, stop: &'f Arc<AtomicBool>) -> Result<Self, String> {
        let conditions = Arc::new(Conditions::read(&filter.asked)?);
        let sources = Sources::of(&filter.files);
        let written = [&filter.stats, &filter.rejects].into_iter().flatten();
        let refused = sources.refuse_overwriting(written.map(|path| path.as_path()));
        refused.map_err(|error| error.to_string())?;
        let tally = Tally {
            counts: vec![0; conditions.texts.len()],
            messages: 0,
            rejected: 0,
            limit: filter.limit.unwrap_or(u64::MAX),
        };
        Ok(Session {
            filter,
            stop,
            opener: Opener::new(OpenOptions::default(), host::environment(), stop),
            conditions,
            sources,
            limits: Limits::default(),
            schema: Schema::default(),
            wish: None,
            out: None,
            held: Arc::default(),
            list: None,
            tally,
            unknown: Vec::new(),
            is_refused: false,
            outcome: None,
            bind_seconds: 0.0,
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn run(mut self) -> Outcome {
        let mut done = Vec::new();
        let sources = std::mem::take(&mut self.sources);
        for (index, named) in sources.iter().enumerate() {
            if self.tally.is_full() || self.is_stopped() {
                break;
            }
            match self.open_and_filter(named, index + 1 == sources.len()) {
                Ok(read) => done.push(read),
                Err(Ended::Output(error)) if is_closed_pipe(&error) => return Outcome::Found,
                Err(Ended::Output(error)) => return broken_output(&error),
                Err(Ended::Failed(message) | Ended::Again(Again { said: message, .. })) => {
                    complain(&message);
                    let is_stopped = self.is_stopped();
                    self.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
                }
            }
        }
        match self.finish_output(!done.is_empty()) {
            Err(error) if is_closed_pipe(&error) => return Outcome::Found,
            Err(error) => return broken_output(&error),
            Ok(()) => {}
        }
        self.close(&done)
    }

    fn open_and_filter(&mut self, named: &Named, is_last: bool) -> Result<Done, Ended> {
        let opened = self.opener.open(named).map_err(|error| Ended::Failed(error.to_string()))?;
        let name = opened.name().to_string();
        let source: Box<dyn Source> = match opened {
            Opened::Local { source, .. } => source,
            Opened::Remote(source) => Box::new(source),
            Opened::Stream { name, reader } => {
                let stop = Arc::clone(self.stop);
                let plain = quarrier_messages::decompressed_stream(&name, reader, &stop);
                let plain = plain.map_err(|error| Ended::Failed(error.to_string()))?;
                let run = self.passes(&name, Origin::Stream(Tape::new(plain)), is_last)?;
                return Ok(Done { run, source: None });
            }
        };
        // What cannot be read at the start is told by who reads all of it.
        if let Ok(Some(_)) = quarrier_messages::decompressed(&*source) {
            let run = self.passes(&name, Origin::Compressed(&*source), is_last)?;
            return Ok(Done { run, source: None });
        }
        let run = self.passes(&name, Origin::Source(&*source), is_last)?;
        Ok(Done { run, source: Some(source) })
    }

    fn subject<'n>(&'n self, name: &'n str) -> Subject<'n> {
        Subject { name, wish: self.filter.input_format, limits: &self.limits }
    }

    /// Binds the conditions to what is known of the columns: by the sample, or by all messages.
    fn setup(
        &mut self,
        name: &str,
        sample: &Sample,
        all: Option<&Schema>,
        is_last: bool,
    ) -> Result<Setup, Ended> {
        let started = Instant::now();
        let format = kind::format_of(name, &sample.bytes, self.filter.input_format);
        let format = format.map_err(Ended::Failed)?;
        let (seen, opening, first) = sample.opened(&format, &self.limits).map_err(Ended::Failed)?;
        let is_all = sample.is_all || all.is_some();
        widen(&mut self.schema, &seen);
        all.iter().for_each(|all| widen(&mut self.schema, all));
        let mut schema = self.schema.clone();
        let bound = self.conditions.bind(&mut schema);
        // What is wrong for the kinds of the sample may be right for those of all messages.
        let may_be_right = !is_all && self.conditions.are_right_somewhere(&self.schema);
        let Bound { exprs, unknown } = bound.map_err(|said| match may_be_right {
            true => Ended::Again(Again { said, printed: Printed::default() }),
            false => Ended::Failed(said),
        })?;
        self.unknown = unknown
            .into_iter()
            .map(|(column, said)| (schema.fields[column].name.to_string(), said))
            .chain(self.unknown_columns())
            .collect();
        if is_last
            && is_all
            && !self.schema.fields.is_empty()
            && let Some((_, said)) = self.unknown.first()
        {
            self.is_refused = true;
            return Err(Ended::Failed(said.clone()));
        }
        let wish = match &self.wish {
            Some(wish) => wish.clone(),
            None => self.wish.insert(self.wish_of_rows()).clone(),
        };
        self.bind_seconds += started.elapsed().as_secs_f64();
        Ok(Setup {
            format,
            limits: self.limits.clone(),
            opening,
            first,
            sieve: Sieve::new(&schema, &exprs),
            rebinding: Rebinding::new(Arc::clone(&self.conditions), schema),
            wish,
            lists_rejects: self.filter.rejects.is_some(),
        })
    }

    /// Columns to be shown that no message had yet.
    fn unknown_columns(&self) -> Vec<(String, String)> {
        let wanted = self.filter.columns.iter().flatten();
        let unknown = wanted.filter(|name| self.schema.position(name).is_none());
        let said = |name: &String| {
            let names = self.schema.fields.iter().map(|field| &*field.name);
            format!("--columns: {}", quarrier_filter::sql::unknown_column(name, names))
        };
        unknown.map(|name| (name.clone(), said(name))).collect()
    }

    /// What is to be shown, by the columns that the first messages have.
    fn wish_of_rows(&self) -> Wish {
        let filter = self.filter;
        if filter.count || matches!(filter.asked, Asked::Many(_)) {
            return Wish::Count;
        }
        let known = |field: &Field| Wanted { name: field.name.to_string(), is_known: true };
        let wanted = |name: &String| match self.schema.position(name) {
            Some(column) => known(&self.schema.fields[column]),
            None => Wanted { name: name.clone(), is_known: false },
        };
        let columns = match &filter.columns {
            Some(names) => names.iter().map(wanted).collect(),
            None => self.schema.fields.iter().map(known).collect::<Vec<Wanted>>(),
        };
        match (filter.format, &filter.columns) {
            (output::Format::Text, None) => Wish::Bytes,
            (output::Format::Json, None) => Wish::Objects,
            (output::Format::Text, Some(_)) => Wish::Rows(RowFormat::Text, columns),
            (output::Format::Json, Some(_)) => Wish::Rows(RowFormat::Json, columns),
            (output::Format::Csv, _) => Wish::Rows(RowFormat::Csv, columns),
            (output::Format::Arrow, _) => {
                let kind = |name: &str| {
                    let column = self.schema.position(name);
                    column.map_or(Kind::Null, |column| self.schema.fields[column].kind)
                };
                let field = |wanted: &Wanted| Field {
                    name: wanted.name.as_str().into(),
                    kind: kind(&wanted.name),
                };
                Wish::Batches(Schema { fields: columns.iter().map(field).collect() })
            }
        }
    }

    /// Runs over one source, and says what was wrong with it.
    fn filter_one(
        &mut self,
        name: &str,
        setup: &Setup,
        bytes: Bytes<'_>,
        earlier: Printed,
    ) -> Result<Run, Ended> {
        // Nothing is written, not even a header, before there is something to read.
        if self.out.is_none() {
            // A stream may go on without end, and is not kept waiting.
            if !self.unknown.is_empty() && matches!(bytes, Bytes::Source(_)) {
                self.held.hold();
            }
            self.out = Some(Out::open(&setup.wish, &self.held).map_err(Ended::Output)?);
        }
        if let (Some(path), None) = (&self.filter.rejects, &self.list) {
            self.list = Some(List::create(path).map_err(Ended::Failed)?);
        }
        let Some(out) = &mut self.out else { return Err(Ended::Failed(String::new())) };
        let end = bytes.end();
        let progress = Progress::new(name, 0..end, self.filter.quiet);
        let to = (&mut self.tally, out, &mut self.list);
        let mut drain = Drain::new(name, setup, to, progress, earlier);
        let kernel = FilterKernel::new(setup);
        let run = bytes.run(name, self.filter.workers, self.stop, &kernel, &mut drain);
        let is_over = run.as_ref().is_ok_and(|run| !run.stopped);
        if is_over {
            drain.finish();
        } else {
            drain.clear();
        }
        let (ended, position) = (drain.ended.take(), drain.offset());
        // What was learnt until then is not all that there is to be known.
        if let Some(again @ Ended::Again(_)) = ended {
            return Err(again);
        }
        drain.account.tell(name, drain.messages, drain.list.is_some());
        let mut workers = kernel.into_workers();
        workers.push(drain.into_worker());
        self.learn(&setup.rebinding, &workers);
        if self.unknown.is_empty() {
            self.held.release().map_err(Ended::Output)?;
        }
        let run = run.map_err(|error| Ended::Failed(error.to_string()))?;
        if let Some(ended) = ended {
            return Err(ended);
        }
        self.tell_end(name, &run, position, end, &workers);
        Ok(run)
    }

    /// Columns that messages had after all.
    fn learn(&mut self, rebinding: &Rebinding, workers: &[Worker<'_>]) {
        let schema = rebinding.schema();
        let has_seen = |name: &str| {
            let column = schema.position(name);
            workers.iter().any(|worker| {
                column.is_some_and(|column| worker.has_seen(column)) || worker.has_shown(name)
            })
        };
        self.unknown.retain(|(name, _)| {
            let is_seen = has_seen(name);
            if is_seen {
                self.schema.fields.push(Field { name: name.as_str().into(), kind: Kind::Null });
            }
            !is_seen
        });
    }

    fn tell_end(&mut self, name: &str, run: &Run, position: u64, end: u64, workers: &[Worker<'_>]) {
        for range in &run.unreadable {
            complain(&format!("{name}: bytes {}..{} could not be read", range.start, range.end));
        }
        if !run.unreadable.is_empty() {
            self.worsen(Outcome::Incomplete);
        }
        if self.is_stopped() && position < end {
            complain(&format!(
                "{name}: interrupted at byte {position}; the messages before it are complete"
            ));
            self.worsen(Outcome::Interrupted);
        }
        // Rows have the columns that they had at first.
        let mut left_out: Vec<String> = workers.iter().flat_map(Worker::fields_left_out).collect();
        left_out.sort();
        left_out.dedup();
        if self.filter.columns.is_none() && !left_out.is_empty() {
            complain(&format!(
                "{name}: {} came after the columns were written and {} not shown; name them with \
                 --columns, or use --format json",
                left_out.join(", "),
                if left_out.len() == 1 { "is" } else { "are" },
            ));
        }
    }

    /// Numbers, where numbers are asked for.
    fn finish_output(&mut self, is_read: bool) -> io::Result<()> {
        let is_wrong = self.is_refused || self.not_there().is_some();
        if let Some(out) = &mut self.out {
            out.finish()?;
        }
        if is_wrong {
            self.held.discard();
            return Ok(());
        }
        self.held.release()?;
        if !is_read || self.wish.as_ref() != Some(&Wish::Count) {
            return Ok(());
        }
        let is_many = matches!(self.filter.asked, Asked::Many(_));
        let (layout, columns) = match is_many {
            true => (Layout::Conditions, CONDITION_COLUMNS),
            false => (Layout::Number, &CONDITION_COLUMNS[1..]),
        };
        let mut rows = rows::to_stdout(self.filter.format, layout, columns)?;
        for (written, &count) in self.conditions.texts.iter().zip(&self.tally.counts) {
            let values = [Value::Text(&written.text), Value::Unsigned(count)];
            rows.row(&values[usize::from(!is_many)..], rows::Excerpt::default())?;
        }
        rows.finish()
    }

    /// What is to be said of a column that no message had, where all of them were seen.
    fn not_there(&self) -> Option<&str> {
        let is_whole = !self.is_stopped() && !self.tally.is_full() && self.outcome.is_none();
        let (_, said) = self.unknown.first().filter(|_| is_whole && self.tally.messages > 0)?;
        Some(said)
    }

    /// Rejects, statistics and account; then the outcome.
    fn close(mut self, done: &[Done]) -> Outcome {
        if let Some(said) = self.not_there() {
            complain(said);
            self.worsen(Outcome::Failed);
        }
        if let Some(list) = self.list.take()
            && let Err(message) = list.finish()
        {
            complain(&message);
            self.worsen(Outcome::Failed);
        }
        if let Err(message) = account::give(&self, done) {
            complain(&message);
            self.worsen(Outcome::Failed);
        }
        let is_found = self.tally.counts.iter().any(|&count| count > 0);
        self.outcome.unwrap_or(if is_found { Outcome::Found } else { Outcome::Nothing })
    }

    /// Keeps the worse of two outcomes.
    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = Some(self.outcome.map_or(outcome, |now| now.worse(outcome)));
    }
}

const CONDITION_COLUMNS: &[Column] = &[
    Column { name: "condition", kind: rows::Kind::Text },
    Column { name: "count", kind: rows::Kind::Unsigned },
];

/// A source that was read.
struct Done {
    run: Run,
    /// None for what cannot be read again.
    source: Option<Box<dyn Source>>,
}

/// Where bytes come from.
enum Bytes<'b> {
    Source(&'b dyn Source),
    Stream(&'b mut (dyn Read + Send)),
}

impl Bytes<'_> {
    fn end(&self) -> u64 {
        match self {
            Bytes::Source(source) => source.length(),
            Bytes::Stream(_) => u64::MAX,
        }
    }

    fn run(
        self,
        name: &str,
        workers: Option<usize>,
        stop: &AtomicBool,
        kernel: &FilterKernel<'_>,
        drain: &mut Drain<'_, '_>,
    ) -> quarrier_core::Result<Run> {
        let nothing = Memory::new("-", Vec::new());
        let wishes = |source| Pipeline::new(source).workers(workers.unwrap_or(0)).stop(stop);
        match self {
            Bytes::Source(source) => {
                let pipeline = wishes(source);
                let bytes = pipeline.plan(Need::default())?.buffer_bytes.min(CHUNK_BYTES);
                pipeline.buffer_bytes(bytes).run(kernel, drain)
            }
            Bytes::Stream(stream) => wishes(&nothing).run_stream(name, stream, kernel, drain),
        }
    }
}

/// Takes in the columns of further messages.
fn widen(schema: &mut Schema, seen: &Schema) {
    for field in &seen.fields {
        match schema.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => known.kind = known.kind.widened(field.kind),
            None => schema.fields.push(field.clone()),
        }
    }
}
