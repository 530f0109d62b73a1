//! Expressions without a value: the result does not depend on the order of evaluation.

use crate::asked::check;

#[test]
fn a_fault_does_not_override_a_decided_outcome() {
    check(&[
        ("i = 8 AND 1 / (i - 7) = 1", "FALSE"),
        ("1 / (i - 7) = 1 AND i = 8", "FALSE"),
        ("i = 7 OR 1 / (i - 7) = 1", "TRUE"),
        ("1 / (i - 7) = 1 OR i = 7", "TRUE"),
        ("i IN (1 / (i - 7), 7)", "TRUE"),
        ("NOT (1 / (i - 7) = 1 AND i = 8)", "TRUE"),
        ("(i = 8 AND 1 / 0 = 1) IS FALSE", "TRUE"),
        ("i BETWEEN 8 AND 1 / 0", "FALSE"),
        ("CASE WHEN i = 7 THEN TRUE ELSE 1 / 0 = 1 END", "TRUE"),
        // It is never NULL, so that it need not be evaluated.
        ("(1 / 0 IS NOT NULL) IS UNKNOWN", "FALSE"),
        ("(1 / (i - 7) IS NULL AND NOT 1 / (i - 7) IS NULL) IS NOT UNKNOWN", "TRUE"),
        ("(1 / (i - 7) IS NULL) IS NULL", "FALSE"),
    ]);
}

#[test]
fn a_fault_that_decides_is_reported() {
    let fault = "fault: division by zero; try NULLIF(divisor, 0), which makes the quotient NULL";
    check(&[
        ("i = 7 AND 1 / 0 = 1", fault),
        ("1 / 0 = 1 AND i = 7", fault),
        ("i = 8 OR 1 / 0 = 1", fault),
        ("nothing = 1 AND 1 / 0 = 1", fault),
        ("1 / 0 = 1 OR nothing = 1", fault),
        ("NOT 1 / 0 = 1", fault),
        ("1 / 0 IS NULL", fault),
        ("(1 / 0 = 1) IS UNKNOWN", fault),
        ("nothing = 1 / 0", fault),
        ("i IN (8, 1 / 0)", fault),
        ("COALESCE(1 / 0, i)", fault),
        ("CASE WHEN 1 / 0 = 1 THEN 1 ELSE 2 END", fault),
    ]);
}

#[test]
fn a_like_pattern_is_found_wrong_by_its_row() {
    let fault = "fault: LIKE pattern 'foo': the escape character 'f' precedes something other than \
                 %, _ or itself; write it twice for a literal one";
    check(&[("t LIKE 'foo' ESCAPE 'f'", fault), ("i = 7 OR t LIKE 'foo' ESCAPE 'f'", "TRUE")]);
}
