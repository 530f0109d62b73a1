//! Any bytes as an archive from which all members are requested: they stay within the limits,
//! stored members are at the offset reported for them, and the walk ends once the taker has enough.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_carve::embedded::{Limits, TakeMembers, archive_kind, members};
use quarrier_carve::{Extent, View};
use quarrier_core::source::{Memory, Source};

use crate::{Target, Verdict, packed};

/// See the module.
pub const TARGET: Target = Target { name: "members", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    // A stored and a deflated member.
    b"PK\x03\x04\x14\0\0\0\0\0\0\0\x21\x50\0\0\0\0\x05\0\0\0\x05\0\0\0\x01\0\0\0ahello\
      PK\x03\x04\x14\0\0\0\x08\0\0\0\x21\x50\0\0\0\0\x07\0\0\0\x05\0\0\0\x01\0\0\0b\xCB\x48\xCD\xC9\xC9\x07\0\
      PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\x21\x50\0\0\0\0\x05\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a\
      PK\x01\x02\x14\0\x14\0\0\0\x08\0\0\0\x21\x50\0\0\0\0\x07\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x24\0\0\0b\
      PK\x05\x06\0\0\0\0\x02\0\x02\0\x5E\0\0\0\x4A\0\0\0\0\0",
    b"\x1F\x8B\x08\x08\0\0\0\0\0\x03name\0\xCB\x48\xCD\xC9\xC9\x07\0\x86\xA6\x10\x36\x05\0\0\0",
    // A tape in the form that `tape` reads.
    b"T\x05hello\x00\x03abc",
    b"T\x85a path of its own\x01x",
    b"BZh91AY&SY\x191e=\0\0\0\x81\0\x02D\xA0\0!\x9Ah3M\x073\x8B\xB9\x22\x9C(H\x0C\x98\xB2\x9E\x80",
    b"\xFD7zXZ\0\0\x01i\x22\xDE6\x02\0!\x01\x16\0\0\0t/\xE5\xA3\x01\0\x04hello\0\0\0\0\x86\xA6\x106\0\x01\x19\x05\
      \xBC\xE8\xEC\xCB\x90B\x99\x0D\x01\0\0\0\0\x01YZ",
    // A skippable frame, and one with its bytes.
    b"\x50\x2A\x4D\x18\x01\0\0\0x\x28\xB5\x2F\xFD\x20\x05\x29\0\0hello",
    // A block of xz in the form that `packed` reads, and 7z: a stored file with its name, and an
    // empty one after it.
    b"X\0\0\x05\x01\0\x04hello\0",
    b"7\0\x2F\x04\x06\0\x01\x09\x05\0\x07\x0B\x01\0\x01\x01\0\x0C\x05\x0A\x01\x86\xA6\x106\0\x08\0\0\
      \x05\x02\x0E\x01\x40\x0F\x01\x80\x11\x09\0a\0\0\0b\0\0\0\0\0hello",
];

const WORDS: &[&[u8]] = &[
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
    b"\x1F\x8B\x08\0",
    b"\xFF\xFF\xFF\xFF",
    b"\0\0\0\0",
    b"\x01\0\0\xFF\xFF",
    b"\x03\0",
    b"T",
    b"20 path=x\n",
    b"20 size=9999999999\n",
    b"BZh9",
    b"1AY&SY",
    b"\x17rE8P\x90",
    b"\xFD7zXZ\0",
    b"\x28\xB5\x2F\xFD",
    b"\x50\x2A\x4D\x18",
    b"7",
    b"X",
    b"\x03\x01\x01",
    b"\x21",
    b"\x04\x02\x02",
    b"\x06\xF1\x07\x01",
];

const LIMITS: Limits = Limits {
    depth_max: 3,
    member_bytes_max: 32 << 10,
    unpacked_bytes_max: 256 << 10,
    ratio_max: 100,
    members_max: 64,
    decoder_bytes_max: 1 << 20,
};
/// The number of members after which the second walk stops.
const ENOUGH: usize = 2;

#[derive(Default)]
struct All {
    members: Vec<(String, Arc<Vec<u8>>, Option<u64>)>,
    skipped: Vec<String>,
    most: Option<usize>,
}

impl All {
    fn has_enough(&self) -> bool {
        self.most.is_some_and(|most| self.members.len() >= most)
    }
}

impl TakeMembers for All {
    fn member(&mut self, path: &str, bytes: &Arc<Vec<u8>>, place: Option<u64>) -> bool {
        assert!(!self.has_enough(), "{path} after the last");
        self.members.push((path.to_string(), Arc::clone(bytes), place));
        !self.has_enough()
    }

    fn skipped(&mut self, path: &str, reason: &'static str) {
        assert!(!reason.is_empty());
        self.skipped.push(path.to_string());
    }
}

/// Walks through an archive, or through a tape, an xz file or a 7z archive made from the bytes, with
/// valid checksums.
///
/// # Panics
/// If a limit does not hold, or an offset is wrong.
pub fn run(bytes: &[u8]) -> Verdict {
    let made;
    let built = match bytes {
        [b'T', choices @ ..] => Some(tape(choices)),
        [b'X', choices @ ..] => packed::xz(choices),
        // Not the magic number of 7z itself.
        [b'7', choices @ ..] if !bytes.starts_with(b"7z") => packed::seven_zip(choices),
        _ => None,
    };
    let archive = match built {
        Some(built) => {
            made = built;
            &made[..]
        }
        None => bytes,
    };
    let Some(kind) = archive_kind(archive) else { return Verdict::Skipped };
    let source = Memory::new("archive", archive);
    let whole = Extent { offset: 0, length: source.length() };
    let walk = |all: &mut All, stop: bool| {
        let mut view = View::of(&source, &[whole]);
        members(kind, &mut view, &LIMITS, &AtomicBool::new(stop), all)
    };
    let mut all = All::default();
    let unpacked = walk(&mut all, false);
    // Content that is inspected but not passed on counts too.
    let sum: u64 = all.members.iter().map(|(_, bytes, _)| bytes.len() as u64).sum();
    assert!(sum <= unpacked.bytes && unpacked.bytes <= LIMITS.unpacked_bytes_max);
    assert!(all.members.len() as u64 <= unpacked.members);
    assert!(unpacked.members <= LIMITS.members_max);
    for (path, bytes, place) in &all.members {
        assert!(path.starts_with('!') && !path.contains(char::is_control), "{path:?}");
        assert!(bytes.len() as u64 <= LIMITS.member_bytes_max, "{path:?}");
        // A tape may end before an empty member.
        if let Some(place) = place
            && !bytes.is_empty()
        {
            let place = usize::try_from(*place).expect("a place in memory");
            assert_eq!(archive[place..][..bytes.len()], bytes[..], "{path:?} at {place}");
        }
    }
    let mut few = All { most: Some(ENOUGH), ..All::default() };
    walk(&mut few, false);
    assert_eq!(few.members, all.members[..all.members.len().min(ENOUGH)], "the first ones");
    let mut none = All::default();
    walk(&mut none, true);
    assert!(none.members.is_empty(), "it was stopped");
    Verdict::Checked
}

/// Makes a tape: each entry is a byte for its type and the length of its content, which follows.
fn tape(mut choices: &[u8]) -> Vec<u8> {
    let mut tape = Vec::new();
    while let [choice, rest @ ..] = choices {
        let length = usize::from(choice & 0x3F).min(rest.len());
        let (content, more) = rest.split_at(length);
        choices = more;
        let mut header = [0; 512];
        header[..4].copy_from_slice(b"name");
        header[124..136].copy_from_slice(format!("{length:011o}\0").as_bytes());
        header[156] = [b'0', b'x', b'L', b'5'][usize::from(choice >> 6)];
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tape.extend(header);
        tape.extend(content);
        tape.resize(tape.len().next_multiple_of(512), 0);
    }
    tape
}
