//! Parses the fields of a message, and predicts each from the last message of its type (template parsing).

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use quarrier_core::isa::Isa;

use super::SEPARATOR;
use super::bytes::{digits, find_separator, load};
use super::dictionary::{Dictionary, FixType, GroupId};
use super::envelope::{self, Keys};
use super::names::Names;
use super::opening::Opening;
use super::predicted::{self, Act};
use super::slots::{Place, SlotId, Slots};
use super::value;
use super::verify::ChecksumTemplates;
use crate::arch::Ends;
use crate::build::{FieldId, Row};
use crate::frame::{Chunk, RecordFormat, Taker};
use crate::{Fault, Limits};

/// A worker's parser. It learns the template of the next message from earlier ones.
#[derive(Debug)]
pub struct FixParser {
    pub(super) isa: Isa,
    keys: Keys,
    /// The checksum templates; `None` if the keys are too long.
    pub(super) checksums: Option<Box<ChecksumTemplates>>,
    /// The ends of the last message's fields.
    pub(super) ends: Ends,
    names: Names,
    pub(super) slots: Slots,
    pub(super) types: Vec<MessageType>,
    type_ids: HashMap<Box<[u8]>, usize, RandomState>,
    pub(super) last_type: usize,
    /// The last message with the opening of its type, and that type.
    pub(super) opened: (u64, usize),
    /// The groups whose entries are being read, outermost first.
    pub(super) open: Vec<Open>,
    /// Number of messages so far.
    pub(super) number: u64,
    pub(super) message_bytes_max: usize,
    depth_max: usize,
}

/// The common parts of messages of one type.
#[derive(Debug)]
pub(super) struct MessageType {
    value: Box<[u8]>,
    /// Their current opening, and the number of messages without it.
    pub(super) opening: Option<Opening>,
    pub(super) unopened: u32,
    members: Option<GroupId>,
    /// The keys in order of arrival, including those that only some messages have.
    pub(super) steps: Vec<Step>,
}

/// A field outside of groups.
#[derive(Debug)]
pub(super) struct Step {
    /// The key and its `=`, if they fit the bytes of `mask`; longer ones match no bytes.
    pub(super) head: u64,
    pub(super) mask: u64,
    /// The key and its `=`.
    pub(super) key: Box<[u8]>,
    pub(super) known: KnownField,
    /// The slot's field, if requested, and the action for its values.
    pub(super) field: Option<FieldId>,
    pub(super) act: Act,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct KnownField {
    pub(super) slot: SlotId,
    number: u32,
    /// The repeating group whose entries this field counts.
    pub(super) counts: Option<GroupId>,
}

/// The position of the parser in a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reached {
    /// The next field.
    pub(super) at: usize,
    /// The predicted step.
    pub(super) step: usize,
    /// The value of the last field, if that was a length.
    pub(super) length: Option<i64>,
}

/// A group whose entries are being read.
#[derive(Debug)]
pub(super) struct Open {
    group: GroupId,
    of: Place,
    counter: u32,
    /// The key that starts each entry: that of the first field in the first entry.
    first: Option<u32>,
    index: u32,
    entry: Place,
}

/// Maximum number of steps to keep for one type, and of consecutive ones that a message may lack.
const STEPS_MAX: usize = 512;
pub(super) const STEPS_AHEAD: usize = 8;
/// Maximum number of message types to learn separately.
const TYPES_MAX: usize = 1_024;

impl FixParser {
    /// Makes a parser of FIX that has seen no message yet.
    pub fn fix(dictionary: Arc<Dictionary>, limits: &Limits) -> Self {
        FixParser::new(Isa::best(), envelope::TAGS, Names::Tags(dictionary), limits)
    }

    /// Makes a parser of NVFIX that has seen no message yet. The dictionary defines types and
    /// groups.
    pub fn nvfix(dictionary: Arc<Dictionary>, limits: &Limits) -> Self {
        let names = Names::Names {
            dictionary,
            numbers: HashMap::default(),
            own: Vec::new(),
            own_max: 4 * limits.columns_max + 1_024,
        };
        FixParser::new(Isa::best(), envelope::NAMES, names, limits)
    }

    fn new(isa: Isa, keys: Keys, names: Names, limits: &Limits) -> Self {
        FixParser {
            isa: isa.or_best(),
            keys,
            checksums: ChecksumTemplates::new(&keys).map(Box::new),
            ends: Ends::new(),
            names,
            slots: Slots::new(limits.columns_max),
            types: Vec::new(),
            type_ids: HashMap::default(),
            last_type: 0,
            opened: (0, 0),
            open: Vec::new(),
            number: 0,
            message_bytes_max: limits.message_bytes_max,
            depth_max: limits.depth_max,
        }
    }

    #[inline]
    fn parse(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        let text = std::str::from_utf8(message)
            .map_err(|error| Fault::new(error.valid_up_to(), "bytes that are not UTF-8"))?;
        let body = match self.keys.is_open(message) {
            true => 0,
            false => self.keys.check(message)?.body,
        };
        self.number += 1;
        self.open.clear();
        let kind = self.message_type(message, body);
        self.fields(text, kind, Reached::default(), row)
    }

    /// Returns the index of the message's type, determined by the value of the body's first field.
    pub(super) fn message_type(&mut self, message: &[u8], body: usize) -> usize {
        let key = self.keys.type_of;
        let value = match message[body..].starts_with(key) {
            true => &message[body + key.len()..find_separator(message, body)],
            false => b"",
        };
        if self.types.get(self.last_type).is_none_or(|last| *last.value != *value) {
            self.last_type = self.other_type(value);
        }
        self.last_type
    }

    #[inline(never)]
    fn other_type(&mut self, value: &[u8]) -> usize {
        if let Some(&at) = self.type_ids.get(value) {
            return at;
        }
        let value = if self.types.len() < TYPES_MAX { value } else { b"" };
        if let Some(&at) = self.type_ids.get(value) {
            return at;
        }
        let members = self.names.dictionary().message(value);
        self.types.push(MessageType {
            value: value.into(),
            opening: None,
            unopened: 0,
            members,
            steps: Vec::new(),
        });
        self.type_ids.insert(value.into(), self.types.len() - 1);
        self.types.len() - 1
    }

    /// Sets the fields from `from` on.
    pub(super) fn fields(
        &mut self,
        text: &str,
        kind: usize,
        from: Reached,
        row: &mut impl Row,
    ) -> Result<(), Fault> {
        let bytes = text.as_bytes();
        let Reached { mut at, mut step, mut length } = from;
        while at < bytes.len() {
            let predicted = match self.open.is_empty() {
                true => self.types[kind].step(bytes, at, &mut step),
                false => None,
            };
            let (known, value) = match predicted {
                Some(found) => found,
                None => self.unpredicted(text, at, kind, &mut step, row)?,
            };
            let names = &self.names;
            let slot = self.slots.visit(known.slot, self.number, |tag| names.name(tag), row);
            let Some(slot) = self.slots.get_mut(slot) else {
                row.refuse();
                at = find_separator(bytes, value) + 1;
                length = None;
                continue;
            };
            let end = match length {
                Some(length) if slot.kind == FixType::Data => data_end(bytes, value, length)?,
                _ => find_separator(bytes, value),
            };
            let value = text.get(value..end);
            let value = value.ok_or(Fault::new(at, "a data field that ends within a character"))?;
            value::set(slot, value, row);
            length = match slot.kind {
                FixType::Length => digits(value.as_bytes()),
                _ => None,
            };
            if let Some(group) = known.counts {
                self.enter(group, known.number, value, at)?;
            }
            at = end + 1;
        }
        Ok(())
    }

    /// Finds the field at `at` if it was mispredicted; returns the start of its value.
    #[inline(never)]
    fn unpredicted(
        &mut self,
        text: &str,
        at: usize,
        kind: usize,
        step: &mut usize,
        row: &mut impl Row,
    ) -> Result<(KnownField, usize), Fault> {
        let bytes = text.as_bytes();
        let end = find_separator(bytes, at);
        let Some(equals) = bytes[at..end].iter().position(|&byte| byte == b'=') else {
            return Err(Fault::new(at, "a field without '='"));
        };
        let value = at + equals + 1;
        let Some(number) = self.names.number(&text[at..value - 1], at)? else {
            return Ok((KnownField { slot: SlotId::BEYOND, number: 0, counts: None }, value));
        };
        let place = self.place(number);
        let members = match self.open.last() {
            Some(open) => Some(open.group),
            None => self.types[kind].members,
        };
        let member = members.and_then(|group| self.names.dictionary().member(group, number));
        let slot = match self.slots.find(place, number) {
            Some(slot) => slot,
            None => {
                let type_of = self.names.dictionary().kind(number);
                self.slots.add((place, number, 0), &self.names.name(number), type_of, row)
            }
        };
        let known = KnownField { slot, number, counts: member.flatten() };
        if self.open.is_empty() && slot != SlotId::BEYOND {
            let slot = self.slots.get_mut(slot);
            let (field, act) =
                slot.map_or((None, Act::Stop), |slot| (slot.field, Act::of(slot.kind)));
            let act = if known.counts.is_some() { Act::Stop } else { act };
            let (head, mask) = (!0, 0);
            let key = bytes[at..value].into();
            self.types[kind].learn(Step { head, mask, key, known, field, act }, step);
        }
        Ok((known, value))
    }

    /// Returns the place of a field after those before it; ends groups that it does not belong to.
    fn place(&mut self, number: u32) -> Place {
        while let Some(open) = self.open.last_mut() {
            let is_member = self.names.dictionary().member(open.group, number).is_some();
            if is_member && (open.first.is_none() || open.first == Some(number)) {
                open.index = open.first.map_or(0, |_| open.index + 1);
                open.first = Some(number);
                let name = self.names.name(open.counter);
                open.entry = self.slots.entry(open.of, open.counter, &name, open.index);
            }
            if is_member {
                return open.entry;
            }
            self.open.pop();
        }
        Place::TOP
    }

    /// Enters a group after its counter at `at`; its entries follow.
    fn enter(&mut self, group: GroupId, counter: u32, value: &str, at: usize) -> Result<(), Fault> {
        if digits(value.as_bytes()).is_none_or(|count| count == 0) {
            return Ok(());
        }
        if self.open.len() >= self.depth_max {
            return Err(Fault::new(at, "nested deeper than allowed"));
        }
        let of = self.open.last().map_or(Place::TOP, |open| open.entry);
        self.open.push(Open { group, of, counter, first: None, index: 0, entry: of });
        Ok(())
    }
}

impl RecordFormat for FixParser {
    fn is_found_anywhere(&self) -> bool {
        true
    }

    fn start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        self.keys.start(bytes, from)
    }

    /// Bytes that are not a message end with their line, after the apparent CheckSum, or before the
    /// next message.
    #[inline]
    fn extent(&self, bytes: &[u8], is_last: bool) -> Option<usize> {
        self.keys.extent(bytes, is_last, self.message_bytes_max)
    }

    fn messages<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        self.predict(chunk, taker);
    }

    fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        self.parse(message, row)
    }

    fn forget(&mut self) {
        self.slots.forget();
        self.names.forget();
        self.types.clear();
        self.type_ids.clear();
        self.last_type = 0;
        self.opened = (0, 0);
        self.open.clear();
    }
}

impl MessageType {
    /// Finds the field at `at`, if it is the next step or one soon after; returns the start of its
    /// value.
    #[inline(always)]
    fn step(&self, bytes: &[u8], at: usize, step: &mut usize) -> Option<(KnownField, usize)> {
        let found = predicted::follow(&self.steps, bytes, at, step)?;
        *step += 1;
        Some((found.known, at + found.key.len()))
    }

    /// Inserts an unpredicted step before the predicted one. Of steps with the same slot, the first
    /// is for the tag's first value, and all others stop the prediction.
    fn learn(&mut self, mut new: Step, step: &mut usize) {
        if self.steps.len() >= STEPS_MAX {
            return;
        }
        (new.head, new.mask) = match new.key.len() {
            len @ 0..8 => (load(&new.key, 0), (1 << (8 * len)) - 1),
            8 => (load(&new.key, 0), !0),
            _ => (!0, 0),
        };
        let (before, after) = self.steps.split_at_mut(*step);
        if before.iter().any(|other| other.known.slot == new.known.slot) {
            new.act = Act::Stop;
        }
        for other in after.iter_mut().filter(|other| other.known.slot == new.known.slot) {
            other.act = Act::Stop;
        }
        // The opening records how many steps precede the bytes after it.
        self.opening = None;
        self.steps.insert(*step, new);
        *step += 1;
    }
}

/// Returns the end of a data field of `length` bytes.
fn data_end(bytes: &[u8], value: usize, length: i64) -> Result<usize, Fault> {
    let end = usize::try_from(length).ok().and_then(|length| value.checked_add(length));
    match end.filter(|&end| bytes.get(end) == Some(&SEPARATOR)) {
        Some(end) => Ok(end),
        None => Err(Fault::new(value, "a data field that does not end where its length says")),
    }
}
