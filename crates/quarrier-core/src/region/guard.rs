//! Keeps a page of a mapped file that cannot be read from killing the process.
//!
//! The kernel sends SIGBUS to a thread that touches a mapped page beyond the file's end or
//! on a failing disk. The handler here looks the address up among the windows that exist,
//! marks the window as torn, puts zero pages in place of the rest of the window, and
//! returns, so that the load is repeated and finds zeros. An address that is not ours goes
//! on to the handler that was installed before (Rust's own, or the program's).
//!
//! The handler runs at any instruction of any thread, so it uses only atomics, `mmap` and
//! `sigaction`, all async-signal-safe.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::PAGE_BYTES;

/// How many windows can exist at once in a process.
const SLOTS: usize = 256;

struct Slot {
    /// Address of the first byte; 0 while the slot is free, 1 while it is being filled.
    start: AtomicUsize,
    end: AtomicUsize,
    torn: AtomicBool,
}

static WATCHED: [Slot; SLOTS] = [const {
    Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), torn: AtomicBool::new(false) }
}; SLOTS];

static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A watched range of addresses.
#[derive(Debug)]
pub(super) struct Guarded {
    slot: usize,
}

/// Watches `bytes` bytes at address `start`. `None` when all slots are taken or the
/// handler cannot be installed.
pub(super) fn watch(start: usize, bytes: usize) -> Option<Guarded> {
    install()?;
    for (index, slot) in WATCHED.iter().enumerate() {
        if slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            slot.torn.store(false, Ordering::Relaxed);
            slot.end.store(start + bytes, Ordering::Relaxed);
            slot.start.store(start, Ordering::Release);
            return Some(Guarded { slot: index });
        }
    }
    None
}

impl Guarded {
    pub(super) fn is_torn(&self) -> bool {
        WATCHED[self.slot].torn.load(Ordering::Acquire)
    }

    /// Ends the watch. To be called once, before the range is unmapped.
    pub(super) fn release(&self) {
        WATCHED[self.slot].start.store(0, Ordering::Release);
    }
}

/// Installs the handler once for the process.
fn install() -> Option<()> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    let done = *INSTALLED.get_or_init(|| {
        // SAFETY: `sigaction` is plain data, for which zeros are a valid value.
        let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: with a null new action, the call only reports the current one.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &mut previous) } != 0 {
            return false;
        }
        let _ = PREVIOUS.set(previous);
        // SAFETY: zeros are valid, see above.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler has the signature that SA_SIGINFO asks for and does only what
        // a signal handler may do.
        unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) == 0 }
    });
    done.then_some(())
}

extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo for SA_SIGINFO handlers; SIGBUS fills si_addr.
    let address = unsafe { (*info).si_addr() } as usize;
    if !replace_page(address) {
        // Not ours: restore the earlier handler and return; the load faults again and meets it.
        if let Some(previous) = PREVIOUS.get() {
            // SAFETY: `previous` was filled by sigaction itself.
            unsafe { libc::sigaction(signal, previous, ptr::null_mut()) };
        }
    }
}

/// Puts zero pages from `address` to the end of its window. False when no window holds it.
fn replace_page(address: usize) -> bool {
    for slot in &WATCHED {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Relaxed);
        if start <= 1 || address < start || address >= end {
            continue;
        }
        slot.torn.store(true, Ordering::Release);
        let page = address & !(PAGE_BYTES - 1);
        // SAFETY: errno belongs to the interrupted code and must be kept.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: the range lies inside a mapping that its `MappedWindow` owns and keeps
        // alive while a thread reads it; replacing pages of it by zero pages keeps every
        // slice of it valid.
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
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        return mapped != libc::MAP_FAILED;
    }
    false
}
