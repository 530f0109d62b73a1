//! CAST, and conversion to common types.

use quarrier_messages::Kind;
use sqlparser::ast::{self, CharacterLength, DataType, ExactNumberInfo, IntervalFields};
use sqlparser::tokenizer::Location;

use super::bind::{Binder, Bound};
use super::types::Type;
use super::{literals, wrong};
use crate::Result;
use crate::expr::{CastTo, Expr};

/// Maximum length of CHAR(n); longer ones would spend memory on blanks.
const CHARACTERS_MAX: u64 = 65_536;

impl Binder<'_> {
    /// Binds `CAST(operand AS type)`.
    pub(super) fn cast(
        &mut self,
        operand: ast::Expr,
        data_type: &DataType,
        at: Location,
    ) -> Result<Bound> {
        let operand = self.bind(operand)?;
        let (to, kind) = target(data_type, at)?;
        if !is_possible(operand.kind, kind) {
            let reason = format!("{} cannot be CAST AS {data_type}", operand.kind.named());
            return Err(wrong(at, reason));
        }
        self.cast_to(operand, to, kind)
    }

    fn cast_to(&mut self, operand: Bound, to: CastTo, kind: Type) -> Result<Bound> {
        let at = operand.at;
        self.node([operand], kind, at, |[operand]| Expr::Cast { operand: Box::new(operand), to })
    }

    /// Converts all values to their common type.
    pub(super) fn alike(&mut self, values: Vec<Bound>, what: &str) -> Result<(Vec<Bound>, Type)> {
        let values = literals::all_dated(values)?;
        let mut common = Type::Null;
        for value in &values {
            let Some(wider) = common.common(value.kind) else {
                let (one, other) = (common.named(), value.kind.named());
                let reason = format!("{what} of {one} and {other}; CAST one of them");
                return Err(wrong(value.at, reason));
            };
            common = wider;
        }
        let values: Result<Vec<Bound>> = values
            .into_iter()
            .map(|value| match value.kind.cast_into(common) {
                Some(to) => self.cast_to(value, to, common),
                None => Ok(value),
            })
            .collect();
        Ok((values?, common))
    }
}

/// Returns the target of a type's name.
fn target(data_type: &DataType, at: Location) -> Result<(CastTo, Type)> {
    Ok(match data_type {
        DataType::Bool | DataType::Boolean => (CastTo::Kind(Kind::Boolean), Type::Boolean),
        DataType::SmallInt(None) | DataType::Int2(None) => {
            (CastTo::Integer { bits: 16 }, Type::Integer)
        }
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => {
            (CastTo::Integer { bits: 32 }, Type::Integer)
        }
        DataType::BigInt(None) | DataType::Int8(None) => {
            (CastTo::Kind(Kind::Integer), Type::Integer)
        }
        DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits) => {
            exact(digits, at)?
        }
        DataType::Float(_)
        | DataType::Real
        | DataType::Double(_)
        | DataType::DoublePrecision
        | DataType::Float4
        | DataType::Float8 => (CastTo::Kind(Kind::Float), Type::Float),
        DataType::Character(length) | DataType::Char(length) => {
            let length = characters(length, at)?.unwrap_or(1);
            (CastTo::Character(length), Type::Character)
        }
        DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Nvarchar(length)
        | DataType::Varchar(length) => match characters(length, at)? {
            Some(length) => (CastTo::Varying(length), Type::Text),
            None => (CastTo::Kind(Kind::Text), Type::Text),
        },
        DataType::Text | DataType::String(None) | DataType::Clob(None) => {
            (CastTo::Kind(Kind::Text), Type::Text)
        }
        DataType::Date => (CastTo::Kind(Kind::Date), Type::Date),
        DataType::Time(None, _) => (CastTo::Time, Type::Time),
        DataType::Timestamp(None, _) => (CastTo::Kind(Kind::Timestamp), Type::Timestamp),
        DataType::Interval { fields: Some(fields), precision: None } => match fields {
            IntervalFields::Year | IntervalFields::Month | IntervalFields::YearToMonth => {
                (CastTo::IntervalMonths, Type::Months)
            }
            _ => (CastTo::IntervalSeconds, Type::Seconds),
        },
        other => {
            let reason = format!(
                "there is no type {other} to CAST into; there are BOOLEAN, SMALLINT, INTEGER, \
                 BIGINT, NUMERIC(p, s), DOUBLE PRECISION, CHAR(n), VARCHAR(n), DATE, TIME, \
                 TIMESTAMP, INTERVAL YEAR TO MONTH and INTERVAL DAY TO SECOND"
            );
            return Err(wrong(at, reason));
        }
    })
}

fn exact(digits: &ExactNumberInfo, at: Location) -> Result<(CastTo, Type)> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => (38, 0),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let checked = u8::try_from(precision).ok().zip(u8::try_from(scale).ok());
    let checked = checked.filter(|(p, s)| (1..=38).contains(p) && s <= p);
    let Some((precision, scale)) = checked else {
        return Err(wrong(
            at,
            "NUMERIC(p, s) has 1 to 38 digits, at most p of them after the point",
        ));
    };
    Ok((CastTo::Numeric { precision, scale }, Type::Decimal { scale }))
}

fn characters(length: &Option<CharacterLength>, at: Location) -> Result<Option<u32>> {
    match length {
        None => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. })
            if (1..=CHARACTERS_MAX).contains(length) =>
        {
            Ok(Some(*length as u32))
        }
        Some(_) => Err(wrong(at, format!("CHAR(n) has 1 to {CHARACTERS_MAX} characters"))),
    }
}

/// Whether values of one type can be converted to another.
fn is_possible(from: Type, to: Type) -> bool {
    let is_exact = |kind: Type| matches!(kind, Type::Integer | Type::Decimal { .. });
    let is_number = |kind: Type| is_exact(kind) || kind == Type::Float;
    from.is_text()
        || to.is_text()
        || (is_number(from) && is_number(to))
        || (from == Type::Boolean && (to == Type::Boolean || is_number(to)))
        || match (from, to) {
            (Type::Date, Type::Date | Type::Timestamp)
            | (Type::Timestamp, Type::Date | Type::Time | Type::Timestamp) => true,
            (from, to) => from == to,
        }
}
