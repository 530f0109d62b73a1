//! Catalogs that never have rows, but that clients outer-join to others.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::MemTable;
use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;

use crate::Result;

/// The columns of a catalog, by type.
struct Shape {
    name: &'static str,
    numbers: &'static [&'static str],
    strings: &'static [&'static str],
    truths: &'static [&'static str],
    lists: &'static [&'static str],
}

/// Registers the catalogs.
pub(super) fn register(context: &SessionContext) -> Result<()> {
    for shape in ALL {
        let list = DataType::new_list(DataType::Int64, true);
        let groups = [
            (shape.numbers, DataType::Int64),
            (shape.strings, DataType::Utf8),
            (shape.truths, DataType::Boolean),
            (shape.lists, list),
        ];
        let fields = groups.iter().flat_map(|(names, data)| {
            names.iter().map(move |name| Field::new(*name, data.clone(), true))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let table = MemTable::try_new(schema, vec![vec![]])?;
        let name = TableReference::partial("pg_catalog", shape.name);
        context.register_table(name, Arc::new(table))?;
    }
    Ok(())
}

const ALL: &[Shape] = &[
    Shape {
        name: "pg_description",
        numbers: &["objoid", "classoid", "objsubid"],
        strings: &["description"],
        truths: &[],
        lists: &[],
    },
    Shape {
        name: "pg_shdescription",
        numbers: &["objoid", "classoid"],
        strings: &["description"],
        truths: &[],
        lists: &[],
    },
    Shape {
        name: "pg_attrdef",
        numbers: &["oid", "adrelid", "adnum"],
        strings: &["adbin"],
        truths: &[],
        lists: &[],
    },
    Shape {
        name: "pg_inherits",
        numbers: &["inhrelid", "inhparent", "inhseqno"],
        strings: &[],
        truths: &["inhdetachpending"],
        lists: &[],
    },
    Shape {
        name: "pg_index",
        numbers: &["indexrelid", "indrelid", "indnatts", "indnkeyatts"],
        strings: &["indexprs", "indpred"],
        truths: &[
            "indisunique",
            "indnullsnotdistinct",
            "indisprimary",
            "indisexclusion",
            "indimmediate",
            "indisclustered",
            "indisvalid",
            "indcheckxmin",
            "indisready",
            "indislive",
            "indisreplident",
        ],
        lists: &["indkey", "indcollation", "indclass", "indoption"],
    },
    Shape {
        name: "pg_constraint",
        numbers: &[
            "oid",
            "connamespace",
            "conrelid",
            "contypid",
            "conindid",
            "conparentid",
            "confrelid",
            "coninhcount",
        ],
        strings: &["conname", "contype", "confupdtype", "confdeltype", "confmatchtype", "conbin"],
        truths: &["condeferrable", "condeferred", "convalidated", "conislocal", "connoinherit"],
        lists: &["conkey", "confkey", "conpfeqop", "conppeqop", "conffeqop", "conexclop"],
    },
    Shape {
        name: "pg_collation",
        numbers: &["oid", "collnamespace", "collowner", "collencoding"],
        strings: &[
            "collname",
            "collprovider",
            "collcollate",
            "collctype",
            "colliculocale",
            "collversion",
        ],
        truths: &["collisdeterministic"],
        lists: &[],
    },
    Shape {
        name: "pg_proc",
        numbers: &[
            "oid",
            "pronamespace",
            "proowner",
            "prolang",
            "provariadic",
            "pronargs",
            "pronargdefaults",
            "prorettype",
        ],
        strings: &["proname", "prokind", "provolatile", "proparallel", "prosrc", "probin"],
        truths: &["prosecdef", "proleakproof", "proisstrict", "proretset"],
        lists: &["proargtypes", "proallargtypes"],
    },
    Shape {
        name: "pg_range",
        numbers: &["rngtypid", "rngsubtype", "rngmultitypid", "rngcollation", "rngsubopc"],
        strings: &["rngcanonical", "rngsubdiff"],
        truths: &[],
        lists: &[],
    },
    Shape {
        name: "pg_enum",
        numbers: &["oid", "enumtypid", "enumsortorder"],
        strings: &["enumlabel"],
        truths: &[],
        lists: &[],
    },
    Shape {
        name: "pg_depend",
        numbers: &["classid", "objid", "objsubid", "refclassid", "refobjid", "refobjsubid"],
        strings: &["deptype"],
        truths: &[],
        lists: &[],
    },
    Shape {
        name: "pg_sequence",
        numbers: &[
            "seqrelid",
            "seqtypid",
            "seqstart",
            "seqincrement",
            "seqmax",
            "seqmin",
            "seqcache",
        ],
        strings: &[],
        truths: &["seqcycle"],
        lists: &[],
    },
    Shape {
        name: "pg_trigger",
        numbers: &["oid", "tgrelid", "tgparentid", "tgfoid", "tgtype", "tgconstraint", "tgnargs"],
        strings: &["tgname", "tgenabled", "tgqual", "tgoldtable", "tgnewtable"],
        truths: &["tgisinternal", "tgdeferrable", "tginitdeferred"],
        lists: &["tgattr"],
    },
];
