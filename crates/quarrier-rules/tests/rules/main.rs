//! Rules through the public interface: the gate drops no rule that holds, and the results are those
//! of the program `yara`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]

mod draw;
mod gate;
mod hostile;
mod programs;
mod yara;

use std::sync::atomic::AtomicBool;

use quarrier_rules::{Error, Hits, RuleFile, Rules};
use quarrier_search::Searcher;

/// Compiles one file of rules that includes nothing.
fn compiled(text: &str) -> Result<Rules, Error> {
    let file = RuleFile { name: "r.yar".to_string(), bytes: text.as_bytes().to_vec() };
    let mut no_includes = |_: &str, _: &str| Err("none is read".to_string());
    Rules::compile(&[file], &mut no_includes, &AtomicBool::new(false))
}

/// Finds the patterns of rules in bytes.
struct Finder {
    searcher: Option<Searcher>,
}

impl Finder {
    fn of(rules: &Rules) -> Self {
        let patterns = rules.patterns().to_vec();
        let searcher = (!patterns.is_empty())
            .then(|| Searcher::builder().options(rules.pattern_options()).build(patterns).unwrap());
        Finder { searcher }
    }

    /// The hits with all of their offsets.
    fn hits_with_offsets(&self, bytes: &[u8]) -> Hits {
        let mut hits = Hits::default();
        for finding in self.searcher.iter().flat_map(|searcher| searcher.find_all(bytes).unwrap()) {
            hits.add_at(finding.pattern, finding.offset);
        }
        hits
    }

    fn hits(&self, bytes: &[u8]) -> Hits {
        let mut hits = Hits::default();
        for finding in self.searcher.iter().flat_map(|searcher| searcher.find_all(bytes).unwrap()) {
            hits.add(finding.pattern);
        }
        hits
    }
}
