//! Real volumes. They are not in the repository; tests are skipped if they are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use quarrier_core::source::{Memory, Source, SplitSource, read_full_at};
use quarrier_files::unallocated::find;

use super::{check_order, is_free, skip};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");

fn known(name: &str) -> Option<PathBuf> {
    let path = Path::new(FOLDER).join(name);
    if !path.exists() {
        skip(&format!("{name} is not here"));
        return None;
    }
    Some(path)
}

#[test]
fn deleted_files_of_a_fat_volume_are_free() {
    let Some(zip) = known("dftt/6-undel-fat.zip") else { return };
    let output = Command::new("unzip")
        .args(["-p".as_ref(), zip.as_os_str(), "6-undel-fat/6-fat-undel.dd".as_ref()])
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        skip("unzip does not run");
        return;
    };
    let image = Memory::new("6-fat-undel.dd", output.stdout);
    let found = find(&image).unwrap();
    check_order(&found, image.length());
    assert_eq!(found.volumes[0].kind, "FAT16");
    // The sectors of the deleted files and folders, from the image's web page.
    for sectors in [88..112, 116..126] {
        for sector in sectors {
            assert!(is_free(&found, sector * 512, 512), "sector {sector}");
        }
    }
}

#[test]
fn free_bytes_of_an_ext2_volume_match_its_superblock() {
    let Some(path) = known("containers/ext2.splitraw.000") else { return };
    let image = SplitSource::open(&path).unwrap();
    let found = find(&image).unwrap();
    check_order(&found, image.length());
    let mut superblock = [0; 32];
    assert_eq!(read_full_at(&image, 1024, &mut superblock).unwrap(), 32);
    let number =
        |at: usize| u64::from(u32::from_le_bytes(*superblock[at..].first_chunk().unwrap()));
    assert_eq!(found.bytes(), number(12) * (1024 << number(24)));
}
