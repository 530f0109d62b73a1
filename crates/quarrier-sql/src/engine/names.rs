//! The tables that statements name. A table is replaced atomically, so that no statement finds its
//! name missing in between.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_err};
use futures::future::BoxFuture;

use crate::rewrite::is_name_with_hidden;

type Tables = BTreeMap<String, Arc<dyn TableProvider>>;

/// Tables by name. The variants with hidden columns are not listed.
#[derive(Debug, Default)]
pub(super) struct Names(RwLock<Tables>);

impl Names {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table of this name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.read().get(name).cloned()
    }

    /// Replaces the table of this name.
    pub(super) fn replace(&self, name: &str, table: Arc<dyn TableProvider>) {
        // The old table is dropped after the lock is released.
        let before = self.write().insert(name.to_string(), table);
        drop(before);
    }
}

impl SchemaProvider for Names {
    fn table_names(&self) -> Vec<String> {
        let names = self.read();
        names.keys().filter(|name| !is_name_with_hidden(name)).cloned().collect()
    }

    fn table<'s, 'n, 't>(
        &'s self,
        name: &'n str,
    ) -> BoxFuture<'t, Result<Option<Arc<dyn TableProvider>>>>
    where
        's: 't,
        'n: 't,
    {
        Box::pin(std::future::ready(Ok(self.get(name))))
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let mut tables = self.write();
        if tables.contains_key(&name) {
            return exec_err!("The table {name} already exists");
        }
        Ok(tables.insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.write().remove(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.read().contains_key(name)
    }
}
