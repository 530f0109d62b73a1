//! Finds the earliest end of a match.
//!
//! `\x00+\xFF` over a megabyte of zeros before the `FF` matches a megabyte, which is too long, from
//! each of a million starts. Trying each would take hours. Finding the earliest end of a match
//! takes one pass, and only starts close before it are worth trying.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::Input;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use regex_syntax::hir::Hir;

/// An automaton that is built when it is first needed, which is rare.
pub(super) struct EarliestEnd {
    hir: Hir,
    dfa: OnceLock<Option<DFA>>,
}

impl EarliestEnd {
    pub(super) fn new(hir: Hir) -> Self {
        EarliestEnd { hir, dfa: OnceLock::new() }
    }

    pub(super) fn hir(&self) -> &Hir {
        &self.hir
    }

    /// Returns the smallest end of all matches within `range`. `None` if there is no match, or the
    /// automaton gave up.
    pub(super) fn after(&self, text: &[u8], range: Range<usize>) -> Option<usize> {
        let dfa = self.dfa.get_or_init(|| build(&self.hir)).as_ref()?;
        let input = Input::new(text).range(range).earliest(true);
        dfa.try_search_fwd(&mut dfa.create_cache(), &input).ok()?.map(|half| half.offset())
    }
}

fn build(hir: &Hir) -> Option<DFA> {
    let config = thompson::Config::new().utf8(false).nfa_size_limit(Some(64 << 20));
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).ok()?;
    let config = DFA::config().cache_capacity(16 << 20).skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa).ok()
}
