//! EWF images: the same rows as from the bytes that they hold.

use std::path::Path;

use crate::harness::{Lab, noise, skip};

const CHUNK_BYTES: usize = 32 << 10;

/// Adler-32, as plain as it is defined.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
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
fn ewf(media: &[u8], chunks_each: usize) -> Vec<Vec<u8>> {
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
        section(&mut segment, if index + 1 == count { "done" } else { "next" }, &[]);
        segment
    };
    media.chunks(CHUNK_BYTES * chunks_each).enumerate().map(segment_of).collect()
}

/// A lab with the media as `f` and its image as `image.E01` and on.
fn lab() -> (Lab, usize) {
    let mut media = noise(700 * 512, 3);
    for at in [0, CHUNK_BYTES - 3, 4 * CHUNK_BYTES - 5, 200_000, media.len() - 7] {
        media[at..at + 7].copy_from_slice(b"<token>");
    }
    let lab = Lab::with(&media);
    let segments = ewf(&media, 4);
    for (index, segment) in segments.iter().enumerate() {
        lab.put(format!("image.E{:02}", index + 1), segment);
    }
    (lab, segments.len())
}

#[test]
fn an_image_gives_the_rows_of_the_bytes_it_holds() {
    let (lab, segments) = lab();
    assert_eq!(segments, 3);
    let patterns = ["-e", "<token>", "-x", "0? ?0", "-E", "[a-f]{2,9}", "--format", "json"];
    let from_file = lab.search(patterns.iter().chain(&["f"])).rows();
    assert!(from_file.len() > 100);
    for extra in [&[][..], &["--buffer-size", "4K", "--workers", "3"], &["--direct"]] {
        // A shell expands a glob to all segments, which are one source nevertheless.
        for named in [&["image.E01"][..], &["image.E01", "image.E02", "image.E03"], &["image.E*"]] {
            let mut rows = lab.search(patterns.iter().chain(extra).chain(named)).rows();
            assert!(rows.iter().all(|row| row.source == "image.E01"));
            rows.iter_mut().for_each(|row| row.source = "f".to_string());
            assert_eq!(rows, from_file, "{extra:?} {named:?}");
        }
    }
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
fn a_missing_segment_is_named() {
    let (lab, _) = lab();
    std::fs::remove_file(lab.path("image.E02")).unwrap();
    let ran = lab.search(["<token>", "image.E01"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains(".E02 is missing"), "{}", ran.stderr);
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
