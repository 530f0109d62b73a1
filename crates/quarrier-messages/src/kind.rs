//! The types of columns.

/// The type of a column's values. Every type includes NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The type of columns with only NULL so far.
    Null,
    /// TRUE or FALSE.
    Boolean,
    /// An integer of 64 bits.
    Integer,
    /// An exact number of up to 38 digits: an integer divided by 10^`scale`, `scale` at most 38.
    /// Integers that exceed 64 bits have a scale of 0.
    Decimal {
        /// The number of decimals.
        scale: u8,
    },
    /// A float of 64 bits.
    Float,
    /// A day, counted from 1970-01-01.
    Date,
    /// A timestamp in nanoseconds from 1970-01-01 00:00:00 UTC.
    Timestamp,
    /// A string in UTF-8.
    Text,
}

impl Kind {
    /// Returns the narrowest type that holds the values of both: NULL widens to any type, integers
    /// to exact numbers, those to floats, dates to timestamps, and all to strings.
    #[must_use]
    pub fn widened(self, other: Kind) -> Kind {
        use Kind::{Date, Decimal, Float, Integer, Null, Text, Timestamp};
        match (self, other) {
            (a, b) if a == b => a,
            (Null, kind) | (kind, Null) => kind,
            (Decimal { scale: a }, Decimal { scale: b }) => Decimal { scale: a.max(b) },
            (Integer, Decimal { scale }) | (Decimal { scale }, Integer) => Decimal { scale },
            (Float, Integer | Decimal { .. }) | (Integer | Decimal { .. }, Float) => Float,
            (Date, Timestamp) | (Timestamp, Date) => Timestamp,
            _ => Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn widening_does_not_depend_on_the_order() {
        let kinds = [
            Kind::Null,
            Kind::Boolean,
            Kind::Integer,
            Kind::Decimal { scale: 2 },
            Kind::Decimal { scale: 7 },
            Kind::Float,
            Kind::Date,
            Kind::Timestamp,
            Kind::Text,
        ];
        for a in kinds {
            for b in kinds {
                assert_eq!(a.widened(b), b.widened(a));
                for c in kinds {
                    assert_eq!(a.widened(b).widened(c), a.widened(b.widened(c)));
                }
            }
        }
    }
}
