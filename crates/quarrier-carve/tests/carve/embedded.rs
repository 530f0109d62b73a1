//! Files inside files.

use quarrier_carve::embedded::{Content, Limits, is_archive, walk};
use quarrier_carve::{Extent, View};
use quarrier_core::source::{Memory, Source};

use crate::sample::noise;
use crate::tar::{entry, tape};
use crate::zip::{Archive, Way};
use crate::{gif, gz, png};

/// The contents of `archive`: path and type, or path and the reason for skipping.
fn inside(kind: &str, archive: &[u8], limits: &Limits) -> Vec<(String, String)> {
    let source = Memory::new("archive", archive);
    let mut view = View::of(&source, &[Extent { offset: 0, length: source.length() }]);
    let mut found = Vec::new();
    walk(kind, &mut view, limits, &mut |one| {
        let what = match one.content {
            Content::File { kind, bytes, .. } => {
                assert!(!bytes.is_empty());
                kind.name.to_string()
            }
            Content::Skipped { reason } => reason.to_string(),
        };
        found.push((one.path.to_string(), what));
    });
    found
}

fn texts(found: &[(String, String)]) -> Vec<(&str, &str)> {
    found.iter().map(|(path, what)| (&path[..], &what[..])).collect()
}

#[test]
fn files_in_a_zip_are_found_by_what_they_are() {
    let mut archive = Archive::default();
    archive.add("word/media/image1.png", &png::picture(&noise(1, 2560), 500), Way::Deflated);
    archive.add("notes.txt", b"no validator knows this", Way::Deflated);
    archive.add("a/b.dat", &gif::small(), Way::Stored);
    let found = inside("zip", &archive.finish(b""), &Limits::default());
    assert_eq!(texts(&found), [("zip!word/media/image1.png", "png"), ("zip!a/b.dat", "gif")]);
    assert!(is_archive("docx") && is_archive("gz") && !is_archive("png"));
}

#[test]
fn tapes_stream_and_archives_in_them_are_followed() {
    let mut inner = Archive::default();
    inner.add("deep.gif", &gif::small(), Way::Deflated);
    let long = [&b"folder/"[..], &[b'n'; 150], b".gif\0"].concat();
    let tape = tape(&[
        entry(b"first.gif", b'0', &gif::small()),
        entry(b"folder", b'5', b""),
        entry(b"inner.zip", b'0', &inner.finish(b"")),
        entry(b"././@LongLink", b'L', &long),
        entry(&long[..100], b'0', &gif::small()),
        entry(b"pax", b'x', b"20 path=\xC3\xBCber/x.gif\n"),
        entry(b"short", b'0', &gif::small()),
    ]);
    let found = inside("gz", &gz::packed("all.tar", &tape), &Limits::default());
    let long = format!("gz!all.tar!folder/{}.gif", "n".repeat(150));
    let expected = [
        ("gz!all.tar!first.gif", "gif"),
        ("gz!all.tar!inner.zip", "zip"),
        ("gz!all.tar!inner.zip!deep.gif", "gif"),
        (&long, "gif"),
        ("gz!all.tar!über/x.gif", "gif"),
    ];
    assert_eq!(texts(&found), expected);
    let found = inside("tar", &tape, &Limits::default());
    assert_eq!(found[0].0, "tar!first.gif");
    assert_eq!(found.len(), 5);
}

#[test]
fn names_are_text_and_never_more() {
    let mut archive = Archive::default();
    archive.add("../../etc/passwd", &gif::small(), Way::Stored);
    archive.add("/x", &gif::small(), Way::Stored);
    let found = inside("zip", &archive.finish(b""), &Limits::default());
    assert_eq!(found[0].0, "zip!../../etc/passwd");
    let bad = tape(&[entry(b"line\nbreak\x1b[2J", b'0', &gif::small())]);
    assert_eq!(inside("tar", &bad, &Limits::default())[0].0, "tar!line\\nbreak\\u{1b}[2J");
}

#[test]
fn archives_in_archives_are_followed_to_a_depth() {
    let mut bytes = gif::small();
    for level in 0..6 {
        let mut archive = Archive::default();
        archive.add(&format!("{level}"), &bytes, Way::Deflated);
        bytes = archive.finish(b"");
    }
    let found = inside("zip", &bytes, &Limits::default());
    let expected = [
        ("zip!5", "zip"),
        ("zip!5!4", "zip"),
        ("zip!5!4!3", "zip"),
        ("zip!5!4!3!2", "zip"),
        ("zip!5!4!3!2", "archives nested too deep"),
    ];
    assert_eq!(texts(&found), expected);
}

#[test]
fn bombs_end_at_the_limits() {
    let zeros = vec![0; 200 << 20];
    let limits =
        Limits { member_bytes_max: 1 << 20, unpacked_bytes_max: 8 << 20, ..Limits::default() };
    let gz = gz::packed("zeros", &zeros);
    let found = inside("gz", &gz, &limits);
    assert_eq!(texts(&found), [("gz!zeros", "larger than the limit for a member")]);
    let mut archive = Archive::default();
    (0..20).for_each(|n| archive.add(&format!("{n}"), &zeros[..4 << 20], Way::Deflated));
    let found = inside("zip", &archive.finish(b""), &limits);
    assert_eq!(found.last().unwrap().1, "archive unpacks to more than the limit");
    assert!(found.len() < 10, "{found:?}");
    let tape = tape(&[entry(b"zeros", b'0', &zeros[..100 << 20]), entry(b"x", b'0', b"x")]);
    let found = inside("gz", &gz::packed("t", &tape), &limits);
    assert!(found.len() <= 2, "{found:?}");
}

#[test]
fn a_million_members_are_not_all_looked_at() {
    let mut archive = Archive::default();
    (0..500).for_each(|n| archive.add(&format!("{n}"), &gif::small(), Way::Stored));
    let limits = Limits { members_max: 100, ..Limits::default() };
    let found = inside("zip", &archive.finish(b""), &limits);
    assert_eq!(found.len(), 101);
    assert_eq!(found[100].1, "archive unpacks to more than the limit");
}
