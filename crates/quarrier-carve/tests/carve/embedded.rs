//! Files inside files.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_carve::embedded::{
    Content, Limits, TakeMembers, Unpacked, archive_kind, is_archive, members, walk,
};
use quarrier_carve::{Extent, View};
use quarrier_core::source::{Memory, Source};

use crate::sample::noise;
use crate::tar::{entry, tape};
use crate::zip::{Archive, Way};
use crate::{gif, gz, png};

/// Returns the contents of `archive`: path and type, or path and the reason for skipping.
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

fn borrowed(found: &[(String, String)]) -> Vec<(&str, &str)> {
    found.iter().map(|(path, what)| (&path[..], &what[..])).collect()
}

#[test]
fn files_in_a_zip_are_recognised_by_content() {
    let mut archive = Archive::default();
    archive.add("word/media/image1.png", &png::picture(&noise(1, 2560), 500), Way::Deflated);
    archive.add("notes.txt", b"no validator knows this", Way::Deflated);
    archive.add("a/b.dat", &gif::small(), Way::Stored);
    let found = inside("zip", &archive.finish(b""), &Limits::default());
    assert_eq!(borrowed(&found), [("zip!word/media/image1.png", "png"), ("zip!a/b.dat", "gif")]);
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
    assert_eq!(borrowed(&found), expected);
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
    assert_eq!(borrowed(&found), expected);
}

#[test]
fn bombs_end_at_the_limits() {
    let zeros = vec![0; 200 << 20];
    let limits =
        Limits { member_bytes_max: 1 << 20, unpacked_bytes_max: 8 << 20, ..Limits::default() };
    let gz = gz::packed("zeros", &zeros);
    let found = inside("gz", &gz, &limits);
    assert_eq!(borrowed(&found), [("gz!zeros", "larger than the limit for a member")]);
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

/// Records everything that a walk over members reports.
#[derive(Default)]
pub(crate) struct All {
    pub(crate) members: Vec<(String, Vec<u8>, Option<u64>)>,
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Ends the walk after this many members.
    members_max: Option<usize>,
}

impl TakeMembers for All {
    fn member(&mut self, path: &str, bytes: &Arc<Vec<u8>>, place: Option<u64>) -> bool {
        self.members.push((path.to_string(), bytes.to_vec(), place));
        self.members_max.is_none_or(|most| self.members.len() < most)
    }

    fn skipped(&mut self, path: &str, reason: &'static str) {
        self.skipped.push((path.to_string(), reason));
    }
}

fn take_all(all: &mut All, archive: &[u8], limits: &Limits, stop: bool) -> Unpacked {
    let source = Memory::new("archive", archive);
    let mut view = View::of(&source, &[Extent { offset: 0, length: source.length() }]);
    let kind = archive_kind(archive).expect("an archive");
    members(kind, &mut view, limits, &AtomicBool::new(stop), all)
}

/// Returns all members of an archive, after checking the stated places.
pub(crate) fn every(archive: &[u8], limits: &Limits) -> All {
    let mut all = All::default();
    let unpacked = take_all(&mut all, archive, limits, false);
    for (path, bytes, place) in &all.members {
        if let Some(place) = place {
            assert_eq!(archive[*place as usize..][..bytes.len()], **bytes, "{path}");
        }
    }
    assert!(
        unpacked.bytes >= all.members.iter().map(|(_, bytes, _)| bytes.len() as u64).sum::<u64>()
    );
    all
}

#[test]
fn every_member_comes_whole_and_with_its_place_if_stored() {
    let mut inner = Archive::default();
    inner.add("deep.txt", b"stored in a stored zip", Way::Stored);
    inner.add("packed.txt", &b"again and ".repeat(900), Way::Deflated);
    let inner = inner.finish(b"");
    let tape = tape(&[entry(b"a.txt", b'0', b"on a tape"), entry(b"empty", b'0', b"")]);
    let mut archive = Archive::default();
    archive.add("folder/", b"", Way::Stored);
    archive.add("notes.txt", b"no validator knows this", Way::Deflated);
    archive.add("plain.txt", b"nor this", Way::Stored);
    archive.add("inner.zip", &inner, Way::Stored);
    archive.add("tape.tar", &tape, Way::Stored);
    archive.add("packed.tar", &tape, Way::Deflated);
    archive.add("none", b"", Way::Stored);
    let all = every(&archive.finish(b""), &Limits::default());
    let expected: [(&str, &[u8], bool); 9] = [
        ("!notes.txt", b"no validator knows this", false),
        ("!plain.txt", b"nor this", true),
        ("!inner.zip", &inner, true),
        ("!inner.zip!deep.txt", b"stored in a stored zip", true),
        ("!inner.zip!packed.txt", &b"again and ".repeat(900), false),
        ("!tape.tar!a.txt", b"on a tape", true),
        ("!tape.tar!empty", b"", true),
        ("!packed.tar!a.txt", b"on a tape", false),
        ("!packed.tar!empty", b"", false),
    ];
    assert_eq!(all.members.last().map(|(path, ..)| &**path), Some("!none"));
    for ((path, bytes, place), expected) in all.members.iter().zip(expected) {
        assert_eq!((&**path, &**bytes, place.is_some()), expected);
    }
    assert_eq!((all.members.len(), all.skipped.len()), (10, 0), "{:?}", all.skipped);
    let all = every(&gz::packed("a.tar", &tape), &Limits::default());
    let paths: Vec<&str> = all.members.iter().map(|(path, ..)| &**path).collect();
    assert_eq!(paths, ["!a.tar!a.txt", "!a.tar!empty"]);
}

#[test]
fn members_that_are_not_examined_are_reported() {
    let mut archive = Archive::default();
    archive.add("secret", b"secret", Way::Stored);
    archive.add("lost", b"lost", Way::Stored);
    archive.add("sound", b"sound", Way::Stored);
    let mut zip = archive.finish(b"");
    let entries: Vec<_> = memchr::memmem::find_iter(&zip, b"PK\x01\x02").collect();
    zip[entries[0] + 8] |= 1;
    zip[entries[1] + 42..entries[1] + 46].fill(0x7F);
    let all = every(&zip, &Limits::default());
    let skipped: Vec<&str> = all.skipped.iter().map(|(path, _)| &**path).collect();
    assert_eq!(skipped, ["!secret", "!lost"]);
    assert!(all.skipped[0].1.contains("encrypted"), "{:?}", all.skipped);
    assert_eq!((all.members.len(), &*all.members[0].0), (1, "!sound"));
    // An archive without its directory, and one that is cut in the middle of a packed member.
    let all = every(&zip[..zip.len() - 10], &Limits::default());
    assert_eq!(all.skipped, [(String::new(), "the archive has no directory")]);
    let gz = gz::packed("x", &noise(1, 5000));
    let all = every(&gz[..gz.len() / 2], &Limits::default());
    assert_eq!(all.skipped, [("!x".to_string(), "cannot be unpacked")]);
    let cut = tape(&[entry(b"a", b'0', &noise(1, 5000))]);
    let all = every(&cut[..2048], &Limits::default());
    assert_eq!(all.skipped, [(String::new(), "the archive ends early")]);
}

#[test]
fn all_members_stay_within_the_limits() {
    let zeros = vec![0; 4 << 20];
    let limits =
        Limits { member_bytes_max: 5 << 20, unpacked_bytes_max: 9 << 20, ..Limits::default() };
    let mut archive = Archive::default();
    (0..20).for_each(|n| archive.add(&format!("{n}"), &zeros, Way::Deflated));
    let all = every(&archive.finish(b""), &limits);
    assert_eq!(all.members.len(), 2);
    assert!(all.members.iter().all(|(_, bytes, _)| bytes.len() == zeros.len()), "cut off");
    assert_eq!(all.skipped, [("!2".to_string(), "archive unpacks to more than the limit")]);
    // The archives that enclose a member are in memory, too.
    let mut inner = Archive::default();
    inner.add("a", &zeros, Way::Deflated);
    inner.add("b", &zeros[..1 << 20], Way::Deflated);
    let inner = inner.finish(b"");
    let mut outer = Archive::default();
    outer.add("pad", &noise(1, 2 << 20), Way::Stored);
    outer.add("inner.zip", &inner, Way::Stored);
    let outer = outer.finish(b"");
    let limits =
        Limits { member_bytes_max: (4 << 20) + inner.len() as u64 - 1, ..Limits::default() };
    let all = every(&outer, &limits);
    let paths: Vec<&str> = all.members.iter().map(|(path, ..)| &**path).collect();
    assert_eq!(paths, ["!pad", "!inner.zip", "!inner.zip!b"]);
    assert_eq!(all.skipped[0], ("!inner.zip!a".to_string(), "larger than the limit for a member"));
    // The receiver stops the walk, or the flag does.
    let mut one = All { members_max: Some(1), ..All::default() };
    take_all(&mut one, &outer, &Limits::default(), false);
    assert_eq!((one.members.len(), one.skipped.len()), (1, 0));
    let mut none = All::default();
    take_all(&mut none, &outer, &Limits::default(), true);
    assert_eq!(none.members.len(), 0);
}
