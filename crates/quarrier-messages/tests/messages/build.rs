//! Rows become columns of the narrowest type that holds them.

use quarrier_messages::build::{Cell, FieldId, Row, RowBuilder};
use quarrier_messages::column::raw::{RawColumn, RawData, SEGMENT_ROWS};

/// Returns a column of the cells, one per row, and the strings of its dictionary.
fn column(cells: &[Cell<'_>]) -> (RawColumn, Vec<String>) {
    let mut builder = RowBuilder::new(10).finding_times();
    let field = builder.field("a").unwrap();
    for &cell in cells {
        builder.put(field, cell);
        builder.commit();
    }
    let mut found = None;
    builder.finish_segment(|_, raw| found = Some(raw.clone()));
    (found.unwrap(), strings(&builder, field))
}

fn strings(builder: &RowBuilder, field: FieldId) -> Vec<String> {
    let (ends, bytes) = builder.dictionary(field);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let text = |(start, end): (u32, &u32)| bytes[start as usize..*end as usize].to_vec();
    starts.zip(ends).map(|pair| String::from_utf8(text(pair)).unwrap()).collect()
}

fn check(cells: &[Cell<'_>], expected: RawData) {
    let (raw, _) = column(cells);
    assert_eq!(raw.data, expected, "{cells:?}");
    for (row, cell) in cells.iter().enumerate() {
        let is_valid = raw.valid.is_empty() || raw.valid[row / 64] >> (row % 64) & 1 == 1;
        assert_eq!(is_valid, *cell != Cell::Null, "{cells:?}");
    }
}

const TENTH: Cell<'_> = Cell::Decimal { mantissa: 1, scale: 1 };

#[test]
fn a_column_has_the_narrowest_type_for_its_values() {
    use Cell::{Boolean, Date, Float, Integer, Null, Text, Timestamp};
    check(&[Null, Null], RawData::Null(2));
    check(&[Null, Boolean(true)], RawData::Boolean { bits: vec![2], rows: 2 });
    check(&[Integer(1), Null, Integer(-3)], RawData::Integer(vec![1, 0, -3]));
    check(&[Integer(1), TENTH], RawData::Decimal { scale: 1, mantissas: vec![10, 1] });
    let long = Cell::Decimal { mantissa: 123, scale: 3 };
    check(&[long, TENTH, Null], RawData::Decimal { scale: 3, mantissas: vec![123, 100, 0] });
    check(&[TENTH, Float(1e300)], RawData::Float(vec![0.1, 1e300]));
    check(&[Date(1), Timestamp(5)], RawData::Timestamp(vec![86_400_000_000_000, 5]));
    check(&[Integer(7), Text("x"), Null], RawData::Codes(vec![0, 1, 0]));
}

#[test]
fn exact_numbers_stay_exact_up_to_38_digits() {
    let wide = |scale, mantissas| RawData::Wide { scale, mantissas };
    let (fine, finest) = (Cell::Decimal { mantissa: 1, scale: 18 }, Cell::exact(1, 38));
    let power = |exponent| 10_i128.pow(exponent);
    check(&[Cell::Integer(100), fine], wide(18, vec![power(20), 1]));
    check(&[fine, Cell::Integer(100)], wide(18, vec![1, power(20)]));
    check(&[Cell::exact(1 << 64, 0), Cell::Integer(1), Cell::Null], wide(0, vec![1 << 64, 1, 0]));
    check(&[Cell::Integer(i64::MAX), TENTH], wide(1, vec![i128::from(i64::MAX) * 10, 1]));
    check(&[finest, Cell::Null, Cell::Integer(0)], wide(38, vec![1, 0, 0]));
    // One digit too many.
    check(&[finest, Cell::Integer(1)], RawData::Float(vec![1e-38, 1.0]));
    check(&[Cell::exact(power(37), 0), fine], RawData::Float(vec![1e37, 1e-18]));
    check(&[Cell::Date(i32::MAX), Cell::Timestamp(0)], RawData::Codes(vec![0, 1]));
}

#[test]
fn digits_lost_in_floats_are_counted() {
    let rounded = |cells: &[Cell<'_>]| {
        let mut builder = RowBuilder::new(1);
        for &cell in cells {
            for (cell, is_accepted) in [(Cell::exact((1 << 64) - 1, 0), false), (cell, true)] {
                let field = builder.field("a").unwrap();
                builder.put(field, cell);
                if is_accepted {
                    builder.commit();
                } else {
                    builder.rollback();
                }
            }
        }
        builder.finish_segment(|_, raw| assert!(matches!(raw.data, RawData::Float(_))));
        let field = builder.field("a").unwrap();
        builder.rounded(field)
    };
    let (large, float) = (Cell::Integer(i64::MAX), Cell::Float(1.5));
    assert_eq!(
        rounded(&[float, Cell::Integer(1 << 62), TENTH, Cell::Decimal { mantissa: 1, scale: 18 }]),
        0
    );
    assert_eq!(rounded(&[large, float, Cell::Null, large, TENTH]), 2);
    assert_eq!(rounded(&[float, Cell::exact(i128::from(i64::MAX) * 100 + 1, 2)]), 1);
    assert_eq!(rounded(&[Cell::Rounded(1e39), large]), 2);
}

#[test]
fn a_number_among_strings_is_written_in_its_shortest_form() {
    let decimal = |mantissa, scale| Cell::Decimal { mantissa, scale };
    let (_, strings) = column(&[
        Cell::Text(""),
        decimal(-150, 2),
        decimal(-5, 3),
        Cell::Integer(i64::MIN),
        decimal(i64::MIN, 18),
        Cell::exact(-(1 << 64), 20),
        Cell::Float(0.1),
        Cell::Boolean(true),
        Cell::Date(-1),
        Cell::Timestamp(-1),
        Cell::Timestamp(1_500_000_000),
    ]);
    let expected = [
        "",
        "-1.5",
        "-0.005",
        "-9223372036854775808",
        "-9.223372036854775808",
        "-0.18446744073709551616",
        "0.1",
        "true",
        "1969-12-31",
        "1969-12-31 23:59:59.999999999",
        "1970-01-01 00:00:01.5",
    ];
    assert_eq!(strings, expected);
}

#[test]
fn rolled_back_rows_vanish_and_the_later_of_two_values_counts() {
    let mut builder = RowBuilder::new(10);
    for row in 0..1000 {
        let (a, b) = (builder.field("a").unwrap(), builder.field("b").unwrap());
        builder.integer(a, row);
        builder.text(b, "never");
        builder.rollback();
        let (a, b) = (builder.field("a").unwrap(), builder.field("b").unwrap());
        builder.text(b, "first");
        builder.null(b);
        builder.text(b, &(row % 3).to_string());
        builder.integer(a, 0);
        builder.integer(a, row);
        builder.commit();
    }
    assert_eq!(builder.rows(), 1000);
    let mut columns = Vec::new();
    builder.finish_segment(|_, raw| columns.push(raw.clone()));
    assert_eq!(columns[0].data, RawData::Integer((0..1000).collect()));
    let RawData::Codes(codes) = &columns[1].data else { panic!("text has codes") };
    let b = builder.field("b").unwrap();
    let strings = strings(&builder, b);
    for (row, &code) in codes.iter().enumerate() {
        assert_eq!(strings[code as usize], (row % 3).to_string());
    }
    assert!(columns.iter().all(|column| column.valid.is_empty()));
}

#[test]
fn an_unprofitable_dictionary_is_dropped_and_strings_stay_unchanged() {
    let mut builder = RowBuilder::new(10);
    let field = builder.field("a").unwrap();
    let mut row = 0u32;
    let mut plain_segments = 0;
    let segments = 20;
    for _ in 0..segments {
        let first = row;
        while !builder.is_full() {
            if row % 7 == 3 {
                builder.null(field);
            } else {
                builder.text(field, &format!("text {row}"));
            }
            builder.commit();
            row += 1;
        }
        let mut found = None;
        builder.finish_segment(|_, raw| found = Some(raw.clone()));
        let raw = found.unwrap();
        let known = strings(&builder, field);
        let mut start = 0;
        for at in 0..SEGMENT_ROWS {
            let is_null = (first + at as u32) % 7 == 3;
            assert_eq!(raw.valid[at / 64] >> (at % 64) & 1 == 0, is_null);
            let expected = format!("text {}", first + at as u32);
            match &raw.data {
                RawData::Codes(codes) if is_null => assert_eq!(codes[at], 0),
                RawData::Codes(codes) => assert_eq!(known[codes[at] as usize], expected),
                RawData::Text { ends, bytes } => {
                    let text = &bytes[start as usize..ends[at] as usize];
                    start = ends[at];
                    assert_eq!(text, if is_null { b"" } else { expected.as_bytes() });
                }
                other => panic!("{other:?}"),
            }
        }
        plain_segments += usize::from(matches!(raw.data, RawData::Text { .. }));
    }
    assert!((1..segments).contains(&plain_segments));
}

#[test]
fn numbered_strings_survive_rollbacks() {
    let mut builder = RowBuilder::new(10);
    let field = builder.field("a").unwrap();
    let name = |row: usize| match row * 7_919 {
        other if row % 11 == 5 => format!("B{:06}", other % 300),
        number => format!("ACC{:06}", number % 5_000),
    };
    let set = |builder: &mut RowBuilder, row: usize| {
        let text = name(row);
        // The bytes after a string are not part of it, even if they are digits.
        let mut ahead = [b'0' + (row % 10) as u8; 32];
        ahead[..text.len()].copy_from_slice(text.as_bytes());
        match row % 3 {
            0 => builder.text(field, &text),
            _ => builder.text_ahead(field, &text, &ahead),
        }
    };
    for row in 0..60_000 {
        if row % 4 == 1 {
            set(&mut builder, row + 1);
            builder.rollback();
        }
        set(&mut builder, row);
        builder.commit();
    }
    let mut found = None;
    builder.finish_segment(|_, raw| found = Some(raw.clone()));
    let (known, raw) = (strings(&builder, field), found.unwrap());
    let RawData::Codes(codes) = raw.data else { panic!("no codes") };
    assert_eq!(codes.len(), 60_000);
    for (row, &code) in codes.iter().enumerate() {
        assert_eq!(known[code as usize], name(row), "row {row}");
    }
}

#[test]
fn fields_beyond_the_maximum_are_refused_and_counted() {
    let mut builder = RowBuilder::new(2);
    assert!(builder.field("a").is_some() && builder.field("b").is_some());
    assert_eq!(builder.field("c"), None);
    assert!(builder.field("a").is_some());
    assert_eq!(builder.refused().count, 1);
    assert_eq!(builder.refused().names, ["c".into()]);
}

#[test]
fn a_late_field_is_null_in_earlier_rows() {
    let mut builder = RowBuilder::new(2);
    builder.commit();
    let field = builder.field("a").unwrap();
    builder.commit();
    builder.boolean(field, true);
    builder.commit();
    builder.commit();
    builder.finish_segment(|_, raw| {
        assert_eq!(raw.valid, [0b100]);
        assert_eq!(raw.data, RawData::Boolean { bits: vec![0b100], rows: 4 });
    });
}

#[test]
fn a_field_only_of_rolled_back_rows_has_no_column() {
    let mut builder = RowBuilder::new(3);
    for row in 0..10 {
        let fields = ["a", "b", "c"].map(|name| builder.field(name).unwrap());
        builder.integer(fields[0], 1);
        builder.integer(fields[1], 1);
        if row == 5 {
            builder.null(fields[2]);
            builder.commit();
        }
        builder.rollback();
        builder.commit();
    }
    let mut rows = Vec::new();
    builder.finish_segment(|_, raw| rows.push(raw.data.clone()));
    let once = RawData::Integer((0..11).map(|row| i64::from(row == 5)).collect());
    assert_eq!(rows, [once.clone(), once, RawData::Null(11)]);
    let field = builder.field("b").unwrap();
    builder.integer(field, 1);
    builder.rollback();
    builder.commit();
    builder.finish_segment(|field, _| panic!("{field:?} has a column"));
}

#[test]
fn rolled_back_rows_do_not_move_or_refuse_fields() {
    let mut builder = RowBuilder::new(2);
    let put = |builder: &mut RowBuilder, names: [&str; 3]| {
        for name in names {
            if let Some(field) = builder.field(name) {
                builder.boolean(field, true);
            }
        }
    };
    put(&mut builder, ["x", "b", "a"]);
    builder.rollback();
    assert!(builder.has_lost_fields() && !builder.has_lost_fields());
    assert_eq!(builder.refused().count, 0);
    put(&mut builder, ["a", "b", "c"]);
    builder.commit();
    put(&mut builder, ["a", "b", "b"]);
    builder.rollback();
    assert!(!builder.has_lost_fields());
    put(&mut builder, ["d", "b", "a"]);
    builder.rollback();
    assert!(builder.has_lost_fields(), "parsers must not remember that `d` was refused");
    assert_eq!(builder.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((builder.refused().count, &*builder.refused().names), (1, &["c".into()][..]));
    builder.finish_segment(|field, raw| {
        assert!(field.index() < 2);
        assert_eq!(raw.data, RawData::Boolean { bits: vec![1], rows: 1 });
    });
}

#[test]
fn times_become_strings_again_after_another_string() {
    use Cell::{Date, Null, Text, Timestamp};
    let day = 86_400_000_000_000;
    check(&[Text("1970-01-02"), Null, Text("2024-02-29")], RawData::Date(vec![1, 0, 19_782]));
    let times = [
        "1970-01-02T00:00:00Z",
        "1970-01-01 00:00:01.5",
        "1970-01-01T00:00:00.000000001+00:00",
        "1969-12-31T23:00:00-01:30",
        "1677-09-21T00:12:43.145224192",
        "1970-01-03",
        "2262-04-11T23:47:16.854775807Z",
    ];
    let values = [day, 1_500_000_000, 1, 1_800_000_000_000, i64::MIN, 2 * day, i64::MAX];
    let mut cells: Vec<_> = times.into_iter().map(Text).collect();
    check(&cells, RawData::Timestamp(values.to_vec()));
    cells.insert(3, Null);
    cells.push(Text("soon"));
    let (raw, strings) = column(&cells);
    assert_eq!(raw.data, RawData::Codes(vec![0, 1, 2, 0, 3, 4, 5, 6, 7]));
    assert_eq!(strings[..7], times);
    let (_, strings) = column(&[Text("2024-05-31T12:00:00Z"), Timestamp(0), Date(0), Text("x")]);
    let expected = ["2024-05-31T12:00:00Z", "1970-01-01 00:00:00", "x"];
    assert_eq!([&*strings[0], &*strings[1], &*strings[strings.len() - 1]], expected);
    for none in [
        "2023-02-29",
        "2024-13-01",
        "2024-00-10",
        "0000-01-01",
        "2024-1-01",
        "20240101",
        "2024-01-01T",
        "2024-01-01T24:00:00",
        "2024-01-01T00:60:00",
        "2024-01-01T00:00:60",
        "2024-01-01T00:00",
        "2024-01-01T00:00:00z",
        "2024-01-01T00:00:00.",
        "2024-01-01T00:00:00.1234567890",
        "2024-01-01T00:00:00-00:00",
        "2024-01-01T00:00:00+1:00",
        "2024-01-01T00:00:00+24:00",
        "2262-04-11T23:47:16.854775808",
        "",
        "\u{661}970-01-01",
    ] {
        assert_eq!(Cell::of_time(none), None, "{none}");
        check(&[Text(none)], RawData::Codes(vec![0]));
    }
}

#[test]
fn a_rolled_back_row_does_not_change_a_type() {
    let mut builder = RowBuilder::new(10).finding_times();
    let field = builder.field("a").unwrap();
    for row in 0..100 {
        builder.text(field, &format!("2024-01-01T00:00:{:02}Z", row % 60));
        builder.commit();
        builder.float(field, 1.5);
        builder.text(field, "no time");
        builder.rollback();
    }
    builder.finish_segment(|_, raw| assert!(matches!(raw.data, RawData::Timestamp(_))));
}
