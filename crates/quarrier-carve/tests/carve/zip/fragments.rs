//! Zip archives in fragments.

use proptest::prelude::*;
use quarrier_carve::Carver;
use quarrier_carve::format::zip::Zip;

use super::{Archive, Way};
use crate::sample::{carved, fixed_cases, noise, scattered, valid};

/// Makes an archive of members of many lengths, each compressed in one of the ways.
fn archive(seed: u32, members: usize, ways: &[Way]) -> Vec<u8> {
    let mut archive = Archive::default();
    for index in 0..members {
        let way = ways[index % ways.len()];
        let bytes = 200 + (seed as usize * 7919 + index * 104_729) % 30_000;
        let mut content = noise(seed + index as u32, bytes);
        // Half of it can be compressed.
        content.iter_mut().skip(bytes / 2).for_each(|byte| *byte &= 0x11);
        archive.add(&format!("folder/member-{index}.bin"), &content, way);
    }
    archive.finish(b"")
}

proptest! {
    #![proptest_config(fixed_cases(40))]
    #[test]
    fn an_archive_in_two_fragments_is_put_together(
        seed in 0u32..1000,
        members in 1usize..12,
        cut in 0.0f64..1.0,
        gap in 1usize..20,
        filling in 0usize..3,
        way in 0usize..3,
    ) {
        let ways = [&[Way::Deflated][..], &[Way::Stored], &[Way::Streamed, Way::Deflated]][way];
        let zip = archive(seed, members, ways);
        let blocks = zip.len() / 512;
        prop_assume!(blocks > 1);
        let cut = (1 + (cut * (blocks - 1) as f64) as usize) * 512;
        let image = scattered(&[(4096, &zip[..cut]), (gap * 512, &zip[cut..])], filling);
        let files = carved(&Carver::new().formats(vec![&Zip]), &image);
        prop_assert!(valid(&files) == [&zip[..]]);
    }

    #[test]
    fn an_archive_in_three_fragments_is_put_together_or_not_believed(
        seed in 0u32..1000,
        members in 2usize..12,
        cuts in (0.0f64..1.0, 0.0f64..1.0),
        gaps in (1usize..20, 1usize..20),
        filling in 0usize..3,
    ) {
        let (zip, image) = in_three(seed, members, cuts, gaps, filling);
        let files = carved(&Carver::new().formats(vec![&Zip]), &image);
        prop_assert!(valid(&files).iter().all(|file| *file == zip));
    }
}

/// Makes an archive, and an image with it in three fragments.
fn in_three(
    seed: u32,
    members: usize,
    cuts: (f64, f64),
    gaps: (usize, usize),
    filling: usize,
) -> (Vec<u8>, Vec<u8>) {
    let zip = archive(seed, members, &[Way::Deflated]);
    let blocks = (zip.len() / 512).max(3);
    let cut = |share: f64| 1 + (share * (blocks - 2) as f64) as usize;
    let (one, two) = (cut(cuts.0.min(cuts.1)), cut(cuts.0.max(cuts.1)) + 1);
    let (one, two) = ((one * 512).min(zip.len()), (two * 512).min(zip.len()));
    let parts = [(512, &zip[..one]), (gaps.0 * 512, &zip[one..two]), (gaps.1 * 512, &zip[two..])];
    let image = scattered(&parts, filling);
    (zip, image)
}

/// Not all archives are mended: nothing locates a fragment that holds only a part of the directory.
#[test]
fn most_archives_in_three_fragments_are_mended() {
    let mut whole = 0;
    for case in 0..40u32 {
        let draw: Vec<usize> = noise(case, 6).into_iter().map(usize::from).collect();
        let cuts = (draw[0] as f64 / 256.0, draw[1] as f64 / 256.0);
        let gaps = (1 + draw[2] % 19, 1 + draw[3] % 19);
        let (zip, image) = in_three(case, 2 + draw[4] % 10, cuts, gaps, draw[5] % 3);
        let files = carved(&Carver::new().formats(vec![&Zip]), &image);
        whole += usize::from(valid(&files) == [&zip[..]]);
    }
    assert!(whole >= 30, "{whole} of 40");
}

#[test]
fn an_archive_whose_end_is_before_its_beginning_is_mended() {
    let zip = archive(5, 8, &[Way::Deflated, Way::Stored]);
    for cut in (1..zip.len() / 4096).map(|block| block * 4096) {
        let image = scattered(&[(4096, &zip[cut..]), (8192, &zip[..cut])], 0);
        let files = carved(&Carver::new().formats(vec![&Zip]), &image);
        let found: Vec<_> = files.iter().map(|(carved, _)| carved).collect();
        assert!(valid(&files) == [&zip[..]], "cut at {cut}: {found:?}");
    }
}

#[test]
fn an_archive_without_its_end_is_not_whole() {
    let zip = archive(6, 8, &[Way::Deflated]);
    let other = archive(7, 3, &[Way::Deflated]);
    let image = scattered(&[(4096, &zip[..zip.len() / 2]), (4096, &other)], 0);
    let files = carved(&Carver::new().formats(vec![&Zip]), &image);
    assert!(valid(&files) == [&other[..]]);
}
