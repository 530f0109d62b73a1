//! Published images with published answers. They are not in the repository; tests are skipped if they
//! are missing.

use std::process::Command;

use md5::{Digest, Md5};
use quarrier_core::hex;
use quarrier_core::source::Memory;
use quarrier_files::State;

use super::lab::{content, entries, folder_of_corpora, named, skip};

#[test]
fn deleted_files_of_the_undelete_test_have_the_published_bytes() {
    let zip = folder_of_corpora().join("dftt/6-undel-fat.zip");
    let args = ["-p".as_ref(), zip.as_os_str(), "6-undel-fat/6-fat-undel.dd".as_ref()];
    let output = Command::new("unzip").args(args).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip("the image of the undelete test is not here");
    };
    let image = Memory::new("6-fat-undel.dd", output.stdout);
    let all = entries(&image);
    for (path, size, md5) in [
        ("/_ing.dat", 780, Some("59b20779f69ff9f0ac5fcd2c38835a79")),
        ("/_ult1.dat", 3801, Some("ffd27bd782bdce67750b6b9ee069d2ef")),
        // The fragments of two files alternate: even free clusters in order would be wrong.
        ("/_rag1.dat", 1584, None),
        ("/_rag2.dat", 3873, None),
        ("/_ir1/mult2.dat", 1715, Some("59cf0e9cd107bc1e75afb7374f6e05bb")),
        ("/_ir1/dir2/frag3.dat", 2027, None),
    ] {
        let entry = named(&all, path);
        assert_eq!((entry.state, entry.size), (State::Deleted, size), "{path}");
        let digest = hex::encode(&Md5::digest(content(&image, entry)));
        assert!(md5.is_none_or(|md5| md5 == digest), "{path} {digest}");
    }
}

#[test]
fn a_real_ext2_volume_is_listed() {
    let path = folder_of_corpora().join("containers/ext2.splitraw.000");
    let Ok(first) = std::fs::read(&path) else { return skip("the ext2 volume is not here") };
    let second = std::fs::read(path.with_extension("001")).unwrap();
    let image = Memory::new("ext2", [first, second].concat());
    let all = entries(&image);
    let passwords = named(&all, "/passwords.txt");
    assert!(content(&image, passwords).starts_with(b"place,user,password"));
}
