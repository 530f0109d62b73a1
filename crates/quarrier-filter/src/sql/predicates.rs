//! Predicates: BETWEEN, IN, LIKE, IS and the like.

use quarrier_messages::{LIST_ENDS_COLUMN, Value};
use sqlparser::ast::{self, BinaryOperator};
use sqlparser::tokenizer::Location;

use super::bind::{Binder, Bound, elsewhere, place};
use super::dialect::SYMMETRIC;
use super::rows::{literal_as, stripped};
use super::types::Type;
use super::{lists, literals, wrong};
use crate::expr::{Comparison, Expr, Matcher, Pattern};
use crate::matching::Matching;
use crate::{Error, Result};

impl Binder<'_> {
    /// Binds a predicate that is not an operator; returns other expressions unchanged.
    pub(super) fn predicate(
        &mut self,
        expr: ast::Expr,
        at: Location,
    ) -> Result<std::result::Result<Bound, ast::Expr>> {
        use ast::Expr as From;
        let (bound, negated) = match expr {
            From::IsNull(operand) => (self.is_null(*operand, false)?, false),
            From::IsNotNull(operand) => (self.is_null(*operand, true)?, false),
            From::IsTrue(operand) => (self.is(*operand, Some(true), at)?, false),
            From::IsNotTrue(operand) => (self.is(*operand, Some(true), at)?, true),
            From::IsFalse(operand) => (self.is(*operand, Some(false), at)?, false),
            From::IsNotFalse(operand) => (self.is(*operand, Some(false), at)?, true),
            From::IsUnknown(operand) => (self.is(*operand, None, at)?, false),
            From::IsNotUnknown(operand) => (self.is(*operand, None, at)?, true),
            From::Between { expr, negated, low, high } => {
                (self.between(*expr, *low, *high)?, negated)
            }
            From::InList { expr, list, negated } => (self.is_in(*expr, list)?, negated),
            From::Like { negated, any: false, expr, pattern, escape_char } => {
                (self.like(*expr, *pattern, escape_char, Matcher::Like)?, negated)
            }
            From::SimilarTo { negated, expr, pattern, escape_char } => {
                (self.like(*expr, *pattern, escape_char, Matcher::Similar)?, negated)
            }
            From::RLike { negated, expr, pattern, .. } => {
                (self.like(*expr, *pattern, None, Matcher::Regex)?, negated)
            }
            From::ILike { .. } => {
                return Err(wrong(at, "ILIKE is not SQL-92's; write UPPER(x) LIKE UPPER('…')"));
            }
            other => return Ok(Err(other)),
        };
        Ok(Ok(if negated { self.not(bound, at)? } else { bound }))
    }

    /// Binds `left op ANY (list)`, or ALL.
    pub(super) fn quantified(
        &mut self,
        left: ast::Expr,
        (op, is_all): (&BinaryOperator, bool),
        right: &ast::Expr,
        at: Location,
    ) -> Result<Bound> {
        let path = match stripped(right) {
            ast::Expr::Identifier(name) if lists::is_list(&name.value) => &*name.value,
            _ => return Err(elsewhere(at, "ANY and ALL of a query are")),
        };
        if let Some(all) = self.lists() {
            let Some(list) = all.get(path) else {
                let error = Box::new(wrong(at, self.unknown(path)));
                return Err(Error::List { path: path.into(), error });
            };
            let fields = &self.schema().fields;
            let value = |(&index, &column): (&u64, &usize)| (index, &*fields[column].name);
            let elements: Vec<(u64, &str)> = list.values.iter().map(value).collect();
            let elements = (elements.as_slice(), &*fields[list.length].name);
            let compared = lists::quantified_by_length(&left, (op, is_all), elements);
            return self.bind(compared.map_err(|reason| wrong(at, reason))?);
        }
        let names: Vec<&str> = self.schema().fields.iter().map(|field| &*field.name).collect();
        let of_table = || {
            let (_, path) = path.split_once('.').filter(|(table, _)| self.is_table(table))?;
            Some((lists::elements(path, &names)?, path))
        };
        let of_name = lists::elements(path, &names).map(|elements| (elements, path));
        let Some((elements, path)) = of_name.or_else(of_table) else {
            // A column of this name stands for a list that no message contains.
            return match self.schema().position(path) {
                Some(_) => Ok(Bound::literal(Value::Boolean(is_all), Type::Boolean, at)),
                None => {
                    let error = Box::new(wrong(at, self.unknown(path)));
                    Err(Error::Column { name: path.into(), error })
                }
            };
        };
        let end = |list| lists::ends_without_value(list, lists::column(LIST_ENDS_COLUMN));
        let ends = match names.contains(&LIST_ENDS_COLUMN) {
            true => lists::list_names(path, &elements).into_iter().map(end).collect(),
            false => Vec::new(),
        };
        let elements = (elements.as_slice(), ends);
        let compared = lists::quantified(&left, (op, is_all), elements, &lists::column);
        self.bind(compared.map_err(|reason| wrong(at, reason))?)
    }

    /// Binds `IS NULL` of a value, or of each value of a row.
    fn is_null(&mut self, operand: ast::Expr, negated: bool) -> Result<Bound> {
        let mut tests = Vec::new();
        for value in self.row(operand)? {
            let at = value.at;
            let test =
                self.node([value], Type::Boolean, at, |[value]| Expr::IsNull(Box::new(value)))?;
            // A row IS NOT NULL if all its values are, which is stricter than NOT (row IS NULL).
            tests.push(if negated { self.not(test, at)? } else { test });
        }
        self.joined(tests, true)
    }

    fn is(&mut self, operand: ast::Expr, truth: Option<bool>, at: Location) -> Result<Bound> {
        let operand = self.bind(operand)?.truth()?;
        self.node([operand], Type::Boolean, at, |[operand]| Expr::Is {
            operand: Box::new(operand),
            truth,
        })
    }

    fn between(&mut self, operand: ast::Expr, low: ast::Expr, high: ast::Expr) -> Result<Bound> {
        let at = place(&operand);
        let (low, is_symmetric) = match low {
            ast::Expr::Named { expr, name } if name.value == SYMMETRIC => (*expr, true),
            other => (other, false),
        };
        let (operand, low, high) = (self.row(operand)?, self.row(low)?, self.row(high)?);
        let forwards = self.within(operand.clone(), low.clone(), high.clone(), at)?;
        if !is_symmetric {
            return Ok(forwards);
        }
        let backwards = self.within(operand, high, low, at)?;
        self.join(vec![forwards, backwards], false)
    }

    fn within(
        &mut self,
        operand: Vec<Bound>,
        low: Vec<Bound>,
        high: Vec<Bound>,
        at: Location,
    ) -> Result<Bound> {
        let above = self.compare_rows(Comparison::GreaterOrEqual, operand.clone(), low, at)?;
        let below = self.compare_rows(Comparison::LessOrEqual, operand, high, at)?;
        self.join(vec![above, below], true)
    }

    fn is_in(&mut self, operand: ast::Expr, list: Vec<ast::Expr>) -> Result<Bound> {
        let at = place(&operand);
        let is_row = matches!(stripped(&operand), ast::Expr::Tuple(_));
        let mut operand = self.row(operand)?;
        let is_written = operand.iter().all(Bound::is_literal);
        let mut equals = Vec::new();
        let mut values = Vec::new();
        for element in list {
            let mut element = self.row(element)?;
            if let (true, [one], [other]) = (is_written, operand.as_slice(), element.as_slice()) {
                operand = vec![literals::dated(one.clone(), other.kind)?];
            }
            match (element.len(), operand.as_slice(), element.pop()) {
                (1, [operand], Some(value)) if !is_row => {
                    let value = literals::dated(value, operand.kind)?;
                    self.comparable(operand, &value)?;
                    values.push(literal_as(value, operand));
                }
                (_, _, last) => {
                    element.extend(last);
                    equals.push(self.compare_rows(
                        Comparison::Equal,
                        operand.clone(),
                        element,
                        at,
                    )?);
                }
            }
        }
        if !equals.is_empty() {
            return self.joined(equals, false);
        }
        let Some(operand) = operand.pop() else { return Err(wrong(at, "a row without values")) };
        let is_padded = values.iter().chain([&operand]).any(|v| v.kind == Type::Character);
        if is_padded {
            let equals: Result<Vec<Bound>> = values
                .into_iter()
                .map(|value| self.compare(Comparison::Equal, operand.clone(), value))
                .collect();
            return self.joined(equals?, false);
        }
        values.push(operand);
        self.node_of(values, Type::Boolean, at, |mut list| {
            let operand = Box::new(list.pop().unwrap_or(Expr::Literal(Value::Null)));
            Expr::In { operand, list }
        })
    }

    /// Binds LIKE and the other pattern predicates.
    pub(super) fn like(
        &mut self,
        operand: ast::Expr,
        pattern: ast::Expr,
        escape: Option<ast::ValueWithSpan>,
        by: Matcher,
    ) -> Result<Bound> {
        let operand = self.bind(operand)?;
        let pattern = self.bind(pattern)?;
        self.matched(operand, pattern, escape, by)
    }

    fn matched(
        &mut self,
        operand: Bound,
        mut pattern: Bound,
        escape: Option<ast::ValueWithSpan>,
        by: Matcher,
    ) -> Result<Bound> {
        let at = operand.at;
        for side in [&operand, &pattern] {
            if !side.kind.is_text() {
                let reason = format!(
                    "a pattern is compared with text, not with {}; CAST it AS VARCHAR",
                    side.kind.named()
                );
                return Err(wrong(side.at, reason));
            }
        }
        let escape = match escape {
            None => None,
            Some(value) => match escape_character(&value)? {
                Some(character) => Some(character),
                None => {
                    pattern = Bound::literal(Value::Null, Type::Text, pattern.at);
                    None
                }
            },
        };
        if let Expr::Literal(Value::Text(text)) = &pattern.expr {
            match (Matching::new(text, escape, by), by) {
                (Ok(fixed), _) => {
                    return self.node([operand], Type::Boolean, at, |[operand]| Expr::Match {
                        operand: Box::new(operand),
                        pattern: Pattern::Fixed(fixed),
                    });
                }
                // In SQL-92 the pattern is an error only if there is a row.
                (Err(_), Matcher::Like) => {}
                (Err(fault), _) => return Err(wrong(pattern.at, fault.to_string())),
            }
        }
        self.node([operand, pattern], Type::Boolean, at, |[operand, pattern]| Expr::Match {
            operand: Box::new(operand),
            pattern: Pattern::Computed { text: Box::new(pattern), escape, by },
        })
    }

    /// Binds `~` and the library's other operators.
    pub(super) fn match_operator(
        &mut self,
        left: Bound,
        op: &BinaryOperator,
        mut right: Bound,
    ) -> Result<Bound> {
        let at = left.at;
        let (negated, ignores_case) = match op {
            BinaryOperator::PGRegexMatch => (false, false),
            BinaryOperator::PGRegexNotMatch => (true, false),
            BinaryOperator::PGRegexIMatch => (false, true),
            BinaryOperator::PGRegexNotIMatch => (true, true),
            BinaryOperator::Overlaps => {
                return Err(wrong(at, "OVERLAPS needs a pair (start, end) on either side"));
            }
            other => return Err(elsewhere(at, &format!("the operator {other} is"))),
        };
        if ignores_case {
            match &right.expr {
                Expr::Literal(Value::Text(text)) => {
                    let text = format!("(?i){text}").into_boxed_str();
                    right = Bound::literal(Value::Text(text), Type::Text, right.at);
                }
                _ => return Err(wrong(right.at, "the pattern of ~* is a string between quotes")),
            }
        }
        let found = self.matched(left, right, None, Matcher::Regex)?;
        if negated { self.not(found, at) } else { Ok(found) }
    }
}

/// Returns the character; `None` for NULL.
fn escape_character(value: &ast::ValueWithSpan) -> Result<Option<char>> {
    let at = value.span.start;
    match &value.value {
        ast::Value::Null => Ok(None),
        ast::Value::SingleQuotedString(text) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Ok(Some(character)),
                _ => Err(wrong(at, format!("ESCAPE names one character, not '{text}'"))),
            }
        }
        _ => Err(wrong(at, "ESCAPE names one character between quotes")),
    }
}
