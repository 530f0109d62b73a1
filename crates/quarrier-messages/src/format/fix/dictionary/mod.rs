//! Names and types of FIX fields by tag, and the tags of repeating groups.

mod builtin;
mod xml;

pub use xml::DictionaryError;

use std::collections::HashMap;

/// The type of a field. A value of another type is read as an untyped one, so none is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixType {
    /// Unknown: numbers are numbers, other values are strings.
    Found,
    /// An integer; leading zeros are allowed.
    Int,
    /// The number of bytes of the next field.
    Length,
    /// A number, exact if 38 digits hold it.
    Number,
    /// `Y` or `N`.
    Boolean,
    /// `YYYYMMDD-HH:MM:SS`, with up to nine decimals of the seconds, with or without a time zone.
    Timestamp,
    /// `YYYYMMDD`.
    Date,
    /// A string.
    Text,
    /// A string that may contain the separator; the field before has its length.
    Data,
}

/// A message, or one entry of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) struct GroupId(u32);

#[derive(Debug, Clone, Default)]
struct Group {
    /// Every tag of an entry, ascending, with the group whose entries it counts.
    members: Box<[(u32, Option<GroupId>)]>,
}

/// The data dictionary for reading FIX messages.
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
    /// Messages by the value of MsgType.
    messages: HashMap<Box<[u8]>, GroupId>,
    /// The entry for unknown messages.
    other: Option<GroupId>,
    uses_names: bool,
}

impl Dictionary {
    /// Returns the most common fields, for messages without a dictionary.
    pub fn builtin() -> Self {
        builtin::dictionary()
    }

    /// Parses a QuickFIX dictionary in XML, at most 64 MiB.
    ///
    /// # Errors
    /// If the XML is invalid, refers to missing parts, or exceeds the limits.
    pub fn from_xml(xml: &[u8]) -> Result<Self, DictionaryError> {
        xml::dictionary(xml)
    }

    /// Returns the dictionary with `tag_55` in place of names.
    #[must_use]
    pub fn with_numbers(mut self) -> Self {
        self.uses_names = false;
        self
    }

    /// Returns a field's name.
    pub fn name(&self, tag: u32) -> Option<&str> {
        self.fields.get(&tag).map(|(name, _)| &**name).filter(|_| self.uses_names)
    }

    /// Returns a field's type.
    pub fn kind(&self, tag: u32) -> FixType {
        self.fields.get(&tag).map_or(FixType::Found, |(_, kind)| *kind)
    }

    /// Returns the tag of a name.
    pub fn tag(&self, name: &str) -> Option<u32> {
        self.tags.get(name).copied()
    }

    /// Returns the tags of a message, by its type.
    pub(in crate::format) fn message(&self, kind: &[u8]) -> Option<GroupId> {
        self.messages.get(kind).copied().or(self.other)
    }

    /// Returns `Some` if a tag belongs to a group or message; the inner value is the group that it
    /// counts, if any.
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
