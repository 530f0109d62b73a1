//! Opens a file as the disk that it wraps, by its first and last bytes.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::{Memory, Source};
use quarrier_core::{Error, Result, name};

use crate::around::{Around, Siblings};
use crate::ewf::{EwfSource, following};
use crate::fault::refused;
use crate::kind::Kind;
use crate::packed::{self, Packed, Sequential};
use crate::{aff4, dmg, ewf2, parallels, qcow2, vdi, vhd, vhdx, vmdk};

/// Maximum layers of compression.
const DEPTH_MAX: usize = 4;
/// Maximum segments of an image opened at once, if they are remote objects.
const SEGMENTS_MAX: usize = 10_000;
/// Bytes of a decompressed stream examined to detect the format inside.
const HEAD_BYTES: u64 = 512;

/// The content of an image.
pub enum Content {
    /// Random access to the bytes of the disk, or of the file itself if it wraps none.
    Disk(Arc<dyn Source>),
    /// Sequential access, for compression without random access, unless it is unpacked.
    Stream(Sequential),
}

/// An opened file.
pub struct Image {
    /// Its bytes.
    pub content: Content,
    /// The format that wraps the disk; `None` for a plain file.
    pub kind: Option<Kind>,
    /// A message to show, since it affects how far the bytes can be trusted.
    pub notice: Option<String>,
}

/// Opens `file` according to its content: as an image, with the files `beside` it that it needs, or
/// else as a plain file. Formats in `kinds_left` are not unwrapped. Once `stop` is true, long reads end
/// with an error.
///
/// # Errors
/// If it is an image that cannot be read: damaged, encrypted, in an unsupported format, or without a
/// file that it needs.
pub fn open(
    file: Arc<dyn Source>,
    beside: &dyn Siblings,
    kinds_left: &[Kind],
    stop: &AtomicBool,
) -> Result<Image> {
    let around = Around { beside, open_disk: &open_disk, stop, chain: Vec::new(), depth: 0 };
    match Kind::and_notice(&*file, beside.is_far()) {
        (Some(kind), _) if !kinds_left.contains(&kind) => open_as(kind, file, &around),
        (_, notice) => Ok(Image { content: Content::Disk(file), kind: None, notice }),
    }
}

fn open_disk(file: Arc<dyn Source>, around: &Around<'_>) -> Result<Arc<dyn Source>> {
    let Some(kind) = Kind::of(&*file, around.beside.is_far()) else { return Ok(file) };
    match open_as(kind, Arc::clone(&file), around)?.content {
        Content::Disk(disk) => Ok(disk),
        Content::Stream(sequential) => match around.beside.scratch() {
            Some(folder) => sequential.unpacked(folder).map(|(disk, _)| disk),
            None => Err(refused(
                &*file,
                "is compressed so that it can only be read sequentially; decompress it first",
            )),
        },
    }
}

fn open_as(kind: Kind, file: Arc<dyn Source>, around: &Around<'_>) -> Result<Image> {
    let mut notice = None;
    let disk: Arc<dyn Source> = match kind {
        Kind::Bzip2 | Kind::Gzip | Kind::Xz | Kind::Zstd => return unpacked(kind, &file, around),
        Kind::Ewf => {
            let image = match around.beside.path() {
                Some(path) if file.name() == name::of_path(path) => EwfSource::open(path)?,
                _ => EwfSource::from_segments(file.name().to_string(), segments(file, around))?,
            };
            notice = image.missing();
            Arc::new(image)
        }
        Kind::Aff4 => {
            let (image, unknown) = aff4::open(&file, around)?;
            notice = unknown;
            Arc::new(image)
        }
        Kind::Dmg => Arc::new(dmg::open(&file)?),
        Kind::Ewf2 => {
            let (image, missing) = ewf2::open(&file, around)?;
            notice = missing;
            Arc::new(image)
        }
        Kind::Parallels => Arc::new(parallels::open(&file)?),
        Kind::Qcow2 => Arc::new(qcow2::open(&file, around)?),
        Kind::Vdi => Arc::new(vdi::open(&file, around)?),
        Kind::Vhd => Arc::new(vhd::open(&file, around)?),
        Kind::Vhdx => Arc::new(vhdx::open(&file, around)?),
        Kind::Vmdk => Arc::new(vmdk::open(&file, around)?),
        other => return Err(refused(&*file, other.refusal())),
    };
    Ok(Image { content: Content::Disk(disk), kind: Some(kind), notice })
}

/// The segments of a remote image, beside the first one. A segment that cannot be opened counts as
/// missing, as do all later ones.
fn segments(first: Arc<dyn Source>, around: &Around<'_>) -> Vec<Box<dyn Source>> {
    let name = around.beside.name_of(&*first);
    let mut segments: Vec<Box<dyn Source>> = vec![Box::new(first)];
    if around.beside.is_far() {
        let others = following(name.as_ref()).take(SEGMENTS_MAX);
        segments.extend(others.map_while(|name| around.beside.open(name.to_str()?).ok()));
    }
    segments
}

/// Opens the contents of a compressed file, detecting their format in turn.
fn unpacked(kind: Kind, file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Image> {
    let mut around = around.clone();
    around.depth += 1;
    if around.depth > DEPTH_MAX {
        let reason = format!("is compressed more than {DEPTH_MAX} times; decompress it first");
        return Err(refused(&**file, reason));
    }
    match packed::open(kind, file, &around)? {
        Packed::Anywhere(inner, notice) => match Kind::and_notice(&*inner, false) {
            (Some(within), _) => {
                let image = open_as(within, inner, &around)?;
                Ok(Image { notice: notice.or(image.notice), ..image })
            }
            (None, inside) => {
                let notice = notice.or(inside);
                Ok(Image { content: Content::Disk(inner), kind: Some(kind), notice })
            }
        },
        Packed::InOrder(sequential) => {
            let head = head(file, &sequential)?;
            let has_footer = may_have_footer(file, &sequential, &head, &around);
            match has_footer || Kind::of(&Memory::new("", &head[..]), true).is_some() {
                true => image_inside(file, &sequential, has_footer, &around),
                false => {
                    let content = Content::Stream(sequential);
                    Ok(Image { content, kind: Some(kind), notice: None })
                }
            }
        }
    }
}

/// The first bytes of what a compressed file contains.
fn head(file: &Arc<dyn Source>, sequential: &Sequential) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = sequential.reader()?.take(HEAD_BYTES).read_to_end(&mut head);
    read.map_err(|error| Error::io(file.name(), "unpack", error))?;
    Ok(head)
}

/// Whether a footer may make an image of what a compressed file contains: its name, its first bytes or its
/// length suggest it. All of it is unpacked to know, so that hardly any file without one may seem to have one.
fn may_have_footer(
    file: &Arc<dyn Source>,
    sequential: &Sequential,
    head: &[u8],
    around: &Around<'_>,
) -> bool {
    let suggests_it =
        || dmg::may_begin(head) || sequential.length().is_some_and(vhd::is_length_with_footer);
    let is_named = Kind::has_footer(unpacked_name(file.name()));
    is_named || (around.beside.scratch().is_some() && suggests_it())
}

/// Opens what a compressed file contains, unpacked to a temporary file. Its end is unpacked at once if it
/// may have a footer.
fn image_inside(
    file: &Arc<dyn Source>,
    sequential: &Sequential,
    has_footer: bool,
    around: &Around<'_>,
) -> Result<Image> {
    let Some(folder) = around.beside.scratch() else {
        let reason = "contains an image, compressed so that it can only be read sequentially; \
                      decompress it first, and name what comes out";
        return Err(refused(&**file, reason));
    };
    let (inner, notice) = sequential.unpacked(folder)?;
    // To probe the end unpacks all of it.
    match Kind::and_notice(&*inner, !has_footer) {
        (Some(within), _) => {
            let image = open_as(within, inner, around)?;
            Ok(Image { notice: notice.or(image.notice), ..image })
        }
        (None, inside) => {
            let notice = notice.or(inside);
            Ok(Image { content: Content::Disk(inner), kind: Some(sequential.kind()), notice })
        }
    }
}

/// The name of a compressed file without the extension of its compression.
fn unpacked_name(name: &str) -> &str {
    [".xz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}
