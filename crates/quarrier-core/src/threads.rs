//! Threads: the only place where they are created.
//!
//! The system may refuse to create a thread (limits on processes or memory, a full cgroup). The
//! functions of the standard library that panic in this case are disallowed in this workspace; the
//! functions here return an error, or let fewer threads do the same work.

#![allow(clippy::disallowed_methods, reason = "the functions here handle a refused thread")]

use std::io;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle, scope};

/// Runs `work` for every member of a team, each on its own thread except the first, which runs on
/// the caller's: a team of one starts no thread. Returns the results in the order of the members.
///
/// If the system refuses a thread, its member and those after it are dropped without running. So
/// the work must be shared: each member takes the next piece until none is left.
///
/// Costs about 30 µs per thread.
///
/// # Panics
/// If a member panics, after all others have ended.
pub fn team<M: Send, R: Send>(
    members: impl IntoIterator<Item = M>,
    work: impl Fn(M) -> R + Sync,
) -> Vec<R> {
    let mut members = members.into_iter();
    let Some(first) = members.next() else { return Vec::new() };
    let work = &work;
    scope(|scope| {
        let mut others = Vec::new();
        for member in members {
            match in_scope(scope, "", move || work(member)) {
                Ok(thread) => others.push(thread),
                Err(_) => break,
            }
        }
        let mut all = vec![work(first)];
        all.extend(others.into_iter().map(joined));
        all
    })
}

/// Waits for a thread and returns its result.
///
/// # Panics
/// If the thread panicked.
pub fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Starts a thread of `scope`; the system shows its `name`, unless that is empty.
///
/// # Errors
/// The system's error if it refuses a thread. `work` is dropped then.
pub fn in_scope<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> R + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, R>> {
    named(name).spawn_scoped(scope, work).map_err(refused)
}

/// As [`in_scope`], with a stack of the given size in bytes.
///
/// # Errors
/// As [`in_scope`], and if there is no memory for the stack.
pub fn in_scope_on_stack<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    stack_bytes: usize,
    work: impl FnOnce() -> R + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, R>> {
    named(name).stack_size(stack_bytes).spawn_scoped(scope, work).map_err(refused)
}

/// Starts a thread that may outlive its caller.
///
/// # Errors
/// As [`in_scope`].
pub fn alone<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    named(name).spawn(work).map_err(refused)
}

/// As [`alone`], with a stack of the given size in bytes.
///
/// # Errors
/// As [`in_scope`], and if there is no memory for the stack.
pub fn alone_on_stack<R: Send + 'static>(
    name: &str,
    stack_bytes: usize,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    named(name).stack_size(stack_bytes).spawn(work).map_err(refused)
}

fn named(name: &str) -> Builder {
    match name {
        "" => Builder::new(),
        name => Builder::new().name(name.to_string()),
    }
}

fn refused(error: io::Error) -> io::Error {
    let reason = format!("the system refuses a thread: {error}; raise 'ulimit -u' or 'ulimit -v'");
    io::Error::new(error.kind(), reason)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn every_member_works_and_the_first_on_the_callers_thread() {
        let caller = std::thread::current().id();
        let all = team(0..4, |member| (member, std::thread::current().id() == caller));
        assert_eq!(all, [(0, true), (1, false), (2, false), (3, false)]);
        assert!(team(0..0, |member: usize| member).is_empty());
    }

    #[test]
    fn the_panic_of_a_member_is_passed_on_after_the_others_have_ended() {
        let ended = AtomicU64::new(0);
        let run = || {
            team(0..4, |member| {
                if member == 2 {
                    resume_unwind(Box::new("as a member does that fails"));
                }
                ended.fetch_add(1, Ordering::Relaxed);
            })
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert_eq!(ended.load(Ordering::Relaxed), 3);
    }
}
