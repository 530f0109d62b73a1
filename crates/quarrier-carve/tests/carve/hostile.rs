//! Hostile bytes: no validator panics, and none claims more than it has read.

use proptest::prelude::*;
use quarrier_carve::format::pcap::{Pcap, PcapNg};
use quarrier_carve::format::{
    asf::Asf, avi::Avi, class::Class, elf::Elf, flac::Flac, matroska::Matroska, mp3::Mp3, mp4::Mp4,
    mpg::Mpg, ogg::Ogg, pe::Pe, wav::Wav,
};
use quarrier_carve::{Extent, Format, Verdict, View};
use quarrier_core::source::Memory;

use crate::{binary, film, sound};

const FORMATS: [&dyn Format; 14] =
    [&Asf, &Avi, &Class, &Elf, &Flac, &Matroska, &Mp3, &Mp4, &Mpg, &Ogg, &Pcap, &PcapNg, &Pe, &Wav];

fn samples() -> Vec<Vec<u8>> {
    vec![
        sound::ogg(b"\x01vorbis", 5, 4),
        sound::flac(9),
        sound::wav(9000),
        sound::mp3(20),
        film::mp4(true),
        film::mp4(false),
        film::matroska(b"webm", false),
        binary::elf(),
        binary::pe(0x22, true),
        binary::class(),
        binary::asf(),
    ]
}

/// Replacements of numbers: the worst lengths.
const WORST: [u64; 6] = [0, 1, u64::MAX, u64::MAX - 7, 1 << 63, 0x7FFF_FFFF_7FFF_FFFF];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_validator_never_panics_and_stays_within_its_view(
        sample in 0usize..11,
        harm in prop::collection::vec((any::<prop::sample::Index>(), 0usize..7, 1usize..9, any::<u64>()), 1..6),
        cut in any::<prop::sample::Index>(),
        fuel in prop_oneof![Just(u64::MAX), 0u64..5000],
    ) {
        let mut bytes = samples().swap_remove(sample);
        for (place, worst, count, other) in harm {
            let place = place.index(bytes.len());
            let word = WORST.get(worst).copied().unwrap_or(other).to_be_bytes();
            let count = count.min(bytes.len() - place);
            bytes[place..place + count].copy_from_slice(&word[..count]);
        }
        if fuel % 3 == 0 {
            bytes.truncate(cut.index(bytes.len()));
        }
        let length = bytes.len() as u64;
        let source = Memory::new("hostile", bytes);
        for format in FORMATS {
            let mut view = View::new(&source);
            view.look_at(&[Extent { offset: 0, length }], fuel);
            match format.validate(&mut view) {
                Verdict::Whole { length: end, kind } | Verdict::Unread { length: end, kind, .. } => {
                    prop_assert!(end <= length || view.is_starved(), "{end} of {length}");
                    prop_assert!(format.kinds().contains(&kind));
                }
                Verdict::Broken { sure, at, kind, .. } => {
                    prop_assert!(sure <= at && at <= length, "{sure} {at} {length} {}", kind.name);
                    prop_assert!(format.kinds().contains(&kind));
                }
                Verdict::Not => {}
            }
        }
    }
}
