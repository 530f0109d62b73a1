//! Regexes in UTF-16 with assertions about the characters before and after a position: `\b`, and `^` and
//! `$` of lines. The library's automata examine single bytes there. So they run without the assertions,
//! and find every start of a match, and false ones; [`Exact`] then runs at each of these starts, with the
//! assertions.

use std::ops::Range;
use std::sync::Mutex;

use quarrier_core::sync::lock;
use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;

use super::attempt::{Marks, push_epsilons, target_of};
use super::wide;
use crate::pattern::Utf16;

/// An automaton whose assertions look at characters.
pub(super) struct Exact {
    nfa: NFA,
    order: Utf16,
    /// Memory of searches, reused by the next ones.
    rooms: Mutex<Vec<Room>>,
}

struct Room {
    stack: Vec<StateID>,
    places: Vec<StateID>,
    next: Vec<StateID>,
    closed: Marks,
    listed: Marks,
}

impl Exact {
    pub(super) fn new(nfa: NFA, order: Utf16) -> Self {
        Exact { nfa, order, rooms: Mutex::new(Vec::new()) }
    }

    pub(super) fn order(&self) -> Utf16 {
        self.order
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.nfa.memory_usage()
    }

    /// Returns the preferred match that begins at the start of `range` and ends in it.
    pub(super) fn at(&self, text: &[u8], range: Range<usize>) -> Option<Range<usize>> {
        let mut room = lock(&self.rooms).pop().unwrap_or_else(|| Room {
            stack: Vec::new(),
            places: Vec::new(),
            next: Vec::new(),
            closed: Marks::new(self.nfa.states().len()),
            listed: Marks::new(self.nfa.states().len()),
        });
        let end = self.end(text, range.clone(), &mut room);
        lock(&self.rooms).push(room);
        end.map(|end| range.start..end)
    }

    fn end(&self, text: &[u8], range: Range<usize>, room: &mut Room) -> Option<usize> {
        let mut end = None;
        room.places.clear();
        room.places.push(self.nfa.start_anchored());
        for at in range.start..=range.end {
            let byte = text.get(at).copied().filter(|_| at < range.end);
            if self.follow(text, at, byte, room) {
                end = Some(at);
            }
            std::mem::swap(&mut room.places, &mut room.next);
            if room.places.is_empty() {
                break;
            }
        }
        end
    }

    /// Moves from the NFA states before the byte at `at` to those after it; returns whether a match ends
    /// before that byte.
    fn follow(&self, text: &[u8], at: usize, byte: Option<u8>, room: &mut Room) -> bool {
        room.closed.clear();
        room.listed.clear();
        room.next.clear();
        room.stack.clear();
        room.stack.extend(room.places.iter().rev());
        while let Some(place) = room.stack.pop() {
            if !room.closed.insert(place) {
                continue;
            }
            match self.nfa.state(place) {
                // Less preferred matches do not count.
                State::Match { .. } => return true,
                State::Look { look, .. } if !wide::holds(*look, text, at, self.order) => {}
                state => {
                    let target = byte.and_then(|byte| target_of(state, byte));
                    if let Some(target) = target
                        && room.listed.insert(target)
                    {
                        room.next.push(target);
                    }
                    push_epsilons(state, &mut room.stack);
                }
            }
        }
        false
    }
}
