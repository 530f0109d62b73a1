//! A run that ends within a stride, and another one that resumes there.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarrier_carve::folder::{Folder, REPORT, Resumed};
use quarrier_carve::{Carved, Carver, Keep, Stride, View};
use quarrier_core::source::Memory;

use crate::gif;

/// Ends the run after this many parts of strides.
struct Until<'f> {
    folder: &'f Folder,
    parts_left: AtomicUsize,
    was_midway: AtomicUsize,
}

impl<'f> Until<'f> {
    fn new(folder: &'f Folder, parts: usize) -> Self {
        Until { folder, parts_left: parts.into(), was_midway: 0.into() }
    }
}

impl Keep for Until<'_> {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        self.folder.keep(carved, view)
    }

    fn stride(&self, stride: &Stride<'_>) -> io::Result<()> {
        self.folder.stride(stride)?;
        self.was_midway.store(usize::from(stride.midway.is_some()), Ordering::Relaxed);
        match self.parts_left.fetch_sub(1, Ordering::Relaxed) {
            1 => Err(io::Error::other("enough")),
            _ => Ok(()),
        }
    }
}

/// With so little memory a stride is judged in dozens of parts.
fn carver() -> Carver<'static> {
    Carver::new().workers(2).memory_bytes_max(20 << 20)
}

fn report(folder: &Path) -> String {
    fs::read_to_string(folder.join(REPORT)).expect("the run has ended")
}

#[test]
fn a_resumed_stride_keeps_its_remaining_fuel() {
    let gif = gif::small();
    // Headers that use up all fuel of a stride long before its end.
    let header = *b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4\x46head";
    let mut image: Vec<u8> = header.iter().copied().cycle().take(3 << 19).collect();
    for place in (0..image.len()).step_by(100_000) {
        image[place..place + gif.len()].copy_from_slice(&gif);
    }
    let source = Memory::new("image", image);
    let temporary = tempfile::tempdir().expect("a folder");
    let whole = temporary.path().join("whole");
    let folder = Folder::create(&whole, &source, "").expect("a new folder");
    let summary = carver().run(&source, &folder).expect("bytes in memory can be carved");
    folder.finish(true).expect("reports can be written");
    assert!(!summary.skimmed.is_empty() && summary.files[0] > 0, "{summary:?}");
    for parts in [1, 2, 7, 30] {
        let path = temporary.path().join(format!("{parts}"));
        let folder = Folder::create(&path, &source, "").expect("a new folder");
        let until = Until::new(&folder, parts);
        carver().run(&source, &until).expect_err("it was ended");
        assert_eq!(until.was_midway.load(Ordering::Relaxed), 1, "{parts}");
        drop(folder);
        let resumed = Folder::resume(&path, &source, "", &carver()).expect("it was begun");
        let Resumed::Begun(folder, begun) = resumed else { panic!("it is not finished") };
        let resumed = carver().resume(*begun).run(&source, &*folder);
        let resumed = resumed.expect("bytes in memory can be carved");
        assert_eq!(resumed.skimmed, summary.skimmed, "{parts}");
        folder.finish(true).expect("reports can be written");
        assert!(report(&path) == report(&whole), "{parts}");
    }
}
