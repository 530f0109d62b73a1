//! TIFF, and cameras' raw formats based on it: a chain of directories that refer to all other
//! parts. The file ends after the furthest byte to which any of them refers.
//!
//! Adobe, *TIFF Revision 6.0* (1992).

mod packed;
mod strips;

use strips::Strips;

use super::tiff::{Directory, Order};
use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Alien, Broken, MendContext, Rest, without_gaps};
use crate::view::{Extent, View};

/// TIFF, BigTIFF, and CR2, NEF, ARW, DNG. They have no checksum: the validator checks that
/// directories and pictures are inside the file, that compressed strips have the picture's size,
/// and that no foreign bytes are among uncompressed pixels.
pub struct Tif;

const TIF: Kind = Kind::new("tif");
const DNG: Kind = Kind::new("dng");
const CR2: Kind = Kind::new("cr2");
const NEF: Kind = Kind::new("nef");
const ARW: Kind = Kind::new("arw");
/// Maximum number of directories to follow.
const DIRECTORIES_MAX: usize = 4096;

impl Format for Tif {
    fn kinds(&self) -> &[Kind] {
        &[TIF, DNG, CR2, NEF, ARW]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "49 49 2A 00", at: 0 },
            Signature { hex: "4D 4D 00 2A", at: 0 },
            Signature { hex: "49 49 2B 00 08 00 00 00", at: 0 },
            Signature { hex: "4D 4D 00 2B 00 08 00 00", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some((order, first)) = Order::read(view, 0) else { return Verdict::Not };
        let mut walk = Walk {
            order,
            waiting: vec![first],
            seen: Vec::new(),
            end: 0,
            info: DirectoryInfo::default(),
        };
        match walk.all(view) {
            Ok(()) if walk.info.pictures > 0 => {
                let kind = walk.info.kind(view);
                match walk.strips(view, kind) {
                    Ok(()) => Verdict::Whole { length: walk.padded(view), kind },
                    Err(at) => Verdict::broken(view, kind, 0, at, "the data here is not a picture"),
                }
            }
            Err(at) if walk.info.pictures > 0 || (walk.seen.len() > 1 && walk.info.width) => {
                Verdict::Broken {
                    kind: walk.info.kind(view),
                    sure: 0,
                    at: at.min(view.length()),
                    reason: "a missing directory or picture".to_string(),
                }
            }
            _ => Verdict::Not,
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let alien = Alien { zeros: false, noise: true };
        without_gaps(view, context, broken.at, alien, self)
    }
}

impl Rest for Tif {
    fn check(&self, view: &mut View<'_>) -> Option<u64> {
        Verdict::length(self.validate(view))
    }
}

/// Information from the directories read so far.
#[derive(Default)]
struct DirectoryInfo {
    /// Directories with a picture.
    pictures: u32,
    strips: Vec<Strips>,
    width: bool,
    is_dng: bool,
    is_photoshop: bool,
    maker: Option<Kind>,
}

impl DirectoryInfo {
    fn kind(&self, view: &mut View<'_>) -> Kind {
        match self.maker {
            _ if self.is_dng => DNG,
            _ if view.is_at(8, b"CR\x02") => CR2,
            Some(maker) => maker,
            None => TIF,
        }
    }
}

struct Walk {
    order: Order,
    waiting: Vec<u64>,
    seen: Vec<u64>,
    end: u64,
    info: DirectoryInfo,
}

impl Walk {
    /// Follows all directories. `Err` with the place of a missing part.
    fn all(&mut self, view: &mut View<'_>) -> Result<(), u64> {
        while let Some(at) = self.waiting.pop() {
            if at == 0 || self.seen.contains(&at) {
                continue;
            }
            if self.seen.len() >= DIRECTORIES_MAX {
                return Err(at);
            }
            self.seen.push(at);
            let directory = Directory::read(view, self.order, at).ok_or(at)?;
            self.directory(view, &directory)?;
        }
        Ok(())
    }

    fn directory(&mut self, view: &mut View<'_>, directory: &Directory) -> Result<(), u64> {
        self.reach(view, directory.end)?;
        self.waiting.push(directory.next);
        for entry in &directory.entries {
            // Tags that do not describe pictures may have nonsensical values.
            match entry.end() {
                Some(end) if end <= view.length() => self.reach(view, end)?,
                _ if entry.tag >= 0x8000 && entry.tag != 0x8769 => continue,
                _ => return Err(directory.at),
            }
            match entry.tag {
                0x0100 => self.info.width = true,
                0x010F => {
                    let bytes = (entry.count.min(8)) as usize;
                    let maker = view.take(entry.at, bytes).unwrap_or_default();
                    self.info.maker = match maker {
                        _ if maker.starts_with(b"NIKON") => Some(NEF),
                        _ if maker.starts_with(b"SONY") => Some(ARW),
                        _ => None,
                    };
                }
                0x0131 => self.info.is_photoshop = view.is_at(entry.at, b"Adobe Photoshop"),
                0xC612 => self.info.is_dng = true,
                // Further directories: sub-pictures, EXIF, GPS, interoperability.
                0x014A | 0x8769 | 0x8825 | 0xA005 => {
                    for index in 0..entry.count.min(64) {
                        self.waiting.extend(entry.number(view, self.order, index));
                    }
                }
                _ => {}
            }
        }
        // Strips, tiles, and separate pictures.
        for tags in [(0x0111, 0x0117), (0x0144, 0x0145)] {
            let strips = Strips::read(view, self.order, directory, tags);
            self.pieces(view, directory, tags, strips.as_ref())?;
            self.info.strips.extend(strips);
        }
        self.pieces(view, directory, (0x0201, 0x0202), None)
    }

    /// Checks strips and tiles. `Err` with the first wrong byte. Cameras use proprietary
    /// compression, which is accepted unread.
    fn strips(&self, view: &mut View<'_>, kind: Kind) -> Result<(), u64> {
        let mut known = self.info.strips.iter().filter(|_| kind == TIF);
        known.try_for_each(|strips| strips.check(view, self.order))
    }

    /// Returns the pieces of a picture, by the tags of their places and lengths; `strips` has more
    /// information on them.
    fn pieces(
        &mut self,
        view: &mut View<'_>,
        directory: &Directory,
        (places, lengths): (u16, u16),
        strips: Option<&Strips>,
    ) -> Result<(), u64> {
        let (Some(places), Some(lengths)) = (directory.entry(places), directory.entry(lengths))
        else {
            return Ok(());
        };
        if places.count == 0 || places.count > lengths.count {
            return Err(directory.at);
        }
        let most = self.bytes_max(view, directory);
        let mut sum = 0u64;
        for index in 0..places.count {
            let place = places.number(view, self.order, index).ok_or(directory.at)?;
            let stated = lengths.number(view, self.order, index).ok_or(directory.at)?;
            let bytes = strips.map_or(stated, |strips| strips.likely_bytes(index, stated));
            sum = sum.saturating_add(bytes);
            if sum > most {
                return Err(directory.at);
            }
            if bytes > 0 {
                self.reach(view, place.checked_add(bytes).ok_or(directory.at)?)?;
            }
        }
        // A separate picture is the thumbnail in the EXIF directories of a camera's JPEG, unless it
        // is in the first directory.
        if places.tag != 0x0201 || self.seen.first() == Some(&directory.at) {
            self.info.pictures += 1;
        }
        Ok(())
    }

    /// Returns an upper bound on the bytes of a picture with these sides, however badly it is
    /// compressed.
    fn bytes_max(&self, view: &mut View<'_>, directory: &Directory) -> u64 {
        let mut number = |tag: u16| {
            directory.entry(tag).and_then(|entry| entry.number(view, self.order, 0)).unwrap_or(0)
        };
        let side = |side: u64| side.saturating_add(1024);
        let pixel_bytes = number(0x0115).clamp(1, 64) * number(0x0102).clamp(8, 64).div_ceil(8);
        match (number(0x0100), number(0x0101)) {
            (0, _) | (_, 0) => u64::MAX,
            (w, h) => side(w).saturating_mul(side(h)).saturating_mul(2 * pixel_bytes),
        }
    }

    /// Returns the end of the file with its padding: Photoshop pads to four bytes, and Pillow to
    /// sixteen if there are several pictures, each with a header of eight bytes.
    fn padded(&self, view: &mut View<'_>) -> u64 {
        let is_pillow = self.seen.len() > 1 && self.seen.iter().all(|at| at % 16 == 8);
        let padded = self.end.next_multiple_of(if is_pillow { 16 } else { 4 });
        let is_padded = (self.info.is_photoshop || is_pillow)
            && view
                .take(self.end, (padded - self.end) as usize)
                .is_some_and(|b| b.iter().all(|b| *b == 0));
        if is_padded { padded } else { self.end }
    }

    fn reach(&mut self, view: &View<'_>, end: u64) -> Result<(), u64> {
        self.end = self.end.max(end);
        if end > view.length() { Err(view.length()) } else { Ok(()) }
    }
}
