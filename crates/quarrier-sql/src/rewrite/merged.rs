//! The tables of a FROM that reads hidden columns.
//!
//! The hidden columns of two tables have the same names, so that `*` cannot exclude them by name:
//! it becomes one `t.*` per table. Before that, [`using`](super::using) rewrites NATURAL and USING, except
//! where the tables of merged columns are not known.

use datafusion::sql::sqlparser::ast::{
    Ident, JoinConstraint, JoinOperator, ObjectName, SelectItem, SelectItemQualifiedWildcardKind,
    WildcardAdditionalOptions,
};
use quarrier_messages::HiddenColumns;

use super::hidden::exclude;

/// A table of a FROM.
pub(super) struct Relation {
    /// The name that qualifies its columns.
    pub(super) qualifier: Option<Ident>,
    /// The hidden columns with which it is read.
    pub(super) hidden: HiddenColumns,
}

/// The tables of a FROM.
#[derive(Default)]
pub(super) struct Relations {
    pub(super) tables: Vec<Relation>,
    /// Whether a column is merged whose tables are not known.
    has_merged: bool,
}

/// A NATURAL JOIN that would compare hidden columns.
pub(super) struct ComparesHidden;

impl Relations {
    /// Records how the tables from `first` on are joined.
    ///
    /// # Errors
    /// A NATURAL JOIN reads hidden columns, and the columns of a table are not known.
    pub(super) fn join(
        &mut self,
        operator: &mut JoinOperator,
        first: usize,
    ) -> Result<(), ComparesHidden> {
        let has_hidden = self.tables[first..].iter().any(|table| !table.hidden.is_none());
        match constraint(operator) {
            Some(JoinConstraint::Natural) if has_hidden => return Err(ComparesHidden),
            Some(JoinConstraint::Natural | JoinConstraint::Using(_)) => self.has_merged = true,
            _ => {}
        }
        Ok(())
    }

    /// Splits a `*` into one for each table, without hidden columns. `None` if that is not possible.
    pub(super) fn apart(&self, options: &WildcardAdditionalOptions) -> Option<Vec<SelectItem>> {
        if !is_plain(options) || self.has_merged {
            return None;
        }
        let mut items = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            let qualifier = table.qualifier.clone()?;
            let mut options = WildcardAdditionalOptions::default();
            exclude(&mut options, table.hidden.fields().map(|field| field.name.to_string()));
            let name = ObjectName::from(vec![qualifier]);
            let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
            items.push(SelectItem::QualifiedWildcard(kind, options));
        }
        Some(items)
    }
}

/// Whether a `*` has no options.
pub(super) fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_ilike.is_none()
}

/// The constraint of a join, if it may have one.
pub(super) fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator as J;
    match operator {
        J::Join(constraint)
        | J::Inner(constraint)
        | J::Left(constraint)
        | J::LeftOuter(constraint)
        | J::Right(constraint)
        | J::RightOuter(constraint)
        | J::FullOuter(constraint)
        | J::Semi(constraint)
        | J::LeftSemi(constraint)
        | J::RightSemi(constraint)
        | J::Anti(constraint)
        | J::LeftAnti(constraint)
        | J::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}
