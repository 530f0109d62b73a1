//! Output columns with the same name: `SELECT x, x` and `SELECT 1 AS x, t.x` return `x` and `x (2)`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, ObjectNamePart, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use super::super::names::KnownNames;
use super::super::walk::{Flow, Stop, walk};

/// Makes the names unique.
pub(super) struct Names<'c> {
    pub(super) known: &'c KnownNames,
    /// The names of WITH.
    pub(super) given: &'c HashSet<String>,
}

/// Whether a statement names an output beside a `*`, which may show a column of that name.
pub(in super::super) fn has_name_beside_star<S: VisitMut>(statement: &mut S) -> bool {
    let mut finder = NamesBesideStar { found: false };
    let _ = walk(statement, &mut finder);
    finder.found
}

struct NamesBesideStar {
    found: bool,
}

impl VisitorMut for NamesBesideStar {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        let is_star = |item: &SelectItem| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        };
        let is_name = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { .. });
        self.found |=
            select.projection.iter().any(is_star) && select.projection.iter().any(is_name);
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Names<'_> {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        let stars = Stars::of(&select.projection, self.tables(&select.from));
        let mut taken = Taken::default();
        for item in &mut select.projection {
            let Some(output) = Output::of(item) else { continue };
            if !stars.have(item, &output) && taken.insert(&output) {
                continue;
            }
            let name = output.name;
            let mut number = 2;
            while !taken.insert(&Output::named(format!("{name} ({number})"))) {
                number += 1;
            }
            let alias = Ident::with_quote('"', format!("{name} ({number})"));
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                continue;
            };
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        ControlFlow::Continue(())
    }
}

impl<'c> Names<'c> {
    /// The tables of a FROM whose columns are known.
    fn tables(&self, from: &[TableWithJoins]) -> Vec<(String, &'c [String])> {
        let joined = |tables: &TableWithJoins| {
            let joins = tables.joins.iter().map(|join| &join.relation);
            std::iter::once(&tables.relation).chain(joins).filter_map(|it| self.table(it)).collect()
        };
        from.iter().flat_map::<Vec<_>, _>(joined).collect()
    }

    fn table(&self, table: &TableFactor) -> Option<(String, &'c [String])> {
        let TableFactor::Table { name, alias, args: None, .. } = table else { return None };
        let columns = self.known.columns_of(name, alias.as_ref(), self.given)?;
        let own = || name.0.last()?.as_ident();
        let qualifier = alias.as_ref().map_or_else(own, |alias| Some(&alias.name))?;
        Some((qualifier.value.clone(), columns))
    }
}

/// The name of an output.
struct Output {
    /// The name with its qualifier: DataFusion distinguishes the columns `a.x` and `b.x`.
    written: String,
    name: String,
}

impl Output {
    fn of(item: &SelectItem) -> Option<Output> {
        Some(match item {
            SelectItem::UnnamedExpr(expr @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
                let name = last(expr);
                let written = match expr {
                    Expr::Identifier(_) => name.clone(),
                    _ => expr.to_string(),
                };
                Output { written, name }
            }
            SelectItem::UnnamedExpr(expr) => Output::named(expr.to_string()),
            SelectItem::ExprWithAlias { alias, .. } => Output::named(alias.value.clone()),
            _ => return None,
        })
    }

    fn named(name: String) -> Output {
        Output { written: name.clone(), name }
    }
}

/// The names of the outputs before.
#[derive(Default)]
struct Taken {
    written: HashSet<String>,
    /// Names with and without their qualifiers: DataFusion finds `x` beside `a.x` ambiguous.
    qualified: HashSet<String>,
    unqualified: HashSet<String>,
}

impl Taken {
    /// Adds a name; `false` if it is not unique.
    fn insert(&mut self, output: &Output) -> bool {
        let is_qualified = output.written != output.name;
        let (same, others) = match is_qualified {
            true => (&mut self.qualified, &self.unqualified),
            false => (&mut self.unqualified, &self.qualified),
        };
        if others.contains(&output.name) || self.written.contains(&output.written) {
            return false;
        }
        same.insert(output.name.clone());
        self.written.insert(output.written.clone())
    }
}

/// The columns that `*` and `t.*` show.
struct Stars<'c> {
    /// The names of tables, with their columns.
    known: Vec<(String, &'c [String])>,
    /// The options of a `*`.
    all: Option<WildcardAdditionalOptions>,
    /// The tables of each `t.*`.
    tables: Vec<(String, WildcardAdditionalOptions)>,
}

impl<'c> Stars<'c> {
    fn of(outputs: &[SelectItem], known: Vec<(String, &'c [String])>) -> Stars<'c> {
        use SelectItemQualifiedWildcardKind::ObjectName;
        let mut stars = Stars { known, all: None, tables: Vec::new() };
        for output in outputs {
            match output {
                SelectItem::Wildcard(options) => stars.all = Some(options.clone()),
                SelectItem::QualifiedWildcard(ObjectName(name), options) => {
                    if let [ObjectNamePart::Identifier(table)] = name.0.as_slice() {
                        stars.tables.push((table.value.clone(), options.clone()));
                    }
                }
                _ => {}
            }
        }
        stars
    }

    /// Whether they show the column that is this output.
    fn have(&self, item: &SelectItem, output: &Output) -> bool {
        let shows = |options: &WildcardAdditionalOptions| !excludes(options, &output.name);
        let is_in_all = || self.all.as_ref().is_some_and(shows);
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(_)) => is_in_all(),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                let is_its = |(table, options): &(String, _)| {
                    parts.len() == 2 && parts[0].value == *table && shows(options)
                };
                is_in_all() || self.tables.iter().any(is_its)
            }
            SelectItem::ExprWithAlias { .. } => self.known.iter().any(|(table, columns)| {
                let is_its = |(shown, options): &(String, _)| shown == table && shows(options);
                columns.contains(&output.name) && (is_in_all() || self.tables.iter().any(is_its))
            }),
            _ => false,
        }
    }
}

/// Whether a `*` excludes the column with this name.
fn excludes(all: &WildcardAdditionalOptions, name: &str) -> bool {
    let names = match &all.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &[],
    };
    names.iter().any(|excluded| match excluded.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => ident.value == name,
        _ => false,
    })
}

/// The name of a column, without its table's name.
fn last(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map_or_else(String::new, |ident| ident.value.clone())
        }
        other => other.to_string(),
    }
}
