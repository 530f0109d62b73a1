//! A compiled set of rules.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use boreal::Scanner;
use boreal_parser::rule::VariableDeclaration;
use quarrier_core::threads::in_scope_on_stack;
use quarrier_search::{Options, Pattern};

use crate::apart::{Unfinished, apart};
use crate::compile::compile;
use crate::condition::{Facts, Logic, Names};
use crate::error::{Error, Result};
use crate::gate::{Gate, reach};
use crate::hits::Hits;
use crate::regexes::ambiguous;
use crate::text::{Content, Include, RULE_BYTES_EACH_MAX, RuleFile, Statement, Statements};

/// Stack bytes for each byte of a rule: enough to drop the deepest expression that fits in it.
const STACK_FACTOR: usize = 512;
/// The stack of threads that parse and compile.
pub(crate) const STACK_BYTES: usize = STACK_FACTOR * RULE_BYTES_EACH_MAX;
/// Approximate maximum number of matches of all strings in a scope.
const MATCHES_MAX: usize = 8 << 20;

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The name of the rule.
    pub name: String,
    /// The tags of the rule, in order.
    pub tags: Vec<String>,
    /// Whether the rule is only for other rules to refer to; results omit it.
    pub is_private: bool,
    /// Whether this rule must hold for any other rule to hold.
    pub is_global: bool,
    /// The number of strings with patterns, and the number of all strings.
    pub strings: (usize, usize),
    /// Whether the condition depends on the number or the offsets of matches.
    pub needs_offsets: bool,
    /// The names of strings, with the dollar sign, that may match with a zero after each byte.
    wide: Vec<String>,
}

impl Rule {
    /// Appends a match of one of its strings, or the first bytes of it, to `out` as text: UTF-8
    /// unchanged, a match of a wide string without its zeros, every other byte as `\xNN`.
    pub fn show_match(&self, string: &str, found: &[u8], out: &mut String) {
        let is_wide = found.len().is_multiple_of(2)
            && found.chunks_exact(2).all(|pair| pair[1] == 0)
            && self.wide.iter().any(|wide| wide == string);
        if is_wide {
            return out.extend(found.chunks_exact(2).map(|pair| char::from(pair[0])));
        }
        for part in found.utf8_chunks() {
            out.push_str(part.valid());
            for byte in part.invalid() {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

/// A compiled set of rules, cheap to clone.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) rules: Vec<Rule>,
    logic: Vec<Logic>,
    /// The rules that each rule needs to compile.
    pub(crate) needs: Vec<Vec<u32>>,
    /// The rules whose conditions refer to each rule.
    dependents: Vec<Vec<u32>>,
    globals: Vec<u32>,
    /// The first string of each rule among all strings, and the number of strings at the end.
    first_strings: Vec<u32>,
    /// Strings without patterns, which are always assumed to be present.
    ungated: Vec<bool>,
    /// The maximum length of a match of each string with patterns; `None` if it is not bounded.
    reaches: Vec<Option<u32>>,
    /// Whether a rule can be evaluated by the places of its patterns; see [`crate::windows`].
    local: Vec<bool>,
    /// The rules that can hold if no pattern occurs, in order.
    without: Vec<u32>,
    gate: Gate,
    pub(crate) statements: Vec<(Statement, Declared)>,
    pub(crate) files: Vec<String>,
    pub(crate) scanner: Scanner,
    pub(crate) matches_max: u32,
}

/// The declaration in a statement.
#[derive(Debug)]
pub(crate) enum Declared {
    Module(String),
    Rule(u32),
}

impl Rules {
    /// Compiles the rules of `files`, all in one namespace, as the program `yara` does: a rule may
    /// refer to earlier ones, and no rule holds where a global rule does not. `include` reads the
    /// files that they include.
    ///
    /// Conditions may use the modules `pe`, `elf`, `macho`, `dotnet`, `dex`, `hash`, `math`,
    /// `string`, `time` and `console`, which prints nothing; and the variables `filename`,
    /// `filepath` and `extension` of the scope.
    ///
    /// # Errors
    /// [`Error::Rule`] for the first invalid rule, [`Error::File`] if files are too long or have no
    /// rules, [`Error::Stopped`] soon after `stop` becomes true.
    pub fn compile(
        files: &[RuleFile],
        include: &mut Include<'_>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let parsed = std::thread::scope(|scope| {
            let read = move || Statements::read(files, include, stop);
            let thread = in_scope_on_stack(scope, "rules", STACK_BYTES, read)
                .map_err(|error| Error::Thread(error.to_string()))?;
            thread.join().map_err(|_| Error::Internal(quarrier_core::panics::taken()))?
        })?;
        let compiled = apart(STACK_BYTES, Duration::MAX, stop, move || Inner::of(parsed));
        compiled
            .map_err(|left| match left {
                Unfinished::Panicked(panicked) => Error::Internal(panicked),
                Unfinished::Thread(reason) => Error::Thread(reason),
                Unfinished::Late | Unfinished::Stopped => Error::Stopped,
            })?
            .map(|inner| Rules { inner: Arc::new(inner) })
    }

    /// Returns all rules, in the order of their declaration.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.inner.rules
    }

    /// Returns the patterns to search for with [`pattern_options`](Self::pattern_options); empty if
    /// no rule needs one.
    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        self.inner.gate.patterns()
    }

    /// Returns the options for compiling the patterns.
    #[must_use]
    pub fn pattern_options(&self) -> Options {
        Gate::options()
    }

    /// Whether a rule can hold if no pattern occurs.
    #[must_use]
    pub fn holds_without(&self, rule: usize) -> bool {
        self.inner.without.binary_search(&(rule as u32)).is_ok()
    }

    /// Returns the maximum number of matches of a string that count in a scope; more count if the
    /// condition of its rule counts or places them.
    #[must_use]
    pub fn matches_max(&self) -> u32 {
        self.inner.matches_max
    }

    /// Returns the rules to evaluate on a scope of `length` bytes, in order; all others are false
    /// there. This depends on the patterns found and, if given, on the `bytes` of the scope.
    /// Private rules are omitted.
    #[must_use]
    pub fn candidates(&self, hits: &Hits, length: u64, bytes: Option<&[u8]>) -> Vec<u32> {
        self.inner.candidates(hits, &Facts { length: Some(length), bytes })
    }
}

impl Inner {
    fn of(parsed: Statements) -> Result<Self> {
        let Statements { files, statements, contents, .. } = parsed;
        if !contents.iter().any(|content| matches!(content, Content::Rule(_))) {
            let file = files.first().cloned().unwrap_or_default();
            return Err(Error::File { file, reason: "has no rules".to_string() });
        }
        refuse_unverified(&statements, &contents, &files)?;
        refuse_ambiguous(&statements, &contents, &files)?;
        // Compile with boreal first: rules that it rejects need not be understood here.
        let scanner = compile(statements.iter(), &files)?;
        let mut set = Inner::empty(scanner, files);
        let mut names = Names::default();
        for (statement, content) in statements.into_iter().zip(contents) {
            let declared = match content {
                Content::Import(module) => {
                    names.modules.push(module.clone());
                    Declared::Module(module)
                }
                Content::Rule(rule) => Declared::Rule(set.add(&rule, &statement.text, &mut names)),
            };
            set.statements.push((statement, declared));
        }
        set.dependents = vec![Vec::new(); set.rules.len()];
        for (rule, logic) in (0..).zip(&set.logic) {
            let dependents = &mut set.dependents;
            logic.rules(&mut |need| dependents[need as usize].push(rule));
        }
        let strings = set.ungated.len();
        set.matches_max = matches_max(strings);
        set.without = set.all_that_can();
        Ok(set)
    }

    fn empty(scanner: Scanner, files: Vec<String>) -> Self {
        Inner {
            rules: Vec::new(),
            logic: Vec::new(),
            needs: Vec::new(),
            dependents: Vec::new(),
            globals: Vec::new(),
            first_strings: vec![0],
            ungated: Vec::new(),
            reaches: Vec::new(),
            local: Vec::new(),
            without: Vec::new(),
            gate: Gate::default(),
            statements: Vec::new(),
            files,
            scanner,
            matches_max: 0,
        }
    }

    /// Adds a rule that boreal accepted, with its statement.
    fn add(&mut self, rule: &boreal_parser::rule::Rule, text: &str, names: &mut Names) -> u32 {
        let place = self.rules.len() as u32;
        let first = self.ungated.len();
        for variable in &rule.variables {
            let string = self.ungated.len() as u32;
            let has_patterns = self.gate.add(string, variable);
            self.ungated.push(!has_patterns);
            self.reaches.push(reach(variable).filter(|_| has_patterns));
        }
        let gated = self.ungated[first..].iter().filter(|ungated| !**ungated).count();
        let condition = text.get(rule.condition.span.clone()).unwrap_or(text);
        let is_bounded = self.reaches[first..].iter().all(Option::is_some);
        self.local.push(is_bounded && !parses_scope(condition, &names.modules));
        self.rules.push(Rule {
            name: rule.name.clone(),
            tags: rule.tags.iter().map(|tag| tag.tag.clone()).collect(),
            is_private: rule.is_private,
            is_global: rule.is_global,
            strings: (gated, rule.variables.len()),
            needs_offsets: needs_offsets(condition),
            wide: wide(rule),
        });
        self.logic.push(Logic::of(rule, names));
        self.needs.push(needs(condition, names));
        self.first_strings.push(self.ungated.len() as u32);
        if rule.is_global {
            self.globals.push(place);
        }
        names.rules.insert(rule.name.clone(), place);
        place
    }

    /// Returns the rules that can hold if no pattern occurs, whatever the scope's other facts are.
    fn all_that_can(&self) -> Vec<u32> {
        let mut can: Vec<bool> = Vec::with_capacity(self.rules.len());
        for rule in 0..self.rules.len() {
            let first = self.first_strings[rule];
            let is_there = |string: u32| self.ungated[(first + string) as usize];
            let holds = |other: u32| can[other as usize];
            let now = self.logic[rule].can(&Facts::default(), &is_there, &holds);
            can.push(now);
        }
        (0..).zip(can).filter(|(_, can)| *can).map(|(rule, _)| rule).collect()
    }

    /// Returns the rule of a string.
    fn rule_of(&self, string: u32) -> u32 {
        self.first_strings.partition_point(|first| *first <= string) as u32 - 1
    }

    /// Returns the hits of the strings of these rules, in no order: each an offset, and the maximum length
    /// of a match there. All of the rules must be [local](Self::is_local).
    pub(crate) fn local_hits<'h>(
        &'h self,
        rules: &'h [u32],
        hits: &'h Hits,
    ) -> impl Iterator<Item = (u64, u32)> + 'h {
        hits.patterns().flat_map(move |(pattern, places)| {
            let strings = self.gate.strings(pattern).iter();
            let ours =
                strings.filter(|string| rules.binary_search(&self.rule_of(**string)).is_ok());
            let reach = ours.filter_map(|string| self.reaches[*string as usize]).max();
            places.iter().filter_map(move |offset| Some((*offset, reach?)))
        })
    }

    /// Whether the hits tell where all strings of a rule may be, and its condition needs no more. `frequent`
    /// is the result of [`frequent`](Self::frequent).
    pub(crate) fn is_local(&self, rule: u32, frequent: &BTreeSet<u32>) -> bool {
        self.local[rule as usize] && !frequent.contains(&rule)
    }

    /// Returns the rules with a string whose patterns occur at unknown offsets.
    pub(crate) fn frequent(&self, hits: &Hits) -> BTreeSet<u32> {
        let unknown = hits.patterns().filter(|(_, places)| places.is_empty());
        let strings = unknown.flat_map(|(pattern, _)| self.gate.strings(pattern));
        strings.map(|string| self.rule_of(*string)).collect()
    }

    fn candidates(&self, hits: &Hits, facts: &Facts<'_>) -> Vec<u32> {
        let mut there = BTreeSet::new();
        let mut affected: BTreeSet<u32> = BTreeSet::new();
        if hits.are_all() {
            affected.extend(0..self.rules.len() as u32);
        } else {
            let strings = hits.patterns().flat_map(|(pattern, _)| self.gate.strings(pattern));
            there.extend(strings.copied());
            affected.extend(there.iter().map(|string| self.rule_of(*string)));
        }
        affected.extend(&self.without);
        // The affected rules that can hold; no others can.
        let mut can = BTreeSet::new();
        while let Some(rule) = affected.pop_first() {
            let first = self.first_strings[rule as usize];
            let is_there = |string: u32| {
                hits.are_all()
                    || self.ungated[(first + string) as usize]
                    || there.contains(&(first + string))
            };
            if self.logic[rule as usize].can(facts, &is_there, &|other| can.contains(&other)) {
                can.insert(rule);
                // These come later, since a rule refers only to earlier ones.
                affected.extend(&self.dependents[rule as usize]);
            }
        }
        if self.globals.iter().any(|rule| !can.contains(rule)) {
            return Vec::new();
        }
        can.into_iter().filter(|rule| !self.rules[*rule as usize].is_private).collect()
    }
}

/// Returns the maximum number of matches of each of so many strings.
pub(crate) fn matches_max(strings: usize) -> u32 {
    (MATCHES_MAX / strings.max(1)).clamp(100, 1_000_000) as u32
}

/// Fields of the module `pe` that need verified signatures, which boreal does not provide in this
/// build.
const UNVERIFIED: [&str; 2] = ["is_signed", "verified"];

/// Rejects rules that ask whether a signature is valid.
///
/// # Errors
/// [`Error::Rule`] for the first such rule.
fn refuse_unverified(
    statements: &[Statement],
    contents: &[Content],
    files: &[String],
) -> Result<()> {
    for (statement, content) in statements.iter().zip(contents) {
        let Content::Rule(rule) = content else { continue };
        let condition = statement.text.get(rule.condition.span.clone()).unwrap_or_default();
        if let Some((at, field)) = unverified(condition) {
            let reason = format!(
                "{field} is not supported: the signatures of a program are listed, but not \
                 verified; leave this rule out"
            );
            return Err(statement.wrong(files, rule.condition.span.start + at, reason));
        }
    }
    Ok(())
}

/// Rejects rules with regexes that YARA and YARA-X read differently.
///
/// # Errors
/// [`Error::Rule`] for the first such rule.
fn refuse_ambiguous(
    statements: &[Statement],
    contents: &[Content],
    files: &[String],
) -> Result<()> {
    for (statement, content) in statements.iter().zip(contents) {
        if let Content::Rule(_) = content
            && let Some((at, reason)) = ambiguous(&statement.text)
        {
            return Err(statement.wrong(files, at, reason));
        }
    }
    Ok(())
}

/// Returns the first such field in a condition, and its offset.
fn unverified(condition: &str) -> Option<(usize, &'static str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let places = UNVERIFIED.iter().flat_map(|field| {
        condition.match_indices(field).map(move |(at, _)| (at, *field)).filter(|(at, field)| {
            let (before, after) = (&condition[..*at], &condition[at + field.len()..]);
            before.ends_with('.') && !after.starts_with(is_word)
        })
    });
    places.min()
}

/// Returns the strings of a rule that may match with a zero after each byte.
fn wide(rule: &boreal_parser::rule::Rule) -> Vec<String> {
    let is_wide = |string: &&VariableDeclaration| {
        let modifiers = &string.modifiers;
        modifiers.wide || modifiers.base64.as_ref().is_some_and(|base64| base64.wide)
    };
    let strings = rule.variables.iter().filter(is_wide);
    strings.map(|string| format!("${}", string.name)).collect()
}

/// Yields the words of a condition, each with the characters around it.
fn words(condition: &str) -> impl Iterator<Item = (Option<char>, &str, Option<char>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + condition[rest..].find(is_word)?;
        let word = condition[start..].split(|c: char| !is_word(c)).next()?;
        rest = start + word.len();
        let before = condition[..start].chars().next_back();
        Some((before, word, condition[rest..].trim_start().chars().next()))
    })
}

/// Returns the earlier rules to which a condition may refer.
fn needs(condition: &str, names: &Names) -> Vec<u32> {
    let mut needs = Vec::new();
    for (before, word, after) in words(condition) {
        if matches!(before, Some('$' | '#' | '@' | '!')) {
            continue;
        }
        match after {
            Some('*') => {
                let all = names.rules.iter().filter(|(name, _)| name.starts_with(word));
                needs.extend(all.map(|(_, rule)| *rule));
            }
            _ => needs.extend(names.rules.get(word)),
        }
    }
    needs.sort_unstable();
    needs.dedup();
    needs
}

/// Whether a condition reads what a module parses from the scope, or where a program in it begins.
fn parses_scope(condition: &str, modules: &[String]) -> bool {
    const READS_BYTES: [&str; 5] = ["console", "hash", "math", "string", "time"];
    let parses = |word: &str| {
        let is_module = modules.iter().any(|module| module == word);
        word == "entrypoint" || (is_module && !READS_BYTES.contains(&word))
    };
    words(condition).any(|(_, word, _)| parses(word))
}

/// Whether a condition depends on the number or the offsets of matches, not only on their presence.
fn needs_offsets(condition: &str) -> bool {
    condition.contains(['#', '@', '!'])
        || words(condition).any(|(_, word, _)| matches!(word, "at" | "in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_needs_those_that_its_condition_names() {
        let rules = [("a", 0), ("ab", 1), ("b", 2), ("filesize", 3)];
        let rules = rules.map(|(name, rule)| (name.to_string(), rule)).into();
        let names = Names { rules, modules: Vec::new() };
        assert_eq!(needs("ab and not b", &names), [1, 2]);
        assert_eq!(needs("any of (a *, b) or $b", &names), [0, 1, 2]);
        assert_eq!(needs("#a*2 == 4 and \"é b\" == x", &names), [2]);
        assert!(needs("$a and @ab[1] > 0", &names).is_empty());
    }

    #[test]
    fn conditions_that_ask_where_strings_are() {
        assert!(["#a > 1", "$a at 0", "$a in (0..1)", "@a[1] == 1"].into_iter().all(needs_offsets));
        assert!(!["$a and $b", "2 of them", "that"].into_iter().any(needs_offsets));
    }

    #[test]
    fn fields_that_need_verified_signatures_are_found() {
        assert_eq!(unverified("pe.is_pe and pe.is_signed"), Some((16, "is_signed")));
        let of_one = "for any s in pe.signatures : ( s.verified and s.is_signed )";
        assert_eq!(unverified(of_one).map(|(_, field)| field), Some("verified"));
        for sound in ["pe.number_of_signatures > 0", "$is_signed", "verified", "a.is_signed_by"] {
            assert_eq!(unverified(sound), None, "{sound}");
        }
    }
}
