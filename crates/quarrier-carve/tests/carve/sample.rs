//! Shared by the tests of formats: a carver over bytes in memory, and checks for every validator.

use std::io;
use std::sync::Mutex;

use proptest::test_runner::{Config, RngSeed};
use quarrier_carve::{Carved, Carver, Extent, Format, Keep, Status, Verdict, View};
use quarrier_core::source::Memory;

/// Returns a configuration with fixed seeds: random cases may include files whose fragments nothing
/// can locate.
pub(crate) fn fixed_cases(cases: u32) -> Config {
    Config { rng_seed: RngSeed::Fixed(1), ..Config::with_cases(cases) }
}

/// Returns `bytes` incompressible bytes, which depend only on `seed`.
pub(crate) fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let mut state = u64::from(seed) << 32 | 0x9E37_79B9;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Returns `bytes` bytes about half of which compression removes.
pub(crate) fn mixed(seed: u32, bytes: usize) -> Vec<u8> {
    let mut mixed = noise(seed, bytes);
    mixed.iter_mut().for_each(|byte| *byte = b'a' + (*byte & 15));
    mixed
}

/// Makes an image with each part after this many bytes of filling: noise, text, or zeros. Every
/// part begins at a multiple of 512, and more of the filling follows the last one.
pub(crate) fn scattered(parts: &[(usize, &[u8])], filling: usize) -> Vec<u8> {
    let fill = |image: &mut Vec<u8>, bytes: usize| match filling {
        0 => image.extend(noise(image.len() as u32, bytes)),
        1 => image
            .extend(b"what was here before, and is not of the file. ".iter().cycle().take(bytes)),
        _ => image.resize(image.len() + bytes, 0),
    };
    let mut image = Vec::new();
    for (gap, part) in parts {
        let padding = image.len().next_multiple_of(512) - image.len();
        fill(&mut image, padding + gap);
        image.extend_from_slice(part);
    }
    let padding = image.len().next_multiple_of(512) - image.len();
    fill(&mut image, padding + 8192);
    image
}

/// Returns the verdict on `bytes`, followed by `after` as the next bytes of a source.
pub(crate) fn validated(format: &dyn Format, bytes: &[u8], after: &[u8]) -> Verdict {
    let all = [bytes, after].concat();
    let length = all.len() as u64;
    let source = Memory::new("sample", all);
    format.validate(&mut View::of(&source, &[Extent { offset: 0, length }]))
}

/// Checks the properties of a whole file of any format:
/// - it is whole, to its last byte, whatever follows;
/// - cut off anywhere, it is not whole, and `sure` does not exceed its length;
/// - it contains a signature.
pub(crate) fn check_whole_file(format: &dyn Format, kind: &str, file: &[u8]) {
    let noise: Vec<u8> =
        (0u32..70_000).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for after in [&[][..], &[0; 5000], &[0xFF; 5000], b"some text follows here\n", &noise] {
        match validated(format, file, after) {
            Verdict::Whole { length, kind: found } => {
                assert_eq!(length, file.len() as u64, "with {} bytes after", after.len());
                assert_eq!(found.name, kind);
            }
            other => panic!("{other:?} with {} bytes after", after.len()),
        }
    }
    for cut in (0..file.len()).step_by((file.len() / 300).max(1)) {
        match validated(format, &file[..cut], &[]) {
            Verdict::Whole { length, .. } | Verdict::Unread { length, .. } => {
                panic!("ends at {length}, cut at {cut}")
            }
            Verdict::Broken { sure, at, .. } => {
                assert!(sure <= at && at <= cut as u64, "sure {sure}, at {at}, cut {cut}");
            }
            Verdict::Not => {}
        }
    }
    let stands = |signature: &quarrier_carve::Signature| {
        let digits: Vec<_> = signature.hex.split_whitespace().collect();
        digits.iter().enumerate().all(|(index, digit)| {
            let byte = file.get(signature.at as usize + index).map(|byte| format!("{byte:02X}"));
            byte.is_some_and(|byte| {
                byte.chars()
                    .zip(digit.chars())
                    .all(|(b, d)| d == '?' || b == d.to_ascii_uppercase())
            })
        })
    };
    assert!(format.signatures().iter().any(stands), "it contains no signature");
}

/// Checks that with any less fuel than it needs, a view reports that the fuel has run out.
pub(crate) fn check_starved(format: &dyn Format, file: &[u8]) {
    let length = file.len() as u64;
    let source = Memory::new("sample", file.to_vec());
    let mut view = View::new(&source);
    for fuel in 0..2 * length {
        view.look_at(&[Extent { offset: 0, length }], fuel);
        match format.validate(&mut view) {
            Verdict::Whole { length: found, .. } => assert_eq!(found, length),
            _ => assert!(view.is_starved(), "with {fuel} bytes of fuel"),
        }
    }
}

/// The files that a carver found, with their bytes.
#[derive(Default)]
pub(crate) struct CarvedFiles(pub(crate) Mutex<Vec<(Carved, Vec<u8>)>>);

impl Keep for CarvedFiles {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        view.each(0..carved.length(), |piece| bytes.extend_from_slice(piece));
        self.0.lock().expect("no thread panicked").push((carved.clone(), bytes));
        Ok(())
    }
}

/// Returns all files found in `image`, by offset, with their bytes.
pub(crate) fn carved(carver: &Carver<'_>, image: &[u8]) -> Vec<(Carved, Vec<u8>)> {
    let found = CarvedFiles::default();
    carver
        .run(&Memory::new("image", image.to_vec()), &found)
        .expect("bytes in memory can be carved");
    let mut all = found.0.into_inner().expect("no thread panicked");
    all.sort_by_key(|(carved, _)| (carved.offset(), carved.kind.clone()));
    all
}

/// Returns the bytes of the valid files.
pub(crate) fn valid(files: &[(Carved, Vec<u8>)]) -> Vec<&[u8]> {
    files
        .iter()
        .filter(|(carved, _)| carved.status == Status::Valid)
        .map(|(_, bytes)| &bytes[..])
        .collect()
}
