//! The columns' names and types.

use crate::Kind;

/// A column's name and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name; for nested fields the path: `order.leg[0].qty`.
    pub name: Box<str>,
    /// The type.
    pub kind: Kind,
}

/// The columns of a table, in the order in which they first occur in the messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// The columns; their names are unique.
    pub fields: Vec<Field>,
}

impl Schema {
    /// Returns the index of the column with exactly this name; if there is none, of the only one
    /// that differs only in ASCII case, as in SQL.
    pub fn position(&self, name: &str) -> Option<usize> {
        if let Some(exact) = self.fields.iter().position(|field| &*field.name == name) {
            return Some(exact);
        }
        let mut alike =
            (0..self.fields.len()).filter(|&at| self.fields[at].name.eq_ignore_ascii_case(name));
        alike.next().filter(|_| alike.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, Schema};
    use crate::Kind;

    #[test]
    fn names_match_exactly_first_then_without_case() {
        let field = |name: &str| Field { name: name.into(), kind: Kind::Integer };
        let schema = Schema { fields: vec![field("Qty"), field("a"), field("A")] };
        assert_eq!(schema.position("qty"), Some(0));
        assert_eq!(schema.position("A"), Some(2));
        assert_eq!(schema.position("a"), Some(1));
        assert_eq!(schema.position("b"), None);
        let twice = Schema { fields: vec![field("ab"), field("aB")] };
        assert_eq!(twice.position("AB"), None);
    }
}
