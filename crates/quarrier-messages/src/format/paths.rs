//! Paths of fields, as a tree.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::build::{FieldId, Row};

/// The path of a field, or of a node with more paths below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) struct PathId(u32);

impl PathId {
    /// The message itself.
    pub(in crate::format) const ROOT: PathId = PathId(0);
    /// A path beyond the limits, with everything below it.
    const BEYOND: PathId = PathId(u32::MAX);
}

/// All paths seen so far.
#[derive(Debug)]
pub(in crate::format) struct Paths {
    nodes: Vec<Node>,
    nodes_max: usize,
}

#[derive(Debug, Default)]
struct Node {
    name: String,
    /// `None` before the lookup; `Some(None)` if nobody requested its values.
    field: Option<Option<FieldId>>,
    keys: HashMap<Box<str>, PathId, RandomState>,
    elements: Vec<PathId>,
}

/// Maximum length of a path; longer paths are refused.
const NAME_BYTES_MAX: usize = 1_024;

/// The name of the field in a message that is a scalar.
const ROOT_NAME: &str = "value";

impl Paths {
    pub(in crate::format) fn new(columns_max: usize) -> Self {
        // Objects and refused names occupy nodes, too.
        Paths { nodes: vec![Node::default()], nodes_max: 4 * columns_max + 1_024 }
    }

    /// Forgets all paths and fields.
    pub(in crate::format) fn forget(&mut self) {
        self.nodes.clear();
        self.nodes.push(Node::default());
    }

    /// Returns the path of a member.
    pub(in crate::format) fn member(&mut self, of: PathId, key: &str) -> PathId {
        let Some(node) = self.nodes.get(of.0 as usize) else { return PathId::BEYOND };
        if let Some(&path) = node.keys.get(key) {
            return path;
        }
        let path = self.add(of, |name| {
            if !name.is_empty() {
                name.push('.');
            }
            push_key(key, name);
        });
        if path != PathId::BEYOND {
            self.nodes[of.0 as usize].keys.insert(key.into(), path);
        }
        path
    }

    /// Returns the path of an element.
    pub(in crate::format) fn element(&mut self, of: PathId, index: usize) -> PathId {
        let Some(node) = self.nodes.get(of.0 as usize) else { return PathId::BEYOND };
        if let Some(&path) = node.elements.get(index) {
            return path;
        }
        if index > node.elements.len() {
            return PathId::BEYOND;
        }
        let path = self.add(of, |name| name.push_str(&format!("[{index}]")));
        if path != PathId::BEYOND {
            self.nodes[of.0 as usize].elements.push(path);
        }
        path
    }

    /// Returns the field at a path; `None` if nobody requested its values.
    #[inline]
    pub(in crate::format) fn field(&mut self, path: PathId, row: &mut impl Row) -> Option<FieldId> {
        match self.nodes.get(path.0 as usize) {
            None => {
                row.refuse();
                None
            }
            Some(Node { field: Some(field), .. }) => *field,
            Some(node) => {
                let name = if path == PathId::ROOT { ROOT_NAME } else { &node.name };
                let field = row.field(name);
                self.nodes[path.0 as usize].field = Some(field);
                field
            }
        }
    }

    /// Returns the name of a path; `None` if it is beyond the limits.
    pub(in crate::format) fn name(&self, path: PathId) -> Option<&str> {
        Some(&*self.nodes.get(path.0 as usize)?.name)
    }

    #[cold]
    fn add(&mut self, of: PathId, extend: impl FnOnce(&mut String)) -> PathId {
        if self.nodes.len() >= self.nodes_max {
            return PathId::BEYOND;
        }
        let mut name = self.nodes[of.0 as usize].name.clone();
        extend(&mut name);
        if name.len() > NAME_BYTES_MAX {
            return PathId::BEYOND;
        }
        let path = PathId(self.nodes.len() as u32);
        self.nodes.push(Node { name, ..Node::default() });
        path
    }
}

fn push_key(key: &str, name: &mut String) {
    if !key.is_empty() && !key.contains(['.', '[', ']', '"']) {
        return name.push_str(key);
    }
    name.push('"');
    for (at, part) in key.split('"').enumerate() {
        if at > 0 {
            name.push_str("\"\"");
        }
        name.push_str(part);
    }
    name.push('"');
}
