//! The prefilters of strings: patterns that occur in every match, for which our engine searches.
//!
//! ```text
//!  string of a rule ──→ items: bytes, gaps, choices ──→ factors: every match has one of them
//!                                                         └──→ patterns, each shared by all strings
//!                                                              that have the same factor
//! ```
//!
//! A factor never requires more than every match has. A string without a sufficiently rare factor
//! is always assumed to be present.

mod factor;
mod hex;
mod literal;
mod reach;
mod regex;

use std::collections::HashMap;

use boreal_parser::rule::{VariableDeclaration, VariableDeclarationValue};
use quarrier_search::{Options, Pattern};

use factor::Factor;
pub(crate) use reach::reach;

/// Maximum number of patterns of one string: `xor` with each key, in two widths.
const PATTERNS_EACH_MAX: usize = 512;
/// Maximum number of patterns of all strings together.
const PATTERNS_MAX: usize = 500_000;

/// The patterns of all strings.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    patterns: Vec<Pattern>,
    /// The strings of each pattern, in order.
    strings: Vec<Vec<u32>>,
    known: HashMap<Factor, u32>,
}

impl Gate {
    /// Adds a string. Returns whether it has patterns.
    pub(crate) fn add(&mut self, string: u32, variable: &VariableDeclaration) -> bool {
        let Some(factors) = factors(variable) else { return false };
        let fresh = factors.iter().filter(|factor| !self.known.contains_key(factor)).count();
        if factors.len() > PATTERNS_EACH_MAX || self.patterns.len() + fresh > PATTERNS_MAX {
            return false;
        }
        let mut patterns = Vec::with_capacity(factors.len());
        for factor in &factors {
            // A string cannot be gated by only some of its factors.
            let Some(pattern) = factor.pattern() else { return false };
            patterns.push(pattern);
        }
        for (factor, pattern) in factors.into_iter().zip(patterns) {
            let place = *self.known.entry(factor).or_insert_with(|| {
                self.patterns.push(pattern);
                self.strings.push(Vec::new());
                self.patterns.len() as u32 - 1
            });
            let strings = &mut self.strings[place as usize];
            if strings.last() != Some(&string) {
                strings.push(string);
            }
        }
        true
    }

    /// Returns the patterns to search for.
    pub(crate) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Returns the strings that may be present if a pattern occurs.
    pub(crate) fn strings(&self, pattern: u32) -> &[u32] {
        self.strings.get(pattern as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the options for compiling the patterns.
    pub(crate) fn options() -> Options {
        // Only patterns of strings that ignore case are literals: see `Factor::pattern`.
        Options { ignore_case: true, ..Options::default() }
    }
}

/// Returns byte strings such that every match of a string contains one of them; `None` if no rare
/// ones are known.
fn factors(variable: &VariableDeclaration) -> Option<Vec<Factor>> {
    let modifiers = &variable.modifiers;
    match &variable.value {
        VariableDeclarationValue::Bytes(bytes) => literal::factors(bytes, modifiers),
        VariableDeclarationValue::HexString(tokens) => factor::best(&hex::items(tokens), false),
        VariableDeclarationValue::Regex(regex) => regex::factors(regex, modifiers),
    }
}

#[cfg(test)]
mod tests {
    use boreal_parser::file::YaraFileComponent;

    use super::*;

    /// Formats the factors of a string as hexadecimal, with `i` before those that ignore case.
    fn shown(string: &str) -> Option<Vec<String>> {
        let text = format!("rule a {{ strings: $a = {string} condition: $a }}");
        let file = boreal_parser::parse(&text).unwrap();
        let [YaraFileComponent::Rule(rule)] = &file.components[..] else { panic!("{string}") };
        let factors = factors(&rule.variables[0])?;
        assert!(factors.iter().all(|factor| factor.pattern().is_some()), "{string}");
        Some(factors.iter().map(ToString::to_string).collect())
    }

    #[track_caller]
    fn check(string: &str, expected: &[&str]) {
        let expected = expected.iter().map(|factor| factor.to_string()).collect::<Vec<_>>();
        assert_eq!(shown(string), (!expected.is_empty()).then_some(expected), "{string}");
    }

    #[test]
    fn literals_in_all_their_forms() {
        check("\"abc\"", &["616263"]);
        check("\"abc\" nocase", &["i616263"]);
        check("\"ab\" wide", &["61006200"]);
        check("\"abc\" wide ascii fullword", &["616263", "610062006300"]);
        check("\"abc\" xor(1-2)", &["606362", "636061"]);
        check("\"ab\" xor(1-1) wide", &["60016301"]);
        // dGhpcyBpcw==, AHRoaXMgaXM= and AAB0aGlzIGlz, without the characters that depend on
        // neighbouring bytes.
        let characters = ["644768706379427063", "526F61584D676158", "3061476C7A49476C7A"];
        check("\"this is\" base64", &characters);
        check("\"ab\"", &[]);
        check("\"aaaa\"", &[]);
        check("\"\\x00\\x01\\x02é\" nocase", &["i000102"]);
    }

    #[test]
    fn hexadecimal_strings_by_their_best_run() {
        check("{ 4D 5A ?? ?? 50 45 [2-4] 01 02 03 04 05 }", &["0102030405"]);
        check("{ 4D 5? 90 91 ~00 }", &["4D5?9091"]);
        check("{ 4D 5A ?? 90 }", &["4D5A??90"]);
        check("{ 4D 5A [2] 90 }", &["4D5A????90"]);
        check("{ 4D ~5A 90 }", &[]);
        check("{ 4D [2-3] ( 01 02 03 | 04 05 06 07 ) }", &["010203", "04050607"]);
        check("{ 4D [2-3] ( 01 02 03 | 04 ) }", &[]);
        check("{ 00 00 00 00 00 }", &[]);
    }

    #[test]
    fn regexes_have_factors_of_every_match() {
        check("/abcd[0-9]+/", &["61626364"]);
        check("/ab.d/", &["6162??64"]);
        check("/a+bcd?/i", &[]);
        check("/(GET|POST) \\/x?abc/", &["616263"]);
        check("/(GET |POST )+[a-z]/", &["47455420", "504F535420"]);
        check("/x(abc){2,}/", &["78616263616263"]);
        check("/\\bab\\x00c$/ wide", &["6100620000006300"]);
        check("/abcé/", &["616263"]);
        check("/ab.cde/i", &["i636465"]);
        check("/.*/", &[]);
    }
}
