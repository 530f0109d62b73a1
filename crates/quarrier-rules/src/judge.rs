//! Evaluates rules on the bytes of a scope.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use boreal::Scanner;
use boreal::scanner::{CallbackEvents, ScanCallbackResult, ScanError, ScanEvent, ScanParams};
use quarrier_core::sync::lock;

use crate::apart::{Unfinished, apart};
use crate::compile::{compile, compile_for_windows};
use crate::set::{Declared, Rules, matches_max};
use crate::windows::{FILESIZE, Windows};

/// Stack of an evaluating thread, in bytes. The compiler bounds the nesting of conditions.
const STACK_BYTES: usize = 8 << 20;
/// Minimum length in bytes of a scope for which few candidates are compiled separately: compiling
/// them takes about as long as evaluating all rules on a shorter scope.
const FEW_BYTES_MIN: usize = 256 << 10;
/// Candidates are few if the set has this many times as many rules.
pub(crate) const FEW_FACTOR: usize = 4;
/// The default minimum length in bytes of a scope that is searched by windows, for which the candidates
/// are compiled separately.
const WINDOWS_BYTES_MIN: usize = 16 << 20;
/// Maximum number of cached scanners of few rules.
const SCANNERS_MAX: usize = 16;
/// Additional time until a scan is abandoned after its limit, since boreal checks the clock only
/// now and then.
const PATIENCE: Duration = Duration::from_millis(500);

/// The values of a scope's external variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeName {
    /// `filename`, the last component of the path.
    pub name: String,
    /// `filepath`, the path.
    pub path: String,
}

impl ScopeName {
    /// Makes the values for a path.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        ScopeName { name: name.to_string(), path: path.to_string() }
    }

    /// Returns the end of the name from its last dot on, in lower case; empty if it has no dot.
    fn extension(&self) -> String {
        let dot = self.name.rfind('.').filter(|dot| *dot > 0);
        dot.map_or(String::new(), |dot| self.name[dot..].to_ascii_lowercase())
    }
}

/// Why a scope could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeError {
    /// It took longer than the limit.
    Late,
    /// The `stop` flag became true.
    Stopped,
    /// boreal failed, or the system could not start a thread: the reason.
    Failed(String),
}

/// The rules that hold in a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// The rules that hold, in the order of their declaration.
    pub held: Vec<HeldRule>,
    /// Strings with more matches than count.
    pub overfull: Vec<Overfull>,
    /// The number of rules whose strings were searched for only near their patterns.
    pub by_windows: usize,
}

/// A string with more matches than count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overfull {
    /// The index of the rule in [`Rules::rules`].
    pub rule: usize,
    /// The name of the string, with the dollar sign.
    pub string: String,
    /// The number of matches that count: at least [`Rules::matches_max`].
    pub matches_max: u32,
}

/// A rule that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRule {
    /// The index of the rule in [`Rules::rules`].
    pub rule: usize,
    /// The matches of its strings except private ones, string by string.
    pub found: Vec<StringMatch>,
}

/// A match of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringMatch {
    /// The name of the string, with the dollar sign.
    pub string: Arc<str>,
    /// The offset of the match in the scope, in bytes.
    pub offset: u64,
    /// The length of the match in bytes.
    pub length: u64,
}

/// Evaluates rules on scopes, and caches the scanners that it compiles.
#[derive(Debug)]
pub struct Judge {
    pub(crate) rules: Rules,
    limit: Duration,
    places: Arc<HashMap<String, usize>>,
    pub(crate) windows_from: usize,
    /// Scanners of few rules, the most recent last.
    few: Mutex<Vec<Few>>,
}

/// A scanner of few rules.
#[derive(Debug)]
struct Few {
    rules: Vec<u32>,
    for_windows: bool,
    scanner: Scanner,
}

impl Judge {
    /// Makes a judge that spends at most `limit` on a scope.
    #[must_use]
    pub fn new(rules: &Rules, limit: Duration) -> Self {
        let places = rules.rules().iter().enumerate();
        let places = places.map(|(place, rule)| (rule.name.clone(), place)).collect();
        Judge {
            rules: rules.clone(),
            limit,
            places: Arc::new(places),
            windows_from: WINDOWS_BYTES_MIN,
            few: Mutex::default(),
        }
    }

    /// Sets the minimum length in bytes of the scopes that are searched by windows.
    #[must_use]
    pub fn windows_from(self, windows_from: usize) -> Self {
        Judge { windows_from, ..self }
    }

    /// Returns the rules that hold for these bytes. It may evaluate only `candidates`, which must
    /// be in order, as all other rules are known to be false.
    ///
    /// # Errors
    /// [`JudgeError::Late`] after the limit, [`JudgeError::Stopped`] soon after `stop` becomes true.
    pub fn judge(
        &self,
        bytes: &Arc<Vec<u8>>,
        name: &ScopeName,
        candidates: &[u32],
        stop: &AtomicBool,
    ) -> Result<Judged, JudgeError> {
        let scan = Scan::whole(self.scanner(bytes.len(), candidates), &self.rules);
        self.judge_twice(scan, bytes, name, candidates, stop)
    }

    /// Scans once, and again where strings have too many matches.
    pub(crate) fn judge_twice(
        &self,
        scan: Scan,
        bytes: &Arc<Vec<u8>>,
        name: &ScopeName,
        candidates: &[u32],
        stop: &AtomicBool,
    ) -> Result<Judged, JudgeError> {
        let judged = self.judge_by(scan, bytes, name, stop)?;
        match judged.overfull.is_empty() {
            true => Ok(judged),
            false => self.judge_overfull(judged, bytes, name, candidates, stop),
        }
    }

    /// Evaluates rules again that count or place strings with more matches than the limit, and the
    /// rules that refer to them: fewer strings may have more matches each.
    fn judge_overfull(
        &self,
        mut judged: Judged,
        bytes: &Arc<Vec<u8>>,
        name: &ScopeName,
        candidates: &[u32],
        stop: &AtomicBool,
    ) -> Result<Judged, JudgeError> {
        let again = self.affected(&judged.overfull, candidates);
        let needed = self.needed(&again);
        let strings = needed.iter().map(|rule| self.rules.inner.rules[*rule as usize].strings.1);
        let matches_max = matches_max(strings.sum());
        if again.is_empty() || matches_max <= self.rules.inner.matches_max {
            return Ok(judged);
        }
        let Some(scanner) = self.compiled(&needed, false) else { return Ok(judged) };
        let scan = Scan { matches_max, ..Scan::whole(scanner, &self.rules) };
        let second = self.judge_by(scan, bytes, name, stop)?;
        let is_again = |rule: usize| again.binary_search(&(rule as u32)).is_ok();
        judged.held.retain(|held| !is_again(held.rule));
        judged.held.extend(second.held.into_iter().filter(|held| is_again(held.rule)));
        judged.held.sort_by_key(|held| held.rule);
        let is_needed = |rule: usize| needed.binary_search(&(rule as u32)).is_ok();
        judged.overfull.retain(|string| !is_needed(string.rule));
        judged.overfull.extend(second.overfull);
        Ok(judged)
    }

    /// Returns the candidates whose result may depend on the number of matches of these strings.
    fn affected(&self, overfull: &[Overfull], candidates: &[u32]) -> Vec<u32> {
        let inner = &self.rules.inner;
        let mut affected = vec![false; inner.rules.len()];
        for string in overfull {
            affected[string.rule] |= inner.rules[string.rule].needs_offsets;
        }
        // A rule refers only to earlier ones.
        for rule in 0..affected.len() {
            affected[rule] |= inner.needs[rule].iter().any(|need| affected[*need as usize]);
        }
        let has_global = inner.rules.iter().zip(&affected).any(|(rule, is)| rule.is_global && *is);
        let is_affected = |rule: &u32| has_global || affected[*rule as usize];
        candidates.iter().copied().filter(is_affected).collect()
    }

    /// As [`judge`](Self::judge), but evaluates all rules.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn judge_by_all(
        &self,
        bytes: &Arc<Vec<u8>>,
        name: &ScopeName,
        stop: &AtomicBool,
    ) -> Result<Judged, JudgeError> {
        self.judge_by(Scan::whole(self.rules.inner.scanner.clone(), &self.rules), bytes, name, stop)
    }

    fn judge_by(
        &self,
        mut scan: Scan,
        bytes: &Arc<Vec<u8>>,
        name: &ScopeName,
        stop: &AtomicBool,
    ) -> Result<Judged, JudgeError> {
        let scanner = &mut scan.scanner;
        scanner.set_scan_params(
            ScanParams::default()
                .compute_full_matches(true)
                .match_max_length(0)
                .string_max_nb_matches(scan.matches_max)
                .timeout_duration(Some(self.limit))
                .callback_events(
                    CallbackEvents::RULE_MATCH | CallbackEvents::STRING_REACHED_MATCH_LIMIT,
                ),
        );
        let extension = name.extension();
        for (symbol, value) in
            [("filename", &name.name), ("filepath", &name.path), ("extension", &extension)]
        {
            // Every scanner defines these symbols.
            let _ = scanner.define_symbol(symbol, value.as_bytes().to_vec());
        }
        if scan.windows.is_some() {
            let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            let _ = scanner.define_symbol(FILESIZE, length);
        }
        let (bytes, places) = (Arc::clone(bytes), Arc::clone(&self.places));
        let work = move || scanned(scan, &bytes, &places);
        let within = self.limit.saturating_add(PATIENCE);
        match apart(STACK_BYTES, within, stop, work) {
            Ok(judged) => judged,
            Err(Unfinished::Late) => Err(JudgeError::Late),
            Err(Unfinished::Stopped) => Err(JudgeError::Stopped),
            Err(Unfinished::Thread(reason)) => Err(JudgeError::Failed(reason)),
            Err(Unfinished::Panicked(panicked)) => Err(JudgeError::Failed(panicked.to_string())),
        }
    }

    /// Returns the scanner for a scope of `length` bytes.
    fn scanner(&self, length: usize, candidates: &[u32]) -> Scanner {
        let inner = &self.rules.inner;
        let all = inner.scanner.clone();
        if length < FEW_BYTES_MIN || candidates.len() * FEW_FACTOR > inner.rules.len() {
            return all;
        }
        let needed = self.needed(candidates);
        if needed.len() * FEW_FACTOR > inner.rules.len() {
            return all;
        }
        self.known(needed, false).unwrap_or(all)
    }

    /// Returns the scanner of these rules, from the cache if it is there; `None` if they do not compile on
    /// their own.
    pub(crate) fn known(&self, needed: Vec<u32>, for_windows: bool) -> Option<Scanner> {
        let mut few = lock(&self.few);
        let is_known = |known: &Few| known.rules == needed && known.for_windows == for_windows;
        if let Some(place) = few.iter().position(is_known) {
            let known = few.remove(place);
            let scanner = known.scanner.clone();
            few.push(known);
            return Some(scanner);
        }
        drop(few);
        let scanner = self.compiled(&needed, for_windows)?;
        let mut few = lock(&self.few);
        if few.len() >= SCANNERS_MAX {
            few.remove(0);
        }
        few.push(Few { rules: needed, for_windows, scanner: scanner.clone() });
        Some(scanner)
    }

    /// Returns the candidates with all rules that they depend on.
    pub(crate) fn needed(&self, candidates: &[u32]) -> Vec<u32> {
        let inner = &self.rules.inner;
        let globals = (0..).zip(&inner.rules).filter(|(_, rule)| rule.is_global);
        let mut open: Vec<u32> = globals.map(|(place, _)| place).collect();
        open.extend(candidates);
        let mut needed = BTreeSet::new();
        while let Some(rule) = open.pop() {
            if needed.insert(rule) {
                open.extend(&inner.needs[rule as usize]);
            }
        }
        needed.into_iter().collect()
    }

    /// Compiles a scanner of these rules; `None` if they do not compile on their own.
    fn compiled(&self, needed: &[u32], for_windows: bool) -> Option<Scanner> {
        let inner = &self.rules.inner;
        let mut rule_texts = Vec::new();
        for (statement, declared) in &inner.statements {
            if let Declared::Rule(rule) = declared
                && needed.binary_search(rule).is_ok()
            {
                rule_texts.push(&*statement.text);
            }
        }
        // boreal evaluates every imported module on each scope.
        let is_needed = |declared: &Declared| match declared {
            Declared::Rule(rule) => needed.binary_search(rule).is_ok(),
            Declared::Module(module) => rule_texts.iter().any(|text| text.contains(&**module)),
        };
        let statements = inner.statements.iter().filter(|(_, declared)| is_needed(declared));
        let mut statements = statements.map(|(statement, _)| statement);
        match for_windows {
            true => compile_for_windows(statements.map(|statement| &*statement.text)),
            false => compile(&mut statements, &inner.files).ok(),
        }
    }
}

/// What to scan with, and where.
pub(crate) struct Scan {
    scanner: Scanner,
    matches_max: u32,
    /// Where strings may be; `None` for the whole scope.
    windows: Option<Vec<Range<usize>>>,
}

impl Scan {
    fn whole(scanner: Scanner, rules: &Rules) -> Self {
        Scan { scanner, matches_max: rules.inner.matches_max, windows: None }
    }

    /// A scanner compiled for windows, and the windows.
    pub(crate) fn of_windows(scanner: Scanner, rules: &Rules, windows: Vec<Range<usize>>) -> Self {
        Scan { windows: Some(windows), ..Scan::whole(scanner, rules) }
    }
}

/// Scans, and collects the matches.
fn scanned(
    scan: Scan,
    bytes: &Arc<Vec<u8>>,
    places: &HashMap<String, usize>,
) -> Result<Judged, JudgeError> {
    let Scan { scanner, matches_max, windows } = scan;
    let mut judged = Judged::default();
    let collect = |event: ScanEvent<'_, '_>| {
        match event {
            ScanEvent::RuleMatch(rule) => {
                let Some(&place) = places.get(rule.name) else {
                    return ScanCallbackResult::Continue;
                };
                let mut found = Vec::new();
                for string in rule.matches {
                    let name: Arc<str> = format!("${}", string.name).into();
                    found.extend(string.matches.iter().map(|one| StringMatch {
                        string: Arc::clone(&name),
                        offset: (one.base + one.offset) as u64,
                        length: one.length as u64,
                    }));
                }
                judged.held.push(HeldRule { rule: place, found });
            }
            ScanEvent::StringReachedMatchLimit(string) => {
                judged.overfull.extend(places.get(string.rule_name).map(|place| Overfull {
                    rule: *place,
                    string: format!("${}", string.string_name),
                    matches_max,
                }));
            }
            _ => {}
        }
        ScanCallbackResult::Continue
    };
    let taken = match windows {
        None => scanner.scan_mem_with_callback(bytes, collect),
        Some(windows) => {
            scanner.scan_fragmented_with_callback(Windows::new(bytes, windows), collect)
        }
    };
    match taken {
        Ok(()) => {
            judged.held.sort_by_key(|held| held.rule);
            Ok(judged)
        }
        Err(ScanError::Timeout) => Err(JudgeError::Late),
        Err(error) => Err(JudgeError::Failed(error.to_string())),
    }
}
