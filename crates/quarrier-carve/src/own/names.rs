//! Names that live as long as the program, as those of formats that are built in do.

use std::collections::HashSet;
use std::sync::Mutex;

use quarrier_core::sync::lock;

/// Interned names may take no more than this, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 20;

static INTERNED: Mutex<InternedNames> = Mutex::new(InternedNames { names: None, bytes: 0 });

/// The names interned so far, and how much memory they take.
struct InternedNames {
    names: Option<HashSet<&'static str>>,
    bytes: usize,
}

/// Interns `name` until the program ends. `None` once the interned names are longer than the limit, which only
/// a program reaches that reads ever different files of signatures.
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
