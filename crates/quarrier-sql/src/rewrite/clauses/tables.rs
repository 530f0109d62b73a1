//! Clauses of tables and joins.

use datafusion::sql::sqlparser::ast::{
    JoinConstraint, JoinOperator, TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs,
    TableWithJoins,
};

use super::{refused, select, unless};
use crate::Result;

pub(super) fn check(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name: _,
            alias: named,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            named.as_ref().map_or(Ok(()), alias)?;
            if let Some(TableFunctionArgs { args: _, settings }) = args {
                unless(settings.is_none(), "SETTINGS of a table")?;
            }
            unless(with_hints.is_empty(), "WITH (…) after a table")?;
            unless(version.is_none(), "a table as of a time or a version")?;
            unless(!with_ordinality, "WITH ORDINALITY")?;
            unless(partitions.is_empty(), "PARTITION (…) of a table")?;
            unless(json_path.is_none(), "a path into a table")?;
            unless(sample.is_none(), "TABLESAMPLE")?;
            unless(index_hints.is_empty(), "USE, IGNORE or FORCE INDEX")
        }
        TableFactor::Derived { lateral: _, subquery: _, alias: named, sample } => {
            named.as_ref().map_or(Ok(()), alias)?;
            unless(sample.is_none(), "TABLESAMPLE")
        }
        TableFactor::TableFunction { expr: _, alias: _ } => refused("TABLE (…)"),
        TableFactor::Function { lateral: _, name: _, args: _, with_ordinality, alias: named } => {
            named.as_ref().map_or(Ok(()), alias)?;
            unless(!with_ordinality, "WITH ORDINALITY")
        }
        TableFactor::UNNEST {
            alias: named,
            array_exprs: _,
            with_offset,
            with_offset_alias: _,
            with_ordinality,
        } => {
            named.as_ref().map_or(Ok(()), alias)?;
            unless(!with_offset, "WITH OFFSET")?;
            unless(!with_ordinality, "WITH ORDINALITY")
        }
        TableFactor::NestedJoin { table_with_joins, alias: named } => {
            let TableWithJoins { relation: _, joins } = &**table_with_joins;
            named.as_ref().map_or(Ok(()), alias)?;
            joins.iter().try_for_each(select::join)
        }
        TableFactor::JsonTable { .. } => refused("JSON_TABLE"),
        TableFactor::OpenJsonTable { .. } => refused("OPENJSON"),
        TableFactor::Pivot { .. } => refused("PIVOT"),
        TableFactor::Unpivot { .. } => refused("UNPIVOT"),
        TableFactor::MatchRecognize { .. } => refused("MATCH_RECOGNIZE"),
        TableFactor::XmlTable { .. } => refused("XMLTABLE"),
        TableFactor::SemanticView { .. } => refused("SEMANTIC_VIEW"),
    }
}

/// Checks the alias of a table.
pub(super) fn alias(alias: &TableAlias) -> Result<()> {
    let TableAlias { explicit: _, name: _, columns, at } = alias;
    unless(at.is_none(), "AT after a table's name")?;
    for TableAliasColumnDef { name: _, data_type } in columns {
        unless(data_type.is_none(), "a type after the name of a table's column")?;
    }
    Ok(())
}

/// Checks how two tables are joined.
pub(super) fn operator(operator: &JoinOperator) -> Result<()> {
    use JoinOperator as J;
    match operator {
        J::Join(constraint)
        | J::Inner(constraint)
        | J::Left(constraint)
        | J::LeftOuter(constraint)
        | J::Right(constraint)
        | J::RightOuter(constraint)
        | J::FullOuter(constraint)
        | J::LeftSemi(constraint)
        | J::RightSemi(constraint)
        | J::LeftAnti(constraint)
        | J::RightAnti(constraint) => match constraint {
            JoinConstraint::On(_)
            | JoinConstraint::Using(_)
            | JoinConstraint::Natural
            | JoinConstraint::None => Ok(()),
        },
        J::CrossJoin(constraint) => {
            unless(matches!(constraint, JoinConstraint::None), "CROSS JOIN with a condition")
        }
        J::Semi(_) => refused("SEMI JOIN (write LEFT SEMI JOIN)"),
        J::Anti(_) => refused("ANTI JOIN (write LEFT ANTI JOIN)"),
        J::CrossApply | J::OuterApply => refused("APPLY (write JOIN LATERAL)"),
        J::AsOf { match_condition: _, constraint: _ } => refused("ASOF JOIN"),
        J::StraightJoin(_) => refused("STRAIGHT_JOIN"),
        J::ArrayJoin | J::LeftArrayJoin | J::InnerArrayJoin => refused("ARRAY JOIN"),
    }
}
