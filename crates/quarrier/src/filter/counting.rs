//! Counts the messages that satisfy conditions while a load parses them.
//!
//! The result is that of [`Filter`](super::Filter) over the same messages, or none: if a message is not as the
//! first ones, such as a value of another type, the messages must be read again.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use quarrier_core::sync::{into_inner, lock};
use quarrier_messages::build::{Cell, FieldId, Row};
use quarrier_messages::kept::{LoadSample, Observer, ObserverWorker};
use quarrier_messages::{Kind, Schema};

use super::conditions::{Conditions, Unknown};
use super::running::Session;
use super::sample::Sample;
use super::worker::{ChunkOutput, Setup, Worker};
use super::{Filter, Form, Rows};

/// Maximum number of bytes of a sample; it is loaded by one worker while the others wait.
const SAMPLE_BYTES_MAX: usize = 1 << 20;

/// Conditions that are evaluated during the load of one source.
pub(crate) struct Counting {
    filter: Filter,
    bound: OnceLock<Option<CountingSetup>>,
    counted: Mutex<Counted>,
}

/// The counts over one source.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub(crate) counts: Vec<u64>,
    /// The types of the messages' columns, as far as conditions depend on them.
    schema: Schema,
}

impl Counts {
    /// Adds the counts over another source; None if its columns have other types, which may change the meaning
    /// of conditions for both.
    pub(crate) fn and(mut self, other: &Counts) -> Option<Counts> {
        for field in &other.schema.fields {
            match self.schema.position(&field.name) {
                Some(column) if self.schema.fields[column].kind != field.kind => return None,
                Some(_) => {}
                None => self.schema.fields.push(field.clone()),
            }
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        Some(self)
    }
}

/// The conditions, bound to the types of some messages.
struct CountingSetup {
    setup: Setup,
    /// Columns of conditions that these messages lack.
    unknown: Vec<Unknown>,
}

/// The counts of the workers that have ended.
#[derive(Default)]
struct Counted {
    counts: Vec<u64>,
    messages: u64,
    /// Values of another type than their column: the column and the type that holds the value.
    misfits: Vec<(usize, Kind)>,
    is_broken: bool,
    /// The names of unknown columns that occurred.
    seen: Vec<String>,
}

impl Counting {
    pub(crate) fn new(conditions: Arc<Conditions>) -> Self {
        let filter = Filter { form: Form::Count, ..Filter::of(conditions) };
        Counting { filter, bound: OnceLock::new(), counted: Mutex::default() }
    }

    /// Returns the result for exactly `messages` messages; None if they must be read again.
    pub(crate) fn finish(self, messages: u64) -> Option<Counts> {
        let Counted { counts, messages: counted, misfits, is_broken, seen } =
            into_inner(self.counted);
        let Some(bound) = self.bound.into_inner() else {
            let counts = vec![0; self.filter.conditions.len()];
            return (messages == 0).then_some(Counts { counts, schema: Schema::default() });
        };
        let CountingSetup { setup, unknown } = bound?;
        let is_seen = |unknown: &Unknown| seen.contains(&unknown.name);
        let is_sure = !is_broken
            && counted == messages
            && unknown.iter().all(is_seen)
            && are_harmless(&setup, &misfits);
        let mut schema = setup.rebinding.stage().schema.clone();
        misfits.into_iter().for_each(|(column, kind)| schema.fields[column].kind = kind);
        is_sure.then_some(Counts { counts, schema })
    }

    fn bind(&self, sample: &LoadSample<'_>) -> Option<CountingSetup> {
        // The log has other places for the messages.
        if !self.filter.hidden().0.is_none() {
            return None;
        }
        let messages = &sample.messages[..sample.messages.len().min(SAMPLE_BYTES_MAX)];
        let bytes = [sample.header, messages].concat();
        let mut filter = self.filter.clone().limits(sample.limits.clone());
        filter = filter.format(Some(sample.format.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let mut watch = |_: &Rows<'_>| std::io::Result::Ok(());
        let mut session = Session::new(&filter, &stop, &mut watch);
        let sample = Sample { bytes, ..Sample::default() };
        let setup = session.setup("", &sample, None, false).ok()?;
        Some(CountingSetup { setup, unknown: session.into_unknown() })
    }
}

/// Returns whether values of other types leave the meaning of the conditions: their columns had only NULL in the
/// sample, and have one type in all messages. As [`Drain`](super::drain::Drain), in any order.
fn are_harmless(setup: &Setup, misfits: &[(usize, Kind)]) -> bool {
    let stage = setup.rebinding.stage();
    misfits.iter().all(|(column, kind)| {
        let is_only = || misfits.iter().all(|(other, found)| other != column || found == kind);
        let is_null = stage.schema.fields.get(*column).is_some_and(|it| it.kind == Kind::Null);
        let is_right = || !setup.rebinding.rebound(&stage, &vec![(*column, *kind)]).is_wrong;
        is_null && is_only() && is_right()
    })
}

impl Observer for Counting {
    type Worker<'o> = CountingWorker<'o>;

    fn worker(&self, sample: &LoadSample<'_>) -> Option<CountingWorker<'_>> {
        let bound = self.bound.get_or_init(|| self.bind(sample)).as_ref()?;
        let found = ChunkOutput {
            counts: vec![0; bound.setup.sieve.conditions()],
            ..ChunkOutput::default()
        };
        let worker = Worker::new(&bound.setup);
        Some(CountingWorker { counting: self, unknown: &bound.unknown, worker, found })
    }
}

/// One thread's conditions.
pub(crate) struct CountingWorker<'c> {
    counting: &'c Counting,
    unknown: &'c [Unknown],
    worker: Worker<'c>,
    found: ChunkOutput,
}

impl ObserverWorker for CountingWorker<'_> {
    fn begin(&mut self) -> bool {
        self.worker.catch_up()
    }

    #[inline(always)]
    fn accept(&mut self, message: &[u8]) {
        self.worker.evaluate(message, &mut self.found);
    }

    fn discard(&mut self) {
        self.worker.row().clear();
    }
}

impl Drop for CountingWorker<'_> {
    fn drop(&mut self) {
        let schema = self.worker.schema();
        let is_seen = |unknown: &&Unknown| {
            schema.position(&unknown.name).is_some_and(|column| self.worker.has_seen(column))
        };
        let seen = self.unknown.iter().filter(is_seen).map(|unknown| unknown.name.clone());
        let ChunkOutput { counts, messages, misfits, broken, .. } = &self.found;
        let mut all = lock(&self.counting.counted);
        all.seen.extend(seen);
        all.counts.resize(counts.len(), 0);
        all.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        all.messages += messages;
        all.misfits.extend(misfits.iter().map(|misfit| (misfit.column, misfit.kind)));
        all.is_broken |= broken.is_some() || std::thread::panicking();
    }
}

impl Row for CountingWorker<'_> {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        self.worker.row().field(name)
    }

    fn refuse(&mut self) {
        self.worker.row().refuse();
    }

    #[inline(always)]
    fn takes_list_ends(&self) -> bool {
        self.worker.takes_list_ends()
    }

    fn list_end(&mut self, list: &str, length: usize) {
        self.worker.row().list_end(list, length);
    }

    #[inline(always)]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.worker.row().boolean(field, value);
    }

    #[inline(always)]
    fn integer(&mut self, field: FieldId, value: i64) {
        self.worker.row().integer(field, value);
    }

    #[inline(always)]
    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        self.worker.row().decimal(field, mantissa, scale);
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        self.worker.row().number(field, number);
    }

    #[inline(always)]
    fn float(&mut self, field: FieldId, value: f64) {
        self.worker.row().float(field, value);
    }

    #[inline(always)]
    fn date(&mut self, field: FieldId, days: i32) {
        self.worker.row().date(field, days);
    }

    #[inline(always)]
    fn timestamp(&mut self, field: FieldId, nanoseconds: i64) {
        self.worker.row().timestamp(field, nanoseconds);
    }

    #[inline(always)]
    fn text(&mut self, field: FieldId, value: &str) {
        self.worker.row().text(field, value);
    }

    #[inline(always)]
    fn text_ahead(&mut self, field: FieldId, value: &str, ahead: &[u8; 32]) {
        self.worker.row().text_ahead(field, value, ahead);
    }

    #[inline(always)]
    fn text_again(&mut self, field: FieldId, value: &str) {
        self.worker.row().text_again(field, value);
    }

    #[inline(always)]
    fn null(&mut self, field: FieldId) {
        self.worker.row().null(field);
    }
}
