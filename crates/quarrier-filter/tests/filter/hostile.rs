//! Hostile input: an answer or a clear error, within limits, on a small stack.

use quarrier_filter::expr::Matcher;
use quarrier_filter::matching::Matching;
use quarrier_filter::{naive, sql};

use crate::asked::{row, schema};

/// Binds and evaluates on a thread with a stack of 256 KiB.
fn small(text: String) -> Result<Option<bool>, String> {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
        let condition = sql::condition(&text, &schema()).map_err(|error| error.to_string())?;
        let copy = condition.clone();
        assert_eq!(copy, condition);
        naive::truth(&condition, &row()[..]).map_err(|fault| fault.to_string())
    });
    thread.unwrap().join().unwrap()
}

fn check_refused(text: String, words: &str) {
    let shown: String = text.chars().take(40).collect();
    let said = small(text).unwrap_err();
    assert!(said.contains(words), "{shown}…: {said}");
    assert!(said.len() < 500, "{shown}…: {said}");
}

#[test]
fn too_deep_nesting_is_refused() {
    for n in [1_000, 10_000] {
        for (open, middle, close) in [
            ("(", "b", ")"),
            ("NOT ", "b", ""),
            ("NOT (", "b", ")"),
            ("- ", "i", " = 1"),
            ("(((NOT ", "b", ")))"),
            ("CASE WHEN ", "b", " THEN b END"),
            ("UPPER(", "t", ")"),
            ("COALESCE(i, ", "1", ")"),
            ("CAST(", "i", " AS INTEGER)"),
            ("POSITION(", "t", " IN t)"),
            ("TRIM(", "t", ")"),
            ("1 IN (", "1", ")"),
            ("i BETWEEN (", "1", ") AND 2"),
            ("i + (", "1", ")"),
            ("EXTRACT(YEAR FROM ", "day", ")"),
        ] {
            let text = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
            check_refused(text, "nested deeper than 200; put the conditions side by side");
        }
    }
}

#[test]
fn too_deep_unclosed_nesting_is_refused() {
    for open in [
        "(",
        "NOT (",
        "CASE ",
        "CASE WHEN ",
        "INTERVAL ",
        "CAST(",
        "TRIM(",
        "POSITION(",
        "f(",
        "[",
        "SUBSTRING(",
        "EXTRACT(",
        "DATE ",
        "CAST(i AS ARRAY<",
        "i IN (",
        "NOT ",
        "((((i) ",
        "i.",
        "i[",
        "i BETWEEN SYMMETRIC ",
    ] {
        for n in [30, 200, 20_000] {
            assert!(small(open.repeat(n)).is_err(), "{open}");
        }
    }
}

#[test]
fn chains_may_be_of_any_length() {
    for op in ["AND", "OR"] {
        let text = format!("b{}", format!(" {op} b").repeat(20_000));
        assert_eq!(small(text), Ok(Some(true)));
        let text = format!("i = 7{}", format!(" {op} i = 7 AND b OR i = 7").repeat(9_000));
        assert_eq!(small(text), Ok(Some(true)));
    }
    let list: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    assert_eq!(small(format!("i IN ({})", list.join(", "))), Ok(Some(true)));
}

#[test]
fn chains_that_nest_once_bound_are_refused() {
    let deep = "nested deeper than 200";
    check_refused(format!("i{} = 1", " + i".repeat(20_000)), deep);
    check_refused(format!("t{} = 'a'", " || t".repeat(20_000)), deep);
    check_refused(format!("b{}", " IS NULL".repeat(20_000)), deep);
    check_refused(format!("i{} = 1", "::INTEGER".repeat(20_000)), deep);
    check_refused(format!("i{}", " BETWEEN 1 AND 2".repeat(10_000)), "");
    check_refused(format!("b{}", " = b".repeat(20_000)), deep);
}

#[test]
fn chains_that_end_wrong_are_taken_down_without_harm() {
    for part in [" AND b", " + i", " IS NULL", " = 1", "::INTEGER", " || t", " NOT LIKE 'a'"] {
        for end in [" )", " AND", " 'x", " = x"] {
            assert!(small(format!("i{}{end}", part.repeat(10_000))).is_err(), "{part}{end}");
        }
    }
}

#[test]
fn input_beyond_the_limits_is_refused() {
    check_refused("b AND ".repeat(140_000), "more than 262144 tokens");
    check_refused(" ".repeat(5 << 20), "the text is longer than 4194304 bytes");
    check_refused("(".repeat(4 << 20), "nested deeper than 200");
    assert_eq!(small(format!("t <> '{}'", "x".repeat(4_000_000))), Ok(Some(true)));
    let said = small(format!("{} = 1", "x".repeat(1_000_000))).unwrap_err();
    assert!(said.len() < 500, "{said}");
    let said = small(format!("i = 1 '{}'", "x\n".repeat(500_000))).unwrap_err();
    assert!(said.len() < 700 && !said.contains('\n'), "{said}");
    let said = small(format!("t ~ '({}'", "x".repeat(1_000_000))).unwrap_err();
    assert!(said.len() < 500, "{said}");
}

#[test]
fn operands_that_are_repeated_do_not_multiply_without_end() {
    // Each BETWEEN repeats its operand, BETWEEN SYMMETRIC four times.
    let mut text = "i".to_string();
    for _ in 0..60 {
        text = format!("CASE WHEN {text} BETWEEN SYMMETRIC 1 AND i THEN 1 END");
    }
    check_refused(format!("{text} = 1"), "too large once BETWEEN and rows are expanded");
    let mut text = "i".to_string();
    for _ in 0..60 {
        text = format!("CASE {text} WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END");
    }
    check_refused(format!("{text} = 1"), "too large once BETWEEN and rows are expanded");
}

#[test]
fn a_pattern_of_many_wildcards_takes_time_in_proportion() {
    for unit in ["%", "%a", "_", "%_", "%a_", "a%"] {
        let pattern = unit.repeat(10_000);
        let matching = Matching::new(&pattern, None, Matcher::Like).unwrap();
        let text = "a".repeat(100_000);
        let expected = !unit.ends_with('_') || unit.starts_with('%');
        assert_eq!(matching.is_match(&text), expected, "{unit}");
        assert_eq!(matching.is_match("b"), unit == "%", "{unit}");
    }
    let text = format!("t LIKE '{}'", "%".repeat(10_000));
    assert_eq!(small(text), Ok(Some(true)));
    let text = format!("t LIKE '{}x'", "%_".repeat(10_000));
    assert_eq!(small(text), Ok(Some(false)));
}

#[test]
fn a_regular_expression_that_would_be_large_is_refused() {
    check_refused("t ~ '((a{100}){100}){100}'".into(), "too large once compiled");
    check_refused("t SIMILAR TO '((_{100}){100}){100}'".into(), "too large once compiled");
    check_refused(format!("t ~ '{}'", "(".repeat(100_000)), "regular expression");
    check_refused(format!("t SIMILAR TO '{}'", "(".repeat(100_000)), "SIMILAR TO");
    let matching = Matching::new("(a*)*b", None, Matcher::Regex).unwrap();
    assert!(!matching.is_match(&"a".repeat(1_000_000)));
}
