//! Parses the fields of an element.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::build::{Cell, Row};
use crate::format::decimal::found;
use crate::format::paths::{PathId, Paths};
use crate::format::set_cell;
use crate::{Fault, Limits};

/// Parses messages for [`XmlParser`](super::XmlParser).
#[derive(Debug)]
pub(super) struct MessageParser {
    paths: Paths,
    lists: Vec<Box<str>>,
    depth_max: usize,
}

/// An element or attribute.
#[derive(Debug)]
struct Node<'m> {
    name: &'m str,
    /// The index of the element that contains it.
    parent: usize,
    /// The number of earlier siblings with its name.
    index: usize,
    /// Its text, or the attribute's value.
    text: String,
    is_attribute: bool,
}

/// The elements of a message, in order, each after its parent.
#[derive(Debug, Default)]
struct Tree<'m> {
    nodes: Vec<Node<'m>>,
    /// Number of an element's children by name.
    counts: HashMap<(usize, &'m str), usize, RandomState>,
    open: Vec<usize>,
}

impl MessageParser {
    pub(super) fn new(lists: Vec<Box<str>>, limits: &Limits) -> Self {
        MessageParser { paths: Paths::new(limits.columns_max), lists, depth_max: limits.depth_max }
    }

    pub(super) fn parse(&mut self, message: &str, row: &mut impl Row) -> Result<(), Fault> {
        let tree = Tree::read(message, self.depth_max)?;
        let mut places: Vec<PathId> = Vec::with_capacity(tree.nodes.len());
        for (number, node) in tree.nodes.iter().enumerate() {
            let place = match number {
                0 => PathId::ROOT,
                _ => self.place(&tree, node, places[node.parent]),
            };
            places.push(place);
            let text = if node.is_attribute { &node.text } else { node.text.trim() };
            let cell = match text {
                "true" => Cell::Boolean(true),
                "false" => Cell::Boolean(false),
                "" if node.is_attribute => Cell::Text(""),
                "" if number > 0 && !tree.has_more(number) => Cell::Null,
                "" => continue,
                text => found(text),
            };
            if let Some(field) = self.paths.field(place, row) {
                set_cell(row, field, cell);
            }
        }
        if row.takes_list_ends() {
            self.list_ends(&tree, &places, row);
        }
        Ok(())
    }

    pub(super) fn forget(&mut self) {
        self.paths.forget();
    }

    fn place(&mut self, tree: &Tree<'_>, node: &Node<'_>, parent: PathId) -> PathId {
        let place = self.paths.member(parent, node.name);
        match self.is_list(tree, node) {
            true => self.paths.element(place, node.index),
            false => place,
        }
    }

    fn is_list(&self, tree: &Tree<'_>, node: &Node<'_>) -> bool {
        tree.count(node) > 1 || self.lists.iter().any(|list| **list == *node.name)
    }

    /// Reports the lists whose last element has no value.
    fn list_ends(&mut self, tree: &Tree<'_>, places: &[PathId], row: &mut impl Row) {
        let mut has_value = vec![false; tree.nodes.len()];
        for (number, node) in tree.nodes.iter().enumerate().skip(1).rev() {
            has_value[number] |= node.is_attribute || !node.text.trim().is_empty();
            has_value[node.parent] |= has_value[number];
        }
        for (number, node) in tree.nodes.iter().enumerate().skip(1) {
            let count = tree.count(node);
            if has_value[number] || node.index + 1 != count || !self.is_list(tree, node) {
                continue;
            }
            let list = self.paths.member(places[node.parent], node.name);
            if let Some(list) = self.paths.name(list) {
                row.list_end(list, count);
            }
        }
    }
}

impl<'m> Tree<'m> {
    /// The number of siblings with a node's name, including the node.
    fn count(&self, node: &Node<'_>) -> usize {
        self.counts.get(&(node.parent, node.name)).copied().unwrap_or(1)
    }

    fn read(message: &'m str, depth_max: usize) -> Result<Self, Fault> {
        let mut reader = Reader::from_str(message);
        let mut tree = Tree::default();
        loop {
            let at = reader.buffer_position() as usize;
            let fault = |what| Fault::new(at.min(message.len()), what);
            let event = reader.read_event().map_err(|_| {
                Fault::new(reader.error_position() as usize, "XML that is not well-formed")
            })?;
            match event {
                Event::Start(start) => {
                    if tree.open.len() >= depth_max {
                        return Err(fault("nested deeper than allowed"));
                    }
                    let element = tree.element(message, at, &start).map_err(fault)?;
                    tree.open.push(element);
                }
                Event::Empty(start) => {
                    tree.element(message, at, &start).map_err(fault)?;
                }
                Event::End(_) => {
                    tree.open.pop();
                }
                Event::Text(text) => tree.text(&text).map_err(fault)?,
                Event::CData(text) => tree.text(&text).map_err(fault)?,
                Event::GeneralRef(entity) => {
                    let letter = letter(&entity).map_err(fault)?;
                    tree.text(letter.encode_utf8(&mut [0; 4]).as_bytes()).map_err(fault)?;
                }
                Event::Eof if !tree.open.is_empty() => {
                    return Err(fault("an unclosed element"));
                }
                Event::Eof if tree.nodes.is_empty() => return Err(fault("no element")),
                Event::Eof => return Ok(tree),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::DocType(_) => {}
            }
        }
    }

    /// Adds an element that starts at `at`, and its attributes; returns its index.
    fn element(
        &mut self,
        message: &'m str,
        at: usize,
        start: &BytesStart<'_>,
    ) -> Result<usize, &'static str> {
        if self.open.is_empty() && !self.nodes.is_empty() {
            return Err("more data after the element");
        }
        let name = at + 1..at + 1 + start.name().as_ref().len();
        let name = message.get(name).ok_or(BROKEN)?;
        let parent = self.open.last().copied().unwrap_or(0);
        let element = self.add(name, parent, String::new(), false)?;
        let mut attributes = start.attributes();
        attributes.with_checks(true);
        for attribute in attributes {
            let attribute = attribute.map_err(|_| "attributes that are not well-formed")?;
            let name = attribute.key.as_ref();
            if name == b"xmlns" || name.starts_with(b"xmlns:") {
                continue;
            }
            let value = std::str::from_utf8(&attribute.value).map_err(|_| BROKEN)?;
            let value = quick_xml::escape::unescape(value).map_err(|_| UNKNOWN_ENTITY)?;
            // The tag starts after its '<', and `name` is a slice of it.
            let from = name.as_ptr() as usize - start.as_ptr() as usize + at + 1;
            let name = message.get(from..from + name.len()).ok_or(BROKEN)?;
            self.add(name, element, value.into_owned(), true)?;
        }
        Ok(element)
    }

    fn add(&mut self, name: &'m str, parent: usize, text: String, is_attribute: bool) -> Added {
        let count = self.counts.entry((parent, name)).or_insert(0);
        if self.nodes.len() >= NODES_MAX {
            return Err("more elements and attributes than allowed");
        }
        // The outermost element has no parent.
        let index = if self.nodes.is_empty() { 0 } else { std::mem::replace(count, *count + 1) };
        self.nodes.push(Node { name, parent, index, text, is_attribute });
        Ok(self.nodes.len() - 1)
    }

    fn text(&mut self, text: &[u8]) -> Result<(), &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| BROKEN)?;
        match self.open.last() {
            Some(&element) => self.nodes[element].text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err("text outside of elements"),
        }
        Ok(())
    }

    /// Whether an element has attributes or children, which follow it.
    fn has_more(&self, element: usize) -> bool {
        self.nodes.get(element + 1).is_some_and(|next| next.parent == element)
    }
}

/// The index of an element that was added.
type Added = Result<usize, &'static str>;

/// Maximum number of elements and attributes of a message; each takes a hundred bytes.
const NODES_MAX: usize = 1 << 20;

const BROKEN: &str = "XML that is not well-formed";
const UNKNOWN_ENTITY: &str = "an entity that XML does not predefine";

/// Returns the character of an entity.
fn letter(entity: &BytesRef<'_>) -> Result<char, &'static str> {
    if let Some(letter) = entity.resolve_char_ref().map_err(|_| UNKNOWN_ENTITY)? {
        return Ok(letter);
    }
    match &**entity {
        b"lt" => Ok('<'),
        b"gt" => Ok('>'),
        b"amp" => Ok('&'),
        b"apos" => Ok('\''),
        b"quot" => Ok('"'),
        _ => Err(UNKNOWN_ENTITY),
    }
}
