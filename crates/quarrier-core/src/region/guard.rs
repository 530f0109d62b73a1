//! Keeps an unreadable page of a mapped file from killing the process.
//!
//! The kernel sends SIGBUS to a thread that touches a mapped page beyond the file's end or on a
//! failing disk. The handler here looks the address up among the live windows, marks the window as
//! torn, maps zero pages over the rest of the window, and returns, so that the load repeats and
//! reads zeros. For any other address it restores the handler that was installed before (Rust's
//! own, or the program's).
//!
//! The handler runs at any instruction of any thread, so it uses only atomics, `mmap` and
//! `sigaction`, all async-signal-safe.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use super::PAGE_BYTES;

/// Maximum number of windows of a process at once.
const SLOTS: usize = 256;

struct Slot {
    /// Incremented before and after each change of the slot: odd while it changes. So the handler
    /// never combines the start of one window with the end of another.
    version: AtomicUsize,
    /// Address of the first byte; 0 while the slot is free, 1 while it is being filled.
    start: AtomicUsize,
    end: AtomicUsize,
    torn: AtomicBool,
}

static WATCHED: [Slot; SLOTS] = [const {
    Slot {
        version: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        torn: AtomicBool::new(false),
    }
}; SLOTS];

static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A watched range of addresses.
#[derive(Debug)]
pub(super) struct Guarded {
    slot: usize,
}

/// Watches `bytes` bytes at address `start`. `None` if all slots are taken or the handler cannot be
/// installed.
pub(super) fn watch(start: usize, bytes: usize) -> Option<Guarded> {
    install()?;
    for (index, slot) in WATCHED.iter().enumerate() {
        if slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            slot.fill(start, start + bytes);
            return Some(Guarded { slot: index });
        }
    }
    None
}

impl Slot {
    /// Stores another range; only the thread that took the free slot calls it.
    fn fill(&self, start: usize, end: usize) {
        self.version.fetch_add(1, Ordering::Relaxed);
        // A handler that sees one of the stores below sees the odd version, too.
        fence(Ordering::Release);
        self.torn.store(false, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.start.store(start, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns start and end of the slot's window; `None` if it is free or changing. The slot of a
    /// window that is being read does not change.
    fn window(&self) -> Option<(usize, usize)> {
        let version = self.version.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_stable =
            version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        (is_stable && start > 1).then_some((start, end))
    }
}

impl Guarded {
    pub(super) fn is_torn(&self) -> bool {
        WATCHED[self.slot].torn.load(Ordering::Acquire)
    }

    /// Ends the watch. Call it once, before unmapping the range.
    pub(super) fn release(&self) {
        WATCHED[self.slot].start.store(0, Ordering::Release);
    }
}

/// Installs the handler once for the process.
fn install() -> Option<()> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    let done = *INSTALLED.get_or_init(|| {
        // SAFETY: `sigaction` is a C struct of integers and a signal set, for which zeros are
        // valid.
        let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: a null new action makes the call only report the current one, into a live local
        // variable.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &mut previous) } != 0 {
            return false;
        }
        let _ = PREVIOUS.set(previous);
        // SAFETY: `sigaction` is a C struct of integers and a signal set, for which zeros are
        // valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `action` is initialised, and a null old action is allowed. The handler has the
        // signature that SA_SIGINFO requires, and calls only async-signal-safe functions.
        unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) == 0 }
    });
    done.then_some(())
}

extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to SA_SIGINFO handlers, and fills `si_addr` for
    // SIGBUS.
    let address = unsafe { (*info).si_addr() } as usize;
    if !replace_page(address) {
        // Not an address of ours: restore the earlier handler and return. The load faults again and
        // reaches it.
        if let Some(previous) = PREVIOUS.get() {
            // SAFETY: `sigaction` itself filled `previous`, which is never changed afterwards; a
            // null old action is allowed.
            unsafe { libc::sigaction(signal, previous, ptr::null_mut()) };
        }
    }
}

/// Maps zero pages from `address` to the end of its window. Returns false if the address is in no
/// window.
fn replace_page(address: usize) -> bool {
    for slot in &WATCHED {
        let Some((start, end)) = slot.window() else { continue };
        if !(start..end).contains(&address) {
            continue;
        }
        slot.torn.store(true, Ordering::Release);
        let page = address & !(PAGE_BYTES - 1);
        // SAFETY: the C library returns the address of this thread's errno, valid for reading.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: the faulting thread reads the window through its `MappedWindow`, so the window's
        // mapping lives, and `page..end` lies within it. Zero pages are readable, as the pages that
        // they replace, so every pointer into the window stays valid; its bytes may change, as
        // `ChangingBytes` says.
        let mapped = unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                end - page,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        // SAFETY: the C library returns the address of this thread's errno, valid for writing. The
        // interrupted code keeps its value.
        unsafe { *libc::__errno_location() = errno };
        return mapped != libc::MAP_FAILED;
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::disallowed_methods,
        reason = "a test may panic if the system refuses a thread"
    )]

    use super::*;

    /// Two kinds of windows alternate in one slot: nobody sees the start of one with the end of the
    /// other.
    #[test]
    fn a_window_is_seen_whole_or_not_at_all() {
        let slot = Slot {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            torn: AtomicBool::new(false),
        };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..200_000 {
                    let start = if round % 2 == 0 { 0x1000 } else { 0x9000 };
                    slot.fill(start, start + 0x1000);
                    slot.start.store(0, Ordering::Release);
                }
                over.store(true, Ordering::Release);
            });
            while !over.load(Ordering::Acquire) {
                if let Some((start, end)) = slot.window() {
                    assert_eq!(end - start, 0x1000, "{start:#x}..{end:#x}");
                }
            }
        });
    }
}
