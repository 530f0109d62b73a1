//! Binds the library's syntax tree: resolves names to columns, and checks types.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::time::SystemTime;

use quarrier_messages::{Schema, Value};
use sqlparser::ast::{self, CastKind, Spanned, UnaryOperator};
use sqlparser::tokenizer::Location;

use super::types::Type;
use super::{DEPTH_MAX, Lists, NODES_MAX, literals, parse, unanswered, wrong};
use crate::expr::Expr;
use crate::{Error, Result, naive};

/// Binds the expressions of one input.
pub(super) struct Binder<'a> {
    schema: &'a Schema,
    /// The number of lookups of columns so far.
    lookups: Cell<usize>,
    /// The columns by name, after many lookups: a comparison with a list looks up thousands.
    positions: OnceCell<HashMap<&'a str, usize>>,
    /// The lists of messages that are still to come.
    lists: Option<&'a Lists>,
    /// The qualifier allowed before a column's name.
    table: Option<String>,
    /// The value of CURRENT_TIMESTAMP, the same for the whole input: nanoseconds from 1970.
    pub(super) now: i64,
    depth: usize,
}

/// A bound expression with its type and size.
#[derive(Clone)]
pub(super) struct Bound {
    pub(super) expr: Expr,
    pub(super) kind: Type,
    pub(super) at: Location,
    /// The depth of the deepest node, and the number of nodes.
    depth: usize,
    nodes: usize,
}

impl Bound {
    pub(super) fn literal(value: Value, kind: Type, at: Location) -> Self {
        Bound { expr: Expr::Literal(value), kind, at, depth: 1, nodes: 1 }
    }

    /// Returns the expression if it is a condition.
    pub(super) fn condition(self) -> Result<Expr> {
        Ok(self.truth()?.expr)
    }

    /// Returns the bound expression if it is a boolean.
    pub(super) fn truth(self) -> Result<Bound> {
        match self.kind {
            Type::Boolean | Type::Null => Ok(self),
            other => Err(wrong(
                self.at,
                format!("{} is not a condition; compare it with something", other.named()),
            )),
        }
    }

    pub(super) fn is_literal(&self) -> bool {
        matches!(self.expr, Expr::Literal(_))
    }
}

/// Number of lookups after which the columns are put into a map.
const LOOKUPS_MAX: usize = 16;

impl<'a> Binder<'a> {
    pub(super) fn new(schema: &'a Schema, table: Option<String>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.ok().and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        let (lookups, positions) = (Cell::new(0), OnceCell::new());
        Binder { schema, lookups, positions, lists: None, table, now, depth: 0 }
    }

    /// Lets conditions name these lists of messages that are still to come.
    pub(super) fn with_lists(mut self, lists: &'a Lists) -> Self {
        self.lists = Some(lists);
        self
    }

    /// The lists of messages that are still to come, unless the schema has all columns.
    pub(super) fn lists(&self) -> Option<&'a Lists> {
        self.lists
    }

    /// Binds an expression.
    pub(super) fn bind(&mut self, expr: ast::Expr) -> Result<Bound> {
        // Limits the nesting of the input, which parentheses make deeper than the bound expression.
        if self.depth > 4 * DEPTH_MAX {
            return Err(wrong(place(&expr), parse::too_deep()));
        }
        self.depth += 1;
        let bound = self.bind_any(expr);
        self.depth -= 1;
        bound
    }

    fn bind_any(&mut self, expr: ast::Expr) -> Result<Bound> {
        use ast::Expr as From;
        let at = place(&expr);
        match expr {
            From::Nested(inner) => self.bind(*inner),
            From::Value(value) => literals::value(value),
            From::TypedString(typed) => literals::typed(typed, at),
            From::Interval(interval) => literals::interval(&interval, at),
            From::Identifier(name) => self.column(&name, at),
            From::BinaryOp { .. } => self.binary(expr),
            From::UnaryOp { op: UnaryOperator::Not, expr } => {
                let operand = self.bind(*expr)?.truth()?;
                self.not(operand, at)
            }
            From::UnaryOp { op: UnaryOperator::Minus, expr } => self.negate(*expr, at),
            From::UnaryOp { op: UnaryOperator::Plus, expr } => {
                let operand = self.bind(*expr)?;
                if operand.kind.is_number() || operand.kind.is_interval() {
                    return Ok(operand);
                }
                Err(wrong(at, format!("{} has no sign", operand.kind.named())))
            }
            From::Case { operand, conditions, else_result, .. } => {
                self.case(operand, conditions, else_result, at)
            }
            From::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => self.cast(*expr, &data_type, at),
            From::Tuple(_) => {
                Err(wrong(at, "a row of values can only be compared with a row: (a, b) = (1, 2)"))
            }
            other => match self.predicate(other, at)? {
                Ok(bound) => Ok(bound),
                Err(other) => self.special(other, at),
            },
        }
    }

    /// Binds `left op right op …`, which the library nests as deep as the chain is long.
    fn binary(&mut self, mut expr: ast::Expr) -> Result<Bound> {
        let mut chain = Vec::new();
        while let ast::Expr::BinaryOp { left, op, right } = expr {
            chain.push((op, right));
            expr = *left;
        }
        let mut first = Some(expr);
        let mut bound: Option<Bound> = None;
        // The operands of the AND or OR that contains the rest of the chain.
        let mut joined: Vec<Bound> = Vec::new();
        while let Some((op, right)) = chain.pop() {
            let right = *right;
            let (is_and, is_or) = (op == ast::BinaryOperator::And, op == ast::BinaryOperator::Or);
            if is_and || is_or {
                let left = match bound.take() {
                    Some(left) => left,
                    None => self.operand(&mut first)?,
                };
                if joined.is_empty() {
                    joined.push(left.truth()?);
                }
                joined.push(self.bind(right)?.truth()?);
                if chain.last().is_none_or(|(next, _)| *next != op) {
                    let operands = std::mem::take(&mut joined);
                    bound = Some(self.join(operands, is_and)?);
                } else {
                    // A placeholder; the operands are in `joined`.
                    bound = Some(Bound::literal(Value::Null, Type::Boolean, Location::new(0, 0)));
                }
                continue;
            }
            bound = Some(match (bound.take(), first.take()) {
                (Some(left), _) => self.operator(left, &op, right)?,
                (None, Some(left)) => self.first_operator(left, op, right)?,
                (None, None) => {
                    return Err(wrong(place(&right), "an operator without its left operand"));
                }
            });
        }
        match bound {
            Some(bound) => Ok(bound),
            None => self.operand(&mut first),
        }
    }

    fn operand(&mut self, first: &mut Option<ast::Expr>) -> Result<Bound> {
        match first.take() {
            Some(first) => self.bind(first),
            None => Err(wrong(Location::new(0, 0), "an operator without its left operand")),
        }
    }

    /// Joins operands by one AND or OR; operands of the same operator are merged into it.
    pub(super) fn join(&mut self, operands: Vec<Bound>, is_and: bool) -> Result<Bound> {
        let at = operands.first().map_or(Location::new(0, 0), |first| first.at);
        let depth = operands.iter().map(|operand| operand.depth).max().unwrap_or(0) + 1;
        let nodes = operands.iter().map(|operand| operand.nodes).sum::<usize>() + 1;
        let mut flat = Vec::with_capacity(operands.len());
        for operand in operands {
            match (operand.expr, is_and) {
                (Expr::And(inner), true) | (Expr::Or(inner), false) => flat.extend(inner),
                (other, _) => flat.push(other),
            }
        }
        let expr = if is_and { Expr::And(flat) } else { Expr::Or(flat) };
        self.finish(Bound { expr, kind: Type::Boolean, at, depth, nodes })
    }

    /// Binds `left op right` for every operator but AND and OR, with the left side already bound.
    pub(super) fn operator(
        &mut self,
        left: Bound,
        op: &ast::BinaryOperator,
        right: ast::Expr,
    ) -> Result<Bound> {
        let right = self.bind(right)?;
        if let Some(comparison) = super::rows::comparison(op) {
            return self.compare(comparison, left, right);
        }
        if let Some(op) = super::arithmetic::operator(op) {
            return self.calculate(op, left, right);
        }
        self.match_operator(left, op, right)
    }

    pub(super) fn not(&mut self, operand: Bound, at: Location) -> Result<Bound> {
        self.node([operand], Type::Boolean, at, |[operand]| Expr::Not(Box::new(operand)))
    }

    /// Makes a node with the given children.
    pub(super) fn node<const N: usize>(
        &mut self,
        children: [Bound; N],
        kind: Type,
        at: Location,
        make: impl FnOnce([Expr; N]) -> Expr,
    ) -> Result<Bound> {
        let depth = children.iter().map(|child| child.depth).max().unwrap_or(0) + 1;
        let nodes = children.iter().map(|child| child.nodes).sum::<usize>() + 1;
        let expr = make(children.map(|child| child.expr));
        self.finish(Bound { expr, kind, at, depth, nodes })
    }

    /// Makes a node with a list of children.
    pub(super) fn node_of(
        &mut self,
        children: Vec<Bound>,
        kind: Type,
        at: Location,
        make: impl FnOnce(Vec<Expr>) -> Expr,
    ) -> Result<Bound> {
        let depth = children.iter().map(|child| child.depth).max().unwrap_or(0) + 1;
        let nodes = children.iter().map(|child| child.nodes).sum::<usize>() + 1;
        let expr = make(children.into_iter().map(|child| child.expr).collect());
        self.finish(Bound { expr, kind, at, depth, nodes })
    }

    /// Checks the limits, and evaluates expressions that do not depend on the row. An expression with a
    /// fault stays, since no row may need it.
    fn finish(&mut self, bound: Bound) -> Result<Bound> {
        if bound.depth > DEPTH_MAX {
            return Err(wrong(bound.at, parse::too_deep()));
        }
        if bound.nodes > NODES_MAX {
            let reason = "too large once BETWEEN and rows are expanded; split the query";
            return Err(wrong(bound.at, reason));
        }
        if is_constant(&bound.expr)
            && let Ok(datum) = naive::evaluate(&bound.expr, &[][..])
        {
            return Ok(Bound::literal(datum.into(), bound.kind, bound.at));
        }
        if has_null_operand(&bound.expr) {
            return Ok(Bound::literal(Value::Null, bound.kind, bound.at));
        }
        if let Expr::IsNull(operand) | Expr::Is { operand, truth: None } = &bound.expr
            && is_never_null(operand)
        {
            return Ok(Bound::literal(Value::Boolean(false), bound.kind, bound.at));
        }
        Ok(bound)
    }

    fn column(&mut self, name: &ast::Ident, at: Location) -> Result<Bound> {
        if let Some(position) = self.position(&name.value) {
            let kind = Type::of_column(self.schema.fields[position].kind);
            return Ok(Bound { expr: Expr::Column(position), kind, at, depth: 1, nodes: 1 });
        }
        if name.quote_style.is_none()
            && let Some(bound) = self.constant(&name.value, at)?
        {
            return Ok(bound);
        }
        let mut reason = self.unknown(&name.value);
        if name.quote_style == Some('"') {
            reason.push_str("; strings are in single quotes");
        }
        let error = wrong(at, reason);
        if self.is_ambiguous(&name.value) {
            return Err(error);
        }
        Err(Error::Column { name: name.value.as_str().into(), error: Box::new(error) })
    }

    /// Returns the index of a column; its table's name may precede it.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let exact = match self.lookups.replace(self.lookups.get() + 1) < LOOKUPS_MAX {
            true => None,
            false => self.positions.get_or_init(|| self.by_name()).get(name).copied(),
        };
        exact.or_else(|| self.schema.position(name)).or_else(|| {
            let (table, column) = name.split_once('.')?;
            if self.is_table(table) { self.schema.position(column) } else { None }
        })
    }

    fn by_name(&self) -> HashMap<&'a str, usize> {
        let mut positions = HashMap::with_capacity(self.schema.fields.len());
        for (position, field) in self.schema.fields.iter().enumerate() {
            positions.entry(&*field.name).or_insert(position);
        }
        positions
    }

    /// Whether the table has this name.
    pub(super) fn is_table(&self, name: &str) -> bool {
        self.table.as_deref().is_some_and(|table| table.eq_ignore_ascii_case(name))
    }

    pub(super) fn schema(&self) -> &'a Schema {
        self.schema
    }

    fn is_ambiguous(&self, name: &str) -> bool {
        let alike = self.schema.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        alike.count() > 1
    }

    /// The error for an unknown column.
    pub(super) fn unknown(&self, name: &str) -> String {
        if self.is_ambiguous(name) {
            let name = crate::matching::shortened(name);
            return format!("'{name}' may be several columns; write it in quotes (\"{name}\")");
        }
        // No user can write the names of columns in reserve for elements of lists.
        let names = self.schema.fields.iter().map(|field| &*field.name);
        super::unknown_column(name, names.filter(|name| !name.contains('\0')))
    }
}

/// Whether all direct operands are constants.
fn is_constant(expr: &Expr) -> bool {
    use crate::expr::Pattern;
    let literal = |expr: &Expr| matches!(expr, Expr::Literal(_));
    match expr {
        Expr::Literal(_) | Expr::Column(_) | Expr::Among { .. } => false,
        Expr::Not(a) | Expr::IsNull(a) | Expr::Negate(a) => literal(a),
        Expr::Is { operand, .. } | Expr::Cast { operand, .. } => literal(operand),
        Expr::And(list) | Expr::Or(list) => list.iter().all(literal),
        Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } => {
            literal(left) && literal(right)
        }
        Expr::In { operand, list } => literal(operand) && list.iter().all(literal),
        Expr::Match { operand, pattern: Pattern::Fixed(_) } => literal(operand),
        Expr::Match { operand, pattern: Pattern::Computed { text, .. } } => {
            literal(operand) && literal(text)
        }
        Expr::Case { branches, otherwise } => {
            branches.iter().all(|(condition, result)| literal(condition) && literal(result))
                && otherwise.as_deref().is_none_or(literal)
        }
        Expr::Call { arguments, .. } => arguments.iter().all(literal),
    }
}

/// Whether an operator has the literal NULL as an operand, so that its result is NULL. DataFusion does
/// not evaluate the other operand either, so a fault there is not an error of the statement.
fn has_null_operand(expr: &Expr) -> bool {
    let null = |expr: &Expr| matches!(expr, Expr::Literal(Value::Null));
    match expr {
        Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } => {
            null(left) || null(right)
        }
        Expr::In { operand, list } => null(operand) || matches!(&list[..], [one] if null(one)),
        _ => false,
    }
}

/// Whether no row makes an expression NULL, so that IS NULL is false. DataFusion does not evaluate such an
/// expression, so a fault in it is not an error of the statement.
fn is_never_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value) => !matches!(value, Value::Null),
        Expr::IsNull(_) | Expr::Is { .. } => true,
        Expr::Not(operand) => is_never_null(operand),
        Expr::And(operands) | Expr::Or(operands) => operands.iter().all(is_never_null),
        Expr::Compare { left, right, .. } => is_never_null(left) && is_never_null(right),
        Expr::In { operand, list } => is_never_null(operand) && list.iter().all(is_never_null),
        _ => false,
    }
}

/// Returns where an expression begins; line 0 if the library does not record it.
pub fn place(expr: &ast::Expr) -> Location {
    use ast::Expr as From;
    let mut expr = expr;
    loop {
        expr = match expr {
            From::Identifier(name) => return name.span.start,
            From::Value(value) => return value.span.start,
            From::TypedString(typed) => return typed.value.span.start,
            From::Function(call) => return call.name.span().start,
            From::Case { case_token, .. } => return case_token.0.span.start,
            From::BinaryOp { left, .. } | From::AnyOp { left, .. } | From::AllOp { left, .. } => {
                left
            }
            From::Nested(inner)
            | From::IsNull(inner)
            | From::IsNotNull(inner)
            | From::IsTrue(inner)
            | From::IsNotTrue(inner)
            | From::IsFalse(inner)
            | From::IsNotFalse(inner)
            | From::IsUnknown(inner)
            | From::IsNotUnknown(inner) => inner,
            From::UnaryOp { expr, .. }
            | From::Between { expr, .. }
            | From::InList { expr, .. }
            | From::Like { expr, .. }
            | From::ILike { expr, .. }
            | From::SimilarTo { expr, .. }
            | From::RLike { expr, .. }
            | From::Cast { expr, .. }
            | From::Extract { expr, .. }
            | From::Position { expr, .. }
            | From::Substring { expr, .. }
            | From::Overlay { expr, .. }
            | From::Trim { expr, .. }
            | From::Named { expr, .. } => expr,
            From::Interval(interval) => &interval.value,
            From::Tuple(values) => match values.first() {
                Some(first) => first,
                None => return Location::new(0, 0),
            },
            _ => return Location::new(0, 0),
        };
    }
}

/// Makes the error for parts of SQL that this crate does not support.
pub(super) fn elsewhere(at: Location, what: &str) -> crate::Error {
    unanswered(at, format!("{what} not supported in conditions"))
}
