//! The tables that a statement names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Statement, TableAlias,
    TableFactor, TableFunctionArgs, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::walk::{Flow, Stop, walk};

/// The tables that a statement names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Names in single quotes: files.
    pub(crate) files: BTreeSet<String>,
    /// Names in double quotes or without quotes: tables or, if there is none, files.
    pub(crate) names: BTreeSet<String>,
    /// Calls of `messages('source', 'format')`, by the names of the tables that replace them.
    pub(crate) typed: BTreeMap<String, TypedMessages>,
}

/// Messages of an explicitly named format.
#[derive(Debug, Clone)]
pub(crate) struct TypedMessages {
    pub(crate) source: String,
    pub(crate) format: String,
}

/// The function whose calls become tables that are opened before planning.
pub(crate) const MESSAGES: &str = "messages";

/// `SHOW TABLES`.
const TABLES: &str = "SELECT table_name FROM information_schema.tables \
                      WHERE table_schema <> 'information_schema' ORDER BY table_name";

/// Table functions. DataFusion finds them only by these spellings.
const FUNCTIONS: [&str; 6] = ["carve", "files", "gauge", MESSAGES, "rules", "search"];

/// Collects the tables that a statement names. A file name becomes a table name, with the file's
/// stem as alias.
pub(crate) fn named<S: VisitMut>(statement: &mut S) -> Named {
    let mut named = Named::default();
    let _ = walk(statement, &mut Finder { named: &mut named });
    named
}

struct Finder<'n> {
    named: &'n mut Named,
}

impl VisitorMut for Finder<'_> {
    type Break = Stop;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        let TableFactor::Table { name, alias, args, .. } = factor else {
            return ControlFlow::Continue(());
        };
        match args {
            Some(_) => self.called(name, alias, args),
            None => self.table(name, alias),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> Flow {
        match statement {
            Statement::ExplainTable { table_name, .. } => self.table(table_name, &mut None),
            // Shows all tables except DataFusion's own.
            Statement::ShowTables { .. } => {
                let mut shown = Parser::parse_sql(&GenericDialect {}, TABLES).unwrap_or_default();
                if let Some(shown) = shown.pop() {
                    *statement = shown;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Finder<'_> {
    fn table(&mut self, name: &mut ObjectName, alias: &mut Option<TableAlias>) {
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
            // Either schema.table, or an unquoted file name with a dot.
            if let Some(file) = dotted(name) {
                *name = ObjectName::from(vec![Ident::with_quote('"', file.clone())]);
                call_by_stem(&file, alias);
                self.named.files.insert(file);
            }
            return;
        };
        let text = ident.value.clone();
        if ident.quote_style == Some('\'') {
            call_by_stem(&text, alias);
            *name = ObjectName::from(vec![Ident::with_quote('"', text.clone())]);
            self.named.files.insert(text);
        } else {
            self.named.names.insert(text);
        }
    }

    /// Corrects the spelling of a table function. A call of `messages` becomes a table that is
    /// opened once, like a file.
    fn called(
        &mut self,
        name: &mut ObjectName,
        alias: &mut Option<TableAlias>,
        args: &mut Option<TableFunctionArgs>,
    ) {
        let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() else { return };
        if ident.quote_style.is_none()
            && let Some(known) = FUNCTIONS.iter().find(|n| n.eq_ignore_ascii_case(&ident.value))
        {
            ident.value = known.to_string();
        }
        if ident.value != MESSAGES {
            return;
        }
        let strings: Option<Vec<String>> =
            args.as_ref().map(|args| args.args.iter().filter_map(text).collect());
        let count = args.as_ref().map_or(0, |args| args.args.len());
        if let (2, Some([source, format])) = (count, strings.as_deref()) {
            let table = format!("{MESSAGES}('{source}', '{format}')");
            let typed = TypedMessages { source: source.clone(), format: format.clone() };
            self.named.typed.insert(table.clone(), typed);
            *name = ObjectName::from(vec![Ident::with_quote('"', table)]);
            *args = None;
            call_by_stem(MESSAGES, alias);
        }
    }
}

/// The value of a string argument.
fn text(argument: &FunctionArg) -> Option<String> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// `FROM orders.ndjson`, if that file exists.
fn dotted(name: &ObjectName) -> Option<String> {
    let parts: Option<Vec<&str>> = name
        .0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) if ident.quote_style.is_none() => {
                Some(ident.value.as_str())
            }
            _ => None,
        })
        .collect();
    let file = parts?.join(".");
    Path::new(&file).is_file().then_some(file)
}

fn call_by_stem(file: &str, alias: &mut Option<TableAlias>) {
    if alias.is_some() {
        return;
    }
    let last = file.rsplit('/').next().unwrap_or(file);
    let stem = last.split('.').next().unwrap_or(last);
    let is_name = stem.chars().all(|c| c.is_alphanumeric() || c == '_') && !stem.is_empty();
    if is_name {
        *alias = Some(TableAlias {
            explicit: true,
            name: Ident::with_quote('"', stem),
            columns: Vec::new(),
            at: None,
        });
    }
}
