//! The four formats, column by column.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;

use crate::harness::{Lab, parse_rows};

/// Two patterns, one of them named, three findings.
fn lab() -> Lab {
    let lab = Lab::with("xxabcxxabcd");
    lab.put("p", "word = abc\nhex:64\n");
    lab
}

#[test]
fn text_is_a_line_a_finding_and_plain_in_a_pipe() {
    let ran = lab().search(["-f", "p", "f"]);
    assert_eq!(ran.is_clean().text(), "f:2: word: abc\nf:7: word: abc\nf:10: 64: d\n");
}

#[test]
fn json_is_an_object_a_line_with_the_keys_in_this_order() {
    let ran = lab().search(["-f", "p", "f", "--format", "json"]);
    assert_eq!(
        ran.is_clean().lines(),
        [
            r#"{"source":"f","offset":2,"length":3,"pattern":"abc","name":"word","match":"abc"}"#,
            r#"{"source":"f","offset":7,"length":3,"pattern":"abc","name":"word","match":"abc"}"#,
            r#"{"source":"f","offset":10,"length":1,"pattern":"64","name":null,"match":"d"}"#,
        ]
    );
}

#[test]
fn csv_has_a_header_and_the_same_columns() {
    let ran = lab().search(["-f", "p", "f", "--format", "csv"]);
    let rows = [
        "source,offset,length,pattern,name,match",
        "f,2,3,abc,word,abc",
        "f,7,3,abc,word,abc",
        "f,10,1,64,,d",
    ];
    assert_eq!(ran.is_clean().lines(), rows);
}

#[test]
fn csv_and_json_quote_where_necessary() {
    let lab = Lab::with("say \"a,b\"\nnext");
    let pattern = "\"a,b\"\nnext";
    let ran = lab.search([pattern, "f", "--format", "csv"]);
    let row = "f,4,10,\"\"\"a,b\"\"\nnext\",,\"\"\"a,b\"\"\nnext\"\n";
    assert_eq!(ran.is_clean().text().split_once('\n').unwrap().1, row);
    let rows = lab.find([pattern, "f"]);
    assert_eq!(rows[0].pattern, pattern);
}

fn batches(stream: &[u8]) -> Vec<RecordBatch> {
    StreamReader::try_new(stream, None).unwrap().map(Result::unwrap).collect()
}

/// Names and types of an Arrow stream's columns.
fn schema(stream: &[u8]) -> Vec<(String, DataType)> {
    let reader = StreamReader::try_new(stream, None).unwrap();
    let schema = reader.schema();
    schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect()
}

#[test]
fn arrow_is_a_stream_with_the_same_columns_and_missing_names_as_null() {
    let ran = lab().search(["-f", "p", "f", "--format", "arrow"]);
    assert_eq!(ran.is_clean().code, Some(0));
    let columns: Vec<_> = schema(&ran.stdout).into_iter().map(|(name, _)| name).collect();
    assert_eq!(columns, ["source", "offset", "length", "pattern", "name", "match"]);
    let [batch] = &batches(&ran.stdout)[..] else { panic!("one batch") };
    let text = |column: usize| batch.column(column).as_string::<i32>().iter().collect::<Vec<_>>();
    let numbers = |column: usize| batch.column(column).as_primitive::<UInt64Type>().values();
    assert_eq!(text(0), [Some("f"); 3]);
    assert_eq!(numbers(1), &[2, 7, 10]);
    assert_eq!(numbers(2), &[3, 3, 1]);
    assert_eq!(text(3), [Some("abc"), Some("abc"), Some("64")]);
    assert_eq!(text(4), [Some("word"), Some("word"), None]);
    assert_eq!(batch.column(4).null_count(), 1);
    let found: Vec<_> = batch.column(5).as_binary::<i32>().iter().collect();
    assert_eq!(found, [Some(&b"abc"[..]), Some(b"abc"), Some(b"d")]);
}

/// The matches of a search, as JSON prints them.
fn matches(lab: &Lab, arguments: &[&str]) -> Vec<String> {
    let ran = lab.search(arguments.iter().copied().chain(["f", "--format", "json"]));
    ran.rows().into_iter().map(|row| row.found).collect()
}

#[test]
fn a_match_is_text_where_it_is_utf8_and_utf16_is_decoded() {
    let mut bytes = b"key=\xC3\xA9\xFFx; ".to_vec();
    bytes.extend("Da Da".encode_utf16().flat_map(u16::to_le_bytes));
    let lab = Lab::with(bytes);
    assert_eq!(matches(&lab, &["-E", "key=[^;]*"]), ["key=é\\xffx"]);
    assert_eq!(matches(&lab, &["-i", "--utf16", "da"]), ["Da", "Da"]);
    assert_eq!(matches(&lab, &["-x", "FF ??"]), ["\\xffx"]);
    let ran = lab.search(["-E", "key=[^;]*", "f", "--format", "csv"]);
    assert!(ran.is_clean().text().ends_with(",key=é\\xffx\n"), "{}", ran.text());
}

#[test]
fn a_match_has_4096_bytes_of_a_longer_finding() {
    let lab = Lab::with(format!("<{}>", "a".repeat(9_000)));
    assert_eq!(matches(&lab, &["-E", "<a*>"]), [format!("<{}", "a".repeat(4_095))]);
    let ran = lab.search(["-E", "<a*>", "f", "--format", "arrow"]);
    let batch = &batches(&ran.is_clean().stdout)[0];
    assert_eq!(batch.column(5).as_binary::<i32>().value(0).len(), 4_096);
    assert_eq!(batch.column(2).as_primitive::<UInt64Type>().values(), &[9_002]);
}

#[test]
fn arrow_comes_in_batches_that_lose_nothing() {
    let lab = Lab::with("a".repeat(150_000));
    let ran = lab.search(["a", "f", "--format", "arrow"]);
    let mut expected = 0..150_000;
    let batches = batches(&ran.is_clean().stdout);
    for batch in &batches {
        let offsets = batch.column(1).as_primitive::<UInt64Type>().values();
        assert!(offsets.iter().all(|&offset| Some(offset) == expected.next()));
    }
    assert_eq!((expected.next(), batches.len() > 1), (None, true));
}

#[test]
fn counts_are_a_row_a_pattern_also_where_nothing_was_found() {
    let lab = lab();
    let counts = |format| {
        let ran = lab.search(["-f", "p", "-e", "none", "f", "-c", "--format", format]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        ran
    };
    assert_eq!(
        counts("json").lines(),
        [
            r#"{"pattern":"abc","name":"word","count":2}"#,
            r#"{"pattern":"64","name":null,"count":1}"#,
            r#"{"pattern":"none","name":null,"count":0}"#,
        ]
    );
    assert_eq!(counts("csv").text(), "pattern,name,count\nabc,word,2\n64,,1\nnone,,0\n");
    let text = counts("text");
    let words: Vec<Vec<_>> = text.lines().iter().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(words, [["2", "word"], ["1", "64"], ["0", "none"]]);
    let arrow = counts("arrow");
    let columns =
        [("pattern", DataType::Utf8), ("name", DataType::Utf8), ("count", DataType::UInt64)];
    assert_eq!(schema(&arrow.stdout), columns.map(|(name, kind)| (name.to_string(), kind)));
    let batch = &batches(&arrow.stdout)[0];
    assert_eq!(batch.column(2).as_primitive::<UInt64Type>().values(), &[2, 1, 0]);
}

#[test]
fn nothing_found_is_exit_code_1_in_a_form_that_can_still_be_read() {
    let lab = lab();
    let nothing = |format| {
        let ran = lab.search(["zzz", "f", "--format", format]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
        ran
    };
    assert_eq!(nothing("text").text(), "");
    assert_eq!(nothing("json").text(), "");
    assert_eq!(nothing("csv").text(), "source,offset,length,pattern,name,match\n");
    let arrow = nothing("arrow");
    assert_eq!((schema(&arrow.stdout).len(), batches(&arrow.stdout).len()), (6, 0));
    assert_eq!(lab.search(["zzz", "f", "-c"]).code, Some(1));
}

#[test]
fn found_is_exit_code_0_with_or_without_rows() {
    let lab = lab();
    assert_eq!(lab.search(["abc", "f"]).code, Some(0));
    assert_eq!(lab.search(["abc", "f", "-c"]).code, Some(0));
    assert_eq!(lab.search(["-e", "abc", "-e", "zzz", "f"]).code, Some(0));
}

#[test]
fn context_is_shown_in_text_and_as_hex_in_json() {
    let lab = Lab::with(b"one\x00two\xFFthree");
    let text = lab.search(["two", "f", "--context", "3"]);
    assert_eq!(text.is_clean().text(), "f:4: two: ne.two.th\n");
    let row = &lab.find(["two", "f", "--context", "3"])[0];
    assert_eq!(row.before_hex.as_deref(), Some("6e6500"));
    assert_eq!(row.after_hex.as_deref(), Some("ff7468"));
}

#[test]
fn context_ends_where_the_source_ends() {
    let lab = Lab::with("abcde");
    for access in ["window", "read", "queue", "uring"] {
        let context = ["--context", "100", "--access", access, "--buffer-size", "2"];
        let rows = lab.find([&["-e", "ab", "-e", "c", "-e", "e", "f"][..], &context].concat());
        let around: Vec<_> =
            rows.iter().map(|r| (r.before_hex.clone(), r.after_hex.clone())).collect();
        let hex = |before: &str, after: &str| (Some(before.to_string()), Some(after.to_string()));
        assert_eq!(around, [hex("", "636465"), hex("6162", "6465"), hex("61626364", "")]);
    }
    let piped = lab.search_input(b"abcde", ["c", "-", "--context", "100"]);
    assert_eq!(piped.is_clean().text(), "-:2: c: abcde\n");
}

#[test]
fn context_does_not_change_the_findings() {
    let lab = Lab::with("ab".repeat(50_000));
    let plain = lab.offsets(["ba", "f"]);
    assert_eq!(plain.len(), 49_999);
    for context in ["1", "100", "5000"] {
        let sized = lab.search(["ba", "f", "--context", context, "--buffer-size", "4096", "-c"]);
        assert_eq!(sized.is_clean().text().split_whitespace().next(), Some("49999"));
    }
}

#[test]
fn a_long_finding_is_cut_in_text_and_whole_in_json() {
    let lab = Lab::with("a".repeat(1000));
    let text = lab.search(["-E", "a{1000}", "f"]);
    assert!(text.is_clean().text().ends_with("a…\n"));
    assert!(text.text().len() < 400);
    assert_eq!(
        parse_rows(lab.search(["-E", "a{1000}", "f", "--format", "json"]).text())[0].length,
        1000
    );
}
