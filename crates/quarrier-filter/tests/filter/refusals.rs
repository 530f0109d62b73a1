//! Invalid input: the position, the reason, and what to try.

use crate::asked::{asked, check_refused};

#[test]
fn kinds_that_do_not_compare_are_refused_before_any_row_is_seen() {
    check_refused(&[
        ("'10' < 9", "text cannot be compared with an integer; CAST one of them"),
        ("i = 'a'", "line 1, column 1: an integer cannot be compared with text"),
        ("t IN ('a', 1)", "text cannot be compared with an integer"),
        ("at > t", "CAST the text AS DATE or AS TIMESTAMP"),
        ("at > 'soon'", "column 6: 'soon' is not written as TIMESTAMP '2024-12-31 23:59:59.5'"),
        ("day IN ('2020-01-01', 'soon')", "'soon' is not written as DATE '2024-12-31'"),
        ("CASE WHEN b THEN day ELSE 'soon' END", "'soon' is not written as DATE '2024-12-31'"),
        ("i BETWEEN 1 AND 'b'", "cannot be compared"),
        ("(i, t) = (1, 2)", "text cannot be compared with an integer"),
        ("(1, 2) = (1, 2, 3)", "a row of 2 is compared with a row of 3"),
        ("(1, 2) = 1", "a row of 2 is compared with a row of 1"),
        ("b = 1", "check the parentheses"),
        ("1 < 2 < 3", "a boolean cannot be compared with an integer"),
        ("TIME '10:00' = day", "cannot be compared"),
        ("INTERVAL '1' MONTH = INTERVAL '30' DAY", "cannot be compared"),
        ("CASE WHEN b THEN 1 ELSE 'a' END", "CASE of an integer and text; CAST one of them"),
        ("COALESCE(i, t)", "COALESCE of an integer and text"),
        ("(1, 2)", "a row of values can only be compared with a row"),
    ]);
}

#[test]
fn operators_refuse_wrong_operand_types() {
    check_refused(&[
        ("i AND b", "line 1, column 1: an integer is not a condition; compare it"),
        ("b OR t", "column 6: text is not a condition"),
        ("NOT i", "is not a condition"),
        ("i IS TRUE", "is not a condition"),
        ("t + 1", "text + an integer is not defined; CAST the text to a number"),
        ("day + 1", "days are added as INTERVAL '1' DAY"),
        ("t || i", "CAST numbers and dates AS VARCHAR first"),
        ("- t", "text cannot be negated"),
        ("i LIKE 'a'", "a pattern is compared with text, not with an integer"),
        ("t LIKE 'a' ESCAPE 'ab'", "ESCAPE names one character, not 'ab'"),
        ("t SIMILAR TO '(a'", "SIMILAR TO pattern '(a': a ( without its )"),
        ("t LIKE_REGEX '(a'", "regular expression '(a': unclosed group"),
        ("UPPER(i)", "an integer where text is expected; CAST it"),
        ("UPPER(t, t)", "2 arguments where 1 are expected"),
        ("SUBSTRING(t FROM 1.5)", "an exact number where an integer is expected"),
        ("EXTRACT(HOUR FROM day)", "a DATE has no HOUR"),
        ("EXTRACT(CENTURY FROM day)", "CENTURY is not one of YEAR, MONTH"),
        ("CAST(day AS INTEGER)", "a DATE cannot be CAST AS INTEGER"),
        ("CAST(i AS BLOB)", "there is no type BLOB to CAST into; there are BOOLEAN"),
        ("CAST(i AS NUMERIC(40))", "1 to 38 digits"),
        ("CAST(t AS CHAR(1000000))", "CHAR(n) has 1 to 65536 characters"),
        ("DATE '2020-02-30'", "'2020-02-30' is not written as DATE '2024-12-31'"),
        ("INTERVAL '1-13' YEAR TO MONTH", "is not written as INTERVAL '1-2' YEAR TO MONTH"),
        ("INTERVAL '1' MONTH TO DAY", "an INTERVAL runs from YEAR to MONTH, or"),
        ("INTERVAL '1'", "expected date/time field"),
        ("(day, day) OVERLAPS (i, i)", "OVERLAPS needs dates or times, not an integer"),
        ("day OVERLAPS day", "OVERLAPS needs a pair (start, end)"),
    ]);
}

#[test]
fn clauses_beside_arguments_are_refused() {
    check_refused(&[
        ("UPPER(DISTINCT t)", "expected ), found t"),
        ("UPPER(t) FILTER (WHERE b)", "found FILTER"),
        ("UPPER(t) OVER ()", "found OVER"),
        ("ABS(i ORDER BY i)", "found ORDER"),
        ("ABS(i) WITHIN GROUP (ORDER BY i)", "found WITHIN"),
        ("TRY_CAST(t AS INTEGER)", "found AS"),
        ("t COLLATE nocase = 'a'", "without COLLATE"),
    ]);
}

#[test]
fn names_that_are_not_there_are_shown_with_those_that_are() {
    check_refused(&[
        ("price > 5", "line 1, column 1: there is no column 'price'; there are: i, d, f, b, t,"),
        ("i = 1\n  AND x.y = 2", "line 2, column 7: there is no column 'x.y'"),
        ("FOO(i)", "there is no function FOO; there are COALESCE"),
        ("\"I\" = 1 AND \"current_date\" = i", "there is no column 'current_date'"),
        ("CURRENT_USER = t", "there are no users"),
    ]);
}

#[test]
fn syntax_of_other_languages_gets_a_hint() {
    check_refused(&[
        ("SELECT * FROM m WHERE i = 1", "line 1, column 1: a statement, where a condition as"),
        ("WHERE i = 1", "line 1, column 1: a condition begins without WHERE"),
        ("t = \"AAA\"", "line 1, column 5: there is no column 'AAA'; there are: "),
        ("t = \"AAA\"", "; strings are in single quotes"),
    ]);
    assert!(!asked("t = aaa").contains("quotes"));
}

#[test]
fn invalid_expressions_are_refused_at_the_error() {
    check_refused(&[
        ("", "expected an expression, found the end"),
        ("i =", "line 1, column 4: expected an expression, found the end"),
        ("i = = 7", "line 1, column 5: expected an expression, found ="),
        ("i = 7)", "line 1, column 6: expected the end, found )"),
        ("(i = 7", "expected ), found the end"),
        ("i = 'abc", "Unterminated string literal"),
        ("i BETWEEN 1", "expected AND, found the end"),
        ("i = AND b", "line 1, column 5: expected an expression, found AND"),
        ("i = 7; i = 8", "expected the end, found i"),
        ("b b", "expected the end, found b"),
        ("t LIKE ANY ('a')", "not supported in conditions"),
        ("t ILIKE 'a'", "write UPPER(x) LIKE UPPER"),
        ("i & 1 = 1", "not supported in conditions; `quarrier query`"),
        ("SUM(i) > 5", "SUM of rows is not supported"),
        ("i BETWEEN SYMMETRIC 1", "expected AND"),
        ("SYMMETRIC 5 = i", "SYMMETRIC goes after BETWEEN"),
        ("at AT TIME ZONE 'UTC' = at", "timestamps are in UTC"),
        ("i = 99999999999999999999999999999999999999999", "has too many digits"),
        ("f = 1e999", "the number 1e999 is too large"),
        ("i IS DISTINCT FROM 1", "IS DISTINCT FROM is not SQL-92's"),
        ("x'00' = t", "expected an expression, found X'00'"),
        ("?", "expected an expression"),
    ]);
}

#[test]
fn comments_are_skipped() {
    assert_eq!(asked("i -- the number\n = /* is /* it */ */ 7"), "TRUE");
}
