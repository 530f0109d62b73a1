//! Real images with known answers. They are not in the repository; tests are skipped if they are
//! missing.

use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use quarrier_core::source::{Source, read_full_at};
use quarrier_images::ewf::EwfSource;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");

fn known(name: &str) -> Option<PathBuf> {
    let path = Path::new(FOLDER).join(name);
    if !path.exists() {
        eprintln!("skipped: {name} is not here");
        return None;
    }
    Some(path)
}

fn md5_of(source: &dyn Source) -> String {
    let mut bytes = vec![0; source.length() as usize];
    assert_eq!(read_full_at(source, 0, &mut bytes).unwrap(), bytes.len());
    Md5::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn images_of_other_tools_have_the_bytes_that_are_known() {
    for (name, segments, length, md5) in [
        ("ewf/nps-2010-emails.E01", 1, 10_485_760, "2f5ec5894f7fe3cea93bd29e7cf1eb50"),
        // An image of a file: its last sector is partial, and the volume section does not count it.
        ("ewf/email_test.E01", 4, 6911 * 512 + 458, "b817ed2590eeeb39f42445088d369f6c"),
        ("containers/ext2.E01", 1, 4_194_304, "196066add11fb71c4c49cf1bb50d6d24"),
        ("containers/ext2.split.E01", 2, 4_194_304, "196066add11fb71c4c49cf1bb50d6d24"),
    ] {
        let Some(path) = known(name) else { continue };
        let image = EwfSource::open(&path).unwrap();
        assert_eq!((image.segments(), image.length()), (segments, length), "{name}");
        assert_eq!(md5_of(&image), md5, "{name}");
        assert!(image.verify(&mut |_| true).unwrap().unwrap().holds(), "{name}");
    }
}
