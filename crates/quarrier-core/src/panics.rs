//! Panics at the edge of a program: it reports each panic in one line and exits with an error.
//!
//! ```text
//!  any thread panics ─→ hook: nothing is printed, the place is kept
//!                        └─→ unwinds to caught() or an engine's own net ─→ take() ─→ an error
//! ```

use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Mutex;

use crate::sync::lock;

/// The first panic that was not taken yet.
static LEFT: Mutex<Option<Panicked>> = Mutex::new(None);

/// A panicked thread, shown as a sentence without the panic's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    /// File and line in the sources, if the program [watches](watch).
    place: Option<String>,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an internal error")?;
        self.place.iter().try_for_each(|place| write!(f, " at {place}"))
    }
}

impl std::error::Error for Panicked {}

/// Stops this process from printing panics of its threads; [`take`] returns the panic instead. For
/// programs, which must then check for unexpected panics. The hook drops a panic if `is_expected`
/// returns true on its thread, since the code there turns it into an error.
pub fn watch(is_expected: fn() -> bool) {
    std::panic::set_hook(Box::new(move |info| {
        if !is_expected() {
            let panicked = Panicked { place: place(info) };
            lock(&LEFT).get_or_insert(panicked);
        }
    }));
}

/// Returns the first panic of any thread since the last call; `None` without one, or without
/// [`watch`].
pub fn take() -> Option<Panicked> {
    lock(&LEFT).take()
}

/// Runs `work` and turns a panic into an error.
///
/// # Errors
/// The panic, if `work` panicked; [`take`] does not return it again.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| taken())
}

/// Returns the panic just caught; call it only after one.
pub fn taken() -> Panicked {
    take().unwrap_or(Panicked { place: None })
}

/// Returns crate, file and line, without the folder of the sources at build time.
fn place(info: &PanicHookInfo<'_>) -> Option<String> {
    let location = info.location()?;
    let file = location.file();
    let root = file.rfind("/src/").and_then(|end| file[..end].rfind('/'));
    let file = root.map_or(file, |slash| &file[slash + 1..]);
    Some(format!("{file}:{}", location.line()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caught_panic_hides_its_message() {
        fn fails() {
            panic!("offset overflow");
        }
        assert_eq!(caught(|| 7), Ok(7));
        let previous = std::panic::take_hook();
        watch(|| false);
        let panicked = caught(fails);
        let left = crate::threads::alone("", fails).unwrap().join().map_err(|_| take());
        watch(|| true);
        let expected = caught(fails);
        std::panic::set_hook(previous);
        let said = panicked.unwrap_err().to_string();
        assert!(said.starts_with("an internal error at quarrier-core/src/panics.rs:"), "{said}");
        assert!(left.unwrap_err().is_some());
        assert_eq!(expected.unwrap_err().to_string(), "an internal error");
    }
}
