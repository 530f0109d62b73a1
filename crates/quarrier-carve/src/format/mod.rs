//! File formats. Each has a folder with its signatures and its validator.

pub mod asf;
pub mod avi;
pub mod bmp;
pub mod bz2;
pub mod class;
pub mod elf;
pub mod evtx;
pub mod flac;
pub mod gif;
pub mod gz;
pub mod heif;
pub mod hive;
pub mod html;
pub mod ico;
pub mod jpg;
pub mod lnk;
pub mod mail;
mod markup;
pub mod matroska;
pub mod mp3;
pub mod mp4;
pub mod mpg;
pub mod ogg;
pub mod ole;
pub mod pcap;
pub mod pdf;
pub mod pe;
mod pixels;
pub mod plist;
pub mod png;
pub mod pst;
pub mod rar;
mod riff;
pub mod rtf;
pub mod seven_zip;
pub mod sqlite;
pub mod svg;
pub mod tar;
mod text;
pub mod tif;
mod tiff;
pub mod wav;
pub mod webp;
pub mod xml;
pub mod xz;
pub mod zip;
pub mod zst;

use crate::mend::{Broken, MendContext};
use crate::view::{Extent, View};

/// All formats, in the order in which they are tried at an offset.
pub static ALL: &[&dyn Format] = &[
    &asf::Asf,
    &avi::Avi,
    &bmp::Bmp,
    &bz2::Bz2,
    &class::Class,
    &elf::Elf,
    &evtx::Evtx,
    &flac::Flac,
    &gif::Gif,
    &gz::Gz,
    &heif::Heif,
    &hive::Hive,
    &html::Html,
    &ico::Ico,
    &jpg::Jpg,
    &lnk::Lnk,
    &mail::Mail,
    &matroska::Matroska,
    &mp3::Mp3,
    &mp4::Mp4,
    &mpg::Mpg,
    &ogg::Ogg,
    &ole::Ole,
    &pcap::Pcap,
    &pcap::PcapNg,
    &pdf::Pdf,
    &pe::Pe,
    &plist::Plist,
    &png::Png,
    &pst::Pst,
    &rar::Rar,
    &rtf::Rtf,
    &seven_zip::SevenZip,
    &sqlite::Sqlite,
    &svg::Svg,
    &tar::Tar,
    &tif::Tif,
    &wav::Wav,
    &webp::Webp,
    &xml::Xml,
    &xz::Xz,
    &zip::Zip,
    &zst::Zst,
];

/// A byte pattern by which files of a format are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Hexadecimal, `??` for any byte, `?A` and `A?` for half a byte. It needs at least two whole
    /// bytes, which should be rare, since each occurrence is validated.
    pub hex: &'static str,
    /// The offset of the signature in the file, in bytes.
    pub at: u64,
}

impl Signature {
    /// Whether a file that begins with `bytes` has this signature.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let Some(there) = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..)) else {
            return false;
        };
        let mut bytes = there.iter();
        self.hex.split_ascii_whitespace().all(|digits| {
            bytes.next().is_some_and(|byte| {
                let halves = [byte >> 4, byte & 15];
                digits
                    .chars()
                    .zip(halves)
                    .all(|(digit, half)| digit == '?' || digit.to_digit(16) == Some(half.into()))
            })
        })
    }
}

/// A validator's result for a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A whole file of `length` bytes: it was read to its end, and all checksums are right. `kind`
    /// is one of the format's [`kinds`](Format::kinds).
    Whole {
        /// The length in bytes.
        length: u64,
        /// Its type and extension.
        kind: Kind,
    },
    /// A file whose structure leads to its end with correct checksums, but with contents that were
    /// not read: they are encrypted, compressed by an unknown method, or need more memory than a
    /// validator may use. So it may be damaged.
    Unread {
        /// The length in bytes.
        length: u64,
        /// Its type and extension.
        kind: Kind,
        /// The unread part, and why: `"encrypted members were not read"`.
        reason: String,
    },
    /// A file that begins as the format requires, and breaks.
    Broken {
        /// Its type and extension, as far as they are known.
        kind: Kind,
        /// All bytes before this one belong to the file for certain: a checksum or a decoder has
        /// covered them. 0 if only the header could be read.
        sure: u64,
        /// The byte of the file at which the break was detected; at least `sure`, at most the
        /// length of the view. The cause may be earlier.
        at: u64,
        /// The reason, in a few words: `"CRC of IDAT"`.
        reason: String,
    },
    /// Not a file of this format.
    Not,
}

impl Verdict {
    /// Returns the length of the file, if it is whole.
    pub(crate) fn length(self) -> Option<u64> {
        match self {
            Verdict::Whole { length, .. } => Some(length),
            _ => None,
        }
    }

    /// Returns the length and type of a file with a known end, and its unread part or `""`.
    pub(crate) fn end(&self) -> Option<(u64, Kind, &str)> {
        match self {
            Verdict::Whole { length, kind } => Some((*length, *kind, "")),
            Verdict::Unread { length, kind, reason } => Some((*length, *kind, reason)),
            Verdict::Broken { .. } | Verdict::Not => None,
        }
    }

    /// Makes [`Whole`](Verdict::Whole), or [`Unread`](Verdict::Unread) if something was `not_read`.
    pub(crate) fn ended(length: u64, kind: Kind, not_read: &str) -> Self {
        match not_read {
            "" => Verdict::Whole { length, kind },
            reason => Verdict::Unread { length, kind, reason: reason.to_string() },
        }
    }

    /// Makes a file that breaks at `at`, or at the end of `view` if that comes first.
    pub(crate) fn broken(view: &View<'_>, kind: Kind, sure: u64, at: u64, reason: &str) -> Self {
        let at = at.min(view.length());
        Verdict::Broken { kind, sure: sure.min(at), at, reason: reason.to_string() }
    }
}

/// A type's name in reports and folders, and the extension of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The name for `--types`: `"jpg"`.
    pub name: &'static str,
    /// The extension without a dot: `"jpg"`.
    pub extension: &'static str,
}

impl Kind {
    /// Makes a type whose extension is its name.
    pub const fn new(name: &'static str) -> Self {
        Kind { name, extension: name }
    }
}

/// A file format: its types, its signatures, and its validator.
///
/// Validators read hostile bytes: they never panic, never allocate by a length that they read, need
/// little memory (64 KiB and the decoder's own), and their nesting is bounded. The view's fuel bounds
/// their time: every loop reads or [`spend`](View::spend)s in each turn.
pub trait Format: Send + Sync {
    /// Returns the types that the format distinguishes, the most general first.
    fn kinds(&self) -> &[Kind];

    /// Returns the signatures of its files.
    fn signatures(&self) -> &[Signature];

    /// Reads the candidate that begins at byte 0 of `view`. The view extends to the end of the
    /// source, most of which does not belong to the file.
    fn validate(&self, view: &mut View<'_>) -> Verdict;

    /// Returns whether the format has few distinctive marks and other data may resemble it (text,
    /// streams of frames). If two files overlap, the one of a format that is not weak wins.
    fn is_weak(&self) -> bool {
        false
    }

    /// Finds the extents of a file that `validate` found broken, with `view` unchanged since. `None` if
    /// it cannot find them. The result must be [`Verdict::Whole`] when validated.
    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let _ = (view, broken, context);
        None
    }
}
