//! The catalogs that have rows: tables, columns, types, schemas, databases, users.

use std::iter::{repeat, repeat_n};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, MemorySchemaProvider, SchemaProvider};
use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;
use quarrier_wire::{TableInfo, kind};

use super::functions::SETTINGS;
use crate::Result;

/// OIDs of schemas, of the only user and of the only database.
const PG_CATALOG: i64 = 11;
const PUBLIC: i64 = 2_200;
const INFORMATION_SCHEMA: i64 = 13_000;
pub(super) const OWNER: i64 = 10;
const DATABASE: i64 = 16_384;
const HEAP: i64 = 2;
const TABLESPACE: i64 = 1_663;
/// The OID of the first table.
const FIRST_TABLE: u32 = 16_385;

/// The catalogs that have rows.
const WITH_ROWS: &[&str] = &[
    "pg_am",
    "pg_attribute",
    "pg_class",
    "pg_database",
    "pg_namespace",
    "pg_roles",
    "pg_authid",
    "pg_user",
    "pg_settings",
    "pg_stat_activity",
    "pg_stat_all_tables",
    "pg_stat_user_tables",
    "pg_tables",
    "pg_tablespace",
    "pg_type",
    "pg_range_none",
];

/// Returns whether a catalog may have rows.
pub(super) fn has_rows(name: &str) -> bool {
    WITH_ROWS.contains(&name)
}

/// Rows of a catalog, column by column.
#[derive(Default)]
pub(super) struct Columns(Vec<(&'static str, ArrayRef)>);

impl Columns {
    pub(super) fn strings<T: AsRef<str>>(
        mut self,
        name: &'static str,
        values: impl Iterator<Item = T>,
    ) -> Self {
        self.0.push((name, Arc::new(StringArray::from_iter_values(values))));
        self
    }

    pub(super) fn numbers(mut self, name: &'static str, values: impl Iterator<Item = i64>) -> Self {
        self.0.push((name, Arc::new(Int64Array::from_iter_values(values))));
        self
    }

    pub(super) fn maybe_numbers(
        mut self,
        name: &'static str,
        values: impl Iterator<Item = Option<i64>>,
    ) -> Self {
        self.0.push((name, Arc::new(values.collect::<Int64Array>())));
        self
    }

    fn rows(&self) -> usize {
        self.0.first().map_or(0, |(_, column)| column.len())
    }

    /// Adds columns with the same value in every row.
    pub(super) fn text(self, name: &'static str, value: &str) -> Self {
        let rows = self.rows();
        self.strings(name, repeat_n(value, rows))
    }

    fn number(self, name: &'static str, value: i64) -> Self {
        let rows = self.rows();
        self.numbers(name, repeat_n(value, rows))
    }

    fn are(mut self, name: &'static str, values: impl Iterator<Item = bool>) -> Self {
        let values: BooleanArray = values.map(Some).collect();
        self.0.push((name, Arc::new(values)));
        self
    }

    fn is(self, name: &'static str, value: bool) -> Self {
        let rows = self.rows();
        self.are(name, repeat_n(value, rows))
    }

    pub(super) fn no_text(mut self, name: &'static str) -> Self {
        let values: StringArray = repeat_n(None::<&str>, self.rows()).collect();
        self.0.push((name, Arc::new(values)));
        self
    }

    pub(super) fn no_number(self, name: &'static str) -> Self {
        let rows = self.rows();
        self.maybe_numbers(name, repeat_n(None, rows))
    }

    fn registered(self, context: &SessionContext, name: &str) -> Result<()> {
        self.registered_in(context, "pg_catalog", name)
    }

    pub(super) fn registered_in(
        self,
        context: &SessionContext,
        schema: &str,
        name: &str,
    ) -> Result<()> {
        let columns = self.0.into_iter().map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns);
        let batch = batch.map_err(|error| crate::Error::Engine(error.into()))?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        context.register_table(TableReference::partial(schema, name), Arc::new(table))?;
        Ok(())
    }
}

/// Registers the catalogs. Returns the names and OIDs of the served tables.
pub(super) fn register(
    context: &SessionContext,
    served: &[TableInfo],
) -> Result<Vec<(String, u32)>> {
    let catalog = context.catalog("quarrier").ok_or_else(|| crate::Error::Setup {
        reason: "there is no catalog to put tables in".to_string(),
    })?;
    let public = Arc::new(MemorySchemaProvider::new());
    for table in served {
        let shape = MemTable::try_new(shown(&table.columns), vec![vec![]])?;
        public.register_table(table.name.clone(), Arc::new(shape))?;
    }
    catalog.register_schema("public", public)?;
    let numbers: Vec<(String, u32)> =
        (FIRST_TABLE..).zip(served).map(|(number, it)| (it.name.clone(), number)).collect();
    schemas(context)?;
    relations(context, served)?;
    attributes(context, served)?;
    kinds(context)?;
    others(context, served)?;
    Ok(numbers)
}

/// Returns the columns as `information_schema` shows them.
fn shown(columns: &SchemaRef) -> SchemaRef {
    let fields = columns.fields().iter().map(|field| {
        let data = match field.data_type() {
            DataType::Utf8View | DataType::Dictionary(..) | DataType::LargeUtf8 => DataType::Utf8,
            other => other.clone(),
        };
        Field::new(field.name(), data, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn schemas(context: &SessionContext) -> Result<()> {
    let all = [
        (PG_CATALOG, "pg_catalog"),
        (PUBLIC, "public"),
        (INFORMATION_SCHEMA, "information_schema"),
    ];
    Columns::default()
        .numbers("oid", all.iter().map(|it| it.0))
        .strings("nspname", all.iter().map(|it| it.1))
        .number("nspowner", OWNER)
        .no_text("nspacl")
        .registered(context, "pg_namespace")
}

fn relations(context: &SessionContext, served: &[TableInfo]) -> Result<()> {
    let numbers = || (i64::from(FIRST_TABLE)..).take(served.len());
    Columns::default()
        .numbers("oid", numbers())
        .strings("relname", served.iter().map(|it| it.name.as_str()))
        .number("relnamespace", PUBLIC)
        .number("reltype", 0)
        .number("reloftype", 0)
        .number("relowner", OWNER)
        .number("relam", HEAP)
        .number("relfilenode", 0)
        .number("reltablespace", 0)
        .number("relpages", 0)
        .numbers("reltuples", served.iter().map(|it| it.rows.map_or(-1, |rows| rows as i64)))
        .number("relallvisible", 0)
        .number("reltoastrelid", 0)
        .is("relhasindex", false)
        .is("relisshared", false)
        .text("relpersistence", "p")
        .text("relkind", "r")
        .numbers("relnatts", served.iter().map(|it| it.columns.fields().len() as i64))
        .number("relchecks", 0)
        .is("relhasrules", false)
        .is("relhastriggers", false)
        .is("relhassubclass", false)
        .is("relrowsecurity", false)
        .is("relforcerowsecurity", false)
        .is("relispopulated", true)
        .text("relreplident", "d")
        .is("relispartition", false)
        .is("relhasoids", false)
        .number("relrewrite", 0)
        .no_text("relacl")
        .no_text("reloptions")
        .no_text("relpartbound")
        .number("xmin", 1)
        .registered(context, "pg_class")
}

fn attributes(context: &SessionContext, served: &[TableInfo]) -> Result<()> {
    let all: Vec<(i64, i64, &str, u32)> = (i64::from(FIRST_TABLE)..)
        .zip(served)
        .flat_map(|(table, info)| {
            let fields = (1..).zip(info.columns.fields().iter());
            fields.map(move |(number, field)| {
                (table, number, field.name().as_str(), kind::of(field.data_type()))
            })
        })
        .collect();
    let fields = || {
        let all = served.iter().map(|info| info.columns.fields().iter().zip(repeat(info)));
        all.flatten()
    };
    let modifiers = fields().map(|(field, info)| match field.data_type() {
        // PostgreSQL packs precision and scale like this.
        DataType::Decimal128(digits, scale) if info.is_declared => {
            (i64::from(*digits) << 16 | i64::from(*scale)) + 4
        }
        _ => -1,
    });
    let needed = fields().map(|(field, info)| info.is_declared && !field.is_nullable());
    let collation = |kind: u32| if kind == kind::TEXT { 100 } else { 0 };
    Columns::default()
        .numbers("attrelid", all.iter().map(|it| it.0))
        .strings("attname", all.iter().map(|it| it.2))
        .numbers("atttypid", all.iter().map(|it| i64::from(it.3)))
        .number("attstattarget", -1)
        .numbers("attlen", all.iter().map(|it| i64::from(kind::size(it.3))))
        .numbers("attnum", all.iter().map(|it| it.1))
        .number("attndims", 0)
        .numbers("atttypmod", modifiers)
        .text("attstorage", "x")
        .text("attalign", "i")
        .text("attcompression", "")
        .is("attbyval", false)
        .are("attnotnull", needed)
        .is("atthasdef", false)
        .is("atthasmissing", false)
        .text("attidentity", "")
        .text("attgenerated", "")
        .is("attisdropped", false)
        .is("attislocal", true)
        .number("attinhcount", 0)
        .numbers("attcollation", all.iter().map(|it| collation(it.3)))
        .no_text("attacl")
        .no_text("attoptions")
        .no_text("attfdwoptions")
        .registered(context, "pg_attribute")
}

fn kinds(context: &SessionContext) -> Result<()> {
    let mut all: Vec<(i64, String, i64, i64, i64)> = Vec::new();
    for (number, name, size, list) in kind::ALL {
        let (number, list) = (i64::from(*number), i64::from(*list));
        all.push((number, (*name).to_string(), i64::from(*size), 0, list));
        all.push((list, format!("_{name}"), -1, number, 0));
    }
    let category = |it: &(i64, String, i64, i64, i64)| match u32::try_from(it.0).unwrap_or_default()
    {
        _ if it.3 != 0 => "A",
        kind::BOOL => "B",
        kind::DATE | kind::TIME | kind::TIMESTAMP | kind::TIMESTAMPTZ => "D",
        kind::INTERVAL => "T",
        kind::INT2
        | kind::INT4
        | kind::INT8
        | kind::FLOAT4
        | kind::FLOAT8
        | kind::NUMERIC
        | kind::OID => "N",
        kind::TEXT | kind::VARCHAR | kind::BPCHAR | kind::NAME => "S",
        _ => "U",
    };
    // Drivers recognise types by the names of their functions in PostgreSQL.
    let function = |act: &'static str| {
        move |it: &(i64, String, i64, i64, i64)| match it.1.as_str() {
            _ if it.3 != 0 => format!("array_{act}"),
            "numeric" | "date" | "time" | "timestamp" | "timestamptz" | "interval" | "uuid" => {
                format!("{}_{act}", it.1)
            }
            name => format!("{name}{act}"),
        }
    };
    Columns::default()
        .numbers("oid", all.iter().map(|it| it.0))
        .strings("typname", all.iter().map(|it| it.1.as_str()))
        .number("typnamespace", PG_CATALOG)
        .number("typowner", OWNER)
        .numbers("typlen", all.iter().map(|it| it.2))
        .is("typbyval", false)
        .text("typtype", "b")
        .strings("typcategory", all.iter().map(category))
        .is("typispreferred", false)
        .is("typisdefined", true)
        .text("typdelim", ",")
        .number("typrelid", 0)
        .numbers("typelem", all.iter().map(|it| it.3))
        .numbers("typarray", all.iter().map(|it| it.4))
        .strings("typinput", all.iter().map(function("in")))
        .strings("typoutput", all.iter().map(function("out")))
        .strings("typreceive", all.iter().map(function("recv")))
        .strings("typsend", all.iter().map(function("send")))
        .text("typmodin", "-")
        .text("typmodout", "-")
        .text("typanalyze", "-")
        .text("typsubscript", "-")
        .text("typalign", "i")
        .text("typstorage", "p")
        .number("typbasetype", 0)
        .number("typtypmod", -1)
        .number("typndims", 0)
        .number("typcollation", 0)
        .is("typnotnull", false)
        .no_text("typdefaultbin")
        .no_text("typdefault")
        .no_text("typacl")
        .registered(context, "pg_type")
}

fn others(context: &SessionContext, served: &[TableInfo]) -> Result<()> {
    let one = || std::iter::once(());
    Columns::default()
        .numbers("oid", one().map(|()| HEAP))
        .text("amname", "heap")
        .text("amtype", "t")
        .registered(context, "pg_am")?;
    Columns::default()
        .numbers("oid", one().map(|()| DATABASE))
        .text("datname", "quarrier")
        .number("datdba", OWNER)
        .number("encoding", 6)
        .text("datlocprovider", "c")
        .text("datcollate", "C")
        .text("datctype", "C")
        .no_text("daticulocale")
        .is("datistemplate", false)
        .is("datallowconn", true)
        .number("datconnlimit", -1)
        .number("dattablespace", TABLESPACE)
        .number("datlastsysoid", 0)
        .number("datfrozenxid", 0)
        .number("datminmxid", 0)
        .no_text("datcollversion")
        .no_text("datacl")
        .registered(context, "pg_database")?;
    Columns::default()
        .numbers("oid", [TABLESPACE, TABLESPACE + 1].into_iter())
        .strings("spcname", ["pg_default", "pg_global"].iter())
        .number("spcowner", OWNER)
        .no_text("spcacl")
        .no_text("spcoptions")
        .registered(context, "pg_tablespace")?;
    settings(context)?;
    statistics(context, served)?;
    Columns::default()
        .strings("schemaname", served.iter().map(|_| "public"))
        .strings("tablename", served.iter().map(|it| it.name.as_str()))
        .text("tableowner", "quarrier")
        .no_text("tablespace")
        .is("hasindexes", false)
        .is("hasrules", false)
        .is("hastriggers", false)
        .is("rowsecurity", false)
        .registered(context, "pg_tables")?;
    Ok(())
}

fn settings(context: &SessionContext) -> Result<()> {
    Columns::default()
        .strings("name", SETTINGS.iter().map(|it| it.0))
        .strings("setting", SETTINGS.iter().map(|it| it.1))
        .no_text("unit")
        .text("category", "Preset Options")
        .text("short_desc", "")
        .no_text("extra_desc")
        .text("context", "internal")
        .text("vartype", "string")
        .text("source", "default")
        .no_text("min_val")
        .no_text("max_val")
        .no_text("enumvals")
        .strings("boot_val", SETTINGS.iter().map(|it| it.1))
        .strings("reset_val", SETTINGS.iter().map(|it| it.1))
        .no_text("sourcefile")
        .no_number("sourceline")
        .is("pending_restart", false)
        .registered(context, "pg_settings")
}

fn statistics(context: &SessionContext, served: &[TableInfo]) -> Result<()> {
    for name in ["pg_stat_user_tables", "pg_stat_all_tables"] {
        let mut columns = Columns::default()
            .numbers("relid", (i64::from(FIRST_TABLE)..).take(served.len()))
            .text("schemaname", "public")
            .strings("relname", served.iter().map(|it| it.name.as_str()))
            .maybe_numbers("n_live_tup", served.iter().map(|it| it.rows.map(|rows| rows as i64)));
        for name in [
            "seq_scan",
            "seq_tup_read",
            "idx_scan",
            "idx_tup_fetch",
            "n_tup_ins",
            "n_tup_upd",
            "n_tup_del",
            "n_tup_hot_upd",
            "n_dead_tup",
            "n_mod_since_analyze",
            "n_ins_since_vacuum",
            "vacuum_count",
            "autovacuum_count",
            "analyze_count",
            "autoanalyze_count",
        ] {
            columns = columns.no_number(name);
        }
        for name in ["last_vacuum", "last_autovacuum", "last_analyze", "last_autoanalyze"] {
            columns = columns.no_text(name);
        }
        columns.registered(context, name)?;
    }
    Ok(())
}
