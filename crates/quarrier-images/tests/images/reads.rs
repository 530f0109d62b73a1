//! gzip read in any order, by any number of readers, in parts of any size, compared with its contents; and
//! how often it is decompressed.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_images::{Content, NoSiblings, Siblings, open};

use crate::kept::Keeper;
use crate::lab::random;

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

/// Opens the disk in `packed`; returns it with the count of bytes read from the file.
fn opened(packed: Vec<u8>, beside: &dyn Siblings) -> (Arc<dyn Source>, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let file = Counted(Memory::new("image", packed), Arc::clone(&count));
    let image = open(Arc::new(file), beside, &[], &AtomicBool::new(false)).unwrap();
    let Content::Disk(disk) = image.content else { panic!("it is read in order") };
    (disk, count)
}

/// A member: its length, its compression level, and how its bytes are made.
#[derive(Debug, Clone)]
struct Member {
    length: usize,
    level: u32,
    make: u64,
    flush_each: usize,
}

impl Member {
    fn bytes(&self) -> Vec<u8> {
        let mut state = self.make;
        let mut bytes = Vec::with_capacity(self.length);
        while bytes.len() < self.length {
            let count = random(&mut state) as usize % 3000;
            match (random(&mut state) % 5, bytes.len()) {
                (0, _) => bytes.extend((0..count).map(|_| random(&mut state) as u8)),
                (1, _) => bytes.extend(std::iter::repeat_n(random(&mut state) as u8, count * 9)),
                // A copy from any distance, which may overlap itself.
                (2 | 3, held) if held > 0 => {
                    let distance = 1 + random(&mut state) as usize % held.min(33_000);
                    (0..count * 4).for_each(|_| bytes.push(bytes[bytes.len() - distance]));
                }
                _ => bytes.extend((0..count).map(|at| b"a few words "[at * 7 % 12])),
            }
        }
        bytes.truncate(self.length);
        bytes
    }

    /// Written with a flush after some bytes, which ends a block.
    fn packed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(self.level));
        for part in bytes.chunks(self.flush_each) {
            encoder.write_all(part).unwrap();
            encoder.flush().unwrap();
        }
        encoder.finish().unwrap()
    }
}

/// How readers share the reads.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// Each takes the next part, as the workers of a pipeline do.
    Shared,
    /// Each reads everything, from the last part to the first.
    Backwards,
    /// Each reads parts anywhere.
    Anywhere,
}

#[derive(Debug, Clone)]
struct Reads {
    readers: usize,
    part_bytes: usize,
    order: Order,
    seed: u64,
}

impl Reads {
    /// The parts that a reader reads, as their numbers.
    fn parts(&self, reader: usize, count: usize, next: &AtomicUsize) -> Vec<usize> {
        match self.order {
            // One at a time, between which other readers take some.
            Order::Shared => vec![next.fetch_add(1, Ordering::Relaxed)],
            Order::Backwards => (0..count).rev().collect(),
            Order::Anywhere => {
                let mut seed = self.seed + reader as u64;
                (0..20).map(|_| random(&mut seed) as usize % count).collect()
            }
        }
    }

    /// Reads and compares.
    fn run(&self, disk: &dyn Source, expected: &[u8]) {
        let count = expected.len().div_ceil(self.part_bytes).max(1);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for reader in 0..self.readers {
                let next = &next;
                scope.spawn(move || {
                    loop {
                        let parts = self.parts(reader, count, next);
                        parts.iter().for_each(|part| self.compare(disk, expected, *part));
                        let is_done = parts.iter().any(|part| *part >= count);
                        if is_done || !matches!(self.order, Order::Shared) {
                            break;
                        }
                    }
                });
            }
        });
    }

    fn compare(&self, disk: &dyn Source, expected: &[u8], part: usize) {
        let from = (part * self.part_bytes).min(expected.len());
        let wanted = &expected[from..expected.len().min(from + self.part_bytes)];
        let mut read = vec![0xEE; wanted.len()];
        assert_eq!(read_full_at(disk, from as u64, &mut read).unwrap(), wanted.len());
        assert!(read == wanted, "other bytes in part {part}");
    }
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    let member = (0_usize..2_500_000, 0_u32..10, any::<u64>(), 500_usize..2_000_000);
    let member = member.prop_map(|(length, level, make, flush_each)| Member {
        length,
        level,
        make,
        flush_each,
    });
    prop::collection::vec(member, 1..5)
}

fn reads() -> impl Strategy<Value = Reads> {
    let order = prop_oneof![Just(Order::Shared), Just(Order::Backwards), Just(Order::Anywhere)];
    (1_usize..5, 5_000_usize..3_000_000, order, any::<u64>()).prop_map(
        |(readers, part_bytes, order, seed)| Reads { readers, part_bytes, order, seed: seed / 2 },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Without an index, with one that is made, and with a cached one, every read gives the same bytes.
    #[test]
    fn any_reads_give_the_bytes_of_the_members(members in members(), reads in reads()) {
        let parts: Vec<Vec<u8>> = members.iter().map(Member::bytes).collect();
        let packed = members.iter().zip(&parts).flat_map(|(member, part)| member.packed(part));
        let (packed, expected): (Vec<u8>, _) = (packed.collect(), parts.concat());
        let keeper = Keeper::default();
        for beside in [&NoSiblings as &dyn Siblings, &keeper, &keeper] {
            let (disk, _) = opened(packed.clone(), beside);
            prop_assert_eq!(disk.length(), expected.len() as u64);
            reads.run(&*disk, &expected);
        }
    }

    /// A damaged or truncated file gives the same bytes before the damage, whoever reads them.
    #[test]
    fn any_reads_give_the_bytes_before_damage(
        members in members(),
        reads in reads(),
        at in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let parts: Vec<Vec<u8>> = members.iter().map(Member::bytes).collect();
        let packed = members.iter().zip(&parts).flat_map(|(member, part)| member.packed(part));
        let (mut packed, expected): (Vec<u8>, _) = (packed.collect(), parts.concat());
        let at = 10 + at.index(packed.len() - 10);
        if is_cut {
            packed.truncate(at.max(20));
            let file = Arc::new(Memory::new("image", packed));
            // Nothing can be opened if it ends before the first byte of data.
            if let Ok(image) = open(file, &NoSiblings, &[], &AtomicBool::new(false))
                && let Content::Disk(disk) = image.content
                && image.kind.is_some()
            {
                let end = disk.readable_end() as usize;
                prop_assert!(end <= expected.len());
                reads.run(&*disk, &expected[..end]);
            }
        } else {
            packed[at] ^= 0x40;
            let file = Arc::new(Memory::new("image", packed));
            if let Ok(image) = open(file, &NoSiblings, &[], &AtomicBool::new(false))
                && let Content::Disk(disk) = image.content
            {
                let mut once = vec![0; disk.readable_end() as usize];
                prop_assert_eq!(read_full_at(&*disk, 0, &mut once).unwrap(), once.len());
                reads.run(&*disk, &once);
            }
        }
    }
}

#[test]
fn a_file_that_is_read_in_order_is_decompressed_once() {
    let member = Member { length: 40 << 20, level: 6, make: 5, flush_each: usize::MAX };
    let bytes = member.bytes();
    let packed = member.packed(&bytes);
    let length = packed.len() as u64;
    for readers in [1, 3] {
        let (disk, count) = opened(packed.clone(), &NoSiblings);
        let to_open = count.load(Ordering::Relaxed);
        assert!((length..length + length / 10).contains(&to_open), "{to_open} of {length}");
        let reads = Reads { readers, part_bytes: 1 << 20, order: Order::Shared, seed: 0 };
        reads.run(&*disk, &bytes);
        assert_eq!(count.load(Ordering::Relaxed), to_open, "it was decompressed again");
    }
}
