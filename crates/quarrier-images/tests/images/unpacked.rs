//! Compressed disks with parts too long for memory, unpacked to temporary files.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lzma_rust2::{XzOptions, XzWriter};
use quarrier_core::Result;
use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_images::{Content, FolderSiblings, Kind, NoSiblings, ScratchFolder, open};

use crate::lab::{Lab, all_of, check, media, skip};

/// The longest part that these tests hold in memory.
const PART_BYTES: u64 = 64 << 10;

/// A folder for temporary files, and the flag that ends unpacking.
struct Scratch {
    folder: tempfile::TempDir,
    stop: Arc<AtomicBool>,
}

/// An image, its notice, and its kind.
type OpenedImage = (Arc<dyn Source>, Option<String>, Option<Kind>);

impl Scratch {
    fn new() -> Self {
        Scratch { folder: tempfile::tempdir().unwrap(), stop: Arc::default() }
    }

    fn folder(&self) -> ScratchFolder {
        ScratchFolder::new(self.folder.path(), &self.stop).part_bytes_max(PART_BYTES)
    }

    /// Opens packed bytes at any offset.
    fn open(&self, file: Arc<dyn Source>) -> Result<OpenedImage> {
        let beside =
            FolderSiblings::new(&PathBuf::from("image"), false).unpacking_in(self.folder());
        let image = open(file, &beside, &[], &self.stop)?;
        let (source, notice) = match image.content {
            Content::Disk(disk) => (disk, image.notice),
            Content::Stream(sequential) => sequential.unpacked(&self.folder())?,
        };
        let names = self.folder.path().read_dir().unwrap().count();
        assert_eq!(names, 0, "a temporary file has a name");
        Ok((source, notice, image.kind))
    }

    fn bytes(&self, packed: &[u8]) -> Arc<dyn Source> {
        self.open(memory(packed)).unwrap().0
    }
}

fn memory(packed: &[u8]) -> Arc<dyn Source> {
    Arc::new(Memory::new("image", packed.to_vec()))
}

/// One frame that states its length.
fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.set_pledged_src_size(Some(bytes.len() as u64)).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One frame that does not.
fn zstd_pipe(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One block, as of `xz -T1`.
fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_long_frame_or_block_is_read_at_any_offset() {
    let media = media(1_500_001);
    let scratch = Scratch::new();
    let short = &media[..1000];
    for (packed, length) in [
        (zstd_frame(&media), 1),
        (zstd_pipe(&media), 1),
        (xz(&media), 1),
        ([zstd_frame(&media), zstd_frame(short), zstd_frame(&media)].concat(), 2),
        ([xz(&media), xz(short), vec![0; 8], xz(&media)].concat(), 2),
    ] {
        let expected = match length {
            1 => media.clone(),
            _ => [&media[..], short, &media].concat(),
        };
        let image = scratch.bytes(&packed);
        assert!(image.is_packed());
        check(&*image, &expected);
        // And in another order.
        let image = scratch.bytes(&packed);
        let mut last = [0; 10];
        let at = expected.len() as u64 - 10;
        assert_eq!(image.read_at(at, &mut last).unwrap(), 10);
        assert_eq!(last, expected[expected.len() - 10..]);
        check(&*image, &expected);
    }
}

#[test]
fn an_image_in_a_long_frame_or_block_is_opened() {
    let (lab, media) = (Lab::new(), media(1 << 20));
    lab.put("raw", &media);
    if !lab.runs("qemu-img", "convert|-f|raw|-O|qcow2|raw|image") {
        return skip("qemu-img does not run");
    }
    let image = lab.read("image");
    let scratch = Scratch::new();
    for packed in [zstd_frame(&image), zstd_pipe(&image), xz(&image), xz(&zstd_frame(&image))] {
        let (disk, _, kind) = scratch.open(memory(&packed)).unwrap();
        assert_eq!(kind, Some(Kind::Qcow2));
        check(&*disk, &media);
    }
    // Without a folder for it, it is refused.
    let packed = xz(&image);
    let refused = open(memory(&packed[..packed.len() - 9]), &NoSiblings, &[], &scratch.stop);
    let why = refused.err().unwrap().to_string();
    assert!(why.contains("contains an image"), "{why}");
}

#[test]
fn a_footer_inside_a_long_frame_or_block_is_found_if_length_or_first_bytes_suggest_it() {
    let (lab, scratch) = (Lab::new(), Scratch::new());
    let mut disk = media(1 << 20);
    // Zeros take no bytes of a DMG, so that a chunk of zlib is the first.
    disk[..256 << 10].fill(0);
    disk[256 << 10..][..5000].fill(9);
    let dmg = crate::written::dmg(&disk, &|_| None);
    assert_eq!(dmg[0], 0x78);
    let mut images = vec![(dmg, Kind::Dmg)];
    lab.put("raw", &disk);
    if lab.runs("qemu-img", "convert|-f|raw|-O|vpc|-o|subformat=fixed,force_size=on|raw|image") {
        images.push((lab.read("image"), Kind::Vhd));
    } else {
        skip("qemu-img does not run");
    }
    for (image, expected) in &images {
        for packed in [zstd_frame(image), xz(image)] {
            let (found, _, kind) = scratch.open(memory(&packed)).unwrap();
            assert_eq!(kind, Some(*expected));
            check(&*found, &disk);
        }
        // Without the footer, it is read as it is.
        let cut = &image[..image.len() - 512];
        let longer = [cut, &[7; 512]].concat();
        for plain in [cut, &longer] {
            let (found, notice, _) = scratch.open(memory(&zstd_frame(plain))).unwrap();
            check(&*found, plain);
            assert_eq!(notice, None);
        }
    }
}

/// Counts the bytes that are read.
struct Counted(Memory<Vec<u8>>, AtomicU64);

impl Source for Counted {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn length(&self) -> u64 {
        self.0.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read_at(offset, buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[test]
fn only_what_is_read_is_unpacked() {
    let mut media = media(8 << 20);
    let mut state = 3;
    media.fill_with(|| crate::lab::random(&mut state) as u8);
    for packed in [zstd_frame(&media), xz(&media)] {
        let file = Arc::new(Counted(Memory::new("image", packed), AtomicU64::new(0)));
        let (image, ..) = Scratch::new().open(Arc::clone(&file) as _).unwrap();
        let mut first = vec![0; 100_000];
        read_full_at(&*image, 50_000, &mut first).unwrap();
        assert!(first == media[50_000..150_000]);
        let read = file.1.load(Ordering::Relaxed);
        assert!(read < 4 << 20, "{read} bytes read");
    }
}

#[test]
fn the_bytes_before_damage_can_be_read() {
    let media = media(3_000_000);
    let scratch = Scratch::new();
    for whole in [zstd_frame(&media), zstd_pipe(&media), xz(&media)] {
        let cut = whole[..whole.len() / 2].to_vec();
        let mut changed = whole.clone();
        changed[whole.len() / 2..][..64].fill(0x5A);
        for (packed, is_cut) in [(cut, true), (changed, false)] {
            let (image, notice, _) = scratch.open(memory(&packed)).unwrap();
            let mut end = 0;
            let error = loop {
                let mut bytes = vec![0; 10_000];
                match image.read_at(end, &mut bytes) {
                    Ok(read) => {
                        assert!(read > 0, "the damage was not noticed");
                        // The checksum of changed bytes is at the end.
                        let same = bytes[..read] == media[end as usize..][..read];
                        assert!(same || (!is_cut && end > 500_000), "{end}");
                        end += read as u64;
                    }
                    Err(error) => break error.to_string(),
                }
            };
            assert!(end > 500_000, "{end}");
            assert_eq!(image.readable_end(), end);
            assert!(error.starts_with("damaged: ") && error.contains(&end.to_string()), "{error}");
            assert!(notice.is_none_or(|notice| notice == error));
            assert!(
                image.read_at(end + 1, &mut [0]).is_ok_and(|read| read == 0)
                    ^ (end + 1 < image.length())
            );
        }
    }
    // If nothing can be read, it is refused.
    for whole in [zstd_frame(&media), xz(&media)] {
        assert!(scratch.open(memory(&whole[..20])).is_err());
    }
}

#[test]
fn a_length_that_is_a_lie_is_an_error_at_the_end() {
    let media = media(3_000_000);
    let scratch = Scratch::new();
    let frame = zstd_frame(&media);
    assert_eq!(frame[4] >> 6, 2, "its length has four bytes");
    let at = frame.windows(4).position(|bytes| bytes == 3_000_000u32.to_le_bytes()).unwrap();
    for stated in [2_999_999u32, 3_000_001, 4_000_000, u32::MAX] {
        let mut lie = frame.clone();
        lie[at..at + 4].copy_from_slice(&stated.to_le_bytes());
        let image = scratch.bytes(&lie);
        let mut bytes = vec![0; 4_100_000];
        let read = image.read_at(0, &mut bytes).unwrap();
        assert!(read >= 2 << 20 && read <= media.len() && bytes[..read] == media[..read], "{read}");
        assert!(image.read_at(read as u64, &mut bytes).is_err(), "{stated}");
    }
    // So is a wrong checksum, which belongs to the last bytes.
    let mut wrong = frame;
    *wrong.last_mut().unwrap() ^= 1;
    let image = scratch.bytes(&wrong);
    let mut last = [0];
    assert!(image.read_at(media.len() as u64 - 1, &mut last).is_err());
}

#[test]
fn a_full_disk_and_a_missing_folder_are_errors_that_name_the_folder() {
    let scratch = Scratch::new();
    let packed = zstd_frame(&media(3_000_000));
    let beside = FolderSiblings::new(&PathBuf::from("image"), false).unpacking_in(scratch.folder());
    let content = || open(memory(&packed), &beside, &[], &scratch.stop).unwrap().content;
    let Content::Stream(sequential) = content() else { panic!("it is not read in order") };
    let (image, _) = sequential.unpacked(&scratch.folder().spare_bytes(u64::MAX)).unwrap();
    let error = image.read_at(0, &mut [0; 100]).unwrap_err();
    let place = scratch.folder.path().display().to_string();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted, "readers give up");
    assert!(error.to_string().contains(&place), "{error}");
    let missing = ScratchFolder::new(&scratch.folder.path().join("missing"), &scratch.stop);
    let error = sequential.unpacked(&missing).err().unwrap().to_string();
    assert!(error.contains(&place) && error.contains("missing"), "{error}");
}

#[test]
fn unpacking_ends_with_the_stop_flag_and_can_go_on() {
    let (media, scratch) = (media(3_000_000), Scratch::new());
    let image = scratch.bytes(&xz(&media));
    let unknown = zstd_pipe(&media);
    scratch.stop.store(true, Ordering::Relaxed);
    let error = image.read_at(2_500_000, &mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
    assert!(scratch.open(memory(&unknown)).is_err());
    scratch.stop.store(false, Ordering::Relaxed);
    assert!(all_of(&*image) == media);
}
