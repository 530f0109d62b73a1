//! The types of expressions: those of columns, and those of intermediate results.

use quarrier_messages::Kind;

use crate::expr::CastTo;

/// The type of an expression's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// The type of NULL alone.
    Null,
    Boolean,
    Integer,
    Decimal {
        scale: u8,
    },
    Float,
    Date,
    Time,
    Timestamp,
    /// An interval in years and months.
    Months,
    /// An interval in days, hours, minutes and seconds.
    Seconds,
    Text,
    /// A string that compares as if padded with blanks.
    Character,
}

impl Type {
    pub(super) fn of_column(kind: Kind) -> Type {
        match kind {
            Kind::Null => Type::Null,
            Kind::Boolean => Type::Boolean,
            Kind::Integer => Type::Integer,
            Kind::Decimal { scale } => Type::Decimal { scale },
            Kind::Float => Type::Float,
            Kind::Date => Type::Date,
            Kind::Timestamp => Type::Timestamp,
            Kind::Text => Type::Text,
        }
    }

    /// Returns the type of a column of these values; `None` for times of day and intervals.
    pub(super) fn kind(self) -> Option<Kind> {
        Some(match self {
            Type::Null => Kind::Null,
            Type::Boolean => Kind::Boolean,
            Type::Integer => Kind::Integer,
            Type::Decimal { scale } => Kind::Decimal { scale },
            Type::Float => Kind::Float,
            Type::Date => Kind::Date,
            Type::Timestamp => Kind::Timestamp,
            Type::Text | Type::Character => Kind::Text,
            Type::Time | Type::Months | Type::Seconds => return None,
        })
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Type::Null | Type::Integer | Type::Decimal { .. } | Type::Float)
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self, Type::Null | Type::Text | Type::Character)
    }

    pub(super) fn is_interval(self) -> bool {
        matches!(self, Type::Months | Type::Seconds)
    }

    /// Returns the type that holds the values of both, if they compare.
    pub(super) fn common(self, other: Type) -> Option<Type> {
        use Type::{Character, Date, Decimal, Float, Integer, Null, Text, Timestamp};
        Some(match (self, other) {
            (a, b) if a == b => a,
            (Null, other) | (other, Null) => other,
            (Decimal { scale: a }, Decimal { scale: b }) => Decimal { scale: a.max(b) },
            (Integer, Decimal { scale }) | (Decimal { scale }, Integer) => Decimal { scale },
            (Float, Integer | Decimal { .. }) | (Integer | Decimal { .. }, Float) => Float,
            (Date, Timestamp) | (Timestamp, Date) => Timestamp,
            (Text, Character) | (Character, Text) => Text,
            _ => return None,
        })
    }

    /// Returns the CAST that converts values of `self` to `to`; `None` if they already have that
    /// type.
    pub(super) fn cast_into(self, to: Type) -> Option<CastTo> {
        match (self, to) {
            (Type::Integer | Type::Decimal { .. }, Type::Float) => Some(CastTo::Kind(Kind::Float)),
            (Type::Integer, Type::Decimal { scale }) => {
                Some(CastTo::Numeric { precision: 38, scale })
            }
            (Type::Decimal { scale: from }, Type::Decimal { scale }) if from != scale => {
                Some(CastTo::Numeric { precision: 38, scale })
            }
            (Type::Date, Type::Timestamp) => Some(CastTo::Kind(Kind::Timestamp)),
            _ => None,
        }
    }

    /// Returns the name of the type in messages.
    pub(super) fn named(self) -> &'static str {
        match self {
            Type::Null => "NULL",
            Type::Boolean => "a boolean",
            Type::Integer => "an integer",
            Type::Decimal { .. } => "an exact number",
            Type::Float => "a floating-point number",
            Type::Date => "a DATE",
            Type::Time => "a TIME",
            Type::Timestamp => "a TIMESTAMP",
            Type::Months => "an INTERVAL of years and months",
            Type::Seconds => "an INTERVAL of days and seconds",
            Type::Text | Type::Character => "text",
        }
    }
}
