//! XML, and XML property lists.

use quarrier_carve::Verdict;
use quarrier_carve::format::xml::Xml;

use crate::sample::{check_whole_file, validated};

#[test]
fn a_document_ends_after_its_root() {
    let document = b"<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ELEMENT a ANY>]>\n\
        <a b='<'><![CDATA[</a>]]><c/><!-- </a> --><d>text</d></a>";
    check_whole_file(&Xml, "xml", document);
    let list = b"<?xml version=\"1.0\"?>\n<plist version=\"1.0\"><dict><key>a</key></dict></plist>";
    check_whole_file(&Xml, "plist", list);
}

#[test]
fn pictures_and_misnested_elements_are_not_documents() {
    let document = |text: &str| format!("<?xml version=\"1.0\"?>{text}").into_bytes();
    for text in ["<a><b></a></b>", "<a>\u{1}</a>", "<a><b></b>", "<a></a"] {
        let verdict = validated(&Xml, &document(text), &[]);
        assert!(!matches!(verdict, Verdict::Whole { .. }), "{text}: {verdict:?}");
    }
    assert_eq!(validated(&Xml, &document("<svg></svg>"), &[]), Verdict::Not);
    assert!(matches!(
        validated(&Xml, &document(&"<a>".repeat(100_000)), &[]),
        Verdict::Broken { .. }
    ));
}
