//! A folder for images, and the checks that every image must pass.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::pipeline::{Access, Chunk, Emitter, Kernel, Need, Pipeline};
use quarrier_core::region::{AsData, Region};
use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_images::{Content, FolderSiblings, Kind, open};

pub(crate) struct Lab(tempfile::TempDir);

impl Lab {
    pub(crate) fn new() -> Self {
        Lab(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Whether a program succeeds in the folder.
    pub(crate) fn runs(&self, program: &str, arguments: &str) -> bool {
        let mut command = Command::new(program);
        command.args(arguments.split('|')).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    pub(crate) fn open(&self, name: &str) -> quarrier_core::Result<Arc<dyn Source>> {
        open_at(&self.path(name)).map(|(source, _)| source)
    }

    /// The error message of an image that cannot be opened.
    pub(crate) fn refusal(&self, name: &str) -> String {
        match self.open(name) {
            Ok(_) => panic!("{name} was opened"),
            Err(error) => error.to_string(),
        }
    }
}

pub(crate) fn open_at(path: &Path) -> quarrier_core::Result<(Arc<dyn Source>, Option<Kind>)> {
    let file = Arc::from(quarrier_core::source::open(path)?);
    let image = open(file, &FolderSiblings::new(path, false), &[], &AtomicBool::new(false))?;
    match image.content {
        Content::Disk(disk) => Ok((disk, image.kind)),
        Content::Stream(sequential) => {
            let mut bytes = Vec::new();
            sequential.reader()?.read_to_end(&mut bytes).unwrap();
            Ok((Arc::new(Memory::new("stream", bytes)), image.kind))
        }
    }
}

/// The next number of a pseudo-random sequence.
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Bytes with long runs of zeros, compressible and incompressible parts.
pub(crate) fn media(length: usize) -> Vec<u8> {
    let mut state = 7;
    let mut media = vec![0; length];
    for (number, part) in media.chunks_mut(37 << 10).enumerate() {
        match number % 9 {
            0 | 4 | 5 => part.fill_with(|| random(&mut state) as u8),
            1 | 2 => part.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 7 % 60) as u8),
            _ => {}
        }
    }
    // 3 MiB of zeros, and one byte in the middle of them.
    let (from, to) = (length / 3, length / 3 + (3 << 20));
    if to < length {
        media[from..to].fill(0);
        media[from + (1 << 20)] = 1;
    }
    media
}

pub(crate) fn all_of(source: &dyn Source) -> Vec<u8> {
    let mut bytes = vec![0; source.length() as usize];
    assert_eq!(read_full_at(source, 0, &mut bytes).unwrap(), bytes.len(), "{}", source.name());
    bytes
}

/// Checks that the image has these bytes, read as a whole, in parts, by many threads, and by windows,
/// and that its holes are zero.
pub(crate) fn check(source: &dyn Source, expected: &[u8]) {
    let name = source.name();
    assert_eq!(source.length(), expected.len() as u64, "{name}");
    assert!(all_of(source) == expected, "{name}: other bytes");
    assert_eq!(source.read_at(source.length(), &mut [0; 9]).unwrap(), 0, "{name}");
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            scope.spawn(move || parts(source, expected, seed));
        }
    });
    check_data(source, expected);
    check_windows(source, expected);
    check_chunks(source, expected);
}

/// Compares chunks with the bytes of the disk, and counts the positions that they own.
struct Compared<'e>(&'e [u8]);

impl Kernel for Compared<'_> {
    type Output = u64;

    fn need(&self) -> Need {
        Need { before_bytes: 700, after_bytes: 5_000, skip_zeros: false }
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, u64>) {
        let from = chunk.offset as usize;
        assert!(chunk.data == &self.0[from..from + chunk.data.len()], "other bytes at {from}");
        *emit.output() += chunk.own.len() as u64;
    }
}

/// Checks that chunks of any size have the bytes of the disk, by windows and copies.
fn check_chunks(source: &dyn Source, expected: &[u8]) {
    // SAFETY: the kernel only compares bytes and makes no text of them, and has no unsafe code.
    let promise = unsafe { AsData::promised() };
    for buffer_bytes in [60_000, 300_000, 1 << 20, 16 << 20] {
        let pipeline = Pipeline::new(source).access(Access::Window).workers(2);
        let pipeline = pipeline.buffer_bytes(buffer_bytes).show_changing(promise);
        let mut owned_bytes = 0;
        let run = pipeline.run(&Compared(expected), &mut |_: &Chunk<'_>, part: &mut u64| {
            owned_bytes += std::mem::take(part);
        });
        let run = run.unwrap();
        assert_eq!(owned_bytes, expected.len() as u64, "{}: {:?}", source.name(), run.unreadable);
    }
}

/// Checks that each window that the source announces can be made, and shows its bytes.
fn check_windows(source: &dyn Source, expected: &[u8]) {
    for (bytes_min, step) in [(1, u64::MAX), (70_000, 300_001), (1 << 20, u64::MAX)] {
        let mut at = 0;
        while at < source.length() {
            let end = source.length().min(at.saturating_add(step));
            let Some(window) = source.next_window(at..end, bytes_min) else {
                at = end;
                continue;
            };
            let name = source.name();
            assert!(window.start >= at && window.end <= end, "{name}: {window:?}");
            assert!(window.end - window.start >= bytes_min, "{name}: {window:?}");
            let Some(Ok(shown)) = source.window(window.clone()) else {
                panic!("{name}: no window {window:?}");
            };
            let wanted = &expected[window.start as usize..window.end as usize];
            let mut bytes = vec![0; wanted.len()];
            let copied = match shown {
                Region::Window(shown) => shown.bytes().copy_to(0, &mut bytes),
                Region::Changing(shown) => shown.copy_to(0, &mut bytes),
                Region::Borrowed(shown) => {
                    bytes.copy_from_slice(shown);
                    shown.len()
                }
            };
            assert!(copied == wanted.len() && bytes == wanted, "{name}: window {window:?}");
            at = window.end;
        }
    }
}

fn parts(source: &dyn Source, expected: &[u8], mut seed: u64) {
    for _ in 0..60 {
        let at = random(&mut seed) as usize % expected.len();
        let length = match random(&mut seed) % 3 {
            0 => random(&mut seed) as usize % 700,
            1 => random(&mut seed) as usize % (100 << 10),
            _ => random(&mut seed) as usize % (3 << 20),
        };
        let wanted = &expected[at..expected.len().min(at + length)];
        let mut read = vec![0xEE; wanted.len()];
        assert_eq!(read_full_at(source, at as u64, &mut read).unwrap(), wanted.len());
        assert!(read == wanted, "{}: {length} bytes at {at}", source.name());
        let range = at as u64..(at + wanted.len()) as u64;
        if let Some(Ok(Region::Window(window))) = source.window(range) {
            let mut shown = vec![0; wanted.len()];
            assert_eq!(window.bytes().copy_to(0, &mut shown), wanted.len());
            assert!(shown == wanted, "{}: window of {length} bytes at {at}", source.name());
        }
    }
}

fn check_data(source: &dyn Source, expected: &[u8]) {
    let (mut at, mut end) = (0, 0);
    let is_zero = |range: std::ops::Range<u64>| {
        expected[range.start as usize..range.end as usize].iter().all(|&byte| byte == 0)
    };
    while let Some(data) = source.next_data(at).unwrap() {
        assert!(data.start >= at && data.start < data.end, "{}: {data:?}", source.name());
        assert!(data.end <= source.length(), "{}: {data:?}", source.name());
        assert!(is_zero(end..data.start), "{}: no hole before {data:?}", source.name());
        (at, end) = (data.end, data.end);
    }
    assert!(is_zero(end..source.length()), "{}: no hole after {end}", source.name());
}

pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
