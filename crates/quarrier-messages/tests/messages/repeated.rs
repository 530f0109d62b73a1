//! Repeated fields of a message: which value counts, or how they are named.

use std::sync::Arc;

use quarrier_messages::Format;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::format::xml::Xml;

use crate::fix::message;
use crate::formats::{check, load, rows};

#[test]
fn the_last_of_repeated_json_keys_counts() {
    // The second message has the keys of the first, the third has others.
    let log = b"{\"a\":1,\"b\":0,\"a\":2}\n{\"a\":3,\"b\":0,\"a\":4}\n{\"a\":5,\"a\":null}\n";
    check(&Format::Json, log, &["a=2 b=0", "a=4 b=0", ""], &[]);
    let nested = b"{\"a\":{\"b\":1,\"c\":3},\"a\":{\"b\":2}}\n";
    check(&Format::Json, nested, &["a.b=2 a.c=3"], &[]);
    // Names that differ only in case are different.
    check(&Format::Json, b"{\"a\":1,\"A\":2}\n", &["a=1 A=2"], &[]);
}

#[test]
fn repeated_fix_tags_are_numbered() {
    let fix = Format::Fix(Arc::new(Dictionary::builtin()));
    let shown = rows(&load(&fix, &message("35=D|58=a|38=5|58=b|58=c|")));
    let (_, fields) = shown[0].split_once("MsgType=\"D\" ").unwrap();
    let expected = "Text=\"a\" OrderQty=5 Text[1]=\"b\" Text[2]=\"c\" ";
    assert_eq!(fields.split_once("CheckSum").unwrap().0, expected);
    let nvfix = Format::Nvfix(Arc::new(Dictionary::builtin()));
    check(&nvfix, b"Text=a\x01Desk=5\x01Text=b\x01\n", &["Text=\"a\" Desk=5 Text[1]=\"b\""], &[]);
}

#[test]
fn repeated_csv_columns_are_numbered() {
    check(&Format::Csv(Csv::default()), b"a,b,a\n1,2,3\n", &["a=1 b=2 a[1]=3"], &[]);
}

#[test]
fn repeated_xml_elements_are_lists_and_attributes_faults() {
    let xml = Format::Xml(Xml::default());
    let log = b"<l><o><a>1</a><a>2</a></o><o a='3'><a>4</a></o><o a='5' a='6'/></l>";
    let fault = ["1 47 attributes that are not well-formed"];
    check(&xml, log, &["a[0]=1 a[1]=2", "a[0]=3 a[1]=4"], &fault);
}
