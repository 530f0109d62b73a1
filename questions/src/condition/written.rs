//! Writes conditions as SQL.

use std::fmt::{Display, Formatter, Result};

use super::{Arithmetic, Comparison, Condition, Operand};

/// An operand or condition, with the names of the columns.
pub(super) struct Written<'a, T>(pub(super) &'a T, pub(super) &'a [String]);

impl Condition {
    /// Displays the condition as SQL, with these column names.
    pub fn written(&self, names: &[String]) -> String {
        Written(self, names).to_string()
    }
}

impl Display for Written<'_, Operand> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let names = self.1;
        let o = |operand: &Operand| Written(operand, names).to_string();
        match self.0 {
            Operand::Column(column) => f.write_str(&names[*column]),
            Operand::Literal(_, text) => f.write_str(text),
            Operand::Calculated(op, left, right) => {
                let op = match op {
                    Arithmetic::Add => '+',
                    Arithmetic::Subtract => '-',
                    Arithmetic::Multiply => '*',
                };
                write!(f, "({} {op} {})", o(left), o(right))
            }
            Operand::Length(text) => write!(f, "CHAR_LENGTH({})", o(text)),
            Operand::Upper(text) => write!(f, "UPPER({})", o(text)),
            Operand::Joined(left, right) => write!(f, "({} || {})", o(left), o(right)),
            Operand::Coalesce(first, second) => write!(f, "COALESCE({}, {})", o(first), o(second)),
            Operand::Case(condition, then, otherwise) => {
                let condition = Written(&**condition, names);
                write!(f, "CASE WHEN {condition} THEN {} ELSE {} END", o(then), o(otherwise))
            }
        }
    }
}

impl Display for Written<'_, Condition> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let names = self.1;
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self.0 {
            Condition::Compare(op, left, right) => {
                let op = match op {
                    Comparison::Equal => "=",
                    Comparison::NotEqual => "<>",
                    Comparison::Less => "<",
                    Comparison::LessOrEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterOrEqual => ">=",
                };
                write!(f, "{} {op} {}", Written(left, names), Written(right, names))
            }
            Condition::Between { operand, negated, low, high } => {
                let (operand, low, high) =
                    (Written(operand, names), Written(low, names), Written(high, names));
                write!(f, "{operand} {}BETWEEN {low} AND {high}", not(negated))
            }
            Condition::In { operand, negated, list } => {
                let list: Vec<String> =
                    list.iter().map(|element| Written(element, names).to_string()).collect();
                let operand = Written(operand, names);
                write!(f, "{operand} {}IN ({})", not(negated), list.join(", "))
            }
            Condition::Like { operand, negated, pattern, is_escaped } => {
                let escape = if *is_escaped { " ESCAPE '!'" } else { "" };
                let pattern = pattern.replace('\'', "''");
                write!(f, "{} {}LIKE '{pattern}'{escape}", Written(operand, names), not(negated))
            }
            Condition::IsNull(operand, negated) => {
                write!(f, "{} IS {}NULL", Written(operand, names), not(negated))
            }
            Condition::Truth(column) => f.write_str(&names[*column]),
            Condition::Not(inner) => write!(f, "NOT ({})", Written(&**inner, names)),
            Condition::And(one, other) => {
                write!(f, "({} AND {})", Written(&**one, names), Written(&**other, names))
            }
            Condition::Or(one, other) => {
                write!(f, "({} OR {})", Written(&**one, names), Written(&**other, names))
            }
            Condition::Unknown(inner) => write!(f, "({}) IS UNKNOWN", Written(&**inner, names)),
        }
    }
}
