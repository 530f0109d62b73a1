//! Translates logical expressions.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr as From, Like, Operator};
use quarrier_filter::Expr;
use quarrier_filter::expr::{Arithmetic, Comparison, Function};
use quarrier_messages::{Kind, Schema, Value};

use super::{Condition, DEPTH_MAX, Valued, compare, joined, like, not, numbers};
use crate::literal::{self, Class, class_of};
use quarrier_exact::{Checked, Floats};

/// The condition for the scan; `None` if the scan cannot evaluate it with the same meaning.
pub(crate) fn logical(expr: &From, schema: &Schema) -> Option<Condition> {
    let translated = Translator { schema }.condition(expr, 0)?;
    Some(Condition::of(translated, expr.human_display().to_string()))
}

struct Translator<'s> {
    schema: &'s Schema,
}

impl Translator<'_> {
    fn condition(&self, expr: &From, depth: usize) -> Option<Expr> {
        if depth > DEPTH_MAX {
            return None;
        }
        let deeper = |expr: &From| self.condition(expr, depth + 1);
        let is = |operand: &From, truth: Option<bool>, negated: bool| {
            let operand = Box::new(deeper(operand)?);
            Some(not(Expr::Is { operand, truth }, negated))
        };
        match expr {
            From::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) => {
                self.chain(expr, depth)
            }
            From::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.comparison(left, *op, right, depth)
            }
            From::Not(operand) => Some(not(deeper(operand)?, true)),
            From::IsNull(operand) => self.is_null(operand, false, depth),
            From::IsNotNull(operand) => self.is_null(operand, true, depth),
            From::IsTrue(operand) => is(operand, Some(true), false),
            From::IsNotTrue(operand) => is(operand, Some(true), true),
            From::IsFalse(operand) => is(operand, Some(false), false),
            From::IsNotFalse(operand) => is(operand, Some(false), true),
            From::IsUnknown(operand) => is(operand, None, false),
            From::IsNotUnknown(operand) => is(operand, None, true),
            From::Between(Between { expr, negated, low, high }) => {
                let above = self.comparison(expr, Operator::GtEq, low, depth)?;
                let below = self.comparison(expr, Operator::LtEq, high, depth)?;
                Some(not(Expr::And(vec![above, below]), *negated))
            }
            From::InList(list) => self.listed(&list.expr, &list.list, list.negated, depth),
            From::Like(written) => self.like(written, depth),
            From::Column(_) | From::Literal(..) => {
                let value = self.value(expr, depth)?;
                matches!(value.class, Class::Boolean | Class::Null).then_some(value.expr)
            }
            _ => None,
        }
    }

    /// Translates a chain of AND or OR without recursing along it.
    fn chain(&self, expr: &From, depth: usize) -> Option<Expr> {
        let From::BinaryExpr(BinaryExpr { op, .. }) = expr else { return None };
        let (mut open, mut parts) = (vec![expr], Vec::new());
        while let Some(next) = open.pop() {
            match next {
                From::BinaryExpr(BinaryExpr { left, op: inner, right }) if inner == op => {
                    open.push(right);
                    open.push(left);
                }
                part => parts.push(self.condition(part, depth + 1)?),
            }
        }
        Some(joined(parts, *op == Operator::And))
    }

    fn comparison(&self, left: &From, op: Operator, right: &From, depth: usize) -> Option<Expr> {
        if let (Operator::Eq | Operator::NotEq, Some(_)) = (op, self.beginning(left)) {
            return self.listed(left, std::slice::from_ref(right), op == Operator::NotEq, depth);
        }
        let comparison = comparison_of(op)?;
        let (left, right) = (self.value(left, depth)?, self.value(right, depth)?);
        let left = numbers::plain(left, &right);
        let right = numbers::plain(right, &left);
        compare(comparison, left, right)
    }

    fn is_null(&self, operand: &From, negated: bool, depth: usize) -> Option<Expr> {
        if let Some(Valued { expr, .. }) = self.value(operand, depth) {
            // Only of plain operands: an error in a calculation would become an error of the scan
            // here.
            let is_plain = matches!(expr, Expr::Column(_) | Expr::Literal(_));
            return is_plain.then(|| not(Expr::IsNull(Box::new(expr)), negated));
        }
        let operand = Box::new(self.condition(operand, depth + 1)?);
        Some(not(Expr::Is { operand, truth: None }, negated))
    }

    fn listed(&self, operand: &From, list: &[From], negated: bool, depth: usize) -> Option<Expr> {
        let operand = match self.beginning(operand) {
            Some(beginning) => beginning,
            None => self.value(operand, depth)?,
        };
        if !matches!(operand.expr, Expr::Column(_) | Expr::Call { .. }) {
            return None;
        }
        let element = |element: &From| {
            let element = self.value(element, depth)?;
            let is_same = element.class == operand.class || element.class == Class::Null;
            (is_same && matches!(element.expr, Expr::Literal(_))).then_some(element.expr)
        };
        let list: Vec<Expr> = list.iter().map(element).collect::<Option<_>>()?;
        if list.is_empty() {
            return None;
        }
        Some(not(Expr::In { operand: Box::new(operand.expr), list }, negated))
    }

    /// A prefix of a column's strings, for which the scan can test membership in a list.
    fn beginning(&self, expr: &From) -> Option<Valued> {
        let From::ScalarFunction(call) = expr else { return None };
        let [text, start, count] = call.args.as_slice() else { return None };
        let whole = |expr: &From| match expr {
            From::Literal(ScalarValue::Int64(Some(number)), _) => Some(*number),
            _ => None,
        };
        let (From::Column(column), Some(1), Some(count @ 0..)) = (text, whole(start), whole(count))
        else {
            return None;
        };
        let column = self.column(&column.name).filter(|it| it.class == Class::Text)?;
        let number = |number| Expr::Literal(Value::Integer(number));
        let arguments = vec![column.expr, number(1), number(count)];
        let expr = Expr::Call { function: Function::Substring, arguments };
        (call.name() == "substr").then_some(Valued { expr, ..column })
    }

    fn like(&self, written: &Like, depth: usize) -> Option<Expr> {
        if written.case_insensitive || written.escape_char.is_some_and(|by| by != '\\') {
            return None;
        }
        let operand = self.value(&written.expr, depth)?;
        let pattern = self.value(&written.pattern, depth)?;
        match (operand.class, pattern.expr) {
            (Class::Text, Expr::Literal(Value::Text(pattern))) => {
                Some(not(like(operand.expr, &pattern)?, written.negated))
            }
            _ => None,
        }
    }

    fn value(&self, expr: &From, depth: usize) -> Option<Valued> {
        if depth > DEPTH_MAX {
            return None;
        }
        match expr {
            From::Alias(alias) => self.value(&alias.expr, depth + 1),
            From::Column(column) => self.column(&column.name),
            From::Literal(scalar, _) => {
                let class = class_of(&scalar.data_type())?;
                let value = literal::value(scalar)?;
                let is_float = matches!(value, Value::Float(_));
                Some(Valued { expr: Expr::Literal(value), class, is_float })
            }
            From::Cast(Cast { expr, field }) => {
                let from = self.type_of(expr)?;
                numbers::converted(self.value(expr, depth + 1)?, &from, field.data_type())
            }
            From::BinaryExpr(BinaryExpr { left, op, right }) => {
                let op = match op {
                    Operator::Plus => Arithmetic::Add,
                    Operator::Minus => Arithmetic::Subtract,
                    Operator::Multiply => Arithmetic::Multiply,
                    _ => return None,
                };
                self.calculated(op, left, right, depth)
            }
            From::ScalarFunction(call) => self.called(call, depth),
            _ => None,
        }
    }

    /// Translates the functions that `plan` inserts so that DataFusion calculates numbers like the
    /// scan.
    fn called(&self, call: &ScalarFunction, depth: usize) -> Option<Valued> {
        let op = match Checked::of(call.name()) {
            Some(Checked::Add) => Arithmetic::Add,
            Some(Checked::Subtract) => Arithmetic::Subtract,
            Some(Checked::Multiply) => Arithmetic::Multiply,
            Some(Checked::Negate) => return None,
            None => {
                let [operand] = call.args.as_slice() else { return None };
                let operand = || self.value(operand, depth + 1);
                return match Floats::of(call.name())? {
                    Floats::Double => Some(numbers::floating(operand()?)),
                    Floats::Ordered => operand(),
                    Floats::Key | Floats::OfKey => None,
                };
            }
        };
        let [left, right] = call.args.as_slice() else { return None };
        self.calculated(op, left, right, depth)
    }

    fn calculated(
        &self,
        op: Arithmetic,
        left: &From,
        right: &From,
        depth: usize,
    ) -> Option<Valued> {
        let (left, right) = (self.value(left, depth + 1)?, self.value(right, depth + 1)?);
        if (left.class, right.class) != (Class::Number, Class::Number) {
            return None;
        }
        let is_float = left.is_float || right.is_float;
        let (left, right) = (Box::new(left.expr), Box::new(right.expr));
        let expr = Expr::Arithmetic { op, left, right };
        Some(Valued { expr, class: Class::Number, is_float })
    }

    fn column(&self, name: &str) -> Option<Valued> {
        let place = self.schema.fields.iter().position(|field| &*field.name == name)?;
        let kind = self.schema.fields[place].kind;
        let class = match kind {
            Kind::Null => Class::Null,
            Kind::Boolean => Class::Boolean,
            Kind::Integer | Kind::Decimal { .. } | Kind::Float => Class::Number,
            Kind::Date | Kind::Timestamp => Class::Time,
            Kind::Text => Class::Text,
        };
        Some(Valued { expr: Expr::Column(place), class, is_float: kind == Kind::Float })
    }

    /// The type of an operand of a cast.
    fn type_of(&self, expr: &From) -> Option<DataType> {
        match expr {
            From::Alias(alias) => self.type_of(&alias.expr),
            From::Literal(scalar, _) => Some(scalar.data_type()),
            From::Cast(cast) => Some(cast.field.data_type().clone()),
            From::Column(column) => {
                let mut fields = self.schema.fields.iter();
                let field = fields.find(|field| *field.name == *column.name)?;
                Some(match field.kind {
                    Kind::Null => DataType::Null,
                    Kind::Boolean => DataType::Boolean,
                    Kind::Integer => DataType::Int64,
                    Kind::Decimal { scale } => DataType::Decimal128(19, scale as i8),
                    Kind::Float => DataType::Float64,
                    Kind::Date => DataType::Date32,
                    Kind::Timestamp => DataType::Timestamp(
                        datafusion::arrow::datatypes::TimeUnit::Nanosecond,
                        None,
                    ),
                    Kind::Text => DataType::Utf8View,
                })
            }
            _ => None,
        }
    }
}

pub(super) fn comparison_of(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
