//! RTF.

use quarrier_carve::Verdict;
use quarrier_carve::format::rtf::Rtf;

use crate::sample::{check_whole_file, validated};

#[test]
fn a_text_ends_after_its_last_brace() {
    let file = b"{\\rtf1\\ansi{\\fonttbl\\f0 Swiss;}\\pard a \\{ b \\'e4\\par{\\bin3 }\x00{}}";
    check_whole_file(&Rtf, "rtf", file);
    let with_line = [&file[..], b"\r\n"].concat();
    match validated(&Rtf, &with_line, &[0; 9]) {
        Verdict::Whole { length, .. } => assert_eq!(length, with_line.len() as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lengths_and_nesting_without_measure_come_to_an_end() {
    for text in ["{\\rtf1{\\bin9223372036854775808 }", "{\\rtf1{\\bin99999999999999999999 }"] {
        assert!(matches!(validated(&Rtf, text.as_bytes(), &[0; 99]), Verdict::Broken { .. }));
    }
    let deep = [b"{\\rtf1 ".to_vec(), vec![b'{'; 100_000]].concat();
    assert!(matches!(validated(&Rtf, &deep, &[]), Verdict::Broken { .. }));
}
