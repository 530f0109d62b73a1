//! Expressions and their values, in a table for each part of the language.

use crate::asked::check;

#[test]
fn comparisons_are_by_value_for_all_types() {
    check(&[
        ("i = 7.00", "TRUE"),
        ("i <> 7e0", "FALSE"),
        ("d >= 12.5", "TRUE"),
        ("d < 12.500000000000000000000000000001", "TRUE"),
        ("f = 0.5", "TRUE"),
        ("9223372036854775807 < 9223372036854775807.5", "TRUE"),
        ("-9223372036854775808 = -9223372036854775808.0", "TRUE"),
        ("'a' < 'B'", "FALSE"),
        ("'é' > 'z'", "TRUE"),
        ("'a' = 'a '", "FALSE"),
        ("b = TRUE", "TRUE"),
        ("b > FALSE", "TRUE"),
        ("day = DATE '2020-01-01'", "TRUE"),
        ("at > day", "TRUE"),
        ("at = TIMESTAMP '2020-01-01 00:00:01.5'", "TRUE"),
        ("at = TIMESTAMP '2020-01-01T01:00:01.5+01:00'", "TRUE"),
        ("TIME '12:00' < TIME '12:00:00.000000001'", "TRUE"),
        ("INTERVAL '1' YEAR = INTERVAL '12' MONTH", "TRUE"),
        ("INTERVAL '25' HOUR > INTERVAL '1' DAY", "TRUE"),
        ("nothing = 1", "NULL"),
        ("nothing < 'a'", "NULL"),
    ]);
}

#[test]
fn columns_are_found_by_name_path_and_case() {
    check(&[
        ("I = 7", "TRUE"),
        ("\"i\" = 7", "TRUE"),
        ("order.leg[0].qty", "3"),
        ("ORDER.LEG[0].QTY", "3"),
        ("\"order.leg[0].qty\"", "3"),
        ("\"order\".leg[0].\"qty\" + 1", "4"),
        ("day", "2020-01-01"),
    ]);
}

#[test]
fn arithmetic_is_exact_where_its_operands_are() {
    check(&[
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 2", "-1"),
        ("MOD(7, -2)", "1"),
        ("7.0 / 2", "35000000e-7"),
        ("0.1 + 0.2", "3e-1"),
        ("0.1 + 0.2 = 0.3", "TRUE"),
        ("1e-1 + 2e-1 = 3e-1", "FALSE"),
        ("1.5 * 1.5", "225e-2"),
        ("i + d * 2", "3200e-2"),
        ("i + f", "7.5"),
        ("- i", "-7"),
        ("- - i", "7"),
        ("+ i", "7"),
        ("2 + 3 * 4 - 1", "13"),
        ("(2 + 3) * 4", "20"),
        ("10 - 4 - 3", "3"),
        ("9223372036854775807 + 1", "fault: a 64-bit integer out of range"),
        ("9223372036854775807 + 1.0", "92233720368547758080e-1"),
        ("-9223372036854775808 % -1", "0"),
        ("1e308 * 10e0", "fault: a floating-point number out of range"),
        ("i / 0", "fault: division by zero; try NULLIF(divisor, 0), which makes the quotient NULL"),
        ("i / NULLIF(0, 0)", "NULL"),
        ("NULL + 1", "NULL"),
        ("ABS(-2.50)", "250e-2"),
        ("CEILING(-2.5)", "-2e-0"),
        ("FLOOR(-2.5)", "-3e-0"),
        ("CEIL(2.1e0)", "3.0"),
    ]);
}

#[test]
fn truth_is_kleenes() {
    check(&[
        ("TRUE AND NULL", "NULL"),
        ("FALSE AND NULL", "FALSE"),
        ("TRUE OR NULL", "TRUE"),
        ("FALSE OR NULL", "NULL"),
        ("NOT NULL", "NULL"),
        ("NOT b", "FALSE"),
        ("NOT i = 7", "FALSE"),
        ("NOT i = 7 OR TRUE", "TRUE"),
        ("TRUE OR TRUE AND FALSE", "TRUE"),
        ("b", "TRUE"),
        ("b IS TRUE", "TRUE"),
        ("b IS NOT TRUE", "FALSE"),
        ("i = NULL IS UNKNOWN", "TRUE"),
        ("(i = NULL) IS NOT UNKNOWN", "FALSE"),
        ("(i = 8) IS FALSE", "TRUE"),
        ("(i = 8) IS NOT FALSE", "FALSE"),
        ("i IS NULL", "FALSE"),
        ("i IS NOT NULL AND nothing IS NULL", "TRUE"),
        ("i = 7 IS NULL", "FALSE"),
        ("'' IS NULL", "FALSE"),
        ("(1, NULL) IS NULL", "FALSE"),
        ("(1, NULL) IS NOT NULL", "FALSE"),
        ("NOT (1, NULL) IS NULL", "TRUE"),
    ]);
}

#[test]
fn between_and_in_equal_their_expansions() {
    check(&[
        ("i BETWEEN 7 AND 7", "TRUE"),
        ("i BETWEEN ASYMMETRIC 9 AND 5", "FALSE"),
        ("i BETWEEN SYMMETRIC 9 AND 5", "TRUE"),
        ("i NOT BETWEEN SYMMETRIC 9 AND 5", "FALSE"),
        ("i NOT BETWEEN 1 AND 2", "TRUE"),
        ("i BETWEEN NULL AND 9", "NULL"),
        ("i BETWEEN NULL AND 5", "FALSE"),
        ("i BETWEEN SYMMETRIC NULL AND 5", "NULL"),
        ("i BETWEEN 1 + 1 AND 2 * 4 AND b", "TRUE"),
        ("i BETWEEN SYMMETRIC 2 * 4 AND 1 + 1 AND b", "TRUE"),
        ("(1, 2) BETWEEN (1, 1) AND (1, 3)", "TRUE"),
        ("(1, 2) BETWEEN SYMMETRIC (1, 3) AND (1, 1)", "TRUE"),
        ("day BETWEEN DATE '2019-12-31' AND DATE '2020-01-02'", "TRUE"),
        ("i IN (7)", "TRUE"),
        ("i IN (6, 7.0, NULL)", "TRUE"),
        ("i NOT IN (6, NULL)", "NULL"),
        ("NULL IN (1)", "NULL"),
        ("t IN ('x', 'näh Abc')", "TRUE"),
        ("(i, t) IN ((7, 'x'), (7, 'näh Abc'))", "TRUE"),
        ("i + 1 IN (i, 8)", "TRUE"),
    ]);
}

#[test]
fn rows_are_compared_from_the_left() {
    check(&[
        ("(1, 2, 3) < (1, 2, 4)", "TRUE"),
        ("(1, 2, 3) <= (1, 2, 3)", "TRUE"),
        ("(1, 2, 3) < (1, 2, 3)", "FALSE"),
        ("(2, NULL) > (1, 5)", "TRUE"),
        ("(1, NULL) > (1, 5)", "NULL"),
        ("(1, NULL) <> (2, 5)", "TRUE"),
        ("(1, NULL) <> (1, 5)", "NULL"),
        ("(1, NULL) = (2, 5)", "FALSE"),
        ("(NULL, 1) < (1, 0)", "NULL"),
        ("((1, 2)) = (1, 2)", "TRUE"),
        ("(i, d) = (7, 12.5)", "TRUE"),
        ("CASE (1, 2) WHEN (1, 3) THEN 'a' WHEN (1, 2) THEN 'b' END", "'b'"),
    ]);
}

#[test]
fn case_and_its_short_forms_choose() {
    check(&[
        ("CASE WHEN i > 5 THEN 'big' ELSE 'small' END", "'big'"),
        ("CASE WHEN i > 9 THEN 'big' END", "NULL"),
        ("CASE i WHEN 6 THEN 'a' WHEN 7 THEN 'b' END", "'b'"),
        ("CASE nothing WHEN NULL THEN 1 ELSE 2 END", "2"),
        ("CASE WHEN TRUE THEN 1 ELSE 2.5 END", "10e-1"),
        ("CASE WHEN b THEN i ELSE f END", "7.0"),
        ("CASE WHEN b THEN 1 ELSE 1 / 0 END", "1"),
        ("CASE WHEN i = 7 THEN NULL ELSE 1 END + 1", "NULL"),
        ("COALESCE(nothing, NULL, i)", "7"),
        ("COALESCE(i, 1 / 0)", "7"),
        ("COALESCE(nothing, i, 0.5)", "70e-1"),
        ("NULLIF(i, 7)", "NULL"),
        ("NULLIF(i, 8)", "7"),
        ("NULLIF(i, NULL)", "7"),
        ("NULLIF('a', 'a ')", "'a'"),
        ("NULLIF(CAST('a' AS CHAR(3)), 'a')", "NULL"),
    ]);
}

#[test]
fn text_is_counted_in_characters() {
    check(&[
        ("t || '!'", "'näh Abc!'"),
        ("'a' 'b'", "refused: line 1, column 5: expected the end, found 'b'"),
        ("'it''s'", "'it's'"),
        ("U&'\\00e9'", "'é'"),
        ("N'x'", "'x'"),
        ("UPPER(t)", "'NÄH ABC'"),
        ("LOWER(t)", "'näh abc'"),
        ("CHARACTER_LENGTH(t)", "7"),
        ("OCTET_LENGTH(t)", "8"),
        ("BIT_LENGTH('é')", "16"),
        ("POSITION('h' IN t)", "3"),
        ("POSITION('' IN t)", "1"),
        ("POSITION('x' IN t)", "0"),
        ("SUBSTRING(t FROM 2 FOR 2)", "'äh'"),
        ("SUBSTRING(t FROM 5)", "'Abc'"),
        ("SUBSTRING(t FROM 0 FOR 2)", "'n'"),
        ("SUBSTRING(t FROM -5 FOR 5)", "''"),
        ("SUBSTRING(t FROM 9)", "''"),
        ("SUBSTRING(t, 1, 1)", "'n'"),
        (
            "SUBSTRING(t FROM 2 FOR -1)",
            "fault: a substring of negative length; check the number after FOR",
        ),
        ("TRIM('  a ')", "'a'"),
        ("TRIM(LEADING FROM '  a ')", "'a '"),
        ("TRIM(TRAILING 'ä' FROM 'aää')", "'a'"),
        ("TRIM(BOTH 'x' FROM 'xxx')", "''"),
        ("TRIM('ab' FROM t)", "fault: TRIM removes a single character, not several or none"),
        ("OVERLAY(t PLACING 'o' FROM 2 FOR 1)", "'noh Abc'"),
        ("OVERLAY(t PLACING 'XY' FROM 1)", "'XYh Abc'"),
        ("OVERLAY('abc' PLACING 'X' FROM 3 FOR 0)", "'abXc'"),
    ]);
}

#[test]
fn char_n_is_filled_up_with_blanks() {
    check(&[
        ("CAST('a' AS CHAR(3))", "'a  '"),
        ("CAST('abcd' AS CHAR(3))", "'abc'"),
        ("CAST('abcd' AS VARCHAR(3))", "'abc'"),
        ("CAST('a' AS CHAR(3)) = 'a'", "TRUE"),
        ("CAST('a' AS CHAR(3)) = CAST('a' AS CHAR(5))", "TRUE"),
        ("'a' = CAST('a' AS CHAR(3))", "TRUE"),
        ("CAST('a' AS CHAR(3)) < 'a!'", "TRUE"),
        ("'a\t' < CAST('a' AS CHAR(2))", "TRUE"),
        ("CAST('a' AS CHAR(3)) IN ('b', 'a')", "TRUE"),
        ("CAST('a' AS CHAR(3)) LIKE 'a'", "FALSE"),
        ("CHAR_LENGTH(CAST('a' AS CHAR(3)))", "3"),
    ]);
}

#[test]
fn casts_convert_or_report_a_clear_fault() {
    check(&[
        ("CAST('42' AS INTEGER)", "42"),
        ("CAST(' -42 ' AS INTEGER)", "-42"),
        ("CAST(2.5 AS INTEGER)", "3"),
        ("CAST(-2.5 AS INTEGER)", "-3"),
        ("CAST(2.5e0 AS INTEGER)", "2"),
        ("CAST('x' AS INTEGER)", "fault: 'x' is not an integer"),
        ("CAST('nan' AS DOUBLE PRECISION)", "NaN"),
        ("CAST(' -Infinity ' AS DOUBLE PRECISION)", "-inf"),
        ("CAST('infinite' AS DOUBLE PRECISION)", "fault: 'infinite' is not a number"),
        ("CAST('nan' AS NUMERIC(5, 2))", "fault: 'nan' is not a number"),
        ("CAST('inf' AS INTEGER)", "fault: 'inf' is not an integer"),
        ("CAST(70000 AS SMALLINT)", "fault: a SMALLINT out of range"),
        ("CAST('12.345' AS NUMERIC(5, 2))", "1235e-2"),
        ("CAST(1000 AS NUMERIC(3))", "fault: a NUMERIC of that many digits out of range"),
        ("CAST(1.5e0 AS NUMERIC(4, 2))", "150e-2"),
        ("CAST(1 AS DOUBLE PRECISION)", "1.0"),
        ("CAST(d AS VARCHAR)", "'12.50'"),
        ("CAST(f AS VARCHAR)", "'0.5'"),
        ("CAST(TRUE AS VARCHAR)", "'TRUE'"),
        ("CAST('false' AS BOOLEAN)", "FALSE"),
        ("CAST(at AS DATE)", "2020-01-01"),
        ("CAST(at AS TIME)", "00:00:01.5"),
        ("CAST(day AS TIMESTAMP)", "2020-01-01 00:00:00"),
        ("CAST(day AS VARCHAR)", "'2020-01-01'"),
        (
            "CAST('2020-02-30' AS DATE)",
            "fault: '2020-02-30' is not a date; write dates as 2024-12-31",
        ),
        ("CAST('1-2' AS INTERVAL YEAR TO MONTH)", "1-2"),
        ("CAST('1 02:03:04' AS INTERVAL DAY TO SECOND)", "1 02:03:04"),
        ("CAST(NULL AS INTEGER) IS NULL", "TRUE"),
        ("CAST('7' AS INTEGER) = i", "TRUE"),
        ("i::VARCHAR", "'7'"),
    ]);
}

#[test]
fn dates_times_and_spans_are_calculated() {
    check(&[
        ("day + INTERVAL '1' DAY", "2020-01-02"),
        ("INTERVAL '1' DAY + day", "2020-01-02"),
        ("day - INTERVAL '1' MONTH", "2019-12-01"),
        ("DATE '2020-01-31' + INTERVAL '1' MONTH", "2020-02-29"),
        ("DATE '2020-01-31' + INTERVAL '1-1' YEAR TO MONTH", "2021-02-28"),
        ("at + INTERVAL '-1.5' SECOND", "2020-01-01 00:00:00"),
        ("at - INTERVAL '1 00:00:01.5' DAY TO SECOND", "2019-12-31 00:00:00"),
        ("at - day", "0 00:00:01.5"),
        ("DATE '2020-03-01' - DATE '2020-02-01'", "29 00:00:00"),
        ("DATE '2020-03-01' - day > INTERVAL '30' DAY", "TRUE"),
        ("TIME '23:30' + INTERVAL '1' HOUR", "00:30:00"),
        ("INTERVAL '1' DAY * 3", "3 00:00:00"),
        ("2 * INTERVAL '1-1' YEAR TO MONTH", "2-2"),
        ("INTERVAL '1' DAY / 2", "0 12:00:00"),
        ("INTERVAL '90' MINUTE + INTERVAL '30' SECOND", "0 01:30:30"),
        ("INTERVAL -'5' HOUR", "-0 05:00:00"),
        ("- INTERVAL '1' DAY", "-1 00:00:00"),
        (
            "day + INTERVAL '1' HOUR",
            "fault: hours, minutes and seconds cannot be added to a DATE; CAST it AS TIMESTAMP \
             before",
        ),
        ("CAST(day AS TIMESTAMP) + INTERVAL '1' HOUR", "2020-01-01 01:00:00"),
        ("DATE '9999-12-31' + INTERVAL '1' DAY", "fault: a date out of range"),
        ("EXTRACT(YEAR FROM day)", "2020"),
        ("EXTRACT(MONTH FROM at)", "1"),
        ("EXTRACT(SECOND FROM at)", "1500000000e-9"),
        ("EXTRACT(SECOND FROM at) = 1.5", "TRUE"),
        ("EXTRACT(HOUR FROM TIME '23:59')", "23"),
        ("EXTRACT(MINUTE FROM INTERVAL '1:30' HOUR TO MINUTE)", "30"),
        ("EXTRACT(MONTH FROM INTERVAL '-1-2' YEAR TO MONTH)", "-2"),
        ("EXTRACT(DAY FROM DATE '2020-03-01' - day)", "60"),
        ("CURRENT_DATE > day AND CURRENT_TIMESTAMP > at", "TRUE"),
        ("CURRENT_TIMESTAMP = CURRENT_TIMESTAMP", "TRUE"),
        ("CURRENT_TIME IS NOT NULL", "TRUE"),
    ]);
}

#[test]
fn a_string_literal_beside_a_date_is_a_date() {
    // The row has day 2020-01-01, and timestamp 2020-01-01 00:00:01.5.
    check(&[
        ("day = '2020-01-01'", "TRUE"),
        ("'2019-12-31' < day", "TRUE"),
        ("day < '2020-01-01 12:00'", "TRUE"),
        ("at > '2020-01-01'", "TRUE"),
        ("at = '2020-01-01T00:00:01.5Z'", "TRUE"),
        ("day IN ('2020-01-01', '2024-12-31')", "TRUE"),
        ("'2020-01-01' IN (day)", "TRUE"),
        ("day NOT BETWEEN '2020-01-02' AND day + INTERVAL '1' MONTH", "TRUE"),
        ("(day, i) = ('2020-01-01', 7)", "TRUE"),
        ("TIME '10:00' < '10:01'", "TRUE"),
        ("CASE day WHEN '2020-01-01' THEN 1 ELSE 2 END", "1"),
        ("CASE WHEN b THEN '2020-01-05' ELSE day END", "2020-01-05"),
        ("COALESCE(NULLIF(day, '2020-01-01'), '2021-01-01')", "2021-01-01"),
        ("(day, '2020-01-09') OVERLAPS ('2020-01-02', INTERVAL '1' DAY + day)", "TRUE"),
    ]);
}

#[test]
fn periods_overlap_as_the_standard_has_it() {
    let pair = |a: &str, b: &str| format!("(DATE '2020-01-{a}', DATE '2020-01-{b}')");
    let asked = |left: &str, right: &str| crate::asked::asked(&format!("{left} OVERLAPS {right}"));
    for (left, right, expected) in [
        (pair("01", "10"), pair("05", "15"), "TRUE"),
        (pair("10", "01"), pair("15", "05"), "TRUE"),
        (pair("01", "05"), pair("05", "10"), "FALSE"),
        (pair("05", "10"), pair("01", "05"), "FALSE"),
        (pair("01", "31"), pair("05", "06"), "TRUE"),
        (pair("05", "05"), pair("05", "05"), "TRUE"),
        (pair("05", "05"), pair("05", "09"), "TRUE"),
        (pair("05", "05"), pair("01", "05"), "FALSE"),
    ] {
        assert_eq!(asked(&left, &right), expected, "{left} {right}");
    }
    check(&[
        (
            "(DATE '2020-01-01', INTERVAL '9' DAY) OVERLAPS (DATE '2020-01-09', INTERVAL '1' DAY)",
            "TRUE",
        ),
        ("(day, NULL) OVERLAPS (day, NULL)", "NULL"),
        ("(day, NULL) OVERLAPS (DATE '2019-01-01', DATE '2020-02-01')", "TRUE"),
        ("(NULL, day) OVERLAPS (DATE '2019-01-01', DATE '2020-02-01')", "TRUE"),
        ("(DATE '2019-01-01', NULL) OVERLAPS (day, DATE '2020-02-01')", "NULL"),
        ("(TIME '10:00', TIME '11:00') OVERLAPS (TIME '10:30', TIME '12:00') AND b", "TRUE"),
    ]);
}
