//! User-defined signatures.

use quarrier_carve::{Carver, Format, Status, Verdict, own};

use crate::gif;
use crate::sample::{carved, valid, validated};
use crate::sound::noise;

fn read(name: &str, text: &str) -> Vec<Box<dyn Format>> {
    own::read(name, text.as_bytes()).expect("valid signatures")
}

fn wrong(name: &str, text: &str) -> String {
    match own::read(name, text.as_bytes()) {
        Ok(_) => panic!("{text} is invalid, but accepted"),
        Err(error) => error.to_string(),
    }
}

/// Returns the length of the file at the start of `bytes`, if it is whole.
fn length(format: &dyn Format, bytes: &[u8]) -> Option<u64> {
    match validated(format, bytes, &[]) {
        Verdict::Whole { length, .. } => Some(length),
        _ => None,
    }
}

const ACME: &str = r#"
[[signature]]
name = "acme"
header = "AC ?E 00"
footer_text = "end."
min_size = "0x4"
max_size = "1 kib"

[[signature]]
name = "frame"
extension = "frm"
header_text = "FRAME"
offset = 4
max_size = 100_000
length = { at = 0, bytes = 4, endian = "big", plus = 9 }
"#;

#[test]
fn files_end_with_their_footer_or_where_their_length_says() {
    let formats = read("my.toml", ACME);
    assert_eq!(formats[0].kinds()[0].extension, "acme");
    assert_eq!(length(&*formats[0], b"\xAC\x7E\0...end. and more end."), Some(10));
    assert_eq!(length(&*formats[0], b"\xAC\x7F\0...end. and more end."), None);
    assert_eq!(formats[1].kinds()[0].extension, "frm");
    assert_eq!(length(&*formats[1], b"\0\0\0\x05FRAME12345 more"), Some(14));
    // The maximum size applies.
    let far = [&b"\xAC\x7E\0"[..], &[0; 1018], b"end."].concat();
    assert!(matches!(validated(&*formats[0], &far, &[]), Verdict::Broken { at: 1024, .. }));
    assert_eq!(length(&*formats[0], &[&far[..1020], b"end."].concat()), Some(1024));
}

#[test]
fn a_carver_finds_them_and_believes_built_in_formats_first() {
    let own = read("my.toml", ACME);
    let mut formats: Vec<&dyn Format> = quarrier_carve::format::ALL.to_vec();
    formats.extend(own.iter().map(|format| &**format));
    let file = [&b"\xAC\x1E\0"[..], &gif::small(), b"end."].concat();
    let image = [&noise(700, 2)[..], &file, &noise(900, 3), b"\0\0\0\x02FRAME??"].concat();
    let files = carved(&Carver::new().formats(formats), &image);
    assert!(files.iter().any(|(carved, _)| carved.kind == "gif"));
    assert!(valid(&files).contains(&&b"\0\0\0\x02FRAME??"[..]));
    assert!(files.iter().all(|(carved, _)| carved.status == Status::Valid), "{files:?}");
}

#[test]
fn a_footer_may_be_the_last_or_not_part_of_the_file_and_any_case_will_do() {
    let text = |is: &str| {
        format!(
            "[[signature]]\nname='x'\nheader_text='Begin'\nfooter_text='EnD'\nany_case=true\n\
             footer_is='{is}'\nmax_size=40"
        )
    };
    let file = b"bEGIN one end two END three";
    for (is, expected) in [("first", 13), ("last", 21), ("before", 10)] {
        let formats = read("my.toml", &text(is));
        assert_eq!(length(&*formats[0], file), Some(expected), "{is}");
        let all: Vec<&dyn Format> = vec![&*formats[0]];
        let files = carved(&Carver::new().formats(all), &[&[7; 99][..], file].concat());
        assert_eq!(valid(&files), [&file[..expected as usize]], "{is}");
    }
}

#[test]
fn foremost_and_scalpel_files_are_read_unchanged() {
    let text = "# comment\n\
        \tgif\ty\t155000\t\\x47\\x49\\x46\\x38?\\x61\t\\x00\\x3b\n\
        NONE n 1000 foRE\\sMOST\n\
        htm n 10:50000 <html \\x3C/HTML>  REVERSE # not more\n\
        wildcard *\n\
        doc y 9999 \\320\\xcf*\\x11? \\320\\xcf*\\x11 NEXT\n";
    let formats = read("/etc/scalpel.CONF", text);
    assert_eq!(formats.len(), 4);
    let gif = gif::small();
    assert_eq!(length(&*formats[0], &gif), Some(gif.len() as u64));
    assert_eq!(formats[1].kinds()[0].name, "none");
    assert!(matches!(validated(&*formats[1], b"FOREmo", &[]), Verdict::Not));
    assert!(matches!(validated(&*formats[1], b"Fore Most 1", &[]), Verdict::Broken { at: 11, .. }));
    assert_eq!(length(&*formats[2], b"<HTML>1</html>2</html>3"), Some(22));
    assert_eq!(length(&*formats[3], b"\xD0\xCF.\x11?abc\xD0\xCF:\x11"), Some(8));
    assert_eq!(length(&*formats[3], b"\xD0\xCF.\x11!abc\xD0\xCF:\x11"), None);
}

#[test]
fn errors_name_the_line() {
    let row = |line: &str| format!("[[signature]]\nname = 'a'\nmax_size = 10\n{line}\n");
    for (text, line, reason) in [
        (row("header = 'AB C'"), 4, "odd number"),
        (row("header = 'XY'"), 4, "'X' at character 1 is not"),
        (row("header = '?? ?? 11'"), 1, "less than two fixed bytes"),
        (row("header = '11 22'\nfooter = '??'"), 1, "footer has no fixed byte"),
        (row("header = '11 22'\nfotter = '33'"), 5, "unknown field"),
        (row("header = '11 22'\nheader_text = 'a'"), 1, "both header and header_text"),
        (row("header = '11 22'\noffset = 9"), 1, "maximum size"),
        (row("header = '11 22'\nlength = { at = 0, bytes = 9 }"), 1, "1 to 8"),
        (row("max_size = 3"), 4, "duplicate key"),
        (row(""), 1, "no header"),
        ("[[signature]]\nname = '../a'\nheader = '11 22'\nmax_size = 9".to_string(), 1, "\"../a\""),
        (
            "[[signature]]\nname = 'a'\nheader = '11 22'\nmax_size = '9 apples'".to_string(),
            4,
            "'9 apples' is not a size",
        ),
        ("[[signature]]\nname = 'a'\nheader = '11 22'\nmax_size = 1.5".to_string(), 4, "10 MiB"),
    ] {
        let message = wrong("my.toml", &text);
        assert!(message.starts_with(&format!("my.toml, line {line}: ")), "{message}");
        assert!(message.contains(reason), "{message}");
    }
    for (text, line, reason) in [
        ("\n\ngif y", 3, "needs extension"),
        ("gif x 10 ab", 1, "not y or n"),
        ("gif y ten ab", 1, "not a size"),
        ("gif y 10 \\xZZb", 1, "escape"),
        ("gif y 10 ab\\", 1, "escape"),
        ("gif y 10 ab cd BACKWARD", 1, "REVERSE"),
        ("gif y 10 /a+b/", 1, "regular expressions"),
        ("gif y 10 ????", 1, "less than two"),
        ("wildcard ab", 1, "one character"),
    ] {
        let message = wrong("a.conf", text);
        assert!(message.starts_with(&format!("a.conf, line {line}: ")), "{message}");
        assert!(message.contains(reason), "{message}");
    }
    assert!(wrong("a.toml", &" ".repeat(own::FILE_BYTES_MAX + 1)).contains("1 MiB"));
}
