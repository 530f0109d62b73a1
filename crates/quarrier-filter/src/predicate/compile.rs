//! Compiles expressions into nodes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quarrier_messages::column::Dictionary;
use quarrier_messages::{Kind, Table, Value};

use super::constant::{self, Place, turned};
use super::{Calculation, Graph, NodeId, Outcome, Prefixes, Set, text};
use crate::expr::{Comparison, Pattern};
use crate::{Expr, Keys, naive};

/// Makes nodes of conditions on one table.
pub(crate) struct Compiler<'a> {
    table: &'a Table,
    workers: usize,
    graph: Graph,
    /// Results of conditions on a column with a dictionary.
    strings: HashMap<(String, Outcome), Set>,
}

impl<'a> Compiler<'a> {
    /// Uses up to `workers` threads for large dictionaries.
    pub(crate) fn new(table: &'a Table, workers: usize) -> Self {
        Compiler { table, workers, graph: Graph::new(), strings: HashMap::new() }
    }

    /// Returns the nodes of the rows where `condition` is true, and of those where it has no value,
    /// and counts a use of both.
    pub(crate) fn condition(&mut self, condition: &Expr) -> (NodeId, NodeId) {
        let truth = self.node(condition, Outcome::True);
        let fault =
            if may_fault(condition) { self.node(condition, Outcome::Fault) } else { Graph::NONE };
        self.graph.uses[truth] += 1;
        self.graph.uses[fault] += 1;
        (truth, fault)
    }

    pub(crate) fn finish(self) -> Graph {
        self.graph
    }

    /// Returns the node of the rows where `expr` has the outcome `wanted`.
    fn node(&mut self, expr: &Expr, wanted: Outcome) -> NodeId {
        if wanted == Outcome::Fault && !may_fault(expr) {
            return Graph::NONE;
        }
        match (expr, wanted) {
            (Expr::Not(operand), Outcome::True) => self.node(operand, Outcome::False),
            (Expr::Not(operand), Outcome::False) => self.node(operand, Outcome::True),
            (Expr::Not(operand), Outcome::Fault) => self.node(operand, Outcome::Fault),
            (Expr::And(operands), Outcome::Fault) => self.faults(operands, expr, Outcome::False),
            (Expr::Or(operands), Outcome::Fault) => self.faults(operands, expr, Outcome::True),
            (Expr::And(operands), Outcome::True) | (Expr::Or(operands), Outcome::False) => {
                let nodes = self.each(operands, wanted);
                self.graph.and(nodes)
            }
            (Expr::And(operands), Outcome::False) | (Expr::Or(operands), Outcome::True) => {
                let nodes = self.each(operands, wanted);
                self.graph.or(nodes)
            }
            (Expr::Is { operand, truth }, wanted) => self.is(operand, *truth, wanted),
            _ => self.test(expr, wanted),
        }
    }

    fn each(&mut self, operands: &[Expr], wanted: Outcome) -> Vec<NodeId> {
        operands.iter().map(|operand| self.node(operand, wanted)).collect()
    }

    /// Returns the node of the rows where an operand of AND or OR has a fault and no operand
    /// decides.
    fn faults(&mut self, operands: &[Expr], expr: &Expr, decisive: Outcome) -> NodeId {
        let faults = self.each(operands, Outcome::Fault);
        let fault = self.graph.or(faults);
        if fault == Graph::NONE {
            return fault;
        }
        let decided = self.node(expr, decisive);
        let undecided = self.graph.not(decided);
        self.graph.and([fault, undecided])
    }

    fn is(&mut self, operand: &Expr, truth: Option<bool>, wanted: Outcome) -> NodeId {
        let fault = self.node(operand, Outcome::Fault);
        if wanted == Outcome::Fault {
            return fault;
        }
        let is = match truth {
            Some(true) => self.node(operand, Outcome::True),
            Some(false) => self.node(operand, Outcome::False),
            None => {
                let known = [Outcome::True, Outcome::False].map(|o| self.node(operand, o));
                let known = self.graph.or(known.into_iter().chain([fault]));
                self.graph.not(known)
            }
        };
        if wanted == Outcome::True {
            return is;
        }
        let either = self.graph.or([is, fault]);
        self.graph.not(either)
    }

    /// Returns the node of a condition without AND, OR, NOT or IS at its top.
    fn test(&mut self, expr: &Expr, wanted: Outcome) -> NodeId {
        let mut columns = Vec::new();
        columns_of(expr, &mut columns);
        if columns.is_empty() {
            return if constant_outcome(expr) == Some(wanted) { Graph::ALL } else { Graph::NONE };
        }
        if let Some(node) = self.set(expr, wanted) {
            return node;
        }
        if let [column] = columns[..]
            && let Some(dictionary) = self.dictionary(column)
        {
            let (dictionary, workers) = (dictionary.clone(), self.workers);
            let set = self
                .strings
                .entry((format!("{expr:?}"), wanted))
                .or_insert_with(|| text::outcome((expr, column), wanted, &dictionary, workers));
            let set = set.clone();
            return self.of_keys((column, set), expr, wanted);
        }
        if let Expr::Among { column, keys } = expr
            && keys.are_of(self.table, *column)
        {
            return self.among(*column, keys, wanted);
        }
        if let Expr::Compare { op, left, right } = expr {
            let op = if wanted == Outcome::False { negated(*op) } else { *op };
            if let Some(calculation) = Calculation::of(self.table, op, left, right) {
                return match wanted {
                    Outcome::Fault => Graph::NONE,
                    _ => self.graph.calculated(calculation),
                };
            }
        }
        self.graph.row(expr, wanted)
    }

    fn among(&mut self, column: usize, keys: &Arc<Keys>, wanted: Outcome) -> NodeId {
        let among = self.graph.among(column, keys);
        match wanted {
            Outcome::True => among,
            Outcome::Fault => Graph::NONE,
            Outcome::False => {
                let others = self.graph.not(among);
                let values = self.graph.set(column, Set::values());
                self.graph.and([values, others])
            }
        }
    }

    /// Returns a test of one column against constants, if its keys can decide.
    fn set(&mut self, expr: &Expr, wanted: Outcome) -> Option<NodeId> {
        let keys = self.keys(expr, wanted)?;
        Some(self.of_keys(keys, expr, wanted))
    }

    /// Returns the node of the rows where `expr` has the outcome `wanted`: those with these keys in
    /// its one column. Plain strings have no keys, so they are tested by the expression.
    fn of_keys(&mut self, (column, set): (usize, Set), expr: &Expr, wanted: Outcome) -> NodeId {
        let asks_for_null = matches!(expr, Expr::IsNull(operand) if is_column(operand));
        if self.table.columns()[column].is_mixed() && !asks_for_null {
            return self.graph.mixed((column, set), expr, wanted);
        }
        self.graph.set(column, set)
    }

    /// Returns the keys of one column for which `expr` has the outcome `wanted`, if keys can
    /// decide.
    fn keys(&mut self, expr: &Expr, wanted: Outcome) -> Option<(usize, Set)> {
        if wanted == Outcome::Fault {
            return None;
        }
        let truth = wanted == Outcome::True;
        Some(match expr {
            Expr::Column(column) if self.kind(*column) == Kind::Boolean => {
                (*column, Set::range(i64::from(truth), truth.into()))
            }
            Expr::IsNull(operand) => {
                let Expr::Column(column) = **operand else { return None };
                (column, if truth { Set::values().complement() } else { Set::values() })
            }
            Expr::Compare { op, left, right } => {
                let (column, op, literal) = match (&**left, &**right) {
                    (Expr::Column(column), Expr::Literal(literal)) => (*column, *op, literal),
                    (Expr::Literal(literal), Expr::Column(column)) => {
                        (*column, turned(*op), literal)
                    }
                    _ => return None,
                };
                let op = if truth { op } else { negated(op) };
                (column, self.compared(column, op, literal)?)
            }
            Expr::In { operand, list } => {
                let Expr::Column(column) = **operand else { return None };
                (column, self.listed(column, list, truth)?)
            }
            Expr::Match { operand, pattern: Pattern::Fixed(pattern) } => {
                let Expr::Column(column) = **operand else { return None };
                let dictionary = self.dictionary(column)?;
                let set = text::matching(pattern, dictionary, self.workers);
                (column, if truth { set } else { within_values(&set.complement()) })
            }
            _ => return None,
        })
    }

    fn compared(&self, column: usize, op: Comparison, literal: &Value) -> Option<Set> {
        if *literal == Value::Null {
            return Some(Set::none());
        }
        if self.kind(column) == Kind::Null {
            return Some(Set::none());
        }
        Some(self.place(column, literal)?.set(op))
    }

    /// Returns the keys for which `column IN (list)` is true or false.
    fn listed(&self, column: usize, list: &[Expr], truth: bool) -> Option<Set> {
        let mut ranges = Vec::with_capacity(list.len());
        let mut null = false;
        for element in list {
            match element {
                Expr::Literal(Value::Null) => null = true,
                Expr::Literal(literal) => {
                    let equal = self.place(column, literal)?.set(Comparison::Equal);
                    ranges.extend(equal.ranges());
                }
                _ => return None,
            }
        }
        let set = Set::union_of(ranges, false);
        Some(match (truth, null) {
            (true, _) => set,
            (false, true) => Set::none(),
            (false, false) => within_values(&set.complement()),
        })
    }

    fn place(&self, column: usize, literal: &Value) -> Option<Place> {
        let dictionary = self.table.columns()[column].dictionary();
        constant::place(self.kind(column), dictionary.map(|dictionary| &**dictionary), literal)
    }

    fn kind(&self, column: usize) -> Kind {
        self.table.schema().fields[column].kind
    }

    fn dictionary(&self, column: usize) -> Option<&'a Arc<Dictionary>> {
        if self.kind(column) != Kind::Text {
            return None;
        }
        self.table.columns()[column].dictionary()
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(_))
}

/// Returns the set without NULL.
fn within_values(set: &Set) -> Set {
    set.intersection(&Set::values())
}

/// Returns the outcome of a condition without columns.
fn constant_outcome(expr: &Expr) -> Option<Outcome> {
    match naive::truth(expr, &[][..]) {
        Ok(Some(true)) => Some(Outcome::True),
        Ok(Some(false)) => Some(Outcome::False),
        Ok(None) => None,
        Err(_) => Some(Outcome::Fault),
    }
}

/// Returns the operator that is true where `op` is false.
fn negated(op: Comparison) -> Comparison {
    match op {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::GreaterOrEqual,
        Comparison::LessOrEqual => Comparison::Greater,
        Comparison::Greater => Comparison::LessOrEqual,
        Comparison::GreaterOrEqual => Comparison::Less,
    }
}

/// Calls `visit` with each direct operand.
fn operands<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match expr {
        Expr::Literal(_) | Expr::Column(_) | Expr::Among { .. } => {}
        Expr::Not(operand) | Expr::IsNull(operand) | Expr::Negate(operand) => visit(operand),
        Expr::Is { operand, .. } | Expr::Cast { operand, .. } => visit(operand),
        Expr::And(operands) | Expr::Or(operands) => operands.iter().for_each(visit),
        Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } => {
            visit(left);
            visit(right);
        }
        Expr::In { operand, list } => {
            visit(operand);
            list.iter().for_each(visit);
        }
        Expr::Match { operand, pattern } => {
            visit(operand);
            if let Pattern::Computed { text, .. } = pattern {
                visit(text);
            }
        }
        Expr::Case { branches, otherwise } => {
            for (condition, result) in branches {
                visit(condition);
                visit(result);
            }
            if let Some(otherwise) = otherwise {
                visit(otherwise);
            }
        }
        Expr::Call { arguments, .. } => arguments.iter().for_each(visit),
    }
}

/// Collects the columns in `expr`, each once.
pub(crate) fn columns_of(expr: &Expr, columns: &mut Vec<usize>) {
    let mut named = Vec::new();
    columns_in(expr, &mut named);
    if named.len() < COLUMNS_FEW {
        for column in named {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        return;
    }
    let mut known: HashSet<usize> = columns.iter().copied().collect();
    columns.extend(named.into_iter().filter(|&column| known.insert(column)));
}

/// Number of columns from which a set is faster than comparing each with each.
const COLUMNS_FEW: usize = 16;

/// Collects the columns in `expr`, each as often as it occurs.
fn columns_in(expr: &Expr, columns: &mut Vec<usize>) {
    if let Expr::Column(column) | Expr::Among { column, .. } = expr {
        columns.push(*column);
    }
    operands(expr, &mut |operand| columns_in(operand, columns));
}

/// Whether `expr` may have no value for some rows.
fn may_fault(expr: &Expr) -> bool {
    match expr {
        Expr::Arithmetic { .. } | Expr::Negate(_) | Expr::Cast { .. } | Expr::Call { .. } => true,
        Expr::Match { pattern: Pattern::Computed { .. }, .. } => true,
        Expr::In { .. } if Prefixes::is(expr) => false,
        _ => {
            let mut may = false;
            operands(expr, &mut |operand| may |= may_fault(operand));
            may
        }
    }
}
