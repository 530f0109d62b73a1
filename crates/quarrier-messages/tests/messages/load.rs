//! Loading yields the same table with any workers, source and compression.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::{Memory, Source};
use quarrier_messages::{Error, Field, Format, Kind, Limits, Load, Loaded, Schema, Table, Value};

fn rows(table: &Table) -> Vec<Vec<Value>> {
    let columns = table.schema().fields.len();
    let row = |row| (0..columns).map(|column| table.value(row, column)).collect();
    (0..table.rows()).map(row).collect()
}

/// Makes messages of changing types, with some that do not parse, blank lines and a long one.
fn log(messages: usize) -> (Vec<u8>, Vec<(u64, u64)>) {
    let mut log = Vec::new();
    let mut wrong = Vec::new();
    for number in 0..messages {
        if number % 1_000 == 17 {
            wrong.push((
                log.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1,
                log.len() as u64,
            ));
            log.extend(b"{\"id\":}\n");
        }
        if number % 777 == 3 {
            log.extend(b" \r\n\n");
        }
        let note =
            if number % 3 == 0 { "null".into() } else { format!("\"note {}\"", number % 500) };
        let pad = if number == messages / 2 { "x".repeat(700_000) } else { String::new() };
        let line = format!(
            "{{\"id\":{number},\"price\":{}.{},\"note\":{note}{pad}}}\n",
            number % 90,
            number % 10
        );
        let line = line.replace("\"x", "\",\"pad\":\"x").replace("x}", "x\"}");
        let line = if pad.is_empty() { line } else { line.replace("nullx", "null,\"pad\":\"x") };
        log.extend(line.as_bytes());
    }
    (log, wrong)
}

fn load(source: &dyn Source, workers: usize) -> Loaded {
    Load::new(Format::Json).workers(workers).run(&[source]).unwrap()
}

fn check_same(loaded: &Loaded, expected: &Loaded) {
    assert_eq!(loaded.table.schema(), expected.table.schema());
    assert_eq!(loaded.rejects, expected.rejects);
    assert_eq!(loaded.bytes, expected.bytes);
    assert!(rows(&loaded.table) == rows(&expected.table), "rows differ");
}

#[test]
fn messages_keep_their_order_and_rejects_have_their_lines() {
    let (log, wrong) = log(150_000);
    let source = Memory::new("log", log);
    let loaded = load(&source, 1);
    assert_eq!(loaded.table.rows(), 150_000);
    assert_eq!(loaded.rejected, wrong.len() as u64);
    let places: Vec<_> = loaded.rejects.iter().map(|reject| (reject.line, reject.offset)).collect();
    assert_eq!(places, wrong);
    assert_eq!(&*loaded.rejects[0].bytes, b"{\"id\":}");
    assert_eq!(loaded.rejects[0].fault.to_string(), "no value, 6 bytes into the message");
    for row in 0..150_000 {
        assert_eq!(loaded.table.value(row, 0), Value::Integer(row as i64));
    }
    for workers in [2, 5] {
        check_same(&load(&source, workers), &loaded);
    }
}

#[test]
fn compressed_sources_are_decompressed() {
    let (log, _) = log(20_000);
    let expected = load(&Memory::new("log", log.clone()), 2);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&log[..100_000]).unwrap();
    let mut gzip = gzip.finish().unwrap();
    // Consecutive gzip members are one stream.
    let mut second = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    second.write_all(&log[100_000..]).unwrap();
    gzip.extend(second.finish().unwrap());
    check_same(&load(&Memory::new("log", gzip.clone()), 2), &expected);
    let zstandard = zstd::encode_all(&*log, 1).unwrap();
    check_same(&load(&Memory::new("log", zstandard.clone()), 2), &expected);
    // As pzstd writes it: a frame without data precedes each frame.
    let skipped = [&[0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 9, 9, 0, 0][..], &zstandard].concat();
    check_same(&load(&Memory::new("log", skipped), 2), &expected);
    let streamed = Load::new(Format::Json).workers(2).run_stream("log", &mut &*log).unwrap();
    check_same(&streamed, &expected);

    gzip.truncate(gzip.len() - 9);
    let damaged = zstandard[..zstandard.len() / 2].to_vec();
    for bytes in [gzip, damaged] {
        let source = Memory::new("log", bytes);
        let error = Load::new(Format::Json).run(&[&source]).unwrap_err();
        assert!(error.to_string().starts_with("log: compressed bytes are damaged"), "{error}");
    }
}

#[test]
fn sources_are_concatenated_with_their_own_line_numbers() {
    let first = Memory::new("first", "\u{feff}{\"a\":1}\n{\n{\"b\":true}");
    let second = Memory::new("second", "\n[\n{\"a\":2.5}\n");
    let loaded =
        Load::new(Format::Json).workers(2).run(&[&first, &second, &Memory::new("", "")]).unwrap();
    let null = Value::Null;
    let expected = [
        vec![Value::Decimal { mantissa: 10, scale: 1 }, null.clone()],
        vec![null.clone(), Value::Boolean(true)],
        vec![Value::Decimal { mantissa: 25, scale: 1 }, null],
    ];
    assert_eq!(rows(&loaded.table), expected);
    let places: Vec<_> =
        loaded.rejects.iter().map(|reject| (&*reject.source, reject.line, reject.offset)).collect();
    assert_eq!(places, [("first", 2, 11), ("second", 2, 1)]);
}

#[test]
fn a_message_beyond_the_limit_is_rejected_and_the_rest_loaded() {
    let limits = Limits { message_bytes_max: 300_000, ..Limits::default() };
    for long_bytes in [300_001usize, 3_000_000] {
        let mut log = b"{\"a\":1}\n".to_vec();
        log.extend(b"{\"a\":\"");
        log.resize(9 + long_bytes - 2, b'x');
        log.extend(b"\"}\n{\"a\":2}\nwrong\n{\"a\":3}");
        let gzip = {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&log).unwrap();
            gzip.finish().unwrap()
        };
        for bytes in [log, gzip] {
            for workers in [1, 3] {
                let source = Memory::new("log", bytes.clone());
                let load = Load::new(Format::Json).workers(workers).limits(limits.clone());
                let loaded = load.run(&[&source]).unwrap();
                let values: Vec<_> = (1..4).map(|value| vec![Value::Integer(value)]).collect();
                assert_eq!(rows(&loaded.table), values);
                let rejects: Vec<_> =
                    loaded.rejects.iter().map(|reject| (reject.line, reject.bytes.len())).collect();
                assert_eq!(rejects, [(2, 4_096), (4, 5)]);
                assert_eq!(loaded.rejects[0].fault.what, "longer than the maximum message length");
            }
        }
    }
}

#[test]
fn columns_beyond_the_limit_are_refused_and_named() {
    let log = "{\"a\":1,\"b\":2,\"c\":3}\n{\"c\":1,\"d\":2,\"a\":5}\n";
    let limits = Limits { columns_max: 2, ..Limits::default() };
    let loaded =
        Load::new(Format::Json).limits(limits).workers(1).run(&[&Memory::new("log", log)]).unwrap();
    assert_eq!(rows(&loaded.table)[1], [Value::Integer(5), Value::Null]);
    assert_eq!(loaded.refused.names, ["c".into(), "d".into()]);
    assert_eq!(loaded.rejected, 0);
}

#[test]
fn a_schema_selects_columns_and_types() {
    let field = |name: &str, kind| Field { name: name.into(), kind };
    let schema = Schema {
        fields: vec![
            field("price", Kind::Float),
            field("none", Kind::Text),
            field("id", Kind::Integer),
        ],
    };
    let log = "{\"id\":1,\"price\":2.5,\"x\":0}\n{\"id\":\"two\"}\n";
    let loaded = Load::new(Format::Json).schema(schema).run(&[&Memory::new("log", log)]).unwrap();
    let names: Vec<_> = loaded.table.schema().fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["price", "none", "id"]);
    let text = |text: &str| Value::Text(text.into());
    assert_eq!(rows(&loaded.table)[0], [Value::Float(2.5), Value::Null, text("1")]);
    assert_eq!(rows(&loaded.table)[1], [Value::Null, Value::Null, text("two")]);
    assert_eq!(loaded.refused.count, 0);
}

#[test]
fn only_columns_of_times_are_times_and_others_stay_strings() {
    let line = |number: usize, text: &str| {
        format!(
            "{{\"a\":\"2024-01-0{}T00:00:00.{:03}Z\",\"b\":\"{text}\"}}\n",
            1 + number % 9,
            number % 1_000
        )
    };
    let log: String = (0..100_000).map(|number| line(number, "2024-02-03")).collect();
    for end in ["", "x"] {
        let mut log = log.clone();
        log.push_str(&line(5, &format!("2024-02-04{end}")));
        let source = Memory::new("log", log);
        for workers in [1, 3] {
            let table = load(&source, workers).table;
            assert_eq!(table.schema().fields[0].kind, Kind::Timestamp);
            let kind = if end.is_empty() { Kind::Date } else { Kind::Text };
            assert_eq!(table.schema().fields[1].kind, kind);
            assert_eq!(table.rows(), 100_001);
            for row in [0, 70_000, 99_999] {
                let expected = if end.is_empty() {
                    Value::Date(19_756)
                } else {
                    Value::Text("2024-02-03".into())
                };
                assert_eq!(table.value(row, 1), expected);
            }
        }
    }
}

#[test]
fn a_cancelled_load_is_a_cancellation_error() {
    let stop = AtomicBool::new(true);
    let (log, _) = log(20_000);
    for workers in [1, 2] {
        let load = Load::new(Format::Json).workers(workers).cancel(&stop);
        let error = load.run(&[&Memory::new("log", log.clone())]).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        let error = load.run_stream("log", &mut &*log).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
    }
    stop.store(false, Ordering::Relaxed);
    let source = Memory::new("log", log);
    let loaded = Load::new(Format::Json).cancel(&stop).run(&[&source]).unwrap();
    check_same(&loaded, &load(&source, 1));
}
