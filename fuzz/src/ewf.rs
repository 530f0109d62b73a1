//! Any bytes as the segments of an EWF image, with valid checksums: an error, or an image that is
//! read within its length.

use quarrier_core::source::{Memory, Source};
use quarrier_images::ewf::EwfSource;

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "ewf", run, once: &[], seeds: SEEDS, words: WORDS };

/// A volume of 3 chunks of 8 sectors, a stored chunk and a compressed one, a table.
const SEEDS: &[&[u8]] = &[
    b"\x00\x18\0\0\0\0\x03\0\0\0\x08\0\0\0\0\x02\0\0\x18\0\0\0\0\0\0\0\
      \x01\x10abcdefghijklmnop\x02\x18\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\x04\0\0\x84\x04\0\0\
      \x03\x10abcdefghijklmnop\x06\0",
    b"\x00\x18\0\0\0\0\xFF\xFF\0\0\x01\0\0\0\0\x02\0\0\xFF\xFF\xFF\xFF\0\0\0\0\
      \x01\x08\x78\x9C\x63\0\0\0\x01\0\x02\x14\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\x05\0",
    b"EVF\x09\x0d\x0a\xff\x00\x01\x01\x00\x00\x00volume",
];

const WORDS: &[&[u8]] = &[
    &[0xFF; 8],
    b"\0\0\0\x80",
    b"\x02\x18\x02\0\0\0",
    b"\x01\x10",
    b"\x05\0",
    b"\x06\0",
    b"\x78\x9C\x63\x60\x18\x05\xA3\0\0",
];

const SECTIONS: [&[u8]; 8] =
    [b"volume", b"sectors", b"table", b"hash", b"digest", b"next", b"done", b"table2"];

/// Reads `bytes` as a segment, and as the contents of sections.
pub fn run(bytes: &[u8]) -> Verdict {
    check(vec![bytes.to_vec()]);
    if check(segments(bytes)) { Verdict::Checked } else { Verdict::Skipped }
}

/// Makes segments of sections: each has a type, a length, and its data with corrected checksums.
fn segments(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut segments = vec![segment(1)];
    while let [kind, length, rest @ ..] = bytes {
        let data = &rest[..usize::from(*length).min(rest.len())];
        bytes = &rest[data.len()..];
        let kind = SECTIONS[usize::from(kind % 8)];
        let data = match kind {
            b"volume" => sealed(filled(data, 1048)),
            b"table" | b"table2" => {
                let (header, entries) = data.split_at(data.len().min(20));
                [sealed(filled(header, 20)), sealed(entries.to_vec())].concat()
            }
            b"hash" => sealed(filled(data, 32)),
            b"digest" => sealed(filled(data, 76)),
            _ => sealed(data.to_vec()),
        };
        let Some(last) = segments.last_mut() else { break };
        let next = match kind {
            b"next" | b"done" => last.len(),
            _ => last.len() + 76 + data.len(),
        };
        let mut header = filled(kind, 16);
        header.extend((next as u64).to_le_bytes());
        last.extend(sealed(filled(&header, 72)));
        last.extend(data);
        if kind == b"next" {
            let number = segments.len() as u8 + 1;
            segments.push(segment(number));
        }
    }
    segments
}

fn segment(number: u8) -> Vec<u8> {
    [b"EVF\x09\x0d\x0a\xff\x00\x01".as_slice(), &[number, 0, 0, 0]].concat()
}

fn filled(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(length, 0);
    bytes
}

/// Appends the Adler-32.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let (mut a, mut b) = (1u32, 0u32);
    for &byte in &bytes {
        a = (a + u32::from(byte)) % 65521;
        b = (b + a) % 65521;
    }
    bytes.extend((b << 16 | a).to_le_bytes());
    bytes
}

/// Whether the segments are an image; if so, reads it at its ends and in between.
fn check(segments: Vec<Vec<u8>>) -> bool {
    let sources = segments.into_iter().map(|bytes| Box::new(Memory::new("s", bytes)) as Box<_>);
    let image = match EwfSource::from_segments("image", sources.collect()) {
        Ok(image) => image,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let length = image.length();
    assert!(i64::try_from(length).is_ok());
    let mut buffer = [0; 5000];
    for offset in [0, 1, 4096, length / 2, length.saturating_sub(5000), length, u64::MAX] {
        match image.read_at(offset, &mut buffer) {
            Ok(read) => assert!(read as u64 <= length.saturating_sub(offset)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    // At most a hundred chunks, because an image may claim any number of them.
    let mut left = 100;
    let _ = image.verify(&mut |_| {
        left -= 1;
        left > 0
    });
    true
}
