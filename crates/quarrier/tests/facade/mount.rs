//! The tree of a mount shows what plain reads of the source return, or an error.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quarrier::mount::{FILE, Fault, NodeKind, ROOT, Tree};
use quarrier::{Environment, Error, Named, OpenOptions, Opened, Opener};
use quarrier_core::source::Source;

/// A source in memory with ranges that cannot be read and with holes, which returns a few bytes at a time.
#[derive(Clone)]
struct Rough {
    bytes: Arc<Vec<u8>>,
    bad: Vec<Range<u64>>,
    data: Vec<Range<u64>>,
    /// The length that it claims; beyond its bytes, it has shrunk.
    length: u64,
    step: usize,
    healed: Arc<AtomicBool>,
}

impl Rough {
    fn is_bad(&self, at: u64) -> bool {
        self.bad.iter().any(|bad| bad.contains(&at)) && !self.healed.load(Ordering::Relaxed)
    }
}

impl Source for Rough {
    fn name(&self) -> &str {
        "rough"
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let count = buffer.len().min(self.step).min(rest.len());
        if (offset..offset + count as u64).any(|at| self.is_bad(at)) {
            // Also bytes before the bad ones are garbage.
            buffer[..count].fill(0xEE);
            return Err(io::Error::other("the head crashed"));
        }
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok(self.data.iter().find(|data| data.end > offset).cloned())
    }
}

fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) % limit.max(1)
    }
}

/// Disjoint ranges below `end`, by offset; some touch.
fn ranges(next: &mut impl FnMut(u64) -> u64, end: u64) -> Vec<Range<u64>> {
    let mut borders: Vec<u64> = (0..next(8)).map(|_| next(end + 1)).collect();
    borders.sort_unstable();
    let pairs = borders.windows(2).map(|pair| pair[0]..pair[1]);
    pairs.filter(|range| !range.is_empty() && !(range.start + end).is_multiple_of(3)).collect()
}

fn rough(seed: u64) -> Rough {
    let mut next = numbers(seed);
    let count = next(300);
    let data = ranges(&mut next, count);
    let bytes = (0..count).map(|at| match data.iter().any(|data| data.contains(&at)) {
        true => 1 + next(255) as u8,
        false => 0,
    });
    let bytes = Arc::new(bytes.collect());
    let bad = ranges(&mut next, count);
    let length = if seed.is_multiple_of(4) { count + next(20) } else { count };
    Rough { bytes, bad, data, length, step: 1 + next(40) as usize, healed: Arc::default() }
}

fn tree(source: &Rough) -> Tree {
    let opened = Opened::Local {
        source: Box::new(source.clone()),
        notice: None,
        format: None,
        damages: Vec::new(),
        beside: Vec::new(),
    };
    Tree::new(&Named::Path(PathBuf::from("rough.E01")), opened, &Arc::default()).unwrap()
}

/// The answer to a read, by the definition: all bytes up to the end of the file, or an error.
fn expected(source: &Rough, range: Range<u64>) -> Result<Vec<u8>, Fault> {
    let range = range.start.min(source.length)..range.end.min(source.length);
    let byte = |at: u64| match source.bytes.get(at as usize) {
        Some(&byte) if !source.is_bad(at) => Ok(byte),
        _ => Err(Fault::Unreadable),
    };
    range.map(byte).collect()
}

#[test]
fn reads_return_the_bytes_of_plain_reads_or_fail() {
    for seed in 0..400 {
        let source = rough(seed);
        let (tree, mut next) = (tree(&source), numbers(!seed));
        assert_eq!(tree.attributes(FILE).unwrap().size, source.length);
        let mut failed = vec![false; source.length as usize];
        for step in 0..40 {
            // From then on, all reads within the bytes succeed.
            source.healed.store(step > 30, Ordering::Relaxed);
            let (offset, count) = (next(320), next(100));
            let mut buffer = vec![0x77; count as usize];
            let read = tree.read(FILE, offset, &mut buffer);
            let answer = read.map(|count| buffer[..count].to_vec());
            let range = offset..offset + count;
            assert_eq!(answer, expected(&source, range.clone()), "{seed}: {range:?}");
            let in_file = offset.min(source.length)..range.end.min(source.length);
            failed[in_file.start as usize..in_file.end as usize].fill(answer.is_err());
        }
        let unread = tree.unread().ranges;
        let listed = (0..source.length).map(|at| unread.iter().any(|range| range.contains(&at)));
        assert!(listed.eq(failed), "{seed}: {unread:?}");
    }
}

#[test]
fn concurrent_readers_get_the_same_bytes() {
    let source = Rough { bad: Vec::new(), length: rough(9).bytes.len() as u64, ..rough(9) };
    let tree = tree(&source);
    thread::scope(|scope| {
        for reader in 0..8 {
            let (tree, source) = (&tree, &source);
            scope.spawn(move || {
                let mut next = numbers(reader);
                for _ in 0..500 {
                    let (offset, count) = (next(320), next(100));
                    let mut buffer = vec![0; count as usize];
                    let count_read = tree.read(FILE, offset, &mut buffer).unwrap();
                    assert_eq!(
                        Ok(buffer[..count_read].to_vec()),
                        expected(source, offset..offset + count)
                    );
                }
            });
        }
    });
    assert!(tree.unread().is_empty() && tree.unread().first.is_none());
}

#[test]
fn data_and_holes_are_those_of_the_source() {
    for seed in 0..400 {
        let source = rough(seed);
        let (tree, length) = (tree(&source), source.length);
        let is_data = |at: u64| source.data.iter().any(|data| data.contains(&at));
        for offset in 0..length + 3 {
            let data = (offset..length).find(|&at| is_data(at)).ok_or(Fault::PastEnd);
            assert_eq!(tree.next_data(FILE, offset), data, "{seed}: {offset}");
            let hole = (offset..length).find(|&at| !is_data(at)).unwrap_or(length);
            let hole = if offset < length { Ok(hole) } else { Err(Fault::PastEnd) };
            assert_eq!(tree.next_hole(FILE, offset), hole, "{seed}: {offset}");
        }
    }
}

#[test]
fn the_tree_has_a_folder_with_one_file() {
    let tree = tree(&rough(1));
    let names: Vec<_> = tree.children(ROOT).unwrap().map(|child| child.name).collect();
    assert_eq!(names, ["rough.img"]);
    let file = tree.lookup(ROOT, "rough.img".as_ref()).unwrap();
    assert_eq!((file.inode, file.kind), (FILE, NodeKind::File));
    assert_eq!(tree.lookup(ROOT, "rough.E01".as_ref()), Err(Fault::NotFound));
    assert_eq!(tree.lookup(FILE, "rough.img".as_ref()), Err(Fault::NotAFolder));
    assert_eq!(tree.children(FILE).err(), Some(Fault::NotAFolder));
    assert_eq!(tree.attributes(99), Err(Fault::NotFound));
    assert_eq!(tree.read(ROOT, 0, &mut [0; 4]), Err(Fault::IsAFolder));
    assert_eq!(tree.next_data(ROOT, 0), Err(Fault::IsAFolder));
    assert_eq!(tree.read(99, 0, &mut [0; 4]), Err(Fault::NotFound));
}

#[test]
fn failures_after_the_stop_are_not_listed() {
    let (stop, source) = (Arc::new(AtomicBool::new(true)), rough(4));
    #[allow(clippy::single_range_in_vec_init, reason = "a list of one range is intended")]
    let bad = vec![0..source.length];
    let source = Rough { bad, ..source };
    let opened = Opened::Local {
        source: Box::new(source),
        notice: None,
        format: None,
        damages: Vec::new(),
        beside: Vec::new(),
    };
    let tree = Tree::new(&Named::Path(PathBuf::from("rough")), opened, &stop).unwrap();
    assert_eq!(tree.read(FILE, 0, &mut [0; 4]), Err(Fault::Unreadable));
    assert!(tree.unread().is_empty());
}

#[test]
fn a_stream_has_no_tree() {
    let stop = Arc::default();
    let opener = Opener::new(OpenOptions::default(), &Environment::default(), &stop);
    let opened = opener.open(&Named::Stdin).unwrap();
    let refused = Tree::new(&Named::Stdin, opened, &stop).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
}
