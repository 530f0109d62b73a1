//! Panics, where they end: a program says one line of them, and never succeeds.
//!
//! ```text
//!  any thread panics ─→ hook: nothing is printed, the place is kept
//!                        └─→ unwinds to caught() or an engine's own net ─→ take() ─→ an error
//! ```

use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Mutex;

use crate::sync::lock;

/// The first panic that nobody has taken yet.
static LEFT: Mutex<Option<Panicked>> = Mutex::new(None);

/// That a thread panicked; shown as a sentence without what the panic said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    /// File and line in the sources, where the program [watches](watch).
    place: Option<String>,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an internal error")?;
        self.place.iter().try_for_each(|place| write!(f, " at {place}"))
    }
}

impl std::error::Error for Panicked {}

/// From now on this process prints nothing when a thread panics: [`take`] has it. For programs, which
/// then have to take what they do not expect. Panics for which `is_expected` holds on their thread
/// leave nothing: whoever runs the code there makes errors of them.
pub fn watch(is_expected: fn() -> bool) {
    std::panic::set_hook(Box::new(move |info| {
        if !is_expected() {
            let panicked = Panicked { place: place(info) };
            lock(&LEFT).get_or_insert(panicked);
        }
    }));
}

/// The first panic of any thread since the last call; none where there was none, or nobody
/// [watches](watch).
pub fn take() -> Option<Panicked> {
    lock(&LEFT).take()
}

/// What `work` returns, or that it panicked.
///
/// # Errors
/// Where it did; [`take`] has nothing of it any more.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| taken())
}

/// The panic that was met: to be called where it is known that there was one.
pub fn taken() -> Panicked {
    take().unwrap_or(Panicked { place: None })
}

/// Crate, file and line, without the folder in which the sources lay.
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
    fn a_panic_is_caught_and_says_nothing_of_what_it_said() {
        fn fails() {
            panic!("offset overflow");
        }
        assert_eq!(caught(|| 7), Ok(7));
        let told = std::panic::take_hook();
        watch(|| false);
        let panicked = caught(fails);
        let left = crate::threads::alone("", fails).unwrap().join().map_err(|_| take());
        watch(|| true);
        let expected = caught(fails);
        std::panic::set_hook(told);
        let said = panicked.unwrap_err().to_string();
        assert!(said.starts_with("an internal error at quarrier-core/src/panics.rs:"), "{said}");
        assert!(left.unwrap_err().is_some());
        assert_eq!(expected.unwrap_err().to_string(), "an internal error");
    }
}
