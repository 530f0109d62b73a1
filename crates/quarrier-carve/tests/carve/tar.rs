//! Tapes.

use quarrier_carve::format::tar::Tar;
use quarrier_carve::{Carver, Verdict};

use crate::sample::{carved, check_whole_file, noise, valid, validated};

/// Makes an entry of a tape.
pub(crate) fn entry(name: &[u8], kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    header[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar  \0");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut entry = [&header[..], content].concat();
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

/// Makes a tape of these entries, padded to a record.
pub(crate) fn tape(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut tape = entries.concat();
    tape.resize((tape.len() + 1024).next_multiple_of(10_240), 0);
    tape
}

fn sample() -> Vec<u8> {
    tape(&[
        entry(b"folder", b'5', b""),
        entry(b"folder/one", b'0', &noise(1, 3000)),
        entry(b"folder/two", b'0', &noise(2, 512)),
    ])
}

#[test]
fn a_tape_ends_with_its_last_record() {
    let tar = sample();
    for after in [&[][..], &[1; 5000], &noise(3, 70_000)] {
        let verdict = validated(&Tar, &tar, after);
        assert!(matches!(verdict, Verdict::Whole { length, .. } if length == tar.len() as u64));
    }
}

#[test]
fn a_tape_that_is_not_filled_up_ends_with_two_blocks_of_zeros() {
    let mut tar = sample();
    let end = tar.iter().rposition(|byte| *byte != 0).unwrap().next_multiple_of(512);
    tar.truncate(end + 1024);
    let verdict = validated(&Tar, &tar, &[1; 20_000]);
    assert!(matches!(verdict, Verdict::Whole { length, .. } if length == tar.len() as u64));
}

#[test]
fn a_tape_breaks_at_a_header_whose_checksum_is_wrong() {
    let mut tar = sample();
    tar[512 + 3] ^= 1;
    assert!(matches!(validated(&Tar, &tar, &[]), Verdict::Broken { sure: 512, at: 512, .. }));
    tar[3] ^= 1;
    assert_eq!(validated(&Tar, &tar, &[]), Verdict::Not);
}

#[test]
fn entries_of_a_tape_are_not_tapes() {
    let image = [&noise(5, 4096)[..], &sample(), &noise(6, 4096)].concat();
    let files = carved(&Carver::new().formats(vec![&Tar]), &image);
    assert!(valid(&files) == [&sample()[..]], "{} files", files.len());
    // Even if the first header is lost, the carver finds only one file.
    let image = [&noise(5, 4096)[..], &sample()[512..], &noise(6, 4096)].concat();
    let files = carved(&Carver::new().formats(vec![&Tar]), &image);
    assert_eq!(files.len(), 1);
}

#[test]
fn lengths_beyond_everything_are_broken() {
    let mut tar = entry(b"big", b'0', b"");
    tar[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    tar[148..156].fill(b' ');
    let sum: u32 = tar[..512].iter().map(|byte| u32::from(*byte)).sum();
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert!(matches!(validated(&Tar, &tar, &[0; 5000]), Verdict::Broken { sure: 512, .. }));
}

#[test]
fn a_short_tape_is_checked_as_every_file() {
    let mut tar = sample();
    let end = tar.iter().rposition(|byte| *byte != 0).unwrap().next_multiple_of(512);
    // The tape is so long that it has no padding: zeros after it do not belong to it.
    tar.truncate(end);
    let content = vec![b'x'; 10_240 - 1024 - tar.len() - 512];
    tar.extend(entry(b"last", b'0', &content));
    tar.resize(10_240, 0);
    check_whole_file(&Tar, "tar", &tar);
}
