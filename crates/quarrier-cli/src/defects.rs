//! Panics: defects of this program, reported in one line, with an exit code that is not success.

use std::process::ExitCode;

use quarrier_core::panics;

use crate::output::standard::end;
use crate::{Outcome, complain, interrupt};

/// Runs a program to its exit code, which is 2 if any of its threads panicked, even if no other thread
/// noticed. A panic that was [taken](panics::take) and reported does not count. The program must not have
/// started threads before.
pub fn guarded(program: impl FnOnce() -> u8) -> ExitCode {
    quarrier_core::region::fit_address_space();
    panics::watch(quarrier_messages::is_panic_caught);
    interrupt::outlive_long_files();
    let (code, panicked) = match panics::caught(program) {
        Ok(code) => (code, panics::take()),
        Err(panicked) => (Outcome::Failed as u8, Some(panicked)),
    };
    match panicked {
        None => end(code),
        Some(panicked) => {
            complain(&format!("{panicked}; the output is not complete; please report this"));
            ExitCode::from(Outcome::Failed as u8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_any_thread_is_a_failure() {
        fn fails() -> u8 {
            panic!("as a kernel does that fails");
        }
        let before = std::panic::take_hook();
        let alone = guarded(fails);
        let beside = guarded(|| {
            let worker = quarrier_core::threads::alone("", fails);
            // Waits for the thread to end, and ignores its panic.
            let _ = worker.map(std::thread::JoinHandle::join);
            0
        });
        std::panic::set_hook(before);
        let failed = format!("{:?}", ExitCode::from(Outcome::Failed as u8));
        assert_eq!([alone, beside].map(|code| format!("{code:?}")), [failed.clone(), failed]);
    }
}
