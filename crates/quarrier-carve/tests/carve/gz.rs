//! Gzip.

use std::io::Write;

use flate2::{Compression, GzBuilder};
use proptest::prelude::*;
use quarrier_carve::format::gz::Gz;
use quarrier_carve::{Carver, Verdict};

use crate::sample::{
    carved, check_whole_file, fixed_cases, mixed, noise, scattered, valid, validated,
};

/// Compresses `content` as a file called `name`.
pub(crate) fn packed(name: &str, content: &[u8]) -> Vec<u8> {
    let builder = GzBuilder::new().filename(name).mtime(1_700_000_000);
    let mut gz = builder.write(Vec::new(), Compression::default());
    gz.write_all(content).expect("writing to memory succeeds");
    gz.finish().expect("writing to memory succeeds")
}

#[test]
fn a_gz_ends_after_its_checksum() {
    check_whole_file(&Gz, "gz", &packed("noise", &noise(3, 20_000)));
    check_whole_file(&Gz, "gz", &packed("zeros", &[0; 300_000]));
}

#[test]
fn consecutive_members_are_one_gz() {
    let (one, two) = (packed("one", &noise(3, 5000)), packed("two", &noise(4, 6000)));
    let both = [&one[..], &two].concat();
    let whole = Verdict::Whole { length: both.len() as u64, kind: quarrier_carve::Kind::new("gz") };
    assert_eq!(validated(&Gz, &both, &[0; 100]), whole);
    // The second member is broken: the data before it are whole on their own.
    let cut = &both[..both.len() - 100];
    let whole = Verdict::Whole { length: one.len() as u64, kind: quarrier_carve::Kind::new("gz") };
    assert_eq!(validated(&Gz, cut, &[0; 100]), whole);
}

#[test]
fn a_gz_whose_checksum_is_wrong_is_broken_there() {
    let mut gz = packed("noise", &noise(3, 20_000));
    let at = gz.len() - 8;
    gz[at] ^= 1;
    match validated(&Gz, &gz, &[1; 100]) {
        Verdict::Broken { sure: 0, at: broken, .. } => assert_eq!(broken, at as u64),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(fixed_cases(30))]
    #[test]
    fn a_gz_in_two_fragments_is_put_together(
        seed in 0u32..1000,
        kib in 8usize..150,
        cut in 0.0f64..1.0,
        gap in 1usize..17,
        filling in 0usize..3,
    ) {
        let gz = packed("x", &mixed(seed, kib * 1024));
        let blocks = gz.len() / 4096;
        prop_assume!(blocks > 1);
        let cut = (1 + (cut * (blocks - 1) as f64) as usize) * 4096;
        let image = scattered(&[(4096, &gz[..cut]), (gap * 4096, &gz[cut..])], filling);
        let files = carved(&Carver::new().formats(vec![&Gz]), &image);
        prop_assert!(valid(&files) == [&gz[..]]);
    }
}
