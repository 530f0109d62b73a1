//! Maps values to fields by their place: the top level, or an entry of a group.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::dictionary::FixType;
use crate::build::{FieldId, Row};

/// The message itself, or an entry of a group, which contains fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place(u32);

impl Place {
    pub(super) const TOP: Place = Place(0);
    /// A place beyond the limits, with everything in it.
    const BEYOND: Place = Place(u32::MAX);
}

/// A field: a tag at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SlotId(u32);

impl SlotId {
    /// A field beyond the limits.
    pub(super) const BEYOND: SlotId = SlotId(u32::MAX);
}

#[derive(Debug)]
pub(super) struct Slot {
    /// `None` if nobody requested its values.
    pub(super) field: Option<FieldId>,
    pub(super) kind: FixType,
    /// Whether any value had a fraction.
    pub(super) has_fractions: bool,
    place: Place,
    tag: u32,
    /// The last message that had the field.
    seen: u64,
    /// The number of times that message had the field.
    times: u32,
}

/// All slots seen so far.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Slots by place, tag, and the number of earlier occurrences of the tag there.
    ids: HashMap<(Place, u32, u32), SlotId, RandomState>,
    /// The prefix of the names of fields, by place.
    prefixes: Vec<String>,
    /// Places by the place around them, the tag that counts a group's entries, and the entry's
    /// index.
    places: HashMap<(Place, u32, u32), Place, RandomState>,
    max: usize,
}

/// Maximum length of a name; longer names are refused.
const NAME_BYTES_MAX: usize = 1_024;

impl Slots {
    pub(super) fn new(columns_max: usize) -> Self {
        Slots {
            slots: Vec::new(),
            ids: HashMap::default(),
            prefixes: vec![String::new()],
            places: HashMap::default(),
            // Refused names occupy slots, too.
            max: 4 * columns_max + 1_024,
        }
    }

    /// Forgets all slots and places.
    pub(super) fn forget(&mut self) {
        self.slots.clear();
        self.ids.clear();
        self.prefixes.truncate(1);
        self.places.clear();
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        self.slots.get_mut(id.0 as usize)
    }

    /// Records the first occurrence of a field in a message. Messages are numbered from 1.
    pub(super) fn remember(&mut self, id: SlotId, message: u64) {
        if let Some(slot) = self.get_mut(id) {
            (slot.seen, slot.times) = (message, 1);
        }
    }

    /// Returns the slot of a tag at a place, if it is known.
    pub(super) fn find(&self, place: Place, tag: u32) -> Option<SlotId> {
        self.ids.get(&(place, tag, 0)).copied()
    }

    /// Adds a slot; `name` excludes the prefix of its place.
    pub(super) fn add(
        &mut self,
        (place, tag, times): (Place, u32, u32),
        name: &str,
        kind: FixType,
        row: &mut impl Row,
    ) -> SlotId {
        let prefix = self.prefixes.get(place.0 as usize);
        let Some(prefix) = prefix.filter(|prefix| {
            self.slots.len() < self.max && prefix.len() + name.len() < NAME_BYTES_MAX
        }) else {
            return SlotId::BEYOND;
        };
        let name = match times {
            0 => format!("{prefix}{name}"),
            times => format!("{prefix}{name}[{times}]"),
        };
        let slot = Slot {
            field: row.field(&name),
            kind,
            has_fractions: false,
            place,
            tag,
            seen: 0,
            times: 0,
        };
        self.slots.push(slot);
        let id = SlotId(self.slots.len() as u32 - 1);
        self.ids.insert((place, tag, times), id);
        id
    }

    /// Returns the slot for a value of `id` in this message. Repeated tags have their own slots,
    /// named by `name`. Messages are numbered from 1.
    #[inline(always)]
    pub(super) fn visit<'n>(
        &mut self,
        id: SlotId,
        message: u64,
        name: impl FnOnce(u32) -> std::borrow::Cow<'n, str>,
        row: &mut impl Row,
    ) -> SlotId {
        match self.slots.get_mut(id.0 as usize) {
            None => SlotId::BEYOND,
            Some(slot) if slot.seen != message => {
                slot.seen = message;
                slot.times = 1;
                id
            }
            Some(_) => self.again(id, name, row),
        }
    }

    #[cold]
    fn again<'n>(
        &mut self,
        id: SlotId,
        name: impl FnOnce(u32) -> std::borrow::Cow<'n, str>,
        row: &mut impl Row,
    ) -> SlotId {
        let slot = &mut self.slots[id.0 as usize];
        let key = (slot.place, slot.tag, slot.times);
        let kind = slot.kind;
        slot.times = slot.times.saturating_add(1);
        match self.ids.get(&key) {
            Some(&id) => id,
            None => self.add(key, &name(key.1), kind, row),
        }
    }

    /// Returns the place of an entry of the group that `counter`, named `name`, counts.
    pub(super) fn entry(&mut self, of: Place, counter: u32, name: &str, index: u32) -> Place {
        if let Some(&place) = self.places.get(&(of, counter, index)) {
            return place;
        }
        let Some(prefix) = self.prefixes.get(of.0 as usize) else { return Place::BEYOND };
        let prefix = format!("{prefix}{name}[{index}].");
        if self.prefixes.len() >= self.max || prefix.len() > NAME_BYTES_MAX {
            return Place::BEYOND;
        }
        let place = Place(self.prefixes.len() as u32);
        self.prefixes.push(prefix);
        self.places.insert((of, counter, index), place);
        place
    }
}
