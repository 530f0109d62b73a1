//! Compiles bound conditions into tests and trees.

use std::collections::HashMap;
use std::sync::Arc;

use quarrier_messages::{Kind, Schema, Value};

use super::index::Index;
use super::test::{NumberTest, SCALES, TRUE, TextTest, UNKNOWN};
use super::tree::Tree;
use super::{Column, HeldValue, Sieve};
use crate::Expr;
use crate::expr::{Comparison, Pattern};
use crate::matching::{Matching, Shape};
use crate::predicate::{Set, columns_of, place, turned};

pub(super) fn compiled(schema: &Schema, conditions: &Arc<[Expr]>) -> Sieve {
    let mut compiler = Compiler {
        schema,
        columns: Vec::new(),
        places: vec![None; schema.fields.len()],
        absent: Vec::new(),
        known: HashMap::new(),
    };
    let index = Index::of(schema, conditions);
    let is_indexed = |number: usize| index.as_ref().is_some_and(|index| index.has(number));
    let mut rest = Vec::new();
    let mut tree = |(number, condition): (usize, &Expr)| match is_indexed(number) {
        true => Tree::Indexed(number as u32),
        false => {
            rest.push(number as u32);
            compiler.condition(condition)
        }
    };
    let conditions: Vec<Tree> = conditions.iter().enumerate().map(&mut tree).collect();
    for column in index.iter().flat_map(|index| index.columns()) {
        let at = compiler.column(*column);
        compiler.columns[at].is_indexed = true;
    }
    let Compiler { columns, places, absent, .. } = compiler;
    let mut names = HashMap::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        names.entry(column.name.clone()).or_insert(at);
    }
    Sieve {
        names,
        holds_values: columns.iter().any(|column| column.is_held || column.is_indexed),
        held: vec![HeldValue::Null; columns.len()],
        columns,
        places,
        conditions: conditions.into(),
        index: index.map(Arc::new),
        rest: rest.into(),
        truths: absent.clone(),
        absent,
        held_text: String::new(),
        misfits: Vec::new(),
        lists: Vec::new(),
        beyond: Vec::new(),
    }
}

struct Compiler<'s> {
    schema: &'s Schema,
    columns: Vec<Column>,
    places: Vec<Option<usize>>,
    absent: Vec<u8>,
    /// The tests added, by column of the schema and by the parts of the test that sets of 64-bit
    /// numbers do not distinguish.
    known: HashMap<(usize, ColumnTest, String), u32>,
}

/// A test of a column's values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ColumnTest {
    /// Sets of numeric keys, by decimal scale.
    Numbers(Vec<Set>),
    Text(TextTest),
    IsNull,
}

impl Compiler<'_> {
    fn condition(&mut self, condition: &Expr) -> Tree {
        let mut named = Vec::new();
        columns_of(condition, &mut named);
        for column in named {
            self.column(column);
        }
        self.tree(condition)
    }

    fn tree(&mut self, expr: &Expr) -> Tree {
        match expr {
            Expr::Literal(Value::Boolean(truth)) => Tree::Constant(Some(*truth)),
            Expr::Literal(Value::Null) => Tree::Constant(None),
            Expr::Not(operand) => Tree::Not(Box::new(self.tree(operand))),
            Expr::And(operands) => self.and(operands),
            Expr::Or(operands) => Tree::or(operands.iter().map(|o| self.tree(o)).collect()),
            Expr::Is { operand, truth } => Tree::Is(Box::new(self.tree(operand)), *truth),
            other => self.test(other),
        }
    }

    /// Merges ranges of one column.
    fn and(&mut self, operands: &[Expr]) -> Tree {
        let mut ranges: Vec<(usize, Vec<Set>, Vec<Expr>)> = Vec::new();
        let mut trees = Vec::new();
        for operand in operands {
            match self.asked(operand) {
                Some((column, ColumnTest::Numbers(sets))) => {
                    match ranges.iter_mut().find(|(known, ..)| *known == column) {
                        Some((_, known, conditions)) => {
                            known.iter_mut().zip(&sets).for_each(|(a, b)| *a = a.intersection(b));
                            conditions.push(operand.clone());
                        }
                        None => ranges.push((column, sets, vec![operand.clone()])),
                    }
                }
                _ => trees.push(self.tree(operand)),
            }
        }
        for (column, sets, conditions) in ranges {
            trees.push(Tree::Test(self.add(column, ColumnTest::Numbers(sets), conditions)));
        }
        Tree::and(trees)
    }

    fn test(&mut self, expr: &Expr) -> Tree {
        if let Some(truth) = self.unseen(expr) {
            return Tree::Constant(truth);
        }
        if let Some((column, asked)) = self.asked(expr) {
            return Tree::Test(self.add(column, asked, vec![expr.clone()]));
        }
        if let Some(tree) = self.listed_with_null(expr) {
            return tree;
        }
        let mut columns = Vec::new();
        columns_of(expr, &mut columns);
        for column in columns {
            let at = self.column(column);
            self.columns[at].is_held = true;
        }
        Tree::Row(Box::new(expr.clone()))
    }

    /// Returns the outcome of a test on a column without a value in any message that fits.
    fn unseen(&self, expr: &Expr) -> Option<Option<bool>> {
        let is_unseen =
            |expr: &Expr| matches!(expr, Expr::Column(c) if self.kind(*c) == Kind::Null);
        match expr {
            Expr::IsNull(operand) if is_unseen(operand) => Some(Some(true)),
            Expr::Column(_) if is_unseen(expr) => Some(None),
            Expr::Compare { left, right, .. } => {
                let is_literal = |expr: &Expr| matches!(expr, Expr::Literal(_));
                let unseen =
                    is_unseen(left) && is_literal(right) || is_literal(left) && is_unseen(right);
                unseen.then_some(None)
            }
            _ => None,
        }
    }

    /// Returns the test of one column, if constants decide it.
    fn asked(&self, expr: &Expr) -> Option<(usize, ColumnTest)> {
        match expr {
            Expr::Column(column) if self.kind(*column) == Kind::Boolean => {
                Some((*column, ColumnTest::Numbers(vec![Set::range(1, 1)])))
            }
            Expr::IsNull(operand) => {
                let Expr::Column(column) = **operand else { return None };
                Some((column, ColumnTest::IsNull))
            }
            Expr::Compare { op, left, right } => {
                let (column, op, literal) = match (&**left, &**right) {
                    (Expr::Column(column), Expr::Literal(literal)) => (*column, *op, literal),
                    (Expr::Literal(literal), Expr::Column(column)) => {
                        (*column, turned(*op), literal)
                    }
                    _ => return None,
                };
                Some((column, self.compared(column, op, literal)?))
            }
            Expr::In { operand, list } => {
                let Expr::Column(column) = **operand else { return None };
                Some((column, self.listed(column, list)?))
            }
            Expr::Match { operand, pattern: Pattern::Fixed(pattern) } => {
                let Expr::Column(column) = **operand else { return None };
                let is_text = self.kind(column) == Kind::Text;
                Some((column, ColumnTest::Text(matched(pattern).filter(|_| is_text)?)))
            }
            _ => None,
        }
    }

    fn compared(&self, column: usize, op: Comparison, literal: &Value) -> Option<ColumnTest> {
        if let (Kind::Text, Value::Text(text)) = (self.kind(column), literal) {
            return Some(ColumnTest::Text(match op {
                Comparison::Equal => TextTest::Equal(text.clone()),
                _ => TextTest::Order(op, text.clone()),
            }));
        }
        let set = |kind| Some(place(kind, None, literal)?.set(op));
        let kinds = scales(self.kind(column));
        Some(ColumnTest::Numbers(kinds.into_iter().map(set).collect::<Option<_>>()?))
    }

    fn listed(&self, column: usize, list: &[Expr]) -> Option<ColumnTest> {
        let mut literals = Vec::with_capacity(list.len());
        for element in list {
            match element {
                Expr::Literal(value) if *value != Value::Null => literals.push(value),
                _ => return None,
            }
        }
        let list = literals;
        if self.kind(column) == Kind::Text {
            let text = |value: &&Value| match value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            };
            let mut strings = list.iter().map(text).collect::<Option<Vec<_>>>()?;
            strings.sort_unstable();
            strings.dedup();
            return Some(ColumnTest::Text(TextTest::In(strings.into())));
        }
        let set = |kind| {
            let mut ranges = Vec::with_capacity(list.len());
            for literal in &list {
                ranges.extend(place(kind, None, literal)?.set(Comparison::Equal).ranges());
            }
            Some(Set::union_of(ranges, false))
        };
        let kinds = scales(self.kind(column));
        Some(ColumnTest::Numbers(kinds.into_iter().map(set).collect::<Option<_>>()?))
    }

    /// Compiles `column IN (…, NULL, …)`: TRUE or UNKNOWN.
    fn listed_with_null(&mut self, expr: &Expr) -> Option<Tree> {
        let Expr::In { operand, list } = expr else { return None };
        let values = list.iter().filter(|e| **e != Expr::Literal(Value::Null)).cloned();
        let values: Vec<Expr> = values.collect();
        if values.len() == list.len() || values.is_empty() {
            return None;
        }
        let values = Expr::In { operand: operand.clone(), list: values };
        let (column, asked) = self.asked(&values)?;
        let test = Tree::Test(self.add(column, asked, vec![values]));
        Some(Tree::or(vec![test, Tree::Constant(None)]))
    }

    /// Adds a test that was made from `conditions`.
    fn add(&mut self, column: usize, asked: ColumnTest, mut conditions: Vec<Expr>) -> u32 {
        let is_exact = matches!(self.kind(column), Kind::Integer | Kind::Decimal { .. });
        if !is_exact || asked == ColumnTest::IsNull {
            conditions.clear();
        }
        let key = (column, asked.clone(), format!("{conditions:?}"));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let test = self.absent.len() as u32;
        self.absent.push(if asked == ColumnTest::IsNull { TRUE } else { UNKNOWN });
        let at = self.column(column);
        let to = &mut self.columns[at];
        match &asked {
            ColumnTest::Numbers(sets) => to.numbers.push((test, NumberTest::new(sets, conditions))),
            ColumnTest::Text(text) => to.strings.push((test, text.clone())),
            ColumnTest::IsNull if to.kind == Kind::Text => {
                to.strings.push((test, TextTest::Nothing))
            }
            ColumnTest::IsNull => to.numbers.push((test, NumberTest::new(&[], Vec::new()))),
        }
        self.known.insert(key, test);
        test
    }

    /// Returns the index of a column of the schema among the named ones.
    fn column(&mut self, column: usize) -> usize {
        if let Some(at) = self.places[column] {
            return at;
        }
        let field = &self.schema.fields[column];
        let at = self.columns.len();
        let is_open = field.kind == Kind::Null;
        let new = Column::new(field.name.clone(), column, field.kind);
        self.columns.push(Column { is_open, ..new });
        self.places[column] = Some(at);
        at
    }

    fn kind(&self, column: usize) -> Kind {
        self.schema.fields[column].kind
    }
}

/// Returns the types in which a value of an exact column may arrive: one for each scale.
fn scales(kind: Kind) -> Vec<Kind> {
    match kind {
        Kind::Integer | Kind::Decimal { .. } => (0..SCALES as u8)
            .map(|scale| if scale == 0 { Kind::Integer } else { Kind::Decimal { scale } })
            .collect(),
        other => vec![other],
    }
}

/// Returns the test for patterns that are cheap to match.
fn matched(pattern: &Matching) -> Option<TextTest> {
    Some(match pattern.shape() {
        Shape::Everything => TextTest::Everything,
        Shape::Exact(text) => TextTest::Equal(text.into()),
        Shape::Prefix(text) => TextTest::Prefix(text.into()),
        Shape::Suffix(text) => TextTest::Suffix(text.into()),
        Shape::Contains(text) => TextTest::Contains(text.into()),
        Shape::Other => return None,
    })
}
