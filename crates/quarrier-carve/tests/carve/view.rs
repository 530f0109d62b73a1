//! Views show the bytes of extents, and nothing else.

use proptest::prelude::*;
use quarrier_carve::{Extent, View};
use quarrier_core::source::{Memory, Source};

/// A source without windows, which must be read.
struct Read(Memory<Vec<u8>>);

impl Source for Read {
    fn name(&self) -> &str {
        "read"
    }

    fn length(&self) -> u64 {
        self.0.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = buffer.len().min(7777);
        self.0.read_at(offset, &mut buffer[..bytes])
    }
}

proptest! {
    #[test]
    fn every_way_of_reading_gives_the_bytes_of_the_extents(
        extents in prop::collection::vec((0u64..3_000_000, 0u64..3_000), 1..6),
        asked in prop::collection::vec((0u64..20_000, 0usize..5_000), 1..20),
        windows in any::<bool>(),
    ) {
        let bytes: Vec<u8> = (0..2_500_000u32).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
        let extents: Vec<_> =
            extents.into_iter().map(|(offset, length)| Extent { offset, length }).collect();
        let mut file = Vec::new();
        for extent in &extents {
            let start = (extent.offset as usize).min(bytes.len());
            file.extend_from_slice(&bytes[start..(extent.end() as usize).min(bytes.len())]);
        }
        let source: Box<dyn Source> = match windows {
            true => Box::new(Memory::new("image", bytes)),
            false => Box::new(Read(Memory::new("image", bytes))),
        };
        let mut view = View::of(&*source, &extents);
        prop_assert_eq!(view.length(), file.len() as u64);
        for (at, length) in asked {
            let from = (at as usize).min(file.len());
            let there = &file[from..(from + length).min(file.len())];
            let run = view.run(at, length);
            prop_assert!(there.starts_with(run));
            prop_assert_eq!(run.is_empty(), there.is_empty());
            let fits = at as usize + length <= file.len();
            prop_assert_eq!(view.take(at, length), fits.then_some(there));
            let mut all = Vec::new();
            view.each(at..at + length as u64, |piece| all.extend_from_slice(piece));
            prop_assert_eq!(&all[..], there);
            if let Some(needle) = there.get(1..4.min(there.len())).filter(|n| !n.is_empty()) {
                let place = memchr::memmem::find(&file[from..], needle).map(|p| (from + p) as u64);
                prop_assert_eq!(view.find(at..u64::MAX, needle), place);
            }
        }
    }
}

#[test]
fn a_search_pays_only_for_examined_bytes() {
    let source = Memory::new("image", b"<a>".repeat(40_000));
    let mut view = View::new(&source);
    view.look_at(&[Extent { offset: 0, length: 120_000 }], 2 << 20);
    let mut places = 0;
    let mut at = 0;
    while let Some(place) = view.find(at..120_000, b"<") {
        places += 1;
        at = place + 1;
    }
    assert_eq!((places, at), (40_000, 119_998));
    assert!(!view.is_starved());
}

#[test]
fn a_view_without_fuel_ends() {
    let source = Memory::new("image", vec![1u8; 1000]);
    let mut view = View::new(&source);
    view.look_at(&[Extent { offset: 0, length: 1000 }], 100);
    assert_eq!(view.each(0..1000, |_| ()), 100);
    assert!(view.is_starved());
    assert_eq!(view.take(0, 1), None);
    view.look_at(&[Extent { offset: 0, length: 1000 }], 100);
    assert!(!view.is_starved());
    assert_eq!(view.byte(999), Some(1));
}
