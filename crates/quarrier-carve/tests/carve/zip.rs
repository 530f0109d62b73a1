//! Zip and formats based on it.

mod build;
mod fragments;

use quarrier_carve::Verdict;
use quarrier_carve::format::zip::Zip;

use crate::sample::{check_whole_file, noise, validated};
pub(crate) use build::{Archive, Way};

/// Makes an archive with a member for each way of compression.
pub(crate) fn mixed(ways: &[Way]) -> Vec<u8> {
    let mut archive = Archive::default();
    for (index, way) in ways.iter().enumerate() {
        let content = noise(index as u32, 3000 + 700 * index);
        archive.add(&format!("folder/{index}.bin"), &content, *way);
        archive.add(&format!("folder/{index}.txt"), &b"words and words ".repeat(300), *way);
    }
    archive.finish(b"")
}

#[test]
fn a_zip_ends_after_its_end_record() {
    check_whole_file(&Zip, "zip", &mixed(&[Way::Stored, Way::Deflated]));
    check_whole_file(&Zip, "zip", &mixed(&[Way::Streamed, Way::Deflated, Way::StoredStreamed]));
}

#[test]
fn a_comment_is_part_of_the_zip() {
    let mut archive = Archive::default();
    archive.add("a", b"content", Way::Stored);
    check_whole_file(&Zip, "zip", &archive.finish(b"a comment\n"));
}

#[test]
fn kinds_are_detected_by_members() {
    let types = "[Content_Types].xml";
    let odt = b"application/vnd.oasis.opendocument.text";
    type Members<'m> = &'m [(&'m str, &'m [u8])];
    let cases: [(&str, Members<'_>); 8] = [
        ("docx", &[(types, b"<Types/>"), ("word/document.xml", b"<w/>")]),
        ("xlsx", &[(types, b"<Types/>"), ("xl/workbook.xml", b"<x/>")]),
        ("pptx", &[("ppt/presentation.xml", b"<p/>"), (types, b"<Types/>")]),
        ("odt", &[("mimetype", odt), ("content.xml", b"<c/>")]),
        ("epub", &[("mimetype", b"application/epub+zip"), ("META-INF/container.xml", b"<c/>")]),
        ("jar", &[("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0"), ("A.class", b"class")]),
        ("apk", &[("META-INF/MANIFEST.MF", b""), ("AndroidManifest.xml", b"<m/>")]),
        ("zip", &[("word/readme.txt", b"not a document")]),
    ];
    for (kind, members) in cases {
        let mut archive = Archive::default();
        members.iter().for_each(|(name, content)| archive.add(name, content, Way::Stored));
        check_whole_file(&Zip, kind, &archive.finish(b""));
    }
}

#[test]
fn a_zip_breaks_at_the_member_whose_checksum_is_wrong() {
    let mut zip = mixed(&[Way::Stored, Way::Stored]);
    let third = memchr::memmem::find_iter(&zip, b"PK\x03\x04").nth(2).unwrap();
    zip[third + 1000] ^= 1;
    match validated(&Zip, &zip, &[]) {
        Verdict::Broken { sure, at, .. } => {
            assert_eq!(sure, third as u64);
            assert!(at > sure, "{at}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_middle_of_a_zip_is_not_a_zip() {
    let zip = mixed(&[Way::Deflated, Way::Streamed, Way::Stored]);
    for place in memchr::memmem::find_iter(&zip, b"PK\x03\x04").skip(1) {
        assert_eq!(validated(&Zip, &zip[place..], &[]), Verdict::Not, "at {place}");
    }
}

#[test]
fn overlapping_members_are_not_a_zip() {
    // All entries of the directory name the first member.
    let mut archive = Archive::default();
    (0..50).for_each(|index| archive.add(&format!("{index}"), &noise(1, 400), Way::Deflated));
    let mut zip = archive.finish(b"");
    let entries: Vec<_> = memchr::memmem::find_iter(&zip, b"PK\x01\x02").collect();
    for entry in entries {
        zip[entry + 42..entry + 46].fill(0);
    }
    let verdict = validated(&Zip, &zip, &[]);
    assert!(matches!(verdict, Verdict::Broken { .. }), "{verdict:?}");
}

#[test]
fn lengths_beyond_everything_are_broken() {
    for length in [0x7FFF_FFFFu32, 0xFFFF_FFFE, 0xFFFF_FFFF] {
        for place in [18, 22] {
            let mut zip = mixed(&[Way::Stored]);
            zip[place..place + 4].copy_from_slice(&length.to_le_bytes());
            let verdict = validated(&Zip, &zip, &[]);
            assert!(!matches!(verdict, Verdict::Whole { .. }), "{length:#x} at {place}");
        }
    }
}

#[test]
fn a_zip_with_members_that_were_not_read_says_so() {
    for (place, value, word) in [(6, 1u8, "encrypted"), (8, 14, "method")] {
        let mut zip = mixed(&[Way::Deflated, Way::Stored]);
        // The flags and the method, before the first member and in the directory.
        let entry = memchr::memmem::find(&zip, b"PK\x01\x02").unwrap();
        zip[place] = value;
        zip[entry + place + 2] = value;
        match validated(&Zip, &zip, &[0; 99]) {
            Verdict::Unread { length, reason, .. } => {
                assert_eq!(length, zip.len() as u64);
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{word}: {other:?}"),
        }
    }
}
