//! Interns names that live as long as the program, like those of built-in formats.

use std::collections::HashSet;
use std::sync::Mutex;

use quarrier_core::sync::lock;

/// Maximum memory for interned names, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 20;

static INTERNED: Mutex<InternedNames> = Mutex::new(InternedNames { names: None, bytes: 0 });

/// The interned names, and their memory.
struct InternedNames {
    names: Option<HashSet<&'static str>>,
    bytes: usize,
}

/// Interns `name` until the program ends. `None` if the interned names would exceed the limit,
/// which only a program reaches that keeps reading new files of signatures.
pub(super) fn keep(name: &str) -> Option<&'static str> {
    let mut kept = lock(&INTERNED);
    if let Some(known) = kept.names.get_or_insert_default().get(name) {
        return Some(known);
    }
    kept.bytes += name.len();
    if kept.bytes > KEPT_BYTES_MAX {
        return None;
    }
    let name: &'static str = Box::leak(Box::from(name));
    kept.names.get_or_insert_default().insert(name);
    Some(name)
}
