//! Any bytes as YARA rules and a scope: no panic, and the same rules hold with the gate as without
//! it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_rules::{Hits, Judge, JudgeError, RuleFile, Rules, ScopeName};
use quarrier_search::Searcher;

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "rules", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"",
    b"rule a { condition: true }\0x",
    b"rule a : t { strings: $a = \"needle\" nocase wide ascii $b = \"xyzzy\" xor(1-9) condition: $a or #b > 1 }\0\
      a NEEDLE n\0e\0e\0d\0l\0e\0, yx{{x",
    b"rule a { strings: $a = { 4D 5A [2-4] ( 90 | ~00 4? ) ?? 03 } condition: $a at 0 }\0MZ..\x90.\x03",
    b"rule a { strings: $a = /ab+c{2,3}[^x]\\b/is $b = /(GET|POST) \\/x/ condition: any of them }\0abbccq GET /x",
    b"rule a { strings: $a = \"secret\" base64 base64wide condition: $a }\0c2VjcmV0IQ== xzZWNyZXQ",
    b"private rule p { strings: $a = \"one\" condition: $a }\nglobal rule g { condition: filesize < 1KB }\n\
      rule r { condition: p and not false and for all i in (0..3) : ( uint8(i) != 0 ) }\0one two",
    b"import \"pe\" import \"math\" import \"hash\"\nrule a { condition: pe.number_of_sections > 0 or \
      math.entropy(0, filesize) > 1.0 or hash.md5(0, 2) == \"x\" }\0MZ\x90\0\x03",
    b"import \"elf\" import \"dotnet\" import \"dex\" import \"macho\" import \"string\" import \"console\"\n\
      rule a { strings: $ = \"abc\" condition: elf.type == 2 or 50% of them or console.log(\"x\") }\0\x7FELF\x02\x01abc",
    b"rule a { strings: $a = \"aaaa\" $b = \"ab\" condition: 2 of ($*) and @a[1] + !b[1] < 100 and any of (a*) }\0aaaaab",
];

const WORDS: &[&[u8]] = &[
    b"rule ",
    b"private ",
    b"global ",
    b"strings:",
    b"condition:",
    b"meta:",
    b"import \"pe\"\n",
    b"include \"x\"\n",
    b"$a",
    b"#a",
    b"@a[1]",
    b"!a[1]",
    b" at ",
    b" in ",
    b"(0..9)",
    b"any of them",
    b"all of them",
    b"none of them",
    b"2 of ($a*)",
    b"50% of them",
    b"for any of them : ( $ )",
    b"for all i in (1..#a) : ( @a[i] > 0 )",
    b" and ",
    b" or ",
    b"not ",
    b"defined ",
    b"filesize",
    b"entrypoint",
    b"uint16(0)",
    b"int32be(4)",
    b" nocase",
    b" wide",
    b" ascii",
    b" xor",
    b" base64",
    b" fullword",
    b" private",
    b"{ 41 ?? 4? ~42 [1-3] ( 43 | 44 45 ) }",
    b"/a[b-d]+(e|f)?$/i",
    b"\\x00",
    b"\"",
    b"{",
    b"}",
    b"(",
    b")",
    b"/",
    b"//",
    b"/*",
    b"*/",
    b"==",
    b"<",
    b"\\",
    b"%",
    b"-",
    b"~",
    b"9223372036854775807",
    b"0x7FFFFFFFFFFFFFFF",
    b"1KB",
    b"\0",
    b"MZ",
    b"PE\0\0",
    b"\x7FELF",
];

const TEXT_BYTES_MAX: usize = 4 << 10;
const SCOPE_BYTES_MAX: usize = 16 << 10;
/// Rules may require long computations; that is not a finding.
const LIMIT: Duration = Duration::from_secs(2);

/// Takes everything before the first zero as rules, and the rest as a scope.
pub fn run(bytes: &[u8]) -> Verdict {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, scope) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    if text.len() > TEXT_BYTES_MAX || scope.len() > SCOPE_BYTES_MAX {
        return Verdict::Skipped;
    }
    let file = RuleFile { name: "r.yar".to_string(), bytes: text.to_vec() };
    let stop = AtomicBool::new(false);
    let mut no_includes = |_: &str, _: &str| Err("none is read".to_string());
    let rules = match Rules::compile(&[file], &mut no_includes, &stop) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!matches!(error, quarrier_rules::Error::Internal(_)), "{error}");
            return Verdict::Skipped;
        }
    };
    let judge = Judge::new(&rules, LIMIT);
    let (scope, name) = (Arc::new(scope.to_vec()), ScopeName::of("/a.exe"));
    let expected = match judge.judge_by_all(&scope, &name, &stop) {
        Ok(judged) => judged.held,
        // The library's checked arithmetic panics; the caller then gets an error.
        Err(JudgeError::Late | JudgeError::Failed(_)) => return Verdict::Skipped,
        Err(JudgeError::Stopped) => unreachable!("nobody stops it"),
    };
    let candidates = rules.candidates(&hits(&rules, &scope), scope.len() as u64, Some(&scope));
    let found = match candidates.is_empty() {
        true => Vec::new(),
        false => match judge.judge(&scope, &name, &candidates, &stop) {
            Ok(judged) => judged.held,
            Err(_) => return Verdict::Skipped,
        },
    };
    assert_eq!(found, expected, "with the gate and without");
    Verdict::Checked
}

/// Searches a scope for the patterns of the rules.
fn hits(rules: &Rules, scope: &[u8]) -> Hits {
    let mut hits = Hits::default();
    if rules.patterns().is_empty() {
        return hits;
    }
    let searcher =
        Searcher::builder().options(rules.pattern_options()).build(rules.patterns().to_vec());
    let found = searcher.map(|searcher| searcher.find_all(scope));
    let Ok(Ok(found)) = found else { panic!("the patterns of rules can be searched for") };
    found.iter().for_each(|finding| hits.add(finding.pattern));
    hits
}
