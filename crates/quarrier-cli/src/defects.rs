//! Panics: defects of this program, said in one line, with an exit code that nobody takes for success.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::OnceLock;

use crate::output::standard::end;
use crate::{Outcome, complain};

/// What the first panic said.
static PANIC: OnceLock<String> = OnceLock::new();

/// Runs a command to its exit code, which is 2 where any thread of it has panicked, whether or not
/// another one heard of it.
pub(crate) fn guarded(command: impl FnOnce() -> u8) -> ExitCode {
    set_hook(Box::new(remember));
    // Nothing of the command is used again.
    let code = catch_unwind(AssertUnwindSafe(command)).unwrap_or(Outcome::Failed as u8);
    match PANIC.get() {
        None => end(code),
        Some(said) => {
            complain(said);
            ExitCode::from(Outcome::Failed as u8)
        }
    }
}

/// Panics that a library is known for, and that become errors, are left out.
fn remember(panic: &PanicHookInfo<'_>) {
    if quarrier_messages::is_panic_caught() {
        return;
    }
    let said = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    // The others follow from the first, or are worth as much.
    let _ = PANIC.set(format!(
        "internal error{place}: {said}; the output is not complete; please report this"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_nobody_heard_of_is_a_failure() {
        let before = std::panic::take_hook();
        let code = guarded(|| {
            let kernel = || panic!("as a kernel does that fails");
            let worker = quarrier_core::threads::alone("", kernel);
            // Its end is waited for, and its panic overlooked.
            let _ = worker.map(std::thread::JoinHandle::join);
            0
        });
        set_hook(before);
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(2)));
        assert!(PANIC.get().is_some_and(|said| said.contains("as a kernel does that fails")));
    }
}
