//! For every format, the log has the same messages as a load of the file.

use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::format::xml::Xml;
use quarrier_messages::kept::Store;
use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::{Error, Format};

use crate::kit::{assert_same, at_once, load, open, orders, small, table};

/// Loads the bytes in small batches, plain and compressed, and reads them before and after the
/// folder is reopened.
#[track_caller]
fn check(bytes: &[u8], format: &Format, rejected: u64) {
    let expected = at_once(&[bytes], format.clone());
    for compression in [None, Some(3)] {
        for batch_bytes in [64, 600, 1 << 20] {
            let disk = FaultyDisk::new(1);
            let store = open(&disk).unwrap();
            let mut how = small(format.clone());
            (how.compression, how.batch_bytes) = (compression, batch_bytes);
            let stored = load(&store, "f", bytes, &how).unwrap();
            let what = format!("{} in batches of {batch_bytes}, {compression:?}", format.name());
            assert_eq!(stored.messages, expected.rows(), "{what}");
            assert_eq!(stored.rejected, rejected, "{what}");
            assert_eq!(stored.bytes, bytes.len() as u64, "{what}");
            assert_same(&table(&store), &expected, &what);
            let again = load(&store, "f", bytes, &how).unwrap();
            assert_eq!((again.messages, again.start), (0, bytes.len() as u64), "again: {what}");
            store.close().unwrap();
            let store = open(&disk).unwrap();
            assert_same(&table(&store), &expected, &format!("opened again: {what}"));
            let again = load(&store, "f", bytes, &how).unwrap();
            assert_eq!(again.messages, 0, "opened again: {what}");
            assert!(store.found().damages.is_empty() && !store.is_catalog_damaged(), "{what}");
        }
    }
}

#[test]
fn json_lines() {
    let mut bytes = orders(0..60);
    check(&bytes, &Format::Json, 0);
    bytes.extend_from_slice(
        b"no message\n\n  \r\n{\"n\":1,\"other\":[1,{\"a\":2}]}\r\n{\"broken\":\n",
    );
    bytes.extend_from_slice(&orders(60..90));
    bytes.extend_from_slice(b"{\"n\":91}");
    check(&bytes, &Format::Json, 2);
    check(b"\xEF\xBB\xBF{\"a\":1}\n", &Format::Json, 0);
}

#[test]
fn csv() {
    let rows: String =
        (0..80).map(|n| format!("{n};\"a \"\"{n}\"\";\nb\";{}.5\n", n % 7)).collect();
    let text = format!("id;the note;\"pri;ce\"\n{rows}1;2\n7;\"x\";0.25");
    check(text.as_bytes(), &Format::Csv(Csv::default()), 1);
    let headerless = "1,a\n2,b\n".repeat(40);
    let csv = Csv { delimiter: None, has_header: false };
    check(headerless.as_bytes(), &Format::Csv(csv), 0);
    check(b"only\n1\n2\n", &Format::Csv(Csv::default()), 0);
}

#[test]
fn xml() {
    let elements: String =
        (0..60).map(|n| format!("  <o id=\"{n}\"><s>B</s>\n<q>{}</q></o>\n", n * 3)).collect();
    let within = format!("<?xml version=\"1.0\"?>\n<all>\n{elements}</all>\n");
    check(within.as_bytes(), &Format::Xml(Xml::default()), 0);
    check(elements.as_bytes(), &Format::Xml(Xml::default()), 0);
}

#[test]
fn fix() {
    let message = |number: u64| {
        let body = format!("35=D\x0111=o{number}\x0155=WQY\x0138={}\x0144=1.5\x01", number * 10);
        let head = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
        let sum = head.bytes().map(u32::from).sum::<u32>() % 256;
        format!("{head}10={sum:03}\x01")
    };
    let format = Format::Fix(Dictionary::builtin().into());
    let lines: String = (0..40).map(|number| message(number) + "\n").collect();
    check(lines.as_bytes(), &format, 0);
    let together: String = (0..40).map(message).collect();
    check(together.as_bytes(), &format, 0);
}

#[test]
fn a_folder_has_several_tables_and_a_table_several_formats() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (json, csv) = (orders(0..30), b"n,side\n100,B\n101,S\n".to_vec());
    load(&store, "a", &json, &small(Format::Json)).unwrap();
    load(&store, "b", &csv, &small(Format::Csv(Csv::default()))).unwrap();
    let mixed = table(&store);
    assert_eq!(mixed.rows(), 32);
    assert_eq!(store.runs("t").unwrap().len(), 2);
    let tables = store.tables().unwrap();
    assert_eq!((tables[0].name.as_str(), tables[0].messages), ("t", 32));
    assert_eq!(tables[0].formats, ["json", "csv"]);
    let error = store.table("u", 1, &false.into()).unwrap_err();
    assert!(error.to_string().contains("has no table 'u'; there are: t"), "{error}");
    let error = load(&store, "c", b"", &small(Format::Arrow)).unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error}");
    // Readers may read at the same time, and see the current state.
    let reader = Store::read(folder.path()).unwrap();
    assert_same(&table(&reader), &mixed, "read beside the writer");
    let error = load(&reader, "d", b"{}\n", &small(Format::Json)).unwrap_err();
    assert!(error.to_string().contains("reading only"), "{error}");
}
