//! The items of a regex.

use boreal_parser::regex::{Node, Regex, RepetitionKind, RepetitionRange};
use boreal_parser::rule::VariableModifiers;

use super::factor::{Factor, Item, best};

/// Maximum number of nodes to visit; each repetition visits its nodes again.
const NODES_MAX: usize = 1 << 16;
/// Maximum number of items of one repetition; a factor cannot use more.
const ITEMS_EACH_MAX: usize = 64;
/// Maximum nesting of nodes. The parser's limit is lower.
const DEPTH_MAX: usize = 100;

/// Returns the factors of a regex: one set for each width in which it may match.
pub(super) fn factors(regex: &Regex, modifiers: &VariableModifiers) -> Option<Vec<Factor>> {
    let ignores_case = regex.case_insensitive || modifiers.nocase;
    let mut items = Vec::new();
    Walk { nodes_left: NODES_MAX }.push(&regex.ast, &mut items, 0);
    let mut factors = Vec::new();
    if modifiers.ascii || !modifiers.wide {
        factors.extend(best(&items, ignores_case)?);
    }
    if modifiers.wide {
        factors.extend(best(&widened(&items), ignores_case)?);
    }
    Some(factors)
}

/// Inserts a zero after each byte.
fn widened(items: &[Item]) -> Vec<Item> {
    let mut wide = Vec::with_capacity(2 * items.len());
    for item in items {
        match item {
            Item::Byte(value, mask) => {
                wide.extend([Item::Byte(*value, *mask), Item::Byte(0, 0xFF)])
            }
            Item::Gap => wide.push(Item::Gap),
            Item::Choice(branches) => {
                wide.push(Item::Choice(branches.iter().map(|branch| widened(branch)).collect()));
            }
        }
    }
    wide
}

/// Converts a regex to items; a gap replaces the parts beyond the limits.
struct Walk {
    nodes_left: usize,
}

impl Walk {
    fn push(&mut self, node: &Node, items: &mut Vec<Item>, depth: usize) {
        if self.nodes_left == 0 || depth >= DEPTH_MAX {
            return items.push(Item::Gap);
        }
        self.nodes_left -= 1;
        match node {
            Node::Literal(literal) => items.push(Item::Byte(literal.byte, 0xFF)),
            Node::Dot | Node::Class(_) => items.push(Item::Byte(0, 0)),
            // Beyond ASCII, a character has several bytes, or is matched in a way that boreal
            // decides.
            Node::Char(_) => items.push(Item::Gap),
            Node::Empty | Node::Assertion(_) => {}
            Node::Group(node) => self.push(node, items, depth + 1),
            Node::Concat(nodes) => {
                nodes.iter().for_each(|node| self.push(node, items, depth + 1));
            }
            Node::Alternation(nodes) => {
                let mut branches = Vec::with_capacity(nodes.len());
                for node in nodes {
                    let mut items = Vec::new();
                    self.push(node, &mut items, depth + 1);
                    branches.push(items);
                }
                items.push(Item::Choice(branches));
            }
            Node::Repetition { node, kind, .. } => self.repeat(node, kind, items, depth),
        }
    }

    fn repeat(&mut self, node: &Node, kind: &RepetitionKind, items: &mut Vec<Item>, depth: usize) {
        let (least, is_exact) = match kind {
            RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => (0, false),
            RepetitionKind::OneOrMore => (1, false),
            RepetitionKind::Range(RepetitionRange::Exactly(count)) => (*count, true),
            RepetitionKind::Range(RepetitionRange::AtLeast(count)) => (*count, false),
            RepetitionKind::Range(RepetitionRange::Bounded(least, most)) => (*least, least == most),
        };
        let first = items.len();
        for _ in 0..least {
            if items.len() - first >= ITEMS_EACH_MAX || self.nodes_left == 0 {
                return items.push(Item::Gap);
            }
            let before = items.len();
            self.push(node, items, depth + 1);
            if items.len() == before {
                break;
            }
        }
        if !is_exact {
            items.push(Item::Gap);
        }
    }
}
