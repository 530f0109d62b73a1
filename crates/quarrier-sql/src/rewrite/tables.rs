//! The tables that a statement names.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor, VisitMut, VisitorMut,
};

/// Tables of a statement that are not functions.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// What stands in single quotes: files.
    pub(crate) files: BTreeSet<String>,
    /// Names, with double quotes or without; tables, or else files.
    pub(crate) names: BTreeSet<String>,
}

/// The tables that are named. A file becomes a table of the file's name, called by its stem.
pub(crate) fn named<S: VisitMut>(statement: &mut S) -> Named {
    let mut named = Named::default();
    let _ = VisitMut::visit(statement, &mut Finder { named: &mut named });
    named
}

struct Finder<'n> {
    named: &'n mut Named,
}

impl VisitorMut for Finder<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
            // schema.table, or a file whose name has a dot in it and no quotes.
            if let Some(file) = dotted(name) {
                *name = ObjectName::from(vec![Ident::with_quote('"', file.clone())]);
                call_by_stem(&file, alias);
                self.named.files.insert(file);
            }
            return ControlFlow::Continue(());
        };
        let text = ident.value.clone();
        if ident.quote_style == Some('\'') {
            call_by_stem(&text, alias);
            *name = ObjectName::from(vec![Ident::with_quote('"', text.clone())]);
            self.named.files.insert(text);
        } else {
            self.named.names.insert(text);
        }
        ControlFlow::Continue(())
    }
}

/// `FROM orders.ndjson`, where there is such a file.
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
