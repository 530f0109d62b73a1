//! Cached indexes of compressed images: later runs read only the parts they need, and get the same
//! bytes.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use quarrier_core::source::{Memory, Source};
use quarrier_images::{Content, Siblings, open};

use crate::lab::{all_of, check, media, random};

/// A cache for one index, in memory.
#[derive(Default)]
pub(crate) struct Keeper(Mutex<Option<Vec<u8>>>);

impl Siblings for Keeper {
    fn open(&self, name: &str) -> quarrier_core::Result<Box<dyn Source>> {
        Err(quarrier_core::Error::io(name, "open", io::ErrorKind::NotFound.into()))
    }

    fn keeps_indexes(&self) -> bool {
        true
    }

    fn kept_index(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap().clone()
    }

    fn keep_index(&self, index: &[u8]) {
        *self.0.lock().unwrap() = Some(index.to_vec());
    }
}

/// A source that counts the bytes read from it.
struct Counted(Memory<Vec<u8>>, Arc<AtomicU64>);

impl Source for Counted {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn length(&self) -> u64 {
        self.0.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(offset, buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Opens the disk in `packed`; returns it with the number of bytes read.
fn opened(packed: &[u8], keeper: &Keeper) -> (Arc<dyn Source>, u64) {
    let count = Arc::new(AtomicU64::new(0));
    let file = Counted(Memory::new("image", packed.to_vec()), Arc::clone(&count));
    let image = open(Arc::new(file), keeper, &[], &AtomicBool::new(false)).unwrap();
    let Content::Disk(disk) = image.content else { panic!("it is read in order") };
    let read = count.load(Ordering::Relaxed);
    (disk, read)
}

fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_second_run_reads_little_to_open_and_gives_the_same_bytes() {
    let media = media(9_000_001);
    let members: Vec<u8> = media.chunks(777_777).flat_map(|part| gzip(part, 6)).collect();
    let gzips = [0, 1, 6, 9].map(|level| gzip(&media, level));
    let padded = [&gzips[1][..], &[0; 1000]].concat();
    // Other levels may compress everything into one block, in which no point can lie.
    let has_many_blocks = [true, false, false, false, true, false, true];
    let packed = gzips.into_iter().chain([members, padded, bzip2(&media)]);
    for (packed, has_many_blocks) in packed.zip(has_many_blocks) {
        let keeper = Keeper::default();
        let (disk, read) = opened(&packed, &keeper);
        assert!(read >= packed.len() as u64);
        check(&*disk, &media);
        assert!(keeper.kept_index().is_some());
        let (disk, read) = opened(&packed, &keeper);
        // Detection probes the first and last decompressed bytes.
        let is_little = read < packed.len() as u64 * 3 / 4;
        assert!(is_little || !has_many_blocks, "{read} of {}", packed.len());
        check(&*disk, &media);
    }
}

#[test]
fn notices_are_cached_too() {
    let packed = [gzip(&media(2_000_000), 6), b"something else".to_vec()].concat();
    let keeper = Keeper::default();
    let notice = || {
        let file = Arc::new(Memory::new("image", packed.clone()));
        open(file, &keeper, &[], &AtomicBool::new(false)).unwrap().notice.unwrap()
    };
    let first = notice();
    assert!(first.contains("14 bytes"), "{first}");
    assert_eq!(notice(), first);
}

#[test]
fn a_file_that_was_changed_gives_an_error_and_never_other_bytes() {
    let media = media(5_000_000);
    for packed in [gzip(&media, 6), bzip2(&media)] {
        let keeper = Keeper::default();
        opened(&packed, &keeper);
        let mut changed = packed.clone();
        let middle = packed.len() / 2;
        changed[middle] ^= 0x10;
        let (disk, _) = opened(&changed, &keeper);
        let (mut right, mut wrong) = (0, 0);
        let mut block = vec![0; 1000];
        for at in (0..media.len() - 1000).step_by(20_000) {
            match disk.read_at(at as u64, &mut block) {
                Ok(count) => {
                    assert!(block[..count] == media[at..at + count], "other bytes at {at}");
                    right += 1;
                }
                Err(_) => wrong += 1,
            }
        }
        assert!(right > 0 && wrong > 0, "{right} and {wrong}");
    }
}

#[test]
fn an_index_that_is_damaged_or_of_another_file_is_made_again() {
    let media = media(3_000_000);
    let mut seed = 5;
    for (packed, other) in
        [(gzip(&media, 6), gzip(&media[1..], 6)), (bzip2(&media), bzip2(&media[..2_000_000]))]
    {
        let keeper = Keeper::default();
        opened(&packed, &keeper);
        let index = keeper.kept_index().unwrap();
        let (disk, _) = opened(&other, &keeper);
        assert_ne!(disk.length(), media.len() as u64);
        for _ in 0..12 {
            let mut damaged = index.clone();
            let at = random(&mut seed) as usize % index.len();
            damaged[at] ^= 1 << (random(&mut seed) % 8);
            if at.is_multiple_of(3) {
                damaged.truncate(at);
            }
            keeper.keep_index(&damaged);
            let (disk, read) = opened(&packed, &keeper);
            assert!(read >= packed.len() as u64, "it was believed");
            assert!(all_of(&*disk) == media);
        }
    }
}

#[test]
fn no_index_of_a_damaged_file_is_cached() {
    let media = media(3_000_000);
    for mut packed in [gzip(&media, 6), bzip2(&media)] {
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        let keeper = Keeper::default();
        let (disk, _) = opened(&packed, &keeper);
        assert!(keeper.kept_index().is_none());
        let file = Arc::new(Memory::new("image", packed));
        let image = open(file, &quarrier_images::NoSiblings, &[], &AtomicBool::new(false)).unwrap();
        let Content::Disk(without) = image.content else { panic!("it is read in order") };
        assert_eq!(disk.readable_end(), without.readable_end());
    }
}
