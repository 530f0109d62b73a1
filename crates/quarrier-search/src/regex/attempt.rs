//! The states of an attempt to match from one place.
//!
//! This is our own lazy DFA, because the lazy DFA of regex-automata drops all states but one when
//! its cache is full. An attempt outlives the chunk in which it begins, its state identifies it,
//! and the watch must never lose one. Speed matters little here: the watch follows few attempts.

use std::collections::HashMap;
use std::sync::Arc;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;

use super::wide;
use crate::pattern::Utf16;

/// An attempt that cannot match any further.
pub(super) const DEAD: u32 = 0;
/// Set in a step if a match ended before the byte.
pub(super) const MATCH: u32 = 1 << 31;
/// A step that has not been computed yet.
const UNKNOWN: u32 = u32::MAX;

/// Maximum number of cached NFA states and steps; beyond it, all states but those in use are
/// dropped.
const HELD_MAX: usize = 1 << 22;

/// The states seen so far, and the steps between them.
pub(super) struct Attempts {
    nfa: NFA,
    /// All NFA states that an attempt can be in.
    places: Vec<StateID>,
    /// The states [`begin`](Self::begin) and [`any`](Self::any), by the byte before.
    first: [Vec<u32>; 2],
    class_of: [u8; 256],
    classes: usize,
    /// Whether a step depends only on the state and the adjacent bytes. False for the Unicode version of
    /// `\b`, and for assertions in UTF-16.
    remembers: bool,
    /// The byte order, if assertions look at characters in UTF-16.
    wide: Option<Utf16>,
    sets: Vec<Arc<Set>>,
    ids: HashMap<Arc<Set>, u32>,
    steps: Vec<u32>,
    held: usize,
    stack: Vec<StateID>,
    closed: Marks,
    next: Vec<StateID>,
    listed: Marks,
}

/// A state: the possible NFA states, the most preferred first.
#[derive(PartialEq, Eq, Hash)]
struct Set {
    places: Vec<StateID>,
    /// The class of the byte before, if any assertion examines it.
    before: Option<usize>,
    /// Whether all NFA states are followed, even those after a preferred match.
    is_any: bool,
}

/// A set of small numbers that is cleared in constant time.
pub(super) struct Marks {
    marks: Vec<u32>,
    current: u32,
}

impl Marks {
    pub(super) fn new(length: usize) -> Self {
        Marks { marks: vec![0; length], current: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.current = self.current.wrapping_add(1);
        if self.current == 0 {
            self.marks.fill(0);
            self.current = 1;
        }
    }

    /// Returns whether the number is new.
    pub(super) fn insert(&mut self, id: StateID) -> bool {
        std::mem::replace(&mut self.marks[id.as_usize()], self.current) != self.current
    }
}

impl Attempts {
    pub(super) fn new(nfa: &NFA, wide: Option<Utf16>) -> Self {
        let classes = nfa.byte_classes();
        let states = nfa.states().len();
        let mut attempts = Attempts {
            nfa: nfa.clone(),
            places: reachable(nfa),
            first: [false, true].map(|_| vec![UNKNOWN; classes.alphabet_len() + 1]),
            class_of: std::array::from_fn(|byte| classes.get(byte as u8)),
            // The last class represents the end of input.
            classes: classes.alphabet_len() - 1,
            remembers: wide.is_none() && !nfa.look_set_any().contains_word_unicode(),
            wide,
            sets: Vec::new(),
            ids: HashMap::new(),
            steps: Vec::new(),
            held: 0,
            stack: Vec::new(),
            closed: Marks::new(states),
            next: Vec::new(),
            listed: Marks::new(states),
        };
        attempts.number(Set { places: Vec::new(), before: None, is_any: false });
        attempts
    }

    /// Returns whether a step depends only on the byte before, the byte and the state.
    pub(super) fn depends_on_neighbours(&self) -> bool {
        self.remembers
    }

    /// Returns the state of an attempt that begins at `at`.
    pub(super) fn begin(&mut self, text: &[u8], at: usize) -> u32 {
        self.first(text, at, false)
    }

    /// Returns a state at `at` that represents every attempt begun before it: it dies no sooner than any of
    /// them.
    pub(super) fn any(&mut self, text: &[u8], at: usize) -> u32 {
        self.first(text, at, true)
    }

    fn first(&mut self, text: &[u8], at: usize, is_any: bool) -> u32 {
        let before = self.before(text, at);
        let slot = before.map_or(0, |class| class + 1);
        let known = self.first[usize::from(is_any)][slot];
        if known != UNKNOWN {
            return known;
        }
        let places = if is_any { self.places.clone() } else { vec![self.nfa.start_anchored()] };
        let state = self.number(Set { places, before, is_any });
        self.first[usize::from(is_any)][slot] = state;
        state
    }

    /// Consumes `byte` and returns the next state, with [`MATCH`] set if a match ended before the byte.
    /// `None` if the transition is not cached: [`work_out`](Self::work_out) computes it.
    #[inline]
    pub(super) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        let step =
            self.steps[state as usize * self.classes + usize::from(self.class_of[byte as usize])];
        (step != UNKNOWN).then_some(step)
    }

    pub(super) fn work_out(&mut self, state: u32, text: &[u8], at: usize) -> u32 {
        let is_match = self.follow(state, text, at);
        let places = std::mem::take(&mut self.next);
        let is_any = self.sets[state as usize].is_any;
        let before = self.before(text, at + 1);
        let next =
            if places.is_empty() { DEAD } else { self.number(Set { places, before, is_any }) };
        let step = next | if is_match { MATCH } else { 0 };
        if self.remembers {
            let class = usize::from(self.class_of[text[at] as usize]);
            self.steps[state as usize * self.classes + class] = step;
        }
        step
    }

    /// Returns whether a match ends at the end of the text.
    pub(super) fn ends(&mut self, state: u32, text: &[u8]) -> bool {
        self.follow(state, text, text.len())
    }

    pub(super) fn is_full(&self) -> bool {
        self.held + self.steps.len() > HELD_MAX
    }

    /// Forgets all states except those `in_use`, and renumbers these.
    pub(super) fn forget<'s>(&mut self, in_use: impl Iterator<Item = &'s mut u32>) {
        let sets = std::mem::take(&mut self.sets);
        self.ids.clear();
        self.steps.clear();
        self.first.iter_mut().for_each(|first| first.fill(UNKNOWN));
        self.held = 0;
        self.number(Set { places: Vec::new(), before: None, is_any: false });
        for state in in_use {
            *state = self.number_shared(Arc::clone(&sets[*state as usize]));
        }
    }

    fn before(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.nfa.look_set_any().is_empty() {
            return None;
        }
        let class = |before: usize| usize::from(self.class_of[text[before] as usize]);
        Some(at.checked_sub(1).map_or(self.classes, class))
    }

    fn number(&mut self, set: Set) -> u32 {
        self.number_shared(Arc::new(set))
    }

    fn number_shared(&mut self, set: Arc<Set>) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.held += set.places.len();
        self.steps.resize(self.steps.len() + self.classes, UNKNOWN);
        self.ids.insert(Arc::clone(&set), id);
        self.sets.push(set);
        id
    }

    fn holds(&self, look: Look, text: &[u8], at: usize) -> bool {
        match self.wide {
            Some(order) => wide::holds(look, text, at, order),
            None => self.nfa.look_matcher().matches(look, text, at),
        }
    }

    /// Stores in `next` the state to which the byte at `at`, if there is one, leads; returns whether a match
    /// ends before it.
    fn follow(&mut self, state: u32, text: &[u8], at: usize) -> bool {
        let (set, nfa) = (Arc::clone(&self.sets[state as usize]), self.nfa.clone());
        let byte = text.get(at).copied();
        self.closed.clear();
        self.listed.clear();
        self.next.clear();
        self.stack.clear();
        self.stack.extend(set.places.iter().rev());
        let mut is_match = false;
        while let Some(place) = self.stack.pop() {
            if !self.closed.insert(place) {
                continue;
            }
            match nfa.state(place) {
                State::Match { .. } => {
                    is_match = true;
                    if !set.is_any {
                        break;
                    }
                }
                State::Look { look, .. } if !self.holds(*look, text, at) => {}
                state => {
                    let target = byte.and_then(|byte| target_of(state, byte));
                    if let Some(target) = target
                        && self.listed.insert(target)
                    {
                        self.next.push(target);
                    }
                    push_epsilons(state, &mut self.stack);
                }
            }
        }
        is_match
    }
}

/// Returns the NFA state that follows a byte.
pub(super) fn target_of(state: &State, byte: u8) -> Option<StateID> {
    match state {
        State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
        State::Sparse(sparse) => sparse.matches_byte(byte),
        State::Dense(dense) => dense.matches_byte(byte),
        _ => None,
    }
}

/// Adds the NFA states reachable by epsilon transitions, the least preferred last.
pub(super) fn push_epsilons(state: &State, places: &mut Vec<StateID>) {
    match state {
        State::Look { next, .. } | State::Capture { next, .. } => places.push(*next),
        State::Union { alternates } => places.extend(alternates.iter().rev()),
        State::BinaryUnion { alt1, alt2 } => places.extend([*alt2, *alt1]),
        _ => {}
    }
}

fn reachable(nfa: &NFA) -> Vec<StateID> {
    let (mut reached, mut left) = (Vec::new(), vec![nfa.start_anchored()]);
    let mut marks = Marks::new(nfa.states().len());
    marks.clear();
    while let Some(place) = left.pop() {
        if !marks.insert(place) {
            continue;
        }
        reached.push(place);
        let state = nfa.state(place);
        push_epsilons(state, &mut left);
        left.extend((0..=255).filter_map(|byte| target_of(state, byte)));
    }
    reached
}
