//! HTML.

use quarrier_carve::Verdict;
use quarrier_carve::format::html::Html;

use crate::sample::{check_whole_file, validated};

const PAGE: &[u8] = b"<!DOCTYPE html>\n<html><head><title>a < b</title>\
    <script>if (a < b) { document.write('</div>') }</script></head>\
    <body><!-- </html> --><div class=\"x>y\">text<p>more<br></div></body></html>";

#[test]
fn a_page_ends_after_its_root() {
    check_whole_file(&Html, "html", PAGE);
    for after in ["\n", "\r\n", "\n\n", "\n<!-- made by hand -->\n"] {
        let file = [PAGE, after.as_bytes()].concat();
        match validated(&Html, &file, &[0; 600]) {
            Verdict::Whole { length, .. } => assert_eq!(length, file.len() as u64, "{after:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn binary_or_misnested_data_is_not_a_page() {
    let with = |what: &[u8]| [&PAGE[..PAGE.len() - 14], what, b"</body></html>"].concat();
    for what in [&[0][..], b"</div>", b"<div>", b"<html>", b"<!DOCTYPE html>", &[1, 2, 3]] {
        let verdict = validated(&Html, &with(what), &[]);
        assert!(matches!(verdict, Verdict::Broken { .. }), "{what:?}: {verdict:?}");
    }
    assert_eq!(validated(&Html, b"<!DOCTYPE html> and so on", &[]), Verdict::Not);
}

#[test]
fn elements_without_an_end_come_to_one() {
    let deep = [b"<html>".to_vec(), b"<div>".repeat(10_000)].concat();
    assert!(matches!(validated(&Html, &deep, &[]), Verdict::Broken { .. }));
}
