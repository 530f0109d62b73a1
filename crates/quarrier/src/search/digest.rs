//! A digest of everything that determines the findings of a search.

use quarrier_search::Options;
use sha2::{Digest, Sha256};

use super::Search;

impl Search {
    /// SHA-256 of everything that determines the findings: equal searches by the same version of this
    /// library have the same digest. Engine, device, plan and context make no difference.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        // Without `..`, so that a new field does not compile until someone decides about it.
        let Search {
            patterns,
            judges,
            options,
            engine: _,
            device: _,
            aligned_bytes,
            context_bytes: _,
            findings_max,
            range,
            starts,
            unallocated,
            lists,
            planning: _,
        } = self;
        let options = Options { regex_memory_bytes_max: 0, ..*options };
        let are_judged: Vec<bool> = judges.iter().map(Option::is_some).collect();
        let mut digest = Sha256::new();
        let scope = (options, aligned_bytes, findings_max, range, starts, unallocated, are_judged);
        digest.update(format!("{scope:?}\n{}\n", lists.canonical()));
        for pattern in patterns {
            digest.update(format!("{pattern:?}\n"));
        }
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use quarrier_search::{EngineName, Pattern};

    use super::super::{MatchList, MatchLists};
    use super::*;

    #[test]
    fn the_digest_changes_exactly_when_findings_may_change() {
        let of = |text: &str| Search::new(vec![Pattern::literal(text).unwrap()]);
        let plain = of("a").digest();
        assert_eq!(plain, of("a").engine(EngineName::Naive).context(7).digest());
        let regex = Search::new(vec![Pattern::regex("a").unwrap()]);
        let named = Search::new(vec![Pattern::literal("a").unwrap().named("a")]);
        let words = MatchLists { stop: Some(MatchList::parse(b"x\ny\nz")), alert: None };
        let same = MatchLists { stop: Some(MatchList::parse(b"z\ny\nx")), alert: None };
        let others = [
            of("b"),
            of("a").aligned(2),
            of("a").range(0..7),
            of("a").findings_max(1),
            of("a").unallocated(true),
            of("a").options(Options { utf16: true, ..Options::default() }),
            of("a").lists(words.clone()),
            regex,
            named,
        ];
        let mut all: Vec<[u8; 32]> = others.iter().map(Search::digest).collect();
        all.push(plain);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(of("a").lists(words).digest(), of("a").lists(same).digest());
    }
}
