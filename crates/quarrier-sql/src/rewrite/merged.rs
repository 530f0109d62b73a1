//! The tables of a FROM, and the columns that NATURAL JOIN and USING merge into one.
//!
//! The hidden columns of two tables have the same names, so NATURAL JOIN would compare them, and `*`
//! cannot exclude them by name. So NATURAL JOIN becomes USING with the visible columns of both
//! sides, and `*` becomes one `t.*` per table, without the further copies of merged columns.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::{
    Ident, JoinConstraint, JoinOperator, ObjectName, SelectItem, SelectItemQualifiedWildcardKind,
    WildcardAdditionalOptions,
};
use quarrier_messages::HiddenColumns;

use super::hidden::{exclude, last};

/// A table of a FROM.
pub(super) struct Relation<'t> {
    /// The name that qualifies its columns.
    pub(super) qualifier: Option<Ident>,
    /// The hidden columns with which it is read.
    pub(super) hidden: HiddenColumns,
    /// Its visible columns, if it is an open table.
    pub(super) columns: Option<&'t [String]>,
}

/// The tables of a FROM.
#[derive(Default)]
pub(super) struct Relations<'t> {
    pub(super) tables: Vec<Relation<'t>>,
    merged: Vec<MergedColumn>,
    /// Whether a column is merged whose tables are not known, or whose copies may differ: an outer
    /// join makes NULLs of one of them.
    has_unclear: bool,
}

/// A column of several tables that joins merge into one.
struct MergedColumn {
    name: String,
    /// The places of its tables.
    tables: Vec<usize>,
}

/// A NATURAL JOIN that would compare hidden columns.
pub(super) struct ComparesHidden;

impl<'t> Relations<'t> {
    /// Records how the tables from `right` on are joined with those of `left` before them.
    ///
    /// # Errors
    /// A NATURAL JOIN reads hidden columns, and the columns of a table are not known.
    pub(super) fn join(
        &mut self,
        operator: &mut JoinOperator,
        left: Range<usize>,
    ) -> Result<(), ComparesHidden> {
        let right = left.end..self.tables.len();
        let is_inner = matches!(operator, JoinOperator::Join(_) | JoinOperator::Inner(_));
        let Some(constraint) = constraint(operator) else { return Ok(()) };
        if matches!(constraint, JoinConstraint::Natural) {
            let has_hidden = |table: &Relation<'_>| !table.hidden.is_none();
            if !self.tables[left.start..].iter().any(has_hidden) {
                self.has_unclear = true;
                return Ok(());
            }
            let names = self.common(left.clone(), right.clone()).ok_or(ComparesHidden)?;
            if names.is_empty() {
                *operator = JoinOperator::CrossJoin(JoinConstraint::None);
                return Ok(());
            }
            let name = |name: &str| ObjectName::from(vec![Ident::with_quote('"', name)]);
            *constraint = JoinConstraint::Using(names.into_iter().map(name).collect());
        }
        if let JoinConstraint::Using(names) = constraint {
            self.has_unclear |= !is_inner;
            for name in names.iter().filter_map(last) {
                self.merge(name, left.clone(), right.clone());
            }
        }
        Ok(())
    }

    /// The visible columns that both sides have; `None` if those of a table are not known.
    fn common(&self, left: Range<usize>, right: Range<usize>) -> Option<Vec<&'t str>> {
        let columns = |side: Range<usize>| -> Option<Vec<&'t String>> {
            let tables = self.tables[side].iter();
            let columns: Option<Vec<&'t [String]>> = tables.map(|table| table.columns).collect();
            Some(columns?.into_iter().flatten().collect())
        };
        let left = columns(left)?;
        let mut common: Vec<&str> = Vec::new();
        for name in columns(right)? {
            if left.contains(&name) && !common.contains(&name.as_str()) {
                common.push(name);
            }
        }
        Some(common)
    }

    /// Merges a column of both sides.
    fn merge(&mut self, name: &str, left: Range<usize>, right: Range<usize>) {
        let mut tables = Vec::new();
        for side in [left, right] {
            match self.tables_with(name, side) {
                Some(found) => tables.extend(found),
                None => self.has_unclear = true,
            }
        }
        let is_part = |merged: &MergedColumn| {
            merged.name == name && merged.tables.iter().any(|table| tables.contains(table))
        };
        self.merged.retain(|merged| !is_part(merged));
        if !tables.is_empty() {
            self.merged.push(MergedColumn { name: name.to_string(), tables });
        }
    }

    /// The tables of one side whose column has this name: one, or several whose columns are merged.
    fn tables_with(&self, name: &str, side: Range<usize>) -> Option<Vec<usize>> {
        let is_it = |merged: &&MergedColumn| {
            merged.name == name && merged.tables.iter().all(|place| side.contains(place))
        };
        if let Some(merged) = self.merged.iter().find(is_it) {
            return Some(merged.tables.clone());
        }
        if side.len() == 1 {
            return Some(side.collect());
        }
        let mut found = Vec::new();
        for place in side {
            if self.tables[place].columns?.iter().any(|column| column == name) {
                found.push(place);
            }
        }
        (found.len() == 1).then_some(found)
    }

    /// Splits a `*` into one for each table, without hidden columns and further copies of merged
    /// columns. `None` if that is not possible.
    pub(super) fn apart(&self, options: &WildcardAdditionalOptions) -> Option<Vec<SelectItem>> {
        let is_plain = options.opt_exclude.is_none()
            && options.opt_except.is_none()
            && options.opt_replace.is_none()
            && options.opt_ilike.is_none();
        if !is_plain || self.has_unclear {
            return None;
        }
        let mut items = Vec::with_capacity(self.tables.len());
        for (place, table) in self.tables.iter().enumerate() {
            let qualifier = table.qualifier.clone()?;
            let copies = self.merged.iter().filter(|merged| {
                merged.tables.contains(&place) && self.shown(merged) != Some(place)
            });
            let mut options = WildcardAdditionalOptions::default();
            let hidden = table.hidden.fields().map(|field| field.name.to_string());
            exclude(&mut options, hidden.chain(copies.map(|merged| merged.name.clone())));
            let name = ObjectName::from(vec![qualifier]);
            let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
            items.push(SelectItem::QualifiedWildcard(kind, options));
        }
        Some(items)
    }

    /// The table in whose place `*` shows a merged column: as for tables without hidden columns,
    /// the first one by its name.
    fn shown(&self, merged: &MergedColumn) -> Option<usize> {
        let name = |place: &usize| self.tables[*place].qualifier.as_ref().map(|name| &name.value);
        merged.tables.iter().copied().min_by_key(name)
    }
}

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
