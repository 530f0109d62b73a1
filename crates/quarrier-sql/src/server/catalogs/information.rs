//! The schema `information_schema`, with PostgreSQL's columns and names of types.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, MemorySchemaProvider};
use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;
use quarrier_wire::{TableInfo, kind};

use super::functions::kind_name;
use super::live;
use super::tables::Columns;
use crate::Result;

/// The name of the schema.
const SCHEMA: &str = "information_schema";
/// The name of the database.
const CATALOG: &str = "quarrier";

/// A table or view.
struct Relation<'a> {
    schema: &'static str,
    name: &'a str,
    columns: &'a SchemaRef,
    is_declared: bool,
}

/// Registers the tables of the schema: about the served tables, and about the server's own.
pub(super) fn register(
    context: &SessionContext,
    served: &[TableInfo],
    own: &[(&'static str, SchemaRef)],
) -> Result<()> {
    let catalog = context.catalog(CATALOG).ok_or_else(|| crate::Error::Setup {
        reason: "there is no catalog to put tables in".to_string(),
    })?;
    catalog.register_schema(SCHEMA, Arc::new(MemorySchemaProvider::new()))?;
    let tables = served.iter().map(|table| Relation {
        schema: "public",
        name: &table.name,
        columns: &table.columns,
        is_declared: table.is_declared,
    });
    let views = own.iter().map(|(name, columns)| Relation {
        schema: live::SCHEMA,
        name,
        columns,
        is_declared: false,
    });
    let all: Vec<Relation<'_>> = tables.chain(views).collect();
    schemata(context)?;
    relations(context, &all)?;
    columns(context, &all)?;
    for (name, columns) in EMPTY {
        let fields = columns.iter().map(|name| {
            let data = if name.ends_with("position") { DataType::Int64 } else { DataType::Utf8 };
            Field::new(*name, data, true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let table = MemTable::try_new(schema, vec![vec![]])?;
        context.register_table(TableReference::partial(SCHEMA, *name), Arc::new(table))?;
    }
    Ok(())
}

fn schemata(context: &SessionContext) -> Result<()> {
    let names = ["pg_catalog", "public", SCHEMA, live::SCHEMA];
    Columns::default()
        .strings("schema_name", names.iter())
        .text("catalog_name", CATALOG)
        .text("schema_owner", "quarrier")
        .no_text("default_character_set_catalog")
        .no_text("default_character_set_schema")
        .no_text("default_character_set_name")
        .no_text("sql_path")
        .registered_in(context, SCHEMA, "schemata")
}

fn relations(context: &SessionContext, all: &[Relation<'_>]) -> Result<()> {
    let is_view = |relation: &Relation<'_>| relation.schema == live::SCHEMA;
    let kind = |it| if is_view(it) { "VIEW" } else { "BASE TABLE" };
    Columns::default()
        .strings("table_schema", all.iter().map(|it| it.schema))
        .strings("table_name", all.iter().map(|it| it.name))
        .text("table_catalog", CATALOG)
        .strings("table_type", all.iter().map(kind))
        .no_text("self_referencing_column_name")
        .no_text("reference_generation")
        .no_text("user_defined_type_catalog")
        .no_text("user_defined_type_schema")
        .no_text("user_defined_type_name")
        .strings("is_insertable_into", all.iter().map(|it| if is_view(it) { "NO" } else { "YES" }))
        .text("is_typed", "NO")
        .no_text("commit_action")
        .registered_in(context, SCHEMA, "tables")?;
    let views: Vec<&Relation<'_>> = all.iter().filter(|it| is_view(it)).collect();
    Columns::default()
        .strings("table_schema", views.iter().map(|it| it.schema))
        .strings("table_name", views.iter().map(|it| it.name))
        .text("table_catalog", CATALOG)
        .no_text("view_definition")
        .text("check_option", "NONE")
        .text("is_updatable", "NO")
        .text("is_insertable_into", "NO")
        .registered_in(context, SCHEMA, "views")
}

fn columns(context: &SessionContext, all: &[Relation<'_>]) -> Result<()> {
    let all: Vec<(&Relation<'_>, i64, &Field)> = all
        .iter()
        .flat_map(|relation| {
            let fields = (1..).zip(relation.columns.fields().iter());
            fields.map(move |(number, field)| (relation, number, field.as_ref()))
        })
        .collect();
    let kinds = || all.iter().map(|(_, _, field)| kind::of(field.data_type()));
    let needed = |relation: &Relation<'_>, field: &Field| {
        if relation.is_declared && !field.is_nullable() { "NO" } else { "YES" }
    };
    let digits = all.iter().map(|(relation, _, field)| precision(relation, field));
    let (digits, scales): (Vec<_>, Vec<_>) = digits.unzip();
    let mut columns = Columns::default()
        .strings("table_schema", all.iter().map(|it| it.0.schema))
        .strings("table_name", all.iter().map(|it| it.0.name))
        .strings("column_name", all.iter().map(|it| it.2.name()))
        .text("table_catalog", CATALOG)
        .numbers("ordinal_position", all.iter().map(|it| it.1))
        .strings("is_nullable", all.iter().map(|it| needed(it.0, it.2)))
        .strings("data_type", kinds().map(type_name))
        .maybe_numbers("numeric_precision", digits.into_iter())
        .maybe_numbers("numeric_scale", scales.into_iter())
        .maybe_numbers("numeric_precision_radix", kinds().map(radix))
        .maybe_numbers("datetime_precision", kinds().map(datetime_precision))
        .strings("udt_name", kinds().map(short_name))
        .text("udt_schema", "pg_catalog")
        .text("udt_catalog", CATALOG)
        .strings("dtd_identifier", all.iter().map(|it| it.1.to_string()));
    for name in [
        "column_default",
        "interval_type",
        "character_set_catalog",
        "character_set_schema",
        "character_set_name",
        "collation_catalog",
        "collation_schema",
        "collation_name",
        "domain_catalog",
        "domain_schema",
        "domain_name",
        "scope_catalog",
        "scope_schema",
        "scope_name",
        "identity_generation",
        "identity_start",
        "identity_increment",
        "identity_maximum",
        "identity_minimum",
        "generation_expression",
    ] {
        columns = columns.no_text(name);
    }
    for name in [
        "character_maximum_length",
        "character_octet_length",
        "interval_precision",
        "maximum_cardinality",
    ] {
        columns = columns.no_number(name);
    }
    columns
        .text("is_self_referencing", "NO")
        .text("is_identity", "NO")
        .text("identity_cycle", "NO")
        .text("is_generated", "NEVER")
        .text("is_updatable", "YES")
        .registered_in(context, SCHEMA, "columns")
}

fn type_name(number: u32) -> String {
    match kind::item(number) {
        Some(_) => "ARRAY".to_string(),
        None => kind_name(i64::from(number)),
    }
}

/// Returns the name of a type as in `pg_type`.
fn short_name(number: u32) -> String {
    let name = |number| kind::ALL.iter().find(|it| it.0 == number).map_or("text", |it| it.1);
    match kind::item(number) {
        Some(item) => format!("_{}", name(item)),
        None => name(number).to_string(),
    }
}

/// Returns the digits of a number, and those after its point.
fn precision(relation: &Relation<'_>, field: &Field) -> (Option<i64>, Option<i64>) {
    match (kind::of(field.data_type()), field.data_type()) {
        (kind::INT2, _) => (Some(16), Some(0)),
        (kind::INT4, _) => (Some(32), Some(0)),
        (kind::INT8, _) => (Some(64), Some(0)),
        (kind::FLOAT4, _) => (Some(24), None),
        (kind::FLOAT8, _) => (Some(53), None),
        (_, DataType::Decimal128(digits, scale)) if relation.is_declared => {
            (Some(i64::from(*digits)), Some(i64::from(*scale)))
        }
        _ => (None, None),
    }
}

fn radix(number: u32) -> Option<i64> {
    match number {
        kind::INT2 | kind::INT4 | kind::INT8 | kind::FLOAT4 | kind::FLOAT8 => Some(2),
        kind::NUMERIC => Some(10),
        _ => None,
    }
}

fn datetime_precision(number: u32) -> Option<i64> {
    match number {
        kind::DATE => Some(0),
        kind::TIME | kind::TIMESTAMP | kind::TIMESTAMPTZ | kind::INTERVAL => Some(6),
        _ => None,
    }
}

/// Tables that are always empty.
const EMPTY: &[(&str, &[&str])] = &[
    (
        "table_constraints",
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "constraint_type",
            "is_deferrable",
            "initially_deferred",
            "enforced",
            "nulls_distinct",
        ],
    ),
    (
        "key_column_usage",
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "position_in_unique_constraint",
        ],
    ),
    (
        "referential_constraints",
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "unique_constraint_catalog",
            "unique_constraint_schema",
            "unique_constraint_name",
            "match_option",
            "update_rule",
            "delete_rule",
        ],
    ),
    (
        "constraint_column_usage",
        &[
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
        ],
    ),
    (
        "check_constraints",
        &["constraint_catalog", "constraint_schema", "constraint_name", "check_clause"],
    ),
    (
        "table_privileges",
        &[
            "grantor",
            "grantee",
            "table_catalog",
            "table_schema",
            "table_name",
            "privilege_type",
            "is_grantable",
            "with_hierarchy",
        ],
    ),
    (
        "role_table_grants",
        &[
            "grantor",
            "grantee",
            "table_catalog",
            "table_schema",
            "table_name",
            "privilege_type",
            "is_grantable",
            "with_hierarchy",
        ],
    ),
    (
        "routine_privileges",
        &[
            "grantor",
            "grantee",
            "specific_catalog",
            "specific_schema",
            "specific_name",
            "routine_catalog",
            "routine_schema",
            "routine_name",
            "privilege_type",
            "is_grantable",
        ],
    ),
    (
        "routines",
        &[
            "specific_catalog",
            "specific_schema",
            "specific_name",
            "routine_catalog",
            "routine_schema",
            "routine_name",
            "routine_type",
            "data_type",
            "routine_definition",
            "external_language",
        ],
    ),
    (
        "parameters",
        &[
            "specific_catalog",
            "specific_schema",
            "specific_name",
            "ordinal_position",
            "parameter_mode",
            "parameter_name",
            "data_type",
        ],
    ),
    (
        "sequences",
        &["sequence_catalog", "sequence_schema", "sequence_name", "data_type", "start_value"],
    ),
    (
        "triggers",
        &[
            "trigger_catalog",
            "trigger_schema",
            "trigger_name",
            "event_manipulation",
            "event_object_catalog",
            "event_object_schema",
            "event_object_table",
            "action_statement",
            "action_timing",
        ],
    ),
];
