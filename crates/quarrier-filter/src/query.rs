//! A statement as the scan answers it.

use quarrier_messages::Kind;

use crate::Expr;

/// `SELECT … FROM m [WHERE …] [ORDER BY …] [LIMIT … [OFFSET …]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What is shown.
    pub select: Select,
    /// Rows for which it is true; all where there is none.
    pub condition: Option<Expr>,
    /// The first decides. Empty: as the rows come. Nothing for a count.
    pub order: Vec<Order>,
    /// At most so many rows.
    pub limit: Option<u64>,
    /// Behind so many that are passed over.
    pub offset: u64,
}

/// What a [`Query`] shows.
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
    /// What is shown.
    pub expr: Expr,
    /// The kind of its values; `None` for times of day and spans of time, which no column has.
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
