//! Keeps values that readers derive from the same changes, such as the rows that a query selects.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use quarrier_core::sync::lock;

/// Maximum number of values.
const VALUES_MAX: usize = 64;

type Value = Arc<dyn Any + Send + Sync>;

/// A place for a value.
#[derive(Default)]
struct Cell {
    value: OnceLock<Value>,
    /// The thread that makes it holds this lock, for which others wait.
    making: Mutex<()>,
    /// Whether it is too large to be kept, so that every caller makes its own.
    is_large: AtomicBool,
}

impl Cell {
    fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.value.get()?).downcast().ok()
    }
}

/// Values by their keys, bounded in number and bytes.
pub(super) struct Memo {
    bytes_max: u64,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    cells: HashMap<Box<str>, Arc<Cell>>,
    bytes: u64,
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memo").field("values", &lock(&self.held).cells.len()).finish()
    }
}

impl Memo {
    /// Makes a memo for values of at most `bytes_max` bytes in total.
    pub(super) fn new(bytes_max: u64) -> Self {
        Memo { bytes_max, held: Mutex::default() }
    }

    /// Returns the value with this key without waiting; None if there is none, or one of another type.
    pub(super) fn get<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        lock(&self.held).cells.get(key)?.get()
    }

    /// Returns the value with this key; without one, makes it. Values of different types need different keys.
    /// `make` returns the bytes of the value as well. If it fails, the next caller tries again.
    pub(super) fn get_or_make<T: Any + Send + Sync, E>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<(T, u64), E>,
    ) -> Result<Arc<T>, E> {
        let cell = {
            let mut held = lock(&self.held);
            match held.cells.get(key) {
                Some(cell) => Some(Arc::clone(cell)),
                None if held.cells.len() < VALUES_MAX => {
                    Some(Arc::clone(held.cells.entry(key.into()).or_default()))
                }
                None => None,
            }
        };
        let cell = cell.filter(|cell| !cell.is_large.load(Ordering::Relaxed));
        let Some(cell) = cell else { return make().map(|(value, _)| Arc::new(value)) };
        if let Some(value) = cell.get() {
            return Ok(value);
        }
        let _alone = lock(&cell.making);
        if let Some(value) = cell.get() {
            return Ok(value);
        }
        let (value, bytes) = make()?;
        let value = Arc::new(value);
        let mut held = lock(&self.held);
        if held.bytes.saturating_add(bytes) > self.bytes_max {
            cell.is_large.store(true, Ordering::Relaxed);
        } else if cell.value.set(Arc::clone(&value) as Value).is_ok() {
            held.bytes += bytes;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_its_bytes_are_bounded() {
        let memo = Memo::new(10);
        let make = |key: &str, value: u32, bytes: u64| {
            memo.get_or_make(key, || Ok::<_, ()>((value, bytes))).unwrap()
        };
        assert_eq!((*make("a", 1, 6), *make("a", 2, 6)), (1, 1));
        assert_eq!(memo.get::<u32>("a").as_deref(), Some(&1));
        assert_eq!(memo.get::<u64>("a"), None);
        assert_eq!((*make("b", 3, 6), *make("b", 4, 6)), (3, 4));
        assert_eq!(memo.get::<u32>("b"), None);
        assert_eq!((*make("d", 5, 4), *make("d", 6, 4)), (5, 5));
        assert!(memo.get_or_make("c", || Err::<(u32, u64), _>(7)) == Err(7));
        assert_eq!(memo.get::<u32>("c"), None);
        for key in 0..2 * VALUES_MAX {
            make(&key.to_string(), 8, 0);
        }
        assert!(lock(&memo.held).cells.len() <= VALUES_MAX);
    }
}
