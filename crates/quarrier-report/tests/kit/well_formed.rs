//! The rules of every page, checked by a parser: shared by the tests of all crates that write pages.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use sha2::{Digest, Sha256};

/// Elements without an end tag.
const VOID: [&str; 4] = ["br", "img", "input", "meta"];
/// Attributes with coordinates.
const GEOMETRY: [&str; 14] = [
    "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "viewBox", "opacity",
];

/// Fails unless every element of `page` is closed, text holds nothing that looks like markup, drawings
/// have finite coordinates, and nothing needs what the policy forbids.
#[track_caller]
pub(crate) fn check_page(page: &str) {
    let body = page.strip_prefix("<!DOCTYPE html>").expect("a page begins with its type");
    let (body, styles) = without(body, "style");
    let (body, scripts) = without(&body, "script");
    check_policy(page, &styles, &scripts);
    let mut reader = Reader::from_str(&body);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    let mut open: Vec<String> = Vec::new();
    loop {
        match reader.read_event().expect("markup") {
            Event::Start(element) => {
                let name = String::from_utf8(element.name().as_ref().to_vec()).expect("UTF-8");
                check_attributes(&name, &element);
                if !VOID.contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Event::End(element) => {
                let name = String::from_utf8(element.name().as_ref().to_vec()).expect("UTF-8");
                assert_eq!(open.pop(), Some(name), "after {} bytes", reader.buffer_position());
            }
            Event::Text(text) => assert!(!text.contains(&b'>'), "{text:?}"),
            Event::GeneralRef(name) => {
                assert!([&b"lt"[..], b"gt", b"amp", b"quot"].contains(&name.as_ref()), "{name:?}");
            }
            Event::Eof => break,
            other => panic!("{other:?} in a page"),
        }
    }
    assert!(open.is_empty(), "{open:?} never end");
    let is_harmful = |c: char| quarrier_report::is_harmful(c) && c != '\n';
    assert_eq!(page.find(is_harmful), None, "a harmful character is shown as it is");
}

fn check_attributes(name: &str, element: &BytesStart<'_>) {
    for attribute in element.html_attributes() {
        let attribute = attribute.expect("an attribute, and that once");
        let key = std::str::from_utf8(attribute.key.as_ref()).expect("UTF-8");
        let value = std::str::from_utf8(&attribute.value).expect("UTF-8");
        assert!(key != "style" && !key.starts_with("on"), "<{name} {key}={value}>");
        assert!(!value.contains('<'), "<{name} {key}={value}>");
        let is_finite = !value.contains("NaN") && !value.contains("inf");
        assert!(is_finite || !GEOMETRY.contains(&key), "<{name} {key}={value}>");
    }
}

/// Fails unless the page's policy allows its style and scripts, by their hashes, and no others.
#[track_caller]
fn check_policy(page: &str, styles: &[String], scripts: &[String]) {
    let (_, policy) = page.split_once("Content-Security-Policy\" content=\"").expect("a policy");
    let (policy, _) = policy.split_once('"').expect("an end");
    let directives: Vec<&str> = policy.split("; ").collect();
    assert_eq!(directives[0], "default-src 'none'");
    let allowed = |name: &str| {
        let found = directives.iter().find_map(|rule| rule.strip_prefix(name));
        found.unwrap_or_default().trim_start().to_string()
    };
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    let hashes = |texts: &[String]| {
        let hashes = texts.iter().map(|text| format!("'sha256-{}'", hash(text)));
        hashes.collect::<Vec<_>>().join(" ")
    };
    let how = "put the new hash beside the text that changed";
    assert_eq!(allowed("style-src"), hashes(styles), "{how}");
    assert_eq!(allowed("script-src"), hashes(scripts), "{how}");
}

/// `page` without its elements `name`, which hold no markup; also returns their contents.
fn without(page: &str, name: &str) -> (String, Vec<String>) {
    let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
    let (mut out, mut inside) = (String::new(), Vec::new());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(&begin) {
        out.push_str(before);
        let (content, after) = after.split_once(&end).expect("an end");
        inside.push(content.to_string());
        rest = after;
    }
    (out + rest, inside)
}
