//! Names and types of FIX fields by their tags, and which tags repeat in groups.

mod builtin;
mod xml;

pub use xml::DictionaryError;

use std::collections::HashMap;

/// The type by which the value of a field is read. A value of another type is read as an untyped one,
/// so that nothing is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixType {
    /// Not known: numbers are numbers, the rest is text.
    Found,
    /// an integer, leading zeros allowed.
    Int,
    /// an integer that says how many bytes the next field has.
    Length,
    /// A number, exact where 38 digits hold it.
    Number,
    /// `Y` or `N`.
    Boolean,
    /// `YYYYMMDD-HH:MM:SS`, with up to nine digits of a second and a time zone or without.
    Timestamp,
    /// `YYYYMMDD`.
    Date,
    /// Text.
    Text,
    /// Text that may hold the separator; the field before says how long it is.
    Data,
}

/// A message, or one entry of a group: the counters among its tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) struct GroupId(u32);

#[derive(Debug, Clone, Default)]
struct Group {
    /// Every tag of an entry, ascending; with the group that it counts.
    members: Box<[(u32, Option<GroupId>)]>,
}

/// The data dictionary by which FIX messages are read.
///
/// ```
/// use quarrier_messages::format::fix::Dictionary;
/// let xml = br#"<fix><fields><field number="9001" name="Desk" type="INT"/></fields></fix>"#;
/// let dictionary = Dictionary::from_xml(xml)?;
/// assert_eq!(dictionary.name(9001), Some("Desk"));
/// # Ok::<(), quarrier_messages::format::fix::DictionaryError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dictionary {
    fields: HashMap<u32, (Box<str>, FixType)>,
    tags: HashMap<Box<str>, u32>,
    groups: Vec<Group>,
    /// By the value of MsgType.
    messages: HashMap<Box<[u8]>, GroupId>,
    /// For messages that are not known.
    other: Option<GroupId>,
    uses_names: bool,
}

impl Dictionary {
    /// The commonest fields, for messages without a dictionary.
    pub fn builtin() -> Self {
        builtin::dictionary()
    }

    /// A dictionary as QuickFIX has them, in XML; at most 64 MiB.
    ///
    /// # Errors
    /// If the XML is broken, refers to missing parts, or is larger than any dictionary.
    pub fn from_xml(xml: &[u8]) -> Result<Self, DictionaryError> {
        xml::dictionary(xml)
    }

    /// The same, with `tag_55` in place of the names.
    #[must_use]
    pub fn with_numbers(mut self) -> Self {
        self.uses_names = false;
        self
    }

    /// A field's name.
    pub fn name(&self, tag: u32) -> Option<&str> {
        self.fields.get(&tag).map(|(name, _)| &**name).filter(|_| self.uses_names)
    }

    /// How a field's value is read.
    pub fn kind(&self, tag: u32) -> FixType {
        self.fields.get(&tag).map_or(FixType::Found, |(_, kind)| *kind)
    }

    /// The tag of a name.
    pub fn tag(&self, name: &str) -> Option<u32> {
        self.tags.get(name).copied()
    }

    /// The tags of a message, by its type.
    pub(in crate::format) fn message(&self, kind: &[u8]) -> Option<GroupId> {
        self.messages.get(kind).copied().or(self.other)
    }

    /// Whether a tag is one of a group, or message; if so, which group it counts.
    pub(in crate::format) fn member(&self, of: GroupId, tag: u32) -> Option<Option<GroupId>> {
        let members = &self.groups.get(of.0 as usize)?.members;
        let at = members.binary_search_by_key(&tag, |member| member.0).ok()?;
        Some(members[at].1)
    }

    fn empty() -> Self {
        Dictionary {
            fields: HashMap::new(),
            tags: HashMap::new(),
            groups: Vec::new(),
            messages: HashMap::new(),
            other: None,
            uses_names: true,
        }
    }

    fn add_field(&mut self, tag: u32, name: &str, kind: FixType) {
        self.tags.insert(name.into(), tag);
        self.fields.insert(tag, (name.into(), kind));
    }

    /// Adds tags and names that are missing here: FIX 5.0 has its header in another dictionary.
    fn add_missing(&mut self, other: &Dictionary) {
        for (&tag, (name, kind)) in &other.fields {
            if !self.fields.contains_key(&tag) && !self.tags.contains_key(name) {
                self.add_field(tag, name, *kind);
            }
        }
    }

    fn add_group(&mut self, members: impl IntoIterator<Item = (u32, Option<GroupId>)>) -> GroupId {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by_key(|member| member.0);
        members.dedup_by_key(|member| member.0);
        self.groups.push(Group { members: members.into() });
        GroupId(self.groups.len() as u32 - 1)
    }
}
