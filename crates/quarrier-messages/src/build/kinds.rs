//! Infers the type of a column from its values.

use quarrier_core::civil::midnight;

use super::Cell;
use super::time::timed;
use crate::{Kind, exact};

/// Infers the type that a load gives a column of these values, whatever their order and their
/// distribution among workers.
#[derive(Debug, Clone)]
pub struct KindFinder {
    kind: Kind,
    /// The least and greatest mantissa of exact numbers, by the number of decimals.
    exact: Vec<(u8, i128, i128)>,
    /// Whether the midnight of some day is outside the range of timestamps.
    has_far_day: bool,
}

impl Default for KindFinder {
    fn default() -> Self {
        KindFinder { kind: Kind::Null, exact: Vec::new(), has_far_day: false }
    }
}

impl KindFinder {
    /// Adds a value; strings that are dates or timestamps count as these.
    pub fn add(&mut self, cell: Cell<'_>) {
        let cell = match cell {
            Cell::Text(text) => timed(text).map_or(cell, |(time, _)| time),
            cell => cell,
        };
        self.kind = self.kind.widened(cell.kind());
        if let Some((mantissa, scale)) = cell.as_exact() {
            self.add_exact((scale, mantissa, mantissa));
        }
        if let Cell::Date(day) = cell {
            self.has_far_day |= midnight(day).is_none();
        }
    }

    /// Adds the values of another finder.
    pub fn join(&mut self, other: &KindFinder) {
        self.kind = self.kind.widened(other.kind);
        self.has_far_day |= other.has_far_day;
        other.exact.iter().for_each(|&exact| self.add_exact(exact));
    }

    /// Returns the type of a column with all added values.
    pub fn kind(&self) -> Kind {
        let fits = |to: u8| {
            let fits = |&(scale, least, greatest): &(u8, i128, i128)| {
                exact::rescaled(least, scale, to).is_some()
                    && exact::rescaled(greatest, scale, to).is_some()
            };
            self.exact.iter().all(fits)
        };
        match self.kind {
            Kind::Decimal { scale } if !fits(scale) => Kind::Float,
            Kind::Timestamp if self.has_far_day => Kind::Text,
            kind => kind,
        }
    }

    fn add_exact(&mut self, (scale, least, greatest): (u8, i128, i128)) {
        match self.exact.iter_mut().find(|known| known.0 == scale) {
            Some(known) => {
                (known.1, known.2) = (known.1.min(least), known.2.max(greatest));
            }
            None => self.exact.push((scale, least, greatest)),
        }
    }
}
