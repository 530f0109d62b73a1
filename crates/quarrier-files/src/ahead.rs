//! Lists parts of a file system on several threads, and emits their entries in order.
//!
//! ```text
//!  claim ──→ part 7 ──→ a walk of its own ──→ pieces ──┐
//!        ──→ part 8 ──→ …                      pieces ──┴─ in order ──→ the walk of the listing
//! ```
//!
//! Each part has a queue for a few messages: a thread whose part emits more waits until it is the part's
//! turn, so that memory is bounded whatever a part emits.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use quarrier_core::parallel::available_workers;
use quarrier_core::sync::lock;
use quarrier_core::threads;

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::part::Part;
use crate::walk::{Damages, Tally, Walk};

/// Entries of a message.
const PIECE_ENTRIES: usize = 512;
/// Messages about a part that wait for its turn: enough for most parts.
const PIECES_MAX: usize = 4;
/// Maximum number of threads: the receiver of entries is one.
const THREADS_MAX: usize = 4;

/// A message about a part.
enum Piece {
    Entries(Vec<Entry>),
    /// The last one, with the outcome.
    End(Tally, Damages, Result<()>),
}

/// Lists the parts 0 to `count` by `list`, each with a walk of its own and a state that the parts of one
/// thread share. Emits the entries in the order of the parts, and returns the first error.
///
/// # Errors
/// Those of `list` and of the receiver of entries.
pub(crate) fn in_order<S>(
    part: &Part<'_>,
    walk: &mut Walk<'_>,
    count: u64,
    new_state: &(dyn Fn() -> S + Sync),
    list: &(dyn Fn(u64, &mut S, &mut Walk<'_>) -> Result<()> + Sync),
) -> Result<()> {
    let threads = available_workers().min(THREADS_MAX).min(usize::try_from(count).unwrap_or(1));
    let plain = walk.plain();
    let (queue, parts) = sync_channel(2 * threads);
    let claims = Mutex::new((0, Some(queue)));
    let listed = std::thread::scope(|scope| {
        let mut members = Vec::new();
        for _ in 0..if threads > 1 { threads } else { 0 } {
            let work = || {
                let mut state = new_state();
                while let Some((number, sender)) = claim(&claims, count) {
                    let sink = sender.clone();
                    let (tally, damages, ended) = plain.apart(
                        PIECE_ENTRIES,
                        &mut |entries| sink.send(Piece::Entries(entries)).is_ok(),
                        &mut |walk| list(number, &mut state, walk),
                    );
                    if sender.send(Piece::End(tally, damages, ended)).is_err() {
                        return;
                    }
                }
            };
            match threads::in_scope(scope, "list", work) {
                Ok(member) => members.push(member),
                Err(_) => break,
            }
        }
        if members.is_empty() {
            return None;
        }
        let listed = emit_all(part, walk, &parts, count);
        // Wakes members that still wait to send.
        drop(parts);
        members.into_iter().for_each(threads::joined);
        Some(listed)
    });
    let alone = || {
        let mut state = new_state();
        (0..count).try_for_each(|number| list(number, &mut state, walk))
    };
    listed.unwrap_or_else(alone)
}

/// The number of parts claimed, and the queue for the receivers of their messages, until the last.
type Claims = Mutex<(u64, Option<SyncSender<Receiver<Piece>>>)>;

/// Claims the next part; `None` after the last, or when nobody wants more.
fn claim(claims: &Claims, count: u64) -> Option<(u64, SyncSender<Piece>)> {
    // Sending within the lock keeps the order, and holds back the others while the queue is full.
    let mut claims = lock(claims);
    let number = claims.0;
    if number >= count {
        claims.1 = None;
        return None;
    }
    let (sender, receiver) = sync_channel(PIECES_MAX);
    claims.1.as_ref()?.send(receiver).ok()?;
    claims.0 += 1;
    Some((number, sender))
}

/// Emits what all parts emit, one after the other.
fn emit_all(
    part: &Part<'_>,
    walk: &mut Walk<'_>,
    parts: &Receiver<Receiver<Piece>>,
    count: u64,
) -> Result<()> {
    for _ in 0..count {
        walk.check_stop()?;
        let mut is_ended = false;
        for piece in parts.recv().into_iter().flatten() {
            match piece {
                Piece::Entries(entries) => {
                    for entry in entries {
                        (walk.take)(entry).map_err(Error::Taken)?;
                    }
                }
                Piece::End(tally, damages, ended) => {
                    walk.damages.extend(damages);
                    walk.count(part, tally)?;
                    ended?;
                    is_ended = true;
                }
            }
        }
        if !is_ended {
            // Its thread has panicked; whoever joins it passes the panic on.
            break;
        }
    }
    Ok(())
}
