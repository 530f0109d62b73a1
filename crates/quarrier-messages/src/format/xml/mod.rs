//! XML: an element is a message; its attributes and contents are fields.
//!
//! ```text
//!  <orders>                                          path      value
//!    <order id="7"><leg qty="1"/><leg qty="2"/>  ─→  id        7
//!      <side>B</side></order>                        leg[0].qty 1 … side B
//!  </orders>
//! ```
//!
//! Messages are the children of the document's root element, or the outermost elements if there are
//! several, such as one per line. A name that is repeated in an element gets an index, from 0; a
//! name that occurs once has none, unless [`Xml::lists`] contains it. Blanks around text are
//! removed, and text is typed as in [CSV](super::csv); an empty element is NULL.
//!
//! The parser supports XML's predefined entities and character references. It ignores entities that
//! a document defines or refers to, internal or external, and rejects messages that use them. An
//! element without an end tag includes everything after it, up to the maximum length of a message.
//! The start of a longer element is rejected, and the elements in the rest of it are read like
//! others.

mod extent;
mod message;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::build::Row;
use crate::frame::{RecordFormat, byte_order_mark};
use crate::{Fault, Limits};
use message::MessageParser;

/// Options of XML.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Xml {
    /// The place of messages in the document; `None` to detect it from the first bytes.
    pub place: Option<XmlPlace>,
    /// Names of elements that get an index even if they occur once.
    pub lists: Vec<Box<str>>,
}

/// The place of messages in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XmlPlace {
    /// The outermost elements are messages.
    Outermost,
    /// The children of the outermost element are messages.
    Within,
}

/// State that the parsers of all workers share: whether messages are within a root element.
#[derive(Debug, Clone, Default)]
pub(crate) struct XmlOpening(Arc<AtomicBool>);

/// A worker's parser.
#[derive(Debug)]
pub(crate) struct XmlParser {
    place: Option<XmlPlace>,
    opening: XmlOpening,
    parser: MessageParser,
    message_bytes_max: usize,
}

impl XmlParser {
    pub(crate) fn new(xml: &Xml, opening: XmlOpening, limits: &Limits) -> Self {
        XmlParser {
            place: xml.place,
            opening,
            parser: MessageParser::new(xml.lists.clone(), limits),
            message_bytes_max: limits.message_bytes_max,
        }
    }
}

impl RecordFormat for XmlParser {
    fn is_found_anywhere(&self) -> bool {
        false
    }

    fn open(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let mark = byte_order_mark(bytes);
        let is_all = is_end || bytes.len() > self.message_bytes_max;
        let (place, start) = extent::place(self.place, &bytes[mark..], is_all)?;
        self.opening.0.store(place == XmlPlace::Within, Ordering::Relaxed);
        Some(mark + start)
    }

    fn start(&self, _bytes: &[u8], _from: usize) -> Option<usize> {
        None
    }

    fn extent(&self, bytes: &[u8], is_last: bool) -> Option<usize> {
        let seen = &bytes[..bytes.len().min(self.message_bytes_max)];
        let is_all = is_last || seen.len() < bytes.len();
        extent::extent(seen).or(is_all.then_some(seen.len()))
    }

    fn is_nothing(&self, record: &[u8]) -> bool {
        let is_within = self.opening.0.load(Ordering::Relaxed);
        extent::is_nothing(record) || is_within && record.starts_with(b"</")
    }

    fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        let text = std::str::from_utf8(message)
            .map_err(|error| Fault::new(error.valid_up_to(), "bytes that are not UTF-8"))?;
        self.parser.parse(text, row)
    }

    fn forget(&mut self) {
        self.parser.forget();
    }
}
