//! A statement as the scan answers it.

use quarrier_messages::Kind;

use crate::Expr;

/// `SELECT … FROM m [WHERE …] [ORDER BY …] [LIMIT … [OFFSET …]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The outputs.
    pub select: Select,
    /// The predicate of the rows; `None` selects all.
    pub condition: Option<Expr>,
    /// The first decides. Empty: as the rows come. Nothing for a count.
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
    /// Values of each row.
    Rows(Vec<Output>),
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Its name.
    pub name: Box<str>,
    /// The output.
    pub expr: Expr,
    /// The type of its values; `None` for times of day and intervals, which no column has.
    pub kind: Option<Kind>,
}

/// One column of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Its place in the schema.
    pub column: usize,
    /// Greatest first.
    pub descending: bool,
    /// NULL before all values. Unless it is written, NULL counts as greater than all.
    pub nulls_first: bool,
}
