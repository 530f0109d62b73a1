//! EWF images: the same rows as from the bytes inside.

use std::path::Path;

use md5::{Digest, Md5};
use quarrier_core::source::{Source, read_full_at};
use quarrier_images::ewf::EwfSource;

use crate::carve::{carve, gif, image, tree};
use crate::harness::{Lab, noise, run, skip};
use crate::remote::Server;

const CHUNK_BYTES: usize = 32 << 10;

/// Adler-32, straight from its definition.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let (mut a, mut b) = (1u32, 0u32);
    for &byte in &bytes {
        a = (a + u32::from(byte)) % 65521;
        b = (b + a) % 65521;
    }
    bytes.extend((b << 16 | a).to_le_bytes());
    bytes
}

fn section(segment: &mut Vec<u8>, kind: &str, data: &[u8]) {
    let next = match kind {
        "next" | "done" => segment.len() as u64,
        _ => (segment.len() + 76 + data.len()) as u64,
    };
    let mut header = kind.as_bytes().to_vec();
    header.resize(16, 0);
    header.extend(next.to_le_bytes());
    header.extend((76 + data.len() as u64).to_le_bytes());
    header.resize(72, 0);
    segment.extend(sealed(header));
    segment.extend(data);
}

/// An image of stored chunks, `chunks_each` of them in a segment.
pub(crate) fn ewf(media: &[u8], chunks_each: usize) -> Vec<Vec<u8>> {
    let count = media.len().div_ceil(CHUNK_BYTES * chunks_each);
    let segment_of = |(index, part): (usize, &[u8])| {
        let mut segment = b"EVF\x09\x0d\x0a\xff\x00\x01".to_vec();
        segment.extend([index as u8 + 1, 0, 0, 0]);
        if index == 0 {
            let mut volume = vec![0; 1048];
            volume[4..8].copy_from_slice(&(media.len().div_ceil(CHUNK_BYTES) as u32).to_le_bytes());
            volume[8..12].copy_from_slice(&(CHUNK_BYTES as u32 / 512).to_le_bytes());
            volume[12..16].copy_from_slice(&512u32.to_le_bytes());
            volume[16..24].copy_from_slice(&(media.len() as u64 / 512).to_le_bytes());
            section(&mut segment, "volume", &sealed(volume));
        }
        let (mut data, mut entries, mut table) = (Vec::new(), Vec::new(), Vec::new());
        let start = segment.len() + 76;
        for chunk in part.chunks(CHUNK_BYTES) {
            entries.extend(((start + data.len()) as u32).to_le_bytes());
            data.extend(sealed(chunk.to_vec()));
        }
        section(&mut segment, "sectors", &data);
        table.extend((entries.len() as u32 / 4).to_le_bytes());
        table.resize(20, 0);
        let table = [sealed(table), sealed(entries)].concat();
        section(&mut segment, "table", &table);
        if index + 1 == count {
            section(&mut segment, "hash", &sealed([&Md5::digest(media)[..], &[0; 16]].concat()));
        }
        section(&mut segment, if index + 1 == count { "done" } else { "next" }, &[]);
        segment
    };
    media.chunks(CHUNK_BYTES * chunks_each).enumerate().map(segment_of).collect()
}

/// A lab with the media as `f` and its image as `image.E01` and following segments.
fn lab_with(media: &[u8]) -> (Lab, usize) {
    let lab = Lab::with(media);
    let segments = ewf(media, 4);
    for (index, segment) in segments.iter().enumerate() {
        lab.put(format!("image.E{:02}", index + 1), segment);
    }
    (lab, segments.len())
}

fn lab() -> (Lab, usize) {
    let mut media = noise(700 * 512, 3);
    for at in [0, CHUNK_BYTES - 3, 4 * CHUNK_BYTES - 5, 200_000, media.len() - 7] {
        media[at..at + 7].copy_from_slice(b"<token>");
    }
    lab_with(&media)
}

#[test]
fn an_image_gives_the_rows_of_the_bytes_it_holds() {
    let (lab, segments) = lab();
    assert_eq!(segments, 3);
    let patterns = ["-e", "<token>", "-x", "0? ?0", "-E", "[a-f]{2,9}", "--format", "json"];
    let from_file = lab.search(patterns.iter().chain(&["f"])).rows();
    assert!(from_file.len() > 100);
    for extra in [&[][..], &["--buffer-size", "4K", "--workers", "3"], &["--direct"]] {
        // A shell expands a glob to all segments, which are still one source.
        for named in [&["image.E01"][..], &["image.E01", "image.E02", "image.E03"], &["image.E*"]] {
            let mut rows = lab.search(patterns.iter().chain(extra).chain(named)).rows();
            assert!(rows.iter().all(|row| row.source == "image.E01"));
            rows.iter_mut().for_each(|row| row.source = "f".to_string());
            assert_eq!(rows, from_file, "{extra:?} {named:?}");
        }
    }
}

#[test]
fn an_image_at_a_url_has_its_segments_beside_it() {
    let (lab, _) = lab();
    let objects = ["image.E01", "image.E02", "image.E03"];
    let objects = objects.map(|name| (name, std::fs::read(lab.path(name)).unwrap()));
    let expected = lab.offsets(["<token>", "f"]);
    let server = Server::with(objects.to_vec());
    assert_eq!(lab.offsets(["<token>", &server.url]), expected);
    // A space in the name is encoded in the URL.
    let encoded = ["an%20image.E01", "an%20image.E02", "an%20image.E03"];
    let encoded = encoded.into_iter().zip(&objects).map(|(name, (_, bytes))| (name, bytes.clone()));
    let server = Server::with(encoded.collect());
    assert_eq!(lab.offsets(["<token>", &server.url]), expected);
    let server = Server::with(objects[..2].to_vec());
    let ran = lab.search(["<token>", &server.url, "-c"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains(".E03 is missing"), "{ran:?}");
}

#[test]
fn a_damaged_chunk_is_listed_and_the_rest_is_searched() {
    let (lab, _) = lab();
    let mut segment = std::fs::read(lab.path("image.E01")).unwrap();
    // In the second chunk.
    let at = 13 + 76 + 1052 + 76 + CHUNK_BYTES + 4 + 1000;
    segment[at] ^= 1;
    lab.put("image.E01", &segment);
    let ran = lab.search(["<token>", "image.E01", "-c"]);
    assert_eq!((ran.code, ran.text().trim()), (Some(3), "4  <token>"), "{}", ran.stderr);
    assert!(ran.stderr.contains("32768"), "{}", ran.stderr);
}

#[test]
fn an_image_that_claims_more_than_its_tables_have_is_over_at_once() {
    let media = image(2 * CHUNK_BYTES, &[(0, &gif("a"))]);
    let lab = Lab::new();
    let mut segment = ewf(&media, 4).remove(0);
    // The volume claims to have 2^50 sectors.
    let volume = 13 + 76;
    segment[volume + 16..volume + 24].copy_from_slice(&(1u64 << 50).to_le_bytes());
    let sum = sealed(segment[volume..volume + 1048].to_vec());
    segment[volume..volume + 1052].copy_from_slice(&sum);
    lab.put("image.E01", &segment);
    let lost = format!("bytes {}..{} could not be read", 2 * CHUNK_BYTES, 1u64 << 59);
    for arguments in [
        &["search", "GIF", "image.E01", "-c"][..],
        &["search", "GIF", "image.E01", "-c", "--range", "60000.."],
        &["carve", "image.E01", "--dry-run"],
        &["filter", "a > 0", "image.E01"],
        &["explain", "a > 0", "image.E01"],
    ] {
        let ran = run(lab.command(arguments), b"");
        let is_read_apart = !matches!(arguments[0], "filter" | "explain");
        assert!(matches!(ran.code, Some(2 | 3)), "{arguments:?}: {ran:?}");
        assert!(!is_read_apart || ran.code == Some(3), "{arguments:?}: {ran:?}");
        assert!(!is_read_apart || ran.stderr.contains(&lost), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_missing_segment_is_named_and_the_others_are_searched() {
    let (lab, _) = lab();
    std::fs::remove_file(lab.path("image.E02")).unwrap();
    let ran = lab.search(["<token>", "image.E01", "-c"]);
    assert_eq!((ran.code, ran.text().trim()), (Some(3), "2  <token>"), "{}", ran.stderr);
    assert!(ran.stderr.contains(".E02 is missing"), "{}", ran.stderr);
    let unread = format!("{}..{}", 4 * CHUNK_BYTES, 700 * 512);
    assert!(ran.stderr.contains(&unread), "{}", ran.stderr);
}

#[test]
fn damage_that_prevents_a_command_is_reported_once() {
    let lab = Lab::new();
    let image = ewf(&[b'x'; 8 * CHUNK_BYTES], 8).remove(0);
    lab.put("image.E01", &image[..image.len() / 2]);
    lab.put("r.yar", "rule r { strings: $a = \"x\" condition: $a }");
    for arguments in [
        &["files", "image.E01"][..],
        &["search", "x", "image.E01", "--where"],
        &["search", "x", "image.E01", "--unallocated"],
        &["search", "--rules", "r.yar", "image.E01"],
        &["carve", "image.E01", "--dry-run", "--unallocated"],
    ] {
        let ran = run(lab.command(arguments), b"");
        let lines = ran.stderr.lines().count();
        assert_eq!((ran.code, lines), (Some(2), 1), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("the image ends before chunk 0"), "{}", ran.stderr);
    }
    // The other commands list the unreadable ranges after the cause.
    for arguments in [&["search", "x", "image.E01"][..], &["carve", "image.E01", "--dry-run"]] {
        let ran = run(lab.command(arguments), b"");
        let lines: Vec<_> = ran.stderr.lines().collect();
        assert_eq!((ran.code, lines.len()), (Some(3), 2), "{arguments:?}: {}", ran.stderr);
        assert!(lines[0].contains("the image ends before chunk 0"), "{lines:?}");
        assert!(lines[1].ends_with("bytes 0..262144 could not be read"), "{lines:?}");
    }
}

#[test]
fn known_images_give_the_same_rows_from_every_container() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora/containers");
    if !Path::new(folder).exists() {
        skip("the images are not here");
        return;
    }
    let lab = Lab::new();
    let rows_of = |name: &str| {
        let path = format!("{folder}/{name}");
        let ran = lab.search(["-E", "[a-z]{4,40}", "-x", "53 EF", "--format", "json", &path]);
        let mut rows = ran.rows();
        rows.iter_mut().for_each(|row| row.source.clear());
        rows
    };
    let raw = rows_of("ext2.splitraw.000");
    assert!(raw.len() > 40);
    assert_eq!(rows_of("ext2.E01"), raw);
    assert_eq!(rows_of("ext2.split.E01"), raw);
}

/// Three pictures across the borders of chunks and segments, one broken, in 350 KiB.
fn pictures() -> Vec<u8> {
    let mut broken = gif("c");
    *broken.last_mut().unwrap() = 0x77;
    let long = gif(&"segment ".repeat(2000));
    image(700 * 512, &[(CHUNK_BYTES - 9, &gif("a")), (120_000, &long), (250_000, &broken)])
}

/// The files of a carved folder, without the name of the source in its reports.
fn carved(lab: &Lab, source: &str, folder: &str) -> Vec<(String, String)> {
    let ran = carve(lab, &[source, "-o", folder]);
    assert!(ran.code < Some(2) && ran.stderr.is_empty(), "{ran:?}");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(source, "f");
    tree(&lab.path(folder)).into_iter().map(|(name, bytes)| (name, text(bytes))).collect()
}

#[test]
fn carving_an_image_gives_the_files_and_reports_of_its_bytes() {
    let (lab, segments) = lab_with(&pictures());
    assert_eq!(segments, 3);
    let expected = carved(&lab, "f", "raw");
    assert_eq!(expected.len(), 5);
    assert!(carved(&lab, "image.E01", "ewf") == expected);
}

#[test]
fn the_hash_that_is_stored_in_an_image_is_compared_when_asked_for() {
    let (lab, _) = lab_with(&pictures());
    let md5: String = Md5::digest(pictures()).iter().map(|byte| format!("{byte:02x}")).collect();
    carve(&lab, &["image.E01", "-o", "out", "--verify", "--report", "page.html"])
        .says(0, &[&format!("image.E01: stored MD5 {md5}: matches")]);
    assert!(std::fs::read_to_string(lab.path("page.html")).unwrap().contains(&md5));
    // Another hash, with a matching checksum.
    let mut segment = std::fs::read(lab.path("image.E03")).unwrap();
    let at = segment.len() - 76 - 36;
    let hash = sealed([&[0xAB; 16][..], &[0; 16]].concat());
    segment[at..at + 36].copy_from_slice(&hash);
    lab.put("image.E03", &segment);
    carve(&lab, &["image.E01", "-o", "other", "--verify"])
        .says(3, &[&"ab".repeat(16), "does not match", &md5]);
    assert!(tree(&lab.path("other")) == tree(&lab.path("out")));
    // A damaged hash.
    segment[at] ^= 1;
    lab.put("image.E03", &segment);
    carve(&lab, &["image.E01", "--dry-run", "--verify"]).refuses(&["hash", "image.E03"]);
    carve(&lab, &["f", "--dry-run", "--verify"]).refuses(&["EWF", "--verify"]);
}

#[test]
fn known_images_are_carved_as_their_bytes_are_and_their_hashes_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora/ewf");
    if !Path::new(folder).exists() {
        return skip("the images are not here");
    }
    for (name, md5, files) in [
        ("nps-2010-emails.E01", "2f5ec5894f7fe3cea93bd29e7cf1eb50", 20),
        ("email_test.E01", "b817ed2590eeeb39f42445088d369f6c", 0),
    ] {
        let path = format!("{folder}/{name}");
        let image = EwfSource::open(Path::new(&path)).unwrap();
        let mut bytes = vec![0; image.length() as usize];
        assert_eq!(read_full_at(&image, 0, &mut bytes).unwrap(), bytes.len());
        let lab = Lab::with(&bytes);
        let expected = carved(&lab, "f", "raw");
        assert!(expected.len() > files, "{}", expected.len());
        assert!(carved(&lab, &path, "ewf") == expected, "{name}");
        let ran = carve(&lab, &[&path, "--dry-run", "--verify"]);
        assert!(ran.stderr.contains(&format!("stored MD5 {md5}")), "{}", ran.stderr);
        assert!(ran.stderr.contains(": matches") && !ran.stderr.contains("not"), "{}", ran.stderr);
    }
}
