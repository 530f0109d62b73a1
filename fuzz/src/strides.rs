//! Any bytes as a stride that another process judged: it is refused, and judged again with the same files, or taken
//! for what it says, which never reads beyond the source.

use std::io;
use std::sync::{LazyLock, Mutex};

use quarrier_carve::{Carved, Carver, JudgedStrides, Keep, View};
use quarrier_core::source::Memory;

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "strides", run, once: &[], seeds: SEEDS, words: WORDS };

/// The size of the image, in bytes.
const LENGTH: usize = 20_000;

const SEEDS: &[&[u8]] = &[
    b"[0,20000,[[0,20000,null,[1,0,[]],99,[],[[512,1,[\"whole\",\"gif\",43],[[512,43]],false]]]]]",
    b"[0,20000,[[0,9000,[65536,[1,2,3,4],5],[2,7,[[512,1024]]],9,[[600,2]],[]],\
      [9000,20000,null,[0,0,[]],0,[],[[9100,0,[\"broken\",\"jpg\",20,40,\"x\"],[],false]]]]]",
    b"[0,20000,[[0,20000,null,[0,0,[]],0,[],[[4096,3,[\"unread\",\"zip\",100,\"y\"],[[4096,60],[9000,40]],true]]]]]",
];

const WORDS: &[&[u8]] = &[
    b"\"whole\"",
    b"\"unread\"",
    b"\"broken\"",
    b"\"gif\"",
    b"\"png\"",
    b"18446744073709551615",
    b"null",
    b"true",
    b"[]",
    b",",
    b"20000",
];

struct Line<'b>(&'b str);

impl JudgedStrides for Line<'_> {
    fn stride(&self, _: u64) -> Option<String> {
        Some(self.0.to_string())
    }
}

#[derive(Default)]
struct Files(Mutex<Vec<(u64, String, Vec<u8>)>>);

impl Keep for Files {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        // A file of a hostile stride may be as long as it likes.
        view.each(0..carved.length().min(1 << 20), |piece| bytes.extend_from_slice(piece));
        let mut files = self.0.lock().map_err(|_| io::Error::other("another thread panicked"))?;
        files.push((carved.offset(), carved.kind.clone(), bytes));
        Ok(())
    }
}

fn image() -> Memory<Vec<u8>> {
    let gif = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xFF\xFF\xFF!\xF9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x01D\0;";
    let mut image = vec![0x55; LENGTH];
    for at in [512, 4096, 12_000] {
        image[at..at + gif.len()].copy_from_slice(gif);
    }
    Memory::new("image", image)
}

fn carved(carver: &Carver<'_>) -> Vec<(u64, String, Vec<u8>)> {
    let files = Files::default();
    // A source in memory does not fail, and neither do these files.
    let run = carver.run(&image(), &files);
    assert!(run.is_ok(), "{run:?}");
    files.0.into_inner().unwrap_or_default()
}

/// The files of a run that judges the stride itself.
static PLAIN: LazyLock<Vec<(u64, String, Vec<u8>)>> =
    LazyLock::new(|| carved(&Carver::new().workers(1)));

/// Carves the image with `bytes` as its only stride.
pub fn run(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else { return Verdict::Skipped };
    let line = Line(text);
    let files = carved(&Carver::new().workers(1).judged(&line));
    // Only a line that is JSON can be a stride.
    let is_json = serde_json::from_str::<serde_json::Value>(text).is_ok();
    assert!(is_json || files == *PLAIN, "{text}");
    if is_json { Verdict::Checked } else { Verdict::Skipped }
}
