//! ext2, ext3 and ext4.

use quarrier_files::{Kind, State};

use super::lab::{Clock, Lab, content, named, noise, skip};

fn volume(shape: &[&str]) -> Option<Lab> {
    let lab = Lab::new(48);
    std::os::unix::fs::symlink("docs/deep/deeper/leaf.txt", lab.path("files/link")).unwrap();
    std::os::unix::fs::symlink("x".repeat(200), lab.path("files/long link")).unwrap();
    let holes = std::fs::File::create(lab.path("files/holes")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&holes, b"in the middle", 3_000_000).unwrap();
    holes.set_len(5_000_000).unwrap();
    for number in 0..300 {
        lab.put(&format!("files/many/number {number} with a long name"), b"1");
    }
    std::fs::write(lab.path("files").join(name_of_bytes()), b"bytes").unwrap();
    let mut args = vec!["-q", "-F", "-d", "files"];
    args.extend(shape);
    args.push("image");
    if !lab.does("mke2fs", &args) {
        skip(&format!("mke2fs {} does not run", shape.join(" ")));
        return None;
    }
    let debugfs = |command: &str| lab.does("debugfs", &["-w", "-R", command, "image"]);
    assert!(debugfs("rm /gone.bin") && debugfs("rm \"/docs/gone too.bin\""));
    assert!(
        debugfs("rm \"/lost folder/lost file with a name.dat\"")
            && debugfs("rmdir \"/lost folder\"")
    );
    Some(lab)
}

/// A name that is not UTF-8.
fn name_of_bytes() -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(b"caf\xE9".to_vec())
}

#[test]
fn ext_of_every_shape_is_as_sleuthkit_has_it() {
    let shapes: &[&[&str]] = &[
        &["-t", "ext2", "-b", "1024"],
        &["-t", "ext2", "-b", "4096", "-O", "^filetype"],
        &["-t", "ext3", "-b", "1024"],
        &["-t", "ext4"],
        &["-t", "ext4", "-b", "1024", "-g", "1024"],
        &["-t", "ext4", "-I", "128", "-O", "^64bit"],
        &["-t", "ext4", "-O", "bigalloc", "-C", "16384"],
    ];
    for shape in shapes {
        let Some(lab) = volume(shape) else { continue };
        let Some(entries) = lab.compare(Clock::Modified) else { return };
        let source = lab.source();
        let link = named(&entries, "/link");
        assert_eq!(
            (link.kind, content(&source, link)),
            (Kind::Link, b"docs/deep/deeper/leaf.txt".to_vec())
        );
        let link = named(&entries, "/long link");
        assert_eq!((link.kind, content(&source, link)), (Kind::Link, b"x".repeat(200)));
        assert_eq!(content(&source, named(&entries, "/caf\\xe9")), b"bytes");
        let gone = named(&entries, "/gone.bin");
        assert_eq!(gone.state, State::Deleted, "{shape:?}");
        assert!(content(&source, named(&entries, "/random.bin")) == noise("random.bin", 100_000));
    }
}

#[test]
fn files_in_inodes_are_read() {
    let lab = Lab::new(16);
    lab.put("files/small", b"sixty bytes at most");
    lab.put("files/larger", &noise("larger", 130));
    let shape =
        ["-q", "-F", "-t", "ext4", "-I", "256", "-O", "inline_data", "-d", "files", "image"];
    if !lab.does("mke2fs", &shape) {
        return skip("mke2fs does not run");
    }
    let entries = super::lab::entries(&lab.source());
    let source = lab.source();
    assert_eq!(content(&source, named(&entries, "/small")), b"sixty bytes at most");
    assert_eq!(content(&source, named(&entries, "/larger")), noise("larger", 130));
    assert_eq!(
        content(&source, named(&entries, "/docs/deep/deeper/leaf.txt")),
        noise("docs/deep/deeper/leaf.txt", 700)
    );
}
