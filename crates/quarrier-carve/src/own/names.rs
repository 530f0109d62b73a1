//! Names that live as long as the program, as those of formats that are built in do.

use std::collections::HashSet;
use std::sync::Mutex;

use quarrier_core::sync::lock;

/// More text than this is not kept, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 20;

static KEPT: Mutex<Kept> = Mutex::new(Kept { names: None, bytes: 0 });

struct Kept {
    names: Option<HashSet<&'static str>>,
    bytes: usize,
}

/// `name`, kept until the program ends; each once. `None` where too many have been kept: whoever
/// reads files of signatures again and again, all of them different.
pub(super) fn keep(name: &str) -> Option<&'static str> {
    let mut kept = lock(&KEPT);
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
