//! Members of 7z, and the content of compressed files, against the libraries that unpack them whole.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::{CheckType, LzmaOptions, LzmaWriter, XzReader};
use proptest::prelude::*;
use quarrier_carve::embedded::{
    Content, Limits, TakeMembers, archive_kind, is_archive, members, walk,
};
use quarrier_carve::{Extent, View};
use quarrier_core::source::Memory;
use sevenz_rust2::{ArchiveReader, Password};

use crate::embedded::{All, every};
use crate::packed::{bz2, crc32, zst};
use crate::sample::{fixed_cases, mixed, noise};
use crate::seven_zip::{archive, header, ways, with_header};
use crate::tar::{entry, tape};
use crate::xz::{FILTERS, xz};
use crate::zip::{Archive, Way};
use crate::{gif, gz};

/// The compressions of one file.
const KINDS: [&str; 4] = ["gz", "xz", "bz2", "zst"];

fn packed(kind: &str, content: &[u8]) -> Vec<u8> {
    match kind {
        "gz" => gz::packed("content", content),
        "xz" => xz(content, CheckType::Crc64, &[], true),
        "bz2" => bz2(content),
        _ => zst(content),
    }
}

/// Unpacks a file by the library for its compression.
fn unpacked(kind: &str, file: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    let result = match kind {
        "gz" => MultiGzDecoder::new(file).read_to_end(&mut content),
        "xz" => XzReader::new(file, true).read_to_end(&mut content),
        "bz2" => MultiBzDecoder::new(file).read_to_end(&mut content),
        _ => zstd::Decoder::new(file).and_then(|mut zst| zst.read_to_end(&mut content)),
    };
    result.unwrap();
    content
}

/// Unpacks a 7z archive by its library: names and contents.
fn unpacked_7z(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut reader = ArchiveReader::new(Cursor::new(archive), Password::empty()).unwrap();
    reader.set_thread_count(1);
    let taken = reader.for_each_entries(|entry, reader| {
        let mut content = Vec::new();
        reader.read_to_end(&mut content)?;
        files.insert(entry.name().to_string(), content);
        Ok(true)
    });
    taken.unwrap();
    files
}

fn paths(all: &All) -> Vec<&str> {
    all.members.iter().map(|(path, ..)| &**path).collect()
}

/// Returns the paths and reasons of what was skipped.
fn skipped(all: &All) -> Vec<(&str, &str)> {
    all.skipped.iter().map(|(path, reason)| (&**path, *reason)).collect()
}

#[test]
fn the_content_of_a_compressed_file_is_its_member() {
    for kind in KINDS {
        let (one, two) = (mixed(1, 9000), noise(2, 700));
        let file = [packed(kind, &one), packed(kind, &two)].concat();
        assert_eq!((archive_kind(&file), is_archive(kind)), (Some(kind), true));
        let all = every(&file, &Limits::default());
        assert_eq!(all.members, [("!content".to_string(), [one, two].concat(), None)], "{kind}");
        assert!(all.skipped.is_empty(), "{kind}: {:?}", all.skipped);
        let empty = every(&packed(kind, b""), &Limits::default());
        assert_eq!(empty.members, [("!content".to_string(), Vec::new(), None)], "{kind}");
        // A tape in it is read as a stream.
        let tape = tape(&[entry(b"a", b'0', b"on a tape"), entry(b"b", b'0', &noise(3, 3000))]);
        let all = every(&packed(kind, &tape), &Limits::default());
        assert_eq!((paths(&all), all.skipped.len()), (vec!["!content!a", "!content!b"], 0));
    }
    for filter in FILTERS {
        let all =
            every(&xz(&mixed(4, 3000), CheckType::Sha256, &[filter], false), &Limits::default());
        assert_eq!(all.members[0].1, mixed(4, 3000), "{filter:?}");
    }
    // Programs that compress by several threads put the sizes of frames into skippable ones.
    let skippable =
        [&[0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 1, 2, 3, 4][..], &zst(b"frame")].concat();
    assert_eq!(archive_kind(&skippable), Some("zst"));
    assert_eq!(every(&skippable, &Limits::default()).members[0].1, b"frame");
    for not in [&b"BZh9 and more"[..], &skippable[..8], &[0xFF; 512], b"7zXZ", b""] {
        assert_eq!(archive_kind(not), None, "{not:02x?}");
    }
}

#[test]
fn members_of_7z_are_those_of_its_library() {
    let contents = [mixed(1, 1500), Vec::new(), noise(2, 300), mixed(3, 90_000), gif::small()];
    for (way, methods) in ways() {
        for is_solid in [false, true] {
            let file = archive(&methods, &contents, is_solid);
            let all = every(&file, &Limits::default());
            let members: BTreeMap<String, Vec<u8>> = all
                .members
                .iter()
                .map(|(path, bytes, _)| (path[1..].to_string(), bytes.clone()))
                .collect();
            assert_eq!(members, unpacked_7z(&file), "{way}, solid: {is_solid}");
            assert_eq!((members.len(), all.skipped.len()), (contents.len(), 0), "{way}");
            for (index, content) in contents.iter().enumerate() {
                assert_eq!(members[&format!("folder/{index}.txt")], *content, "{way}");
            }
            // `every` compares the bytes at these places.
            let has_place = |bytes: &[u8], place: Option<u64>| bytes.is_empty() || place.is_some();
            let are_stored = all.members.iter().all(|(_, bytes, place)| has_place(bytes, *place));
            assert_eq!(are_stored, way == "Copy");
        }
    }
}

#[test]
fn archives_of_every_type_are_followed_in_every_other() {
    let tape = tape(&[entry(b"deep", b'0', b"at the bottom")]);
    let seven_zip = archive(&ways()[2].1, &[packed("xz", &tape), zst(b"frame")], true);
    let mut zip = Archive::default();
    zip.add("s.7z", &seven_zip, Way::Deflated);
    let file = packed("bz2", &zip.finish(b""));
    let all = every(&file, &Limits { depth_max: 5, ..Limits::default() });
    let zip = "!content!s.7z";
    let expected = [
        "!content".to_string(),
        zip.to_string(),
        format!("{zip}!folder/0.txt"),
        format!("{zip}!folder/0.txt!content!deep"),
        format!("{zip}!folder/1.txt"),
        format!("{zip}!folder/1.txt!content"),
    ];
    assert_eq!(
        (paths(&all), all.skipped.len()),
        (expected.iter().map(|path| &**path).collect(), 0)
    );
    let all = every(&file, &Limits { depth_max: 3, ..Limits::default() });
    let deep = "archives nested too deep";
    assert_eq!(skipped(&all), [(&*expected[2], deep), (&*expected[4], deep)]);
}

/// Makes a zip archive of a member that is compressed by the method with this number.
fn zip_by(method: u16, data: &[u8], unpacked: usize) -> Vec<u8> {
    let mut zip = Archive::default();
    zip.add("member", data, Way::Stored);
    let mut zip = zip.finish(b"");
    let entry = memchr::memmem::find(&zip, b"PK\x01\x02").unwrap();
    for at in [8, entry + 10] {
        zip[at..at + 2].copy_from_slice(&method.to_le_bytes());
    }
    for at in [22, entry + 24] {
        zip[at..at + 4].copy_from_slice(&(unpacked as u32).to_le_bytes());
    }
    zip
}

/// Compresses `content` by LZMA as zip archives have it.
fn zip_lzma(content: &[u8], has_end_mark: bool) -> Vec<u8> {
    let mut options = LzmaOptions::with_preset(1);
    options.dict_size = 1 << 16;
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, has_end_mark).unwrap();
    writer.write_all(content).unwrap();
    let properties = writer.props();
    let data = writer.finish().unwrap();
    [&[9, 20, 5, 0, properties][..], &(1u32 << 16).to_le_bytes(), &data].concat()
}

#[test]
fn zip_members_of_newer_methods_are_unpacked() {
    let content = mixed(7, 20_000);
    let members = [
        (12, packed("bz2", &content)),
        (14, zip_lzma(&content, false)),
        (14, zip_lzma(&content, true)),
        (93, packed("zst", &content)),
        (95, packed("xz", &content)),
    ];
    for (method, data) in members {
        let all = every(&zip_by(method, &data, content.len()), &Limits::default());
        assert!(all.skipped.is_empty(), "method {method}: {:?}", all.skipped);
        assert_eq!(
            all.members,
            [("!member".to_string(), content.clone(), None)],
            "method {method}"
        );
        let half = &data[..data.len() / 2];
        let all = every(&zip_by(method, half, content.len()), &Limits::default());
        assert_eq!(
            (all.members.len(), skipped(&all)),
            (0, vec![("!member", "cannot be unpacked")])
        );
    }
    // Deflate64.
    let all = every(&zip_by(9, b"data", 4), &Limits::default());
    assert_eq!(
        skipped(&all),
        [("!member", "data compressed by an unsupported method were not read")]
    );
}

#[test]
fn damage_is_reported_and_what_precedes_it_is_passed_on() {
    for kind in KINDS {
        let file = packed(kind, &noise(1, 50_000));
        let mut broken = file.clone();
        broken[file.len() / 2] ^= 0x10;
        for damaged in [&broken[..], &file[..file.len() - 9], &[&file[..], b"garbage"].concat()] {
            let all = every(damaged, &Limits::default());
            assert_eq!((all.members.len(), skipped(&all).len()), (0, 1), "{kind}");
            assert_eq!(skipped(&all)[0], ("!content", "cannot be unpacked"), "{kind}");
        }
        // Of a tape, the files before the damage are whole.
        let files: Vec<_> = (0..40)
            .map(|index| entry(format!("{index}").as_bytes(), b'0', &noise(index, 9000)))
            .collect();
        let file = packed(kind, &tape(&files));
        let all = every(&file[..file.len() / 2], &Limits::default());
        assert!(!all.members.is_empty() && all.members.len() < 40, "{kind}: {}", all.members.len());
        for (index, (path, bytes, _)) in all.members.iter().enumerate() {
            assert_eq!(
                (&**path, bytes),
                (&*format!("!content!{index}"), &noise(index as u32, 9000))
            );
        }
        let reasons: Vec<_> = skipped(&all).into_iter().map(|(_, reason)| reason).collect();
        assert!(reasons.contains(&"the archive ends early"), "{kind}: {reasons:?}");
    }
}

#[test]
fn damage_to_a_7z_is_reported_for_each_member() {
    let contents = [noise(1, 3000), noise(2, 3000), noise(3, 3000)];
    // Members that are compressed together are damaged from the first damaged byte on, others alone.
    for (is_solid, expected) in [(false, 2), (true, 3)] {
        let mut file = archive(&ways()[2].1, &contents, is_solid);
        let second = memchr::memmem::find(&file, &contents[1][100..200]).expect("noise is stored");
        file[second] ^= 1;
        // Stored blocks of LZMA2 have no checksum, so that only the file's own reveals the change.
        let all = every(&file, &Limits::default());
        let expected_here = [("!folder/1.txt", "cannot be unpacked")];
        assert_eq!(skipped(&all), expected_here, "solid: {is_solid}");
        assert_eq!(paths(&all), ["!folder/0.txt", "!folder/2.txt"]);
        // No block begins like this.
        file[32..second].fill(0xFF);
        let all = every(&file, &Limits::default());
        assert_eq!(all.skipped.len(), expected, "{:?}", all.skipped);
        assert!(all.skipped.iter().all(|(_, reason)| reason.contains("cannot be unpacked")));
    }
    let file = archive(&ways()[2].1, &contents, true);
    let mut broken = file.clone();
    let last = broken.len() - 1;
    broken[last] ^= 1;
    let no_directory = [("", "the archive has no readable directory")];
    assert_eq!(skipped(&every(&broken, &Limits::default())), no_directory);
    assert_eq!(skipped(&every(&file[..file.len() - 1], &Limits::default())), no_directory);
}

/// The list of files of a header that [`header`] made: one name.
fn with_name(mut header: Vec<u8>, name: &str) -> Vec<u8> {
    let name: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    header.truncate(header.len() - 2);
    header.extend([0x11, name.len() as u8 + 1, 0]);
    header.extend(name);
    header.extend([0, 0]);
    header
}

#[test]
fn members_of_7z_that_cannot_be_read_say_why() {
    let content = mixed(1, 100);
    let of = |method: &[u8], properties: &[u8]| {
        let header = header(method, properties, 100, 100, crc32(&content));
        every(&with_header(&content, &with_name(header, "š.txt")), &Limits::default())
    };
    assert_eq!(paths(&of(&[0], &[])), ["!š.txt"]);
    let encrypted = of(&[0x06, 0xF1, 0x07, 0x01], &[0x13, 0]);
    assert_eq!(skipped(&encrypted), [("!š.txt", "encrypted data were not read")]);
    let deflate64 = of(&[0x04, 0x01, 0x09], &[]);
    let unsupported = "data compressed by an unsupported method were not read";
    assert_eq!(skipped(&deflate64), [("!š.txt", unsupported)]);
    // Without a name, and with a wrong checksum.
    let nameless = header(&[0], &[], 100, 100, crc32(&content));
    assert_eq!(paths(&every(&with_header(&content, &nameless), &Limits::default())), ["!content"]);
    let wrong = header(&[0], &[], 100, 100, [0; 4]);
    let wrong = every(&with_header(&content, &wrong), &Limits::default());
    assert_eq!(skipped(&wrong), [("!content", "cannot be unpacked")]);
}

#[test]
fn every_compression_stays_within_the_limits() {
    let zeros = vec![0; 12 << 20];
    let limits =
        Limits { member_bytes_max: 1 << 20, unpacked_bytes_max: 4 << 20, ..Limits::default() };
    for kind in KINDS {
        let all = every(&packed(kind, &zeros), &limits);
        assert_eq!(skipped(&all), [("!content", "larger than the limit for a member")], "{kind}");
        let few = Limits { unpacked_bytes_max: 1 << 19, ..limits };
        let all = every(&packed(kind, &zeros), &few);
        assert_eq!(
            skipped(&all),
            [("!content", "archive unpacks to more than the limit")],
            "{kind}"
        );
        // A tape of one large file, which is skipped.
        let tape = tape(&[entry(b"zeros", b'0', &zeros), entry(b"x", b'0', b"x")]);
        let all = every(&packed(kind, &tape), &limits);
        assert!(all.members.is_empty() && all.skipped.len() >= 2, "{kind}: {:?}", all.skipped);
    }
    // A member that is skipped precedes others in the same stream.
    let contents = [zeros[..2 << 20].to_vec(), b"small".to_vec(), zeros.clone(), b"last".to_vec()];
    let file = archive(&ways()[2].1, &contents, true);
    let all = every(&file, &limits);
    assert_eq!(paths(&all), ["!folder/1.txt"]);
    let reasons = skipped(&all);
    assert_eq!(reasons[0], ("!folder/0.txt", "larger than the limit for a member"));
    assert_eq!(reasons[2], ("!folder/2.txt", "archive unpacks to more than the limit"));
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    let two = Limits { members_max: 2, ..Limits::default() };
    let all = every(&archive(&ways()[2].1, &vec![b"x".to_vec(); 9], true), &two);
    assert_eq!(all.members.len(), 2);
    assert_eq!(skipped(&all), [("!folder/1.txt", "archive unpacks to more than the limit")]);
}

#[test]
fn decoders_stay_within_their_memory() {
    let limits = |bytes: u64| Limits { decoder_bytes_max: bytes, ..Limits::default() };
    let large = "data that take more memory to unpack than the limit were not read";
    let content = noise(1, 3 << 20);
    let window = |log: u32| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(log).unwrap();
        encoder.write_all(&content).unwrap();
        encoder.finish().unwrap()
    };
    let zst = window(21);
    assert_eq!(every(&zst, &limits(2 << 20)).members.len(), 1);
    assert_eq!(skipped(&every(&zst, &limits(1 << 20))), [("!content", large)]);
    let dictionary = |bytes: u32| {
        let mut options = lzma_rust2::XzOptions::with_preset(1);
        options.lzma_options.dict_size = bytes;
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(&content[..9000]).unwrap();
        writer.finish().unwrap()
    };
    let xz = dictionary(4 << 20);
    assert_eq!(every(&xz, &limits(4 << 20)).members.len(), 1);
    assert_eq!(skipped(&every(&xz, &limits(2 << 20))), [("!content", large)]);
    let seven_zip = archive(&ways()[2].1, std::slice::from_ref(&content), true);
    assert_eq!(every(&seven_zip, &limits(4 << 20)).members.len(), 1);
    assert_eq!(skipped(&every(&seven_zip, &limits(1 << 14))), [("!folder/0.txt", large)]);
    // Each level of nesting allows half as much.
    let mut zip = Archive::default();
    zip.add("inner", &xz, Way::Stored);
    let zip = zip.finish(b"");
    assert_eq!(skipped(&every(&zip, &limits(6 << 20))), [("!inner!content", large)]);
    assert_eq!(every(&zip, &limits(8 << 20)).members.len(), 2);
    // A frame that needs a dictionary.
    let mut with_dictionary = zst.clone();
    with_dictionary[4] |= 1;
    let all = every(&with_dictionary, &Limits::default());
    assert_eq!(skipped(&all), [("!content", "data packed with a dictionary were not read")]);
}

#[test]
fn files_in_all_archives_are_recognised() {
    let found = |kind: &str, file: &[u8]| {
        let source = Memory::new("archive", file);
        let mut view = View::of(&source, &[Extent { offset: 0, length: file.len() as u64 }]);
        let mut found = Vec::new();
        walk(kind, &mut view, &Limits::default(), &mut |one| {
            if let Content::File { kind, .. } = one.content {
                found.push((one.path.to_string(), kind.name));
            }
        });
        found
    };
    for kind in ["xz", "bz2", "zst"] {
        assert_eq!(found(kind, &packed(kind, &gif::small())), [(format!("{kind}!content"), "gif")]);
    }
    let inner = packed("xz", &gif::small());
    let file = archive(&ways()[1].1, &[b"text".to_vec(), gif::small(), Vec::new(), inner], true);
    let name = |index: u32| format!("7z!folder/{index}.txt");
    let expected = [(name(1), "gif"), (name(3), "xz"), (format!("{}!content", name(3)), "gif")];
    assert_eq!(found("7z", &file), expected);
}

/// Passes on the members of an archive whose parts are out of order in the source.
fn from_fragments(file: &[u8], cuts: &[prop::sample::Index]) -> All {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(file.len())).collect();
    at.extend([0, file.len()]);
    at.sort_unstable();
    let parts: Vec<&[u8]> = at.windows(2).map(|pair| &file[pair[0]..pair[1]]).collect();
    // The source has the parts from the last to the first.
    let (mut bytes, mut extents) = (Vec::new(), Vec::new());
    for part in parts.into_iter().rev() {
        extents.push(Extent { offset: bytes.len() as u64, length: part.len() as u64 });
        bytes.extend(part);
        bytes.extend(b"gap");
    }
    extents.reverse();
    let source = Memory::new("archive", bytes);
    let mut all = All::default();
    let (kind, stop) = (archive_kind(file).unwrap(), AtomicBool::new(false));
    members(kind, &mut View::of(&source, &extents), &Limits::default(), &stop, &mut all);
    all
}

/// The offsets of a needle in each member, by a plain search.
fn hits(members: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<(String, Vec<usize>)> {
    let search = |bytes: &[u8]| memchr::memmem::find_iter(bytes, b"needle").collect();
    let mut hits: Vec<_> = members.map(|(name, bytes)| (name, search(&bytes))).collect();
    hits.sort();
    hits
}

/// Ends after a number of members.
struct Few(usize);

impl TakeMembers for Few {
    fn member(&mut self, _: &str, _: &Arc<Vec<u8>>, _: Option<u64>) -> bool {
        self.0 -= 1;
        self.0 > 0
    }

    fn skipped(&mut self, path: &str, reason: &'static str) {
        panic!("{path}: {reason}");
    }
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"needle".to_vec()),
        (any::<u32>(), 0usize..900).prop_map(|(seed, bytes)| mixed(seed, bytes)),
        (any::<u32>(), 0usize..300).prop_map(|(seed, bytes)| noise(seed, bytes)),
        (any::<u8>(), 0usize..9000).prop_map(|(byte, bytes)| vec![byte; bytes]),
    ];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(fixed_cases(150))]

    #[test]
    fn compressed_files_hold_what_their_library_unpacks(
        kind in 0usize..4,
        streams in prop::collection::vec(content(), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        place in any::<prop::sample::Index>(),
        mask in any::<u8>(),
    ) {
        let kind = KINDS[kind];
        let file: Vec<u8> = streams.iter().flat_map(|content| packed(kind, content)).collect();
        let expected = unpacked(kind, &file);
        prop_assert_eq!(&expected, &streams.concat());
        let all = from_fragments(&file, &cuts);
        prop_assert!(all.skipped.is_empty(), "{:?}", all.skipped);
        let found = all.members.into_iter().map(|(path, bytes, _)| (path, bytes));
        prop_assert_eq!(hits(found), hits([("!content".to_string(), expected.clone())].into_iter()));
        // Damaged, it holds the same bytes, or is skipped.
        let mut broken = file.clone();
        broken[place.index(file.len())] ^= mask;
        if archive_kind(&broken) == Some(kind) {
            let all = every(&broken, &Limits::default());
            match &all.members[..] {
                [] => prop_assert_eq!(all.skipped.len(), 1),
                [(_, bytes, _)] => prop_assert_eq!(bytes, &expected),
                more => prop_assert!(false, "{} members", more.len()),
            }
        }
    }

    #[test]
    fn members_of_7z_hold_what_its_library_unpacks(
        way in 0usize..9,
        is_solid in any::<bool>(),
        contents in prop::collection::vec(content(), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        most in 1usize..6,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let file = archive(&ways()[way].1, &contents, is_solid);
        let all = from_fragments(&file, &cuts);
        prop_assert!(all.skipped.is_empty(), "{:?}", all.skipped);
        let expected = unpacked_7z(&file);
        let found = all.members.into_iter().map(|(path, bytes, _)| (path[1..].to_string(), bytes));
        let found: Vec<_> = found.collect();
        prop_assert_eq!(&found.iter().cloned().collect::<BTreeMap<_, _>>(), &expected);
        prop_assert_eq!(hits(found.into_iter()), hits(expected.clone().into_iter()));
        // The receiver ends the walk.
        let source = Memory::new("archive", &file[..]);
        let mut few = Few(most.min(contents.len()));
        let whole = Extent { offset: 0, length: file.len() as u64 };
        members("7z", &mut View::of(&source, &[whole]), &Limits::default(), &AtomicBool::new(false), &mut few);
        prop_assert_eq!(few.0, 0);
        // Damaged, each member holds the same bytes, or is skipped.
        let mut broken = file.clone();
        for (place, mask) in changes {
            let place = place.index(file.len());
            broken[place] ^= mask;
        }
        if archive_kind(&broken) == Some("7z") {
            let all = every(&broken, &Limits::default());
            for (path, bytes, _) in &all.members {
                prop_assert_eq!(Some(bytes), expected.get(&path[1..]), "{}", path);
            }
            let is_unread = all.skipped.iter().any(|(path, _)| path.is_empty());
            let known = all.members.len() + all.skipped.len();
            prop_assert!(is_unread || known == contents.len(), "{:?}", all.skipped);
        }
    }
}
