//! A statement in the form that the scan answers.

use quarrier_messages::Kind;

use crate::Expr;

/// `SELECT … FROM m [WHERE …] [ORDER BY …] [LIMIT … [OFFSET …]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The outputs.
    pub select: Select,
    /// The predicate of the rows; `None` selects all.
    pub condition: Option<Expr>,
    /// The columns to sort by, the most significant first. Empty: in the order of the table.
    /// Ignored for a count.
    pub order: Vec<Order>,
    /// The maximum number of rows.
    pub limit: Option<u64>,
    /// The number of rows to skip.
    pub offset: u64,
}

/// The outputs of a [`Query`].
#[derive(Debug, Clone, PartialEq)]
pub enum Select {
    /// `COUNT(*)`: one row with one number.
    Count {
        /// The name of the result.
        name: Box<str>,
    },
    /// The values of each row.
    Rows(Vec<Output>),
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Its name.
    pub name: Box<str>,
    /// The expression to output.
    pub expr: Expr,
    /// The type of its values; `None` for times of day and intervals, which no column can have.
    pub kind: Option<Kind>,
}

/// One column of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Its index in the schema.
    pub column: usize,
    /// Whether the greatest values come first.
    pub descending: bool,
    /// Whether NULL comes first. By default NULL counts as greater than all values.
    pub nulls_first: bool,
}
