//! Evaluates messages while a load parses them, so that they need not be parsed twice.

use std::collections::HashMap;

use super::definition::Judge;
use crate::build::{Cell, FieldId, Row};
use crate::{Format, Limits};

/// Receives the messages of a load, from all of its workers.
pub trait Observer: Sync {
    /// The state of a worker.
    type Worker<'o>: ObserverWorker
    where
        Self: 'o;

    /// Makes the state of a worker; None if the messages are not to be observed.
    fn worker(&self, sample: &LoadSample<'_>) -> Option<Self::Worker<'_>>;
}

/// Messages of a load, for the inference of types.
#[derive(Clone, Copy)]
pub struct LoadSample<'s> {
    /// The name of the source.
    pub name: &'s str,
    /// The format.
    pub format: &'s Format,
    /// The limits on messages.
    pub limits: &'s Limits,
    /// For CSV, the header before all messages.
    pub header: &'s [u8],
    /// Some whole messages.
    pub messages: &'s [u8],
}

/// Receives the messages that one worker parses: first the fields of a message, then whether it is accepted.
pub trait ObserverWorker: Row {
    /// A block of messages begins. Returns whether the ids of fields changed.
    fn begin(&mut self) -> bool;

    /// The message whose fields arrived is on its way into the log.
    fn accept(&mut self, message: &[u8]);

    /// The message whose fields arrived is rejected.
    fn discard(&mut self);
}

/// Observes nothing, and accepts every message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nobody;

impl Observer for Nobody {
    type Worker<'o> = Nobody;

    fn worker(&self, _sample: &LoadSample<'_>) -> Option<Nobody> {
        None
    }
}

impl ObserverWorker for Nobody {
    fn begin(&mut self) -> bool {
        false
    }

    fn accept(&mut self, _message: &[u8]) {}

    fn discard(&mut self) {}
}

impl Judge for Nobody {
    #[inline(always)]
    fn verdict(&mut self) -> Option<&'static str> {
        None
    }
}

impl Row for Nobody {
    #[inline(always)]
    fn field(&mut self, _name: &str) -> Option<FieldId> {
        None
    }

    fn boolean(&mut self, _field: FieldId, _value: bool) {}
    fn integer(&mut self, _field: FieldId, _value: i64) {}
    fn decimal(&mut self, _field: FieldId, _mantissa: i64, _scale: u8) {}
    fn number(&mut self, _field: FieldId, _number: Cell<'static>) {}
    fn float(&mut self, _field: FieldId, _value: f64) {}
    fn date(&mut self, _field: FieldId, _days: i32) {}
    fn timestamp(&mut self, _field: FieldId, _nanoseconds: i64) {}
    fn text(&mut self, _field: FieldId, _value: &str) {}
    fn null(&mut self, _field: FieldId) {}
}

/// Observes messages that a judge without fields accepts.
pub(super) struct Watched<'w, W>(pub(super) &'w mut W);

impl<W: ObserverWorker> Judge for Watched<'_, W> {
    fn verdict(&mut self) -> Option<&'static str> {
        None
    }

    fn accepted(&mut self, message: &[u8]) {
        self.0.accept(message);
    }

    fn discarded(&mut self) {
        self.0.discard();
    }
}

impl<W: ObserverWorker> Row for Watched<'_, W> {
    #[inline(always)]
    fn field(&mut self, name: &str) -> Option<FieldId> {
        self.0.field(name)
    }

    fn refuse(&mut self) {
        self.0.refuse();
    }

    #[inline(always)]
    fn takes_list_ends(&self) -> bool {
        self.0.takes_list_ends()
    }

    fn list_end(&mut self, list: &str, length: usize) {
        self.0.list_end(list, length);
    }

    #[inline(always)]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.0.boolean(field, value);
    }

    #[inline(always)]
    fn integer(&mut self, field: FieldId, value: i64) {
        self.0.integer(field, value);
    }

    #[inline(always)]
    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        self.0.decimal(field, mantissa, scale);
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        self.0.number(field, number);
    }

    #[inline(always)]
    fn float(&mut self, field: FieldId, value: f64) {
        self.0.float(field, value);
    }

    #[inline(always)]
    fn date(&mut self, field: FieldId, days: i32) {
        self.0.date(field, days);
    }

    #[inline(always)]
    fn timestamp(&mut self, field: FieldId, nanoseconds: i64) {
        self.0.timestamp(field, nanoseconds);
    }

    #[inline(always)]
    fn text(&mut self, field: FieldId, value: &str) {
        self.0.text(field, value);
    }

    #[inline(always)]
    fn text_ahead(&mut self, field: FieldId, value: &str, ahead: &[u8; 32]) {
        self.0.text_ahead(field, value, ahead);
    }

    #[inline(always)]
    fn text_again(&mut self, field: FieldId, value: &str) {
        self.0.text_again(field, value);
    }

    #[inline(always)]
    fn null(&mut self, field: FieldId) {
        self.0.null(field);
    }
}

/// The ids of fields that a judge and an observer have in common.
#[derive(Debug, Default)]
pub(super) struct FieldPairs {
    /// For each id of the parser, the ids of both.
    pairs: Vec<(Option<FieldId>, Option<FieldId>)>,
    known: HashMap<(Option<FieldId>, Option<FieldId>), FieldId>,
}

impl FieldPairs {
    fn id(&mut self, pair: (Option<FieldId>, Option<FieldId>)) -> Option<FieldId> {
        if pair == (None, None) {
            return None;
        }
        let FieldPairs { pairs, known } = self;
        let id = *known.entry(pair).or_insert_with(|| {
            pairs.push(pair);
            FieldId::new(pairs.len() - 1)
        });
        Some(id)
    }

    #[inline]
    fn of(&self, field: FieldId) -> (Option<FieldId>, Option<FieldId>) {
        self.pairs.get(field.index()).copied().unwrap_or_default()
    }
}

/// Passes the fields of messages to a judge and to an observer.
pub(super) struct Both<'b, J, W> {
    pub(super) judge: &'b mut J,
    pub(super) worker: &'b mut W,
    pub(super) fields: &'b mut FieldPairs,
}

impl<J: Judge, W: ObserverWorker> Judge for Both<'_, J, W> {
    fn verdict(&mut self) -> Option<&'static str> {
        self.judge.verdict()
    }

    fn accepted(&mut self, message: &[u8]) {
        self.worker.accept(message);
    }

    fn discarded(&mut self) {
        self.worker.discard();
    }
}

/// Calls a method of each row that has the field.
macro_rules! each {
    ($self:ident, $field:ident, $method:ident($($argument:expr),*)) => {{
        let (one, other) = $self.fields.of($field);
        if let Some(field) = one {
            $self.judge.$method(field, $($argument),*);
        }
        if let Some(field) = other {
            $self.worker.$method(field, $($argument),*);
        }
    }};
}

impl<J: Judge, W: ObserverWorker> Row for Both<'_, J, W> {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        let pair = (self.judge.field(name), self.worker.field(name));
        self.fields.id(pair)
    }

    fn refuse(&mut self) {
        self.judge.refuse();
        self.worker.refuse();
    }

    fn takes_list_ends(&self) -> bool {
        self.worker.takes_list_ends()
    }

    fn list_end(&mut self, list: &str, length: usize) {
        self.worker.list_end(list, length);
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        each!(self, field, boolean(value));
    }

    fn integer(&mut self, field: FieldId, value: i64) {
        each!(self, field, integer(value));
    }

    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        each!(self, field, decimal(mantissa, scale));
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        each!(self, field, number(number));
    }

    fn float(&mut self, field: FieldId, value: f64) {
        each!(self, field, float(value));
    }

    fn date(&mut self, field: FieldId, days: i32) {
        each!(self, field, date(days));
    }

    fn timestamp(&mut self, field: FieldId, nanoseconds: i64) {
        each!(self, field, timestamp(nanoseconds));
    }

    fn text(&mut self, field: FieldId, value: &str) {
        each!(self, field, text(value));
    }

    fn null(&mut self, field: FieldId) {
        each!(self, field, null());
    }
}
