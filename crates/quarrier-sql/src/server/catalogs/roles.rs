//! Roles: the owner of all tables, and the users that are connected.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;
use quarrier_wire::Board;

use super::live::{Live, live};
use super::tables::OWNER;

/// A column of the roles.
#[derive(Clone, Copy)]
enum Column {
    Oid,
    Name,
    Is(bool),
    /// The limit of connections: none.
    NoLimit,
    /// NULL, as a string.
    Nothing,
}

use Column::{Is, Name, NoLimit, Nothing, Oid};

const ROLES: &[(&str, Column)] = &[
    ("oid", Oid),
    ("rolname", Name),
    ("rolsuper", Is(false)),
    ("rolinherit", Is(false)),
    ("rolcreaterole", Is(false)),
    ("rolcreatedb", Is(false)),
    ("rolcanlogin", Is(true)),
    ("rolreplication", Is(false)),
    ("rolconnlimit", NoLimit),
    ("rolpassword", Nothing),
    ("rolvaliduntil", Nothing),
    ("rolbypassrls", Is(false)),
    ("rolconfig", Nothing),
];
const USERS: &[(&str, Column)] = &[
    ("usename", Name),
    ("usesysid", Oid),
    ("usecreatedb", Is(false)),
    ("usesuper", Is(false)),
    ("userepl", Is(false)),
    ("usebypassrls", Is(false)),
    ("passwd", Nothing),
    ("valuntil", Nothing),
    ("useconfig", Nothing),
];

/// Registers the tables of roles.
pub(super) fn register(context: &SessionContext, board: &Arc<Board>) -> crate::Result<()> {
    for (name, columns) in [("pg_roles", ROLES), ("pg_authid", ROLES), ("pg_user", USERS)] {
        let table = roles(Arc::clone(board), columns);
        context.register_table(TableReference::partial("pg_catalog", name), Arc::new(table))?;
    }
    Ok(())
}

/// Returns the roles with their OIDs, which follow the order of their names.
pub(super) fn numbered(board: &Board) -> Vec<(String, i64)> {
    let mut users: BTreeSet<String> =
        board.clients().iter().map(|client| client.asker.user.clone()).collect();
    let owner = "quarrier".to_string();
    users.remove(&owner);
    std::iter::once(owner).chain(users).zip(OWNER..).collect()
}

fn roles(board: Arc<Board>, columns: &'static [(&'static str, Column)]) -> Live {
    let fields: Vec<(&str, DataType)> = columns
        .iter()
        .map(|(name, column)| {
            let data = match column {
                Oid | NoLimit => DataType::Int64,
                Name | Nothing => DataType::Utf8,
                Is(_) => DataType::Boolean,
            };
            (*name, data)
        })
        .collect();
    live(&fields, move || {
        let all = numbered(&board);
        let columns = columns.iter().map(|(_, column)| -> ArrayRef {
            match column {
                Oid => Arc::new(Int64Array::from_iter_values(all.iter().map(|it| it.1))),
                Name => Arc::new(StringArray::from_iter_values(all.iter().map(|it| &it.0))),
                Is(value) => Arc::new(BooleanArray::from(vec![*value; all.len()])),
                NoLimit => Arc::new(Int64Array::from(vec![-1; all.len()])),
                Nothing => Arc::new(StringArray::new_null(all.len())),
            }
        });
        Ok(columns.collect())
    })
}
