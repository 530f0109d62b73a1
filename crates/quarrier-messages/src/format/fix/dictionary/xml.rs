//! QuickFIX dictionaries.
//!
//! ```text
//!  <fix> <header>…</header> <trailer>…</trailer>
//!        <messages> <message name msgtype> field, group, component …
//!        <components> <component name> field, group, component …
//!        <fields> <field number name type> <value …/>
//! ```

use std::collections::{BTreeMap, HashMap};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{Dictionary, FixType, GroupId};

/// The reasons why a dictionary could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DictionaryError {
    /// The XML is invalid at this byte.
    Xml {
        /// The offset in bytes.
        at: u64,
        /// The parser's message.
        what: String,
    },
    /// A field, group or component that the dictionary does not define.
    Unknown(String),
    /// The dictionary is larger than any of FIX, or its components contain each other.
    TooLarge,
}

impl std::fmt::Display for DictionaryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Xml { at, what } => {
                write!(f, "the FIX dictionary is broken at byte {at}: {what}")
            }
            Self::Unknown(name) => write!(
                f,
                "the FIX dictionary uses '{name}' and does not say what that is; give the whole \
                 dictionary"
            ),
            Self::TooLarge => f.write_str(
                "the FIX dictionary is larger than 64 MiB, or its components contain each other",
            ),
        }
    }
}

impl std::error::Error for DictionaryError {}

type Result<T> = std::result::Result<T, DictionaryError>;

const BYTES_MAX: usize = 64 << 20;
const DEPTH_MAX: usize = 64;
/// Maximum number of tags of all groups; FIX 5.0 SP2 has 50,000.
const MEMBERS_MAX: usize = 4 << 20;

/// A part of a message, component or group.
#[derive(Debug)]
enum Part {
    Field(String),
    Component(String),
    Group(String, Vec<Part>),
}

#[derive(Debug, Default)]
struct Document {
    fields: Vec<(u32, String, FixType)>,
    /// Header and trailer.
    around: Vec<Part>,
    messages: Vec<(String, Vec<Part>)>,
    components: HashMap<String, Vec<Part>>,
}

pub(super) fn dictionary(xml: &[u8]) -> Result<Dictionary> {
    if xml.len() > BYTES_MAX {
        return Err(DictionaryError::TooLarge);
    }
    let document = document(xml)?;
    let mut dictionary = Dictionary::empty();
    for (tag, name, kind) in &document.fields {
        dictionary.add_field(*tag, name, *kind);
    }
    dictionary.add_missing(&Dictionary::builtin());
    let mut links = Links { document: &document, done: HashMap::new(), members: 0, dictionary };
    let mut around = Members::new();
    links.resolve(&document.around, 0, &mut around)?;
    for (kind, parts) in &document.messages {
        let mut members = around.clone();
        links.resolve(parts, 0, &mut members)?;
        let group = links.group(members)?;
        links.dictionary.messages.insert(kind.as_bytes().into(), group);
    }
    Ok(links.dictionary)
}

/// The tags of a group, and the group that each counts.
type Members = BTreeMap<u32, Option<GroupId>>;

/// Replaces components by their parts.
struct Links<'d> {
    document: &'d Document,
    done: HashMap<&'d str, Members>,
    members: usize,
    dictionary: Dictionary,
}

impl<'d> Links<'d> {
    fn resolve(&mut self, parts: &'d [Part], depth: usize, into: &mut Members) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(DictionaryError::TooLarge);
        }
        for part in parts {
            match part {
                Part::Field(name) => {
                    into.entry(self.tag(name)?).or_insert(None);
                }
                Part::Group(name, parts) => {
                    let mut members = Members::new();
                    self.resolve(parts, depth + 1, &mut members)?;
                    let group = self.group(members)?;
                    into.insert(self.tag(name)?, Some(group));
                }
                Part::Component(name) => self.component(name, depth, into)?,
            }
        }
        Ok(())
    }

    fn component(&mut self, name: &'d str, depth: usize, into: &mut Members) -> Result<()> {
        if !self.done.contains_key(name) {
            let document = self.document;
            let parts = document.components.get(name);
            let parts = parts.ok_or_else(|| DictionaryError::Unknown(name.into()))?;
            let mut members = Members::new();
            self.resolve(parts, depth + 1, &mut members)?;
            self.count(members.len())?;
            self.done.insert(name, members);
        }
        for (&tag, &group) in &self.done[name] {
            let counted = into.entry(tag).or_insert(None);
            *counted = counted.or(group);
        }
        Ok(())
    }

    fn group(&mut self, members: Members) -> Result<GroupId> {
        self.count(members.len())?;
        Ok(self.dictionary.add_group(members))
    }

    fn count(&mut self, members: usize) -> Result<()> {
        self.members += members;
        if self.members > MEMBERS_MAX { Err(DictionaryError::TooLarge) } else { Ok(()) }
    }

    fn tag(&self, name: &str) -> Result<u32> {
        self.dictionary.tag(name).ok_or_else(|| DictionaryError::Unknown(name.into()))
    }
}

/// An element that has not ended, with its parts so far.
struct Open {
    element: Vec<u8>,
    name: String,
    parts: Vec<Part>,
}

fn document(xml: &[u8]) -> Result<Document> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut document = Document::default();
    let mut open: Vec<Open> = Vec::new();
    loop {
        let event = reader.read_event().map_err(|error| broken(&reader, error))?;
        match event {
            Event::Start(start) => {
                if open.len() > DEPTH_MAX {
                    return Err(DictionaryError::TooLarge);
                }
                let holder = open.last().map_or(&b""[..], |open| &open.element);
                if start.name().as_ref() == b"field" && holder == b"fields" {
                    document.fields.extend(field(&reader, &start)?);
                }
                let key: &[u8] =
                    if start.name().as_ref() == b"message" { b"msgtype" } else { b"name" };
                let name = attribute(&reader, &start, key)?.unwrap_or_default();
                let element = start.name().as_ref().to_vec();
                open.push(Open { element, name, parts: Vec::new() });
            }
            Event::End(_) => {
                if let Some(ended) = open.pop() {
                    let holder = open.last_mut();
                    document.put(ended, holder);
                }
            }
            Event::Eof if open.is_empty() => return Ok(document),
            Event::Eof => return Err(broken(&reader, "it ends within an element")),
            _ => {}
        }
    }
}

impl Document {
    /// Adds an element that has ended to `holder`, the one around it.
    fn put(&mut self, ended: Open, holder: Option<&mut Open>) {
        let Some(holder) = holder else { return };
        match (&holder.element[..], &ended.element[..]) {
            (b"messages", _) => self.messages.push((ended.name, ended.parts)),
            (b"components", _) => {
                self.components.insert(ended.name, ended.parts);
            }
            (b"fix", b"header" | b"trailer") => self.around.extend(ended.parts),
            (b"fields", _) => {}
            (_, b"field") => holder.parts.push(Part::Field(ended.name)),
            (_, b"component") => holder.parts.push(Part::Component(ended.name)),
            (_, b"group") => holder.parts.push(Part::Group(ended.name, ended.parts)),
            _ => {}
        }
    }
}

fn field(reader: &Reader<&[u8]>, start: &BytesStart<'_>) -> Result<Option<(u32, String, FixType)>> {
    let number = attribute(reader, start, b"number")?.and_then(|number| number.parse().ok());
    let name = attribute(reader, start, b"name")?;
    let kind = attribute(reader, start, b"type")?.unwrap_or_default();
    Ok(number.zip(name).map(|(number, name)| (number, name, type_of(&kind))))
}

fn type_of(name: &str) -> FixType {
    match name {
        "INT" | "SEQNUM" | "NUMINGROUP" | "TAGNUM" | "DAYOFMONTH" => FixType::Int,
        "LENGTH" => FixType::Length,
        "QTY" | "PRICE" | "PRICEOFFSET" | "AMT" | "FLOAT" | "PERCENTAGE" => FixType::Number,
        "BOOLEAN" => FixType::Boolean,
        "UTCTIMESTAMP" | "TZTIMESTAMP" | "TIME" => FixType::Timestamp,
        "UTCDATEONLY" | "UTCDATE" | "LOCALMKTDATE" | "DATE" => FixType::Date,
        "DATA" | "XMLDATA" => FixType::Data,
        _ => FixType::Text,
    }
}

fn attribute(
    reader: &Reader<&[u8]>,
    start: &BytesStart<'_>,
    name: &[u8],
) -> Result<Option<String>> {
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| broken(reader, error))?;
        if attribute.key.as_ref() == name {
            let text = std::str::from_utf8(&attribute.value).map_err(|e| broken(reader, e))?;
            let text = quick_xml::escape::unescape(text).map_err(|e| broken(reader, e))?;
            return Ok(Some(text.into_owned()));
        }
    }
    Ok(None)
}

fn broken(reader: &Reader<&[u8]>, what: impl ToString) -> DictionaryError {
    let at = match reader.error_position() {
        0 => reader.buffer_position(),
        at => at,
    };
    DictionaryError::Xml { at, what: what.to_string() }
}
