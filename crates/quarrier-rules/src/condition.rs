//! Evaluates conditions by the strings that may be present: can a rule hold if all other strings
//! are missing?
//!
//! ```text
//!  condition ──→ Logic: strings, numbers of strings, other rules, facts of the scope, and `Can`,
//!                which may be anything ──→ can it hold, if only these strings may be there?
//! ```
//!
//! A condition is monotonic in the strings that may be present: with more of them, it can hold
//! wherever it could with fewer. An operand of `not`, and everything that is unknown, can hold.

use std::collections::HashMap;

use boreal_parser::expression::{
    Expression, ExpressionKind, ForSelection, IdentifierOperationType, ReadIntegerType, RuleSet,
    SetElement, VariableSet,
};
use boreal_parser::rule::Rule;

/// Maximum nesting of expressions. The compiler's limit is lower.
const DEPTH_MAX: usize = 64;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Logic {
    /// Can be true.
    Can,
    /// Cannot be true.
    Never,
    /// A string of the rule must be present.
    String(u32),
    /// Another rule, declared earlier, must hold.
    Rule(u32),
    All(Vec<Logic>),
    /// At least this many of them.
    Some(u64, Vec<Logic>),
    /// A comparison of numbers.
    Compare(Comparison, Number, Number),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// A number in a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Number {
    Unknown,
    Value(i64),
    /// The number of matches of a string.
    Count(u32),
    /// A property of a string that is undefined if the string is missing.
    OfString(u32),
    Filesize,
    Read(ReadIntegerType, u64),
    Add(Box<(Number, Number)>),
    Subtract(Box<(Number, Number)>),
    Multiply(Box<(Number, Number)>),
}

/// The bounds of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownValue {
    Value(i64),
    /// It has no value, and a comparison with it is undefined, too.
    Undefined,
    Unknown,
}

/// The names that a condition may refer to.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Rules declared before, by name.
    pub(crate) rules: HashMap<String, u32>,
    /// Modules imported before; their names hide those of rules.
    pub(crate) modules: Vec<String>,
}

/// The facts about a scope that are known when its candidates are chosen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts<'f> {
    pub(crate) length: Option<u64>,
    pub(crate) bytes: Option<&'f [u8]>,
}

impl Logic {
    /// Makes the condition of a rule.
    pub(crate) fn of(rule: &Rule, names: &Names) -> Self {
        let strings: Vec<&str> = rule.variables.iter().map(|string| &*string.name).collect();
        let mut reader = Reader { strings: &strings, names, bound: Vec::new(), selected: None };
        reader.truth(&rule.condition, 0)
    }

    /// Whether the condition can be true. `is_there` tells which strings of the rule may be
    /// present, and `holds` which other rules can hold.
    pub(crate) fn can(
        &self,
        facts: &Facts<'_>,
        is_there: &dyn Fn(u32) -> bool,
        holds: &dyn Fn(u32) -> bool,
    ) -> bool {
        match self {
            Logic::Can => true,
            Logic::Never => false,
            Logic::String(string) => is_there(*string),
            Logic::Rule(rule) => holds(*rule),
            Logic::All(parts) => parts.iter().all(|part| part.can(facts, is_there, holds)),
            Logic::Some(least, parts) => {
                let mut missing = *least;
                for part in parts {
                    if missing == 0 {
                        break;
                    }
                    missing -= u64::from(part.can(facts, is_there, holds));
                }
                missing == 0
            }
            Logic::Compare(comparison, left, right) => {
                match (left.known(facts, is_there), right.known(facts, is_there)) {
                    (KnownValue::Undefined, _) | (_, KnownValue::Undefined) => false,
                    (KnownValue::Value(left), KnownValue::Value(right)) => {
                        comparison.is_true(left, right)
                    }
                    _ => true,
                }
            }
        }
    }

    /// Calls `take` with each rule that the condition refers to.
    pub(crate) fn rules(&self, take: &mut dyn FnMut(u32)) {
        match self {
            Logic::Rule(rule) => take(*rule),
            Logic::All(parts) | Logic::Some(_, parts) => {
                parts.iter().for_each(|part| part.rules(take));
            }
            Logic::Can | Logic::Never | Logic::String(_) | Logic::Compare(..) => {}
        }
    }
}

impl Comparison {
    fn is_true(self, left: i64, right: i64) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
        }
    }
}

impl Number {
    fn known(&self, facts: &Facts<'_>, is_there: &dyn Fn(u32) -> bool) -> KnownValue {
        let both = |pair: &(Number, Number), with: fn(i64, i64) -> i64| match (
            pair.0.known(facts, is_there),
            pair.1.known(facts, is_there),
        ) {
            (KnownValue::Undefined, _) | (_, KnownValue::Undefined) => KnownValue::Undefined,
            (KnownValue::Value(left), KnownValue::Value(right)) => {
                KnownValue::Value(with(left, right))
            }
            _ => KnownValue::Unknown,
        };
        match self {
            Number::Unknown => KnownValue::Unknown,
            Number::Value(value) => KnownValue::Value(*value),
            Number::Count(string) if is_there(*string) => KnownValue::Unknown,
            Number::Count(_) => KnownValue::Value(0),
            Number::OfString(string) if is_there(*string) => KnownValue::Unknown,
            Number::OfString(_) => KnownValue::Undefined,
            Number::Filesize => match facts.length {
                Some(length) => KnownValue::Value(i64::try_from(length).unwrap_or(i64::MAX)),
                None => KnownValue::Unknown,
            },
            Number::Read(kind, at) => {
                facts.bytes.map_or(KnownValue::Unknown, |bytes| read(bytes, *kind, *at))
            }
            Number::Add(pair) => both(pair, i64::wrapping_add),
            Number::Subtract(pair) => both(pair, i64::wrapping_sub),
            Number::Multiply(pair) => both(pair, i64::wrapping_mul),
        }
    }
}

/// Reads the number at an offset.
fn read(bytes: &[u8], kind: ReadIntegerType, at: u64) -> KnownValue {
    use ReadIntegerType as Type;
    let length = match kind {
        Type::Int8 | Type::Uint8 => 1,
        Type::Int16 | Type::Uint16 | Type::Int16BE | Type::Uint16BE => 2,
        Type::Int32 | Type::Uint32 | Type::Int32BE | Type::Uint32BE => 4,
    };
    let start = usize::try_from(at).ok();
    let there = start.and_then(|start| bytes.get(start..start.checked_add(length)?));
    let Some(there) = there else { return KnownValue::Undefined };
    let is_big = matches!(kind, Type::Int16BE | Type::Uint16BE | Type::Int32BE | Type::Uint32BE);
    let add = |value: i64, byte: &u8| value << 8 | i64::from(*byte);
    let value = match is_big {
        true => there.iter().fold(0, add),
        false => there.iter().rev().fold(0, add),
    };
    KnownValue::Value(match kind {
        Type::Int8 => i64::from(value as i8),
        Type::Int16 | Type::Int16BE => i64::from(value as i16),
        Type::Int32 | Type::Int32BE => i64::from(value as i32),
        _ => value,
    })
}

/// Reads the condition of one rule.
struct Reader<'r> {
    strings: &'r [&'r str],
    names: &'r Names,
    /// Variables of the enclosing loops.
    bound: Vec<&'r str>,
    /// The string that `$` refers to.
    selected: Option<u32>,
}

impl<'r> Reader<'r> {
    /// Converts a boolean expression.
    fn truth(&mut self, expression: &'r Expression, depth: usize) -> Logic {
        if depth >= DEPTH_MAX {
            return Logic::Can;
        }
        let deeper = depth + 1;
        match &expression.expr {
            ExpressionKind::Boolean(true) => Logic::Can,
            ExpressionKind::Boolean(false) => Logic::Never,
            ExpressionKind::And(parts) => {
                Logic::All(parts.iter().map(|part| self.truth(part, deeper)).collect())
            }
            ExpressionKind::Or(parts) => {
                Logic::Some(1, parts.iter().map(|part| self.truth(part, deeper)).collect())
            }
            ExpressionKind::Variable(name)
            | ExpressionKind::VariableAt { variable_name: name, .. }
            | ExpressionKind::VariableIn { variable_name: name, .. } => {
                self.string(name).map_or(Logic::Can, Logic::String)
            }
            ExpressionKind::Cmp { left, right, less_than, can_be_equal } => {
                let comparison = match (less_than, can_be_equal) {
                    (true, false) => Comparison::Less,
                    (true, true) => Comparison::LessOrEqual,
                    (false, false) => Comparison::Greater,
                    (false, true) => Comparison::GreaterOrEqual,
                };
                self.compare(comparison, left, right, deeper)
            }
            ExpressionKind::Eq(left, right) => self.compare(Comparison::Equal, left, right, deeper),
            ExpressionKind::NotEq(left, right) => {
                self.compare(Comparison::NotEqual, left, right, deeper)
            }
            ExpressionKind::For { selection, set, body } => {
                let mut parts = Vec::new();
                for string in self.set(set) {
                    let outer = self.selected.replace(string);
                    parts.push(match body {
                        Some(body) => self.truth(body, deeper),
                        None => Logic::String(string),
                    });
                    self.selected = outer;
                }
                selected(selection, parts)
            }
            ExpressionKind::ForIn { selection, set, .. }
            | ExpressionKind::ForAt { selection, set, .. } => {
                selected(selection, self.set(set).into_iter().map(Logic::String).collect())
            }
            ExpressionKind::ForRules { selection, set } => {
                self.rules(set).map_or(Logic::Can, |rules| {
                    selected(selection, rules.into_iter().map(Logic::Rule).collect())
                })
            }
            ExpressionKind::ForIdentifiers { selection, identifiers, body, .. } => {
                let before = self.bound.len();
                self.bound.extend(identifiers.iter().map(|name| &**name));
                let body = self.truth(body, deeper);
                self.bound.truncate(before);
                match selection {
                    // Other selections do not need a round in which the body is true.
                    ForSelection::Any => body,
                    ForSelection::Expr { expr, as_percent: false }
                        if matches!(expr.expr, ExpressionKind::Integer(1..)) =>
                    {
                        body
                    }
                    _ => Logic::Can,
                }
            }
            ExpressionKind::Identifier(identifier) => {
                self.rule(&identifier.name, &identifier.operations)
            }
            // A number is true unless it is zero.
            ExpressionKind::Filesize
            | ExpressionKind::ReadInteger { .. }
            | ExpressionKind::Integer(_)
            | ExpressionKind::Count(_)
            | ExpressionKind::CountInRange { .. }
            | ExpressionKind::Offset { .. }
            | ExpressionKind::Length { .. }
            | ExpressionKind::Add(..)
            | ExpressionKind::Sub(..)
            | ExpressionKind::Mul(..) => {
                let number = self.number(expression, deeper);
                Logic::Compare(Comparison::NotEqual, number, Number::Value(0))
            }
            _ => Logic::Can,
        }
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &'r Expression,
        right: &'r Expression,
        depth: usize,
    ) -> Logic {
        let (left, right) = (self.number(left, depth), self.number(right, depth));
        Logic::Compare(comparison, left, right)
    }

    /// Converts a numeric expression.
    fn number(&mut self, expression: &'r Expression, depth: usize) -> Number {
        if depth >= DEPTH_MAX {
            return Number::Unknown;
        }
        let mut both = |left: &'r Expression, right: &'r Expression| {
            Box::new((self.number(left, depth + 1), self.number(right, depth + 1)))
        };
        match &expression.expr {
            ExpressionKind::Integer(value) => Number::Value(*value),
            ExpressionKind::Filesize => Number::Filesize,
            ExpressionKind::Add(left, right) => Number::Add(both(left, right)),
            ExpressionKind::Sub(left, right) => Number::Subtract(both(left, right)),
            ExpressionKind::Mul(left, right) => Number::Multiply(both(left, right)),
            ExpressionKind::Count(name)
            | ExpressionKind::CountInRange { variable_name: name, .. } => {
                // If the bounds of the range are undefined, so is the count.
                self.string(name).map_or(Number::Unknown, Number::Count)
            }
            ExpressionKind::Offset { variable_name: name, .. }
            | ExpressionKind::Length { variable_name: name, .. } => {
                self.string(name).map_or(Number::Unknown, Number::OfString)
            }
            ExpressionKind::ReadInteger { ty, addr } => match addr.expr {
                ExpressionKind::Integer(at @ 0..) => Number::Read(*ty, at.unsigned_abs()),
                _ => Number::Unknown,
            },
            _ => Number::Unknown,
        }
    }

    /// Returns the string of a name; for an empty name, the string of the loop.
    fn string(&self, name: &str) -> Option<u32> {
        if name.is_empty() {
            return self.selected;
        }
        let place = self.strings.iter().position(|string| *string == name)?;
        u32::try_from(place).ok()
    }

    /// Returns the strings of a set; an empty set has all.
    fn set(&self, set: &VariableSet) -> Vec<u32> {
        let is_in = |name: &str| {
            set.elements.is_empty() || set.elements.iter().any(|element| names(element, name))
        };
        (0..).zip(self.strings).filter(|(_, name)| is_in(name)).map(|(place, _)| place).collect()
    }

    /// Returns the rules of a set, each as often as the set names it; `None` if an element names no
    /// known rule.
    fn rules(&self, set: &RuleSet) -> Option<Vec<u32>> {
        let mut rules = Vec::new();
        for element in &set.elements {
            let all = self.names.rules.iter();
            let before = rules.len();
            rules.extend(all.filter(|(name, _)| names(element, name)).map(|(_, rule)| *rule));
            if rules.len() == before {
                return None;
            }
        }
        Some(rules)
    }

    /// Converts a name, which may refer to a rule; anything else can be true.
    fn rule(
        &self,
        name: &str,
        operations: &[boreal_parser::expression::IdentifierOperation],
    ) -> Logic {
        let is_other = self.bound.contains(&name) || self.names.modules.iter().any(|m| m == name);
        let is_operated = operations.iter().any(|operation| {
            matches!(
                operation.op,
                IdentifierOperationType::Subscript(_)
                    | IdentifierOperationType::Subfield(_)
                    | IdentifierOperationType::FunctionCall(_)
            )
        });
        match self.names.rules.get(name) {
            Some(rule) if !is_other && !is_operated => Logic::Rule(*rule),
            _ => Logic::Can,
        }
    }
}

fn names(element: &SetElement, name: &str) -> bool {
    match element.is_wildcard {
        true => name.starts_with(&element.name),
        false => name == element.name,
    }
}

/// Requires as many of `parts` as a selection requests.
fn selected(selection: &ForSelection, parts: Vec<Logic>) -> Logic {
    let all = parts.len() as u64;
    match selection {
        ForSelection::Any => Logic::Some(1, parts),
        ForSelection::All => Logic::All(parts),
        ForSelection::Expr { expr, as_percent } => match (&expr.expr, as_percent) {
            (ExpressionKind::Integer(count @ 1..), false) => {
                Logic::Some(count.unsigned_abs(), parts)
            }
            // Rounded down: never more than requested.
            (ExpressionKind::Integer(percent @ 1..), true) => {
                Logic::Some(all.saturating_mul(percent.unsigned_abs()) / 100, parts)
            }
            _ => Logic::Can,
        },
        ForSelection::None => Logic::Can,
    }
}

#[cfg(test)]
mod tests {
    use boreal_parser::file::YaraFileComponent;

    use super::*;

    const STRINGS: &str = "$a = \"aaa\" $b = \"bbb\" $c1 = \"ccc\" $c2 = \"ddd\"";

    /// Whether a condition can hold if these strings may be present; rule `r` can hold, `n` cannot.
    fn can(condition: &str, there: &[&str]) -> bool {
        let text = format!("rule x {{ strings: {STRINGS} condition: {condition} }}");
        let file = boreal_parser::parse(&text).unwrap_or_else(|_| panic!("{condition}"));
        let [YaraFileComponent::Rule(rule)] = &file.components[..] else { panic!("{condition}") };
        let rules = [("r", 0), ("n", 1), ("pe", 1), ("i", 1)];
        let names = Names {
            rules: rules.map(|(name, rule)| (name.to_string(), rule)).into(),
            modules: vec!["pe".to_string()],
        };
        let logic = Logic::of(rule, &names);
        let is_there = |string: u32| there.contains(&["a", "b", "c1", "c2"][string as usize]);
        let facts = Facts { length: Some(4), bytes: Some(b"MZ\x90\xFF") };
        logic.can(&facts, &is_there, &|rule| rule == 0)
    }

    #[test]
    fn conditions_that_need_strings_cannot_hold_without_them() {
        for condition in [
            "$a",
            "$a at 0",
            "$a in (0..9)",
            "any of them",
            "all of them",
            "#a > 0",
            "#a",
            "@a[1] < 9",
            "@a == 0",
            "!a[1] > 0",
            "#a in (0..9) >= 1",
            "#a + #b == 1",
            "2 of ($c*)",
            "25% of them",
            "for any of them : ( # > 0 )",
            "for all of ($a) : ( @ == 0 )",
            "any of them in (0..9)",
            "any of ($a) at 0",
            "for any i in (0..9) : ( $a at i )",
            "for 2 i in (1, 2) : ( #a > 0 )",
            "filesize > 4",
            "filesize == 3",
            "uint16(0) == 0x5A4E",
            "uint16be(3) == 0",
            "int8(3) > 0",
            "uint32(0) != 0xFF905A4D",
            "n",
            "any of (n)",
            "n and r",
            "false",
            "0",
            "#a * 2 >= 1",
            "$b and not $a",
            "true and $a",
            "(false or $a)",
        ] {
            assert!(!can(condition, &[]), "{condition}");
        }
    }

    #[test]
    fn conditions_that_can_hold_without_strings() {
        for condition in [
            "not $a",
            "none of them",
            "0 of them",
            "#a == 0",
            "filesize < 5",
            "uint16(0) == 0x5A4D",
            "int8(3) == -1",
            "true",
            "r",
            "any of (r, n)",
            "not n",
            "$a or filesize == 4",
            "pe",
            "pe.x",
            "for all i in (1..#a) : ( $a at i )",
            "for any i in (0, 1) : ( i )",
            "defined @a[1]",
            "#a - 1 < 0",
            "uint16(filesize) == 0",
            "#a * 1.5 == 0",
            "#a < #b + 1",
        ] {
            assert!(can(condition, &[]), "{condition}");
        }
    }

    #[test]
    fn strings_that_may_be_there_decide_with_the_others() {
        assert!(can("all of ($a, $b)", &["a", "b"]));
        assert!(!can("all of ($a, $b)", &["a"]));
        assert!(can("2 of ($a, $b, $c1)", &["a", "c1"]));
        assert!(!can("3 of them", &["a", "c1"]));
        assert!(can("50% of them", &["a", "c1"]));
        assert!(!can("75% of them", &["a", "c1"]));
        assert!(can("51% of them", &["a", "c1"]), "rounded down");
        assert!(can("#a > 100", &["a"]));
        assert!(!can("#a > 100 and $b", &["a"]));
        assert!(can("for any of ($a, $b) : ( $ at 0 and $c1 )", &["b", "c1"]));
        assert!(!can("for any of ($a, $b) : ( $ at 0 and $c1 )", &["a", "b"]));
    }
}
