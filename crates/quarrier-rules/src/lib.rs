//! YARA rules over raw bytes.
//!
//! ```text
//!  files of rules ──→ statements ──→ Rules ─┬─→ patterns ──→ one search over everything ──→ Hits
//!                                           │                                              │
//!                                           └─→ conditions, as far as strings decide ──────┤
//!                                                                            candidates ←──┘
//!                                                                                │
//!                       bytes of a scope ──────────────────────────→ Judge ──→ rules that hold
//! ```
//!
//! The library [`boreal`] decides whether a rule holds in a scope: the bytes of a file, or of a
//! whole source. That costs time for every byte and every string, so a prefilter first excludes the
//! scopes in which no rule can hold. It searches, in one pass of the engine of [`quarrier_search`],
//! for patterns that every match of a string contains. A rule is a candidate if its condition can
//! be true with the strings whose patterns occur. The prefilter never changes a result.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use quarrier_rules::{Hits, Judge, RuleFile, Rules, ScopeName};
//! use quarrier_search::Searcher;
//!
//! let text = br#"rule invoice : money { strings: $a = "invoice" nocase condition: #a > 1 }"#;
//! let file = RuleFile { name: "money.yar".to_string(), bytes: text.to_vec() };
//! let mut no_includes = |_: &str, _: &str| Err("none is read".to_string());
//! let stop = false.into();
//! let rules = Rules::compile(&[file], &mut no_includes, &stop)?;
//!
//! let bytes = Arc::new(b"an invoice, another Invoice".to_vec());
//! let searcher = Searcher::builder().options(rules.pattern_options());
//! let searcher = searcher.build(rules.patterns().to_vec())?;
//! let mut hits = Hits::default();
//! for finding in searcher.find_all(&bytes).unwrap_or_default() {
//!     hits.add(finding.pattern);
//! }
//! let candidates = rules.candidates(&hits, bytes.len() as u64, Some(&bytes));
//! assert_eq!(candidates, [0]);
//! let judge = Judge::new(&rules, Duration::from_secs(60));
//! let judged = judge.judge(&bytes, &ScopeName::of("/a.txt"), &candidates, &stop);
//! let found = &judged.unwrap().held[0].found;
//! assert_eq!(found.iter().map(|found| found.offset).collect::<Vec<_>>(), [3, 20]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apart;
mod compile;
mod condition;
mod error;
mod gate;
mod hits;
mod judge;
mod local;
mod programs;
mod ranges;
mod regexes;
mod set;
mod split;
mod text;
mod windows;

pub use error::{Error, Result};
pub use hits::Hits;
pub use judge::{HeldRule, Judge, JudgeError, Judged, Overfull, ScopeName, StringMatch};
pub use set::{Rule, Rules};
pub use text::{Include, RULE_BYTES_EACH_MAX, RULE_BYTES_MAX, RULES_MAX, RuleFile};
