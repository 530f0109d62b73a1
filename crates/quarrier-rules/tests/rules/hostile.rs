//! Rules made to exhaust time, memory or stack.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use quarrier_rules::{Judge, JudgeError, Overfull, RULE_BYTES_EACH_MAX, ScopeName};

use crate::compiled;

/// Makes a rule with this condition.
fn with(condition: &str) -> String {
    format!("rule a {{ condition: {condition} }}")
}

#[test]
fn expressions_that_nest_without_end_are_errors() {
    let fill = |unit: &str, end: &str| {
        let count = (RULE_BYTES_EACH_MAX - 100) / unit.len();
        format!("{}{end}", unit.repeat(count))
    };
    let reasons = ["max depth", "syntax error", "too many imbricated"];
    for (unit, end) in
        [("1+", "1 == 1"), ("1+", "1 =="), ("(", "1"), ("not ", "true"), ("~", "1 == 1")]
    {
        let error = compiled(&with(&fill(unit, end))).unwrap_err().to_string();
        assert!(reasons.iter().any(|reason| error.contains(reason)), "{unit}: {error}");
        assert!(error.len() < 1000, "{unit}");
    }
    // A long list does not nest deeper.
    let list = compiled(&with(&fill("true and ", "true"))).map_err(|error| error.to_string());
    assert!(list.is_ok(), "{:?}", list.err());
}

#[test]
fn signatures_of_programs_are_listed_and_not_verified() {
    let sound = "import \"pe\"\nrule a { condition: pe.number_of_signatures > 0 and \
                 for any s in pe.signatures : ( s.issuer contains \"x\" ) }";
    assert!(compiled(sound).is_ok());
    let wrong = "import \"pe\"\nrule a { condition:\n  not pe.is_signed }";
    let error = compiled(wrong).unwrap_err().to_string();
    assert!(error.starts_with("r.yar: line 3, column 10: is_signed is not supported"), "{error}");
}

#[test]
fn regexes_that_yara_x_reads_differently_are_errors() {
    for regex in ["\\Aabc", "abc\\z", "a\\v", "\\b{start}a", "x[[:alpha:]]", "x[a&&b]"] {
        let text = format!("rule a {{\n strings: $a = /{regex}/\n condition: $a }}");
        let error = compiled(&text).unwrap_err().to_string();
        assert!(error.starts_with("r.yar: line 2, column "), "{error}");
        assert!(error.contains("to YARA-X; write"), "{error}");
        assert!(compiled(&with(&format!("filename matches /{regex}/"))).is_err(), "{regex}");
    }
}

#[test]
fn a_condition_that_never_ends_is_late() {
    let rules = compiled(&with("for all i in (0..1000000000000) : ( i >= 0 )")).unwrap();
    let judge = Judge::new(&rules, Duration::from_millis(50));
    let judged =
        judge.judge(&Arc::new(b"x".to_vec()), &ScopeName::default(), &[0], &AtomicBool::new(false));
    assert_eq!(judged, Err(JudgeError::Late));
}

#[test]
fn a_stopped_judge_gives_no_answer() {
    let rules = compiled(&with("for all i in (0..1000000000000) : ( i >= 0 )")).unwrap();
    let judge = Judge::new(&rules, Duration::from_secs(5));
    let started = Instant::now();
    let judged =
        judge.judge(&Arc::new(Vec::new()), &ScopeName::default(), &[0], &AtomicBool::new(true));
    assert_eq!(judged, Err(JudgeError::Stopped));
    assert!(started.elapsed() < Duration::from_secs(5), "it does not stop at once");
}

#[test]
fn strings_with_too_many_matches_are_named() {
    let strings: String = (0..9000).map(|i| format!("$a{i} = \"x{i}y\"\n")).collect();
    let rules =
        compiled(&format!("rule a {{ strings: $many = \"ab\" {strings} condition: any of them }}"))
            .unwrap();
    let judge = Judge::new(&rules, Duration::from_secs(600));
    let bytes = Arc::new(b"ab".repeat(5000));
    let judged = judge.judge(&bytes, &ScopeName::default(), &[0], &AtomicBool::new(false)).unwrap();
    let matches_max = rules.matches_max();
    assert_eq!(judged.overfull, [Overfull { rule: 0, string: "$many".to_string(), matches_max }]);
    assert_eq!(judged.held[0].found.len() as u32, rules.matches_max());
}

#[test]
fn conditions_that_count_or_place_strings_have_all_their_matches() {
    let strings: String = (0..9000).map(|i| format!("$a{i} = \"x{i}y\"\n")).collect();
    let others = format!("rule many {{ strings: {strings} condition: any of them }}");
    let rules = compiled(&format!(
        r#"{others}
        private rule last {{ strings: $a = "ab" condition: $a at 9998 }}
        rule counted {{ strings: $a = "ab" condition: #a == 5000 }}
        rule refers {{ condition: last }}
        rule opposite {{ strings: $a = "ab" condition: $a and not last }}
        rule present {{ strings: $a = "ab" condition: $a }}
        "#
    ))
    .unwrap();
    let judge = Judge::new(&rules, Duration::from_secs(600));
    let bytes = Arc::new(b"ab".repeat(5000));
    let name = ScopeName::default();
    let judged = judge.judge(&bytes, &name, &[2, 3, 4, 5], &AtomicBool::new(false)).unwrap();
    let held: Vec<usize> = judged.held.iter().map(|held| held.rule).collect();
    assert_eq!(held, [2, 3, 5]);
    assert_eq!(judged.held[0].found.len(), 5000);
    assert_eq!(judged.overfull.iter().map(|string| string.rule).collect::<Vec<_>>(), [5]);
}

#[test]
fn ranges_that_begin_before_the_scope_are_searched_from_its_beginning() {
    let check = |condition: &str, holds: bool| {
        let text =
            format!("rule a {{ strings: $a = \"abc\" $b = \"xyz\" condition: {condition} }}");
        let rules = compiled(&text).unwrap_or_else(|error| panic!("{condition}: {error}"));
        let judge = Judge::new(&rules, Duration::from_secs(600));
        let bytes = Arc::new(b"-abc-".to_vec());
        let judged = judge.judge(&bytes, &ScopeName::default(), &[0], &AtomicBool::new(false));
        assert_eq!(judged.map(|judged| judged.held.len()), Ok(usize::from(holds)), "{condition}");
    };
    check("$a in (filesize-100..filesize) and not $b", true);
    check("$a in (-1..1) and any of them", true);
    check("any of them in (filesize - 20 .. filesize)", true);
    check("any of ($a, $b) in (0 - 1..filesize)", true);
    check("for any of them : ( $ in (@ - 4..@) )", true);
    check("$a in (filesize-4..filesize) and not $b", true);
    check("$a in (filesize-3..filesize) and not $b", false);
    check("$a in (-9..-1) and not $b", false);
    check("$b in (filesize-100..filesize) and $a", false);
    let error =
        compiled("rule a { strings: $a = \"abc\" condition:\n $a in (size - 1..2) }").unwrap_err();
    assert!(
        error.to_string().starts_with("r.yar: line 2, column 9: unknown identifier"),
        "{error}"
    );
}

#[test]
fn numbers_that_overflow_wrap() {
    for (condition, holds) in [
        ("-(-9223372036854775807 - 1) < 0", true),
        ("-(-9223372036854775807 - filesize) == -9223372036854775807 - 1", true),
        ("9223372036854775807 + filesize < 0", true),
        ("(-9223372036854775807 - 1) \\ (filesize - 2) == 1", false),
        ("1 \\ 0 == 1", false),
        ("(1 << 64) == 0", true),
    ] {
        let rules = compiled(&with(condition)).unwrap();
        let judge = Judge::new(&rules, Duration::from_secs(600));
        let judged =
            judge.judge(&Arc::new(vec![0]), &ScopeName::default(), &[0], &AtomicBool::new(false));
        assert_eq!(judged.map(|judged| judged.held.len()), Ok(usize::from(holds)), "{condition}");
    }
    let Err(error) = compiled(&with("-(-9223372036854775808) == 1")) else {
        panic!("no number of 64 bits with a sign");
    };
    assert!(error.to_string().contains("too large"), "{error}");
}
