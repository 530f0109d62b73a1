//! Volumes made by mkfs, with files copied into them and deleted again.

use std::path::{Path, PathBuf};
use std::process::Command;

use quarrier_core::source::FileSource;
use quarrier_files::unallocated::{Unallocated, find};
use tempfile::TempDir;

use super::{check_order, is_free, is_taken, skip};

const FILE_BYTES: usize = 64 << 10;
const FILES: u8 = 6;

/// A volume in a file, and the files that were copied into it.
struct Lab {
    folder: TempDir,
}

impl Lab {
    /// A sparse file of `mebibytes`.
    fn new(mebibytes: u64) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let image = std::fs::File::create(folder.path().join("image")).unwrap();
        image.set_len(mebibytes << 20).unwrap();
        std::fs::create_dir(folder.path().join("files")).unwrap();
        for number in 0..FILES {
            std::fs::write(folder.path().join(format!("files/f{number}")), content(number))
                .unwrap();
        }
        Lab { folder }
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// The output of a program, or `None` if it is missing or fails.
    fn run(&self, program: &str, args: &[&str]) -> Option<String> {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("MTOOLS_SKIP_CHECK", "1");
        let output = command.args(args).current_dir(self.folder.path()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn find(&self) -> Unallocated {
        let source = FileSource::open(&self.image()).unwrap();
        let found = find(&source).unwrap();
        check_order(&found, std::fs::metadata(self.image()).unwrap().len());
        found
    }

    /// Checks, block by block, that existing files are allocated and those in `deleted` are free.
    fn check_files(&self, deleted: &[u8]) {
        let found = self.find();
        let mut seen = [0; FILES as usize];
        for (index, sector) in std::fs::read(self.image()).unwrap().chunks(512).enumerate() {
            let number = match sector {
                [b'Q', b'F', number, ..] => *number,
                _ => continue,
            };
            seen[usize::from(number)] += 1;
            let at = index as u64 * 512;
            match deleted.contains(&number) {
                true => assert!(is_free(&found, at, 1024), "file {number} at {at}"),
                false => assert!(is_taken(&found, at, 1024), "file {number} at {at}"),
            }
        }
        assert_eq!(seen, [FILE_BYTES / 1024; FILES as usize]);
    }
}

/// Blocks of 1,024 bytes, filled with the number of their file.
fn content(number: u8) -> Vec<u8> {
    let block = |index: usize| {
        let mut block = vec![b'Q', b'F', number];
        block.resize(1024, 0x40 + index as u8);
        block
    };
    (0..FILE_BYTES / 1024).flat_map(block).collect()
}

fn number_at(image: &Path, at: usize) -> u64 {
    let bytes = std::fs::read(image).unwrap();
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()).into()
}

#[test]
fn ext_of_every_layout_has_the_expected_free_bytes() {
    let shapes: &[&[&str]] = &[
        &["-t", "ext2"],
        &["-t", "ext2", "-b", "1024", "-O", "^sparse_super,^resize_inode"],
        &["-t", "ext3", "-b", "1024"],
        &["-t", "ext4"],
        &["-t", "ext4", "-b", "1024", "-g", "1024"],
        &["-t", "ext4", "-O", "^metadata_csum,uninit_bg,^flex_bg"],
        &["-t", "ext4", "-O", "^metadata_csum,^uninit_bg,^64bit"],
        &["-t", "ext4", "-b", "1024", "-g", "256", "-O", "meta_bg,^resize_inode"],
        &["-t", "ext4", "-O", "bigalloc", "-C", "16384"],
        &["-t", "ext4", "-O", "sparse_super2,^resize_inode"],
    ];
    for shape in shapes {
        let lab = Lab::new(48);
        let mut args = vec!["-q", "-F", "-d", "files"];
        args.extend(*shape);
        args.push("image");
        if lab.run("mke2fs", &args).is_none() {
            skip(&format!("mke2fs {} does not run", shape.join(" ")));
            continue;
        }
        let found = lab.find();
        assert_eq!(found.volumes.len(), 1);
        assert_eq!((found.volumes[0].kind, found.volumes[0].offset), ("ext", 0));
        let free_blocks = number_at(&lab.image(), 1024 + 12);
        let block_bytes = 1024 << number_at(&lab.image(), 1024 + 24);
        assert_eq!(found.bytes(), free_blocks * block_bytes, "{shape:?}");
        lab.check_files(&[]);
        for name in ["/f1", "/f4"] {
            assert!(lab.run("debugfs", &["-w", "-R", &format!("rm {name}"), "image"]).is_some());
        }
        lab.check_files(&[1, 4]);
    }
}

#[test]
fn fat_of_every_width_has_the_expected_free_bytes() {
    for (mebibytes, args, kind) in [
        (2, &["-F", "12"][..], "FAT12"),
        (16, &["-F", "16"], "FAT16"),
        (48, &["-F", "32", "-s", "1"], "FAT32"),
        (12, &["-F", "12", "-S", "4096", "-s", "1"], "FAT12"),
    ] {
        let lab = Lab::new(mebibytes);
        let args = [args, &["image"]].concat();
        if lab.run("mkfs.vfat", &args).is_none() {
            skip("mkfs.vfat does not run");
            return;
        }
        assert_eq!(lab.find().volumes[0].kind, kind);
        for number in 0..FILES {
            let name = format!("files/f{number}");
            if lab.run("mcopy", &["-i", "image", &name, "::"]).is_none() {
                skip("mcopy does not run");
                return;
            }
        }
        lab.check_files(&[]);
        for name in ["::f0", "::f3"] {
            assert!(lab.run("mdel", &["-i", "image", name]).is_some());
        }
        lab.check_files(&[0, 3]);
        if kind == "FAT32" {
            let free = number_at(&lab.image(), 512 + 488) * 512;
            let beyond = lab.find().bytes() - free;
            assert!(beyond < 512, "{beyond} bytes more than the volume says");
        }
    }
}

#[test]
fn ntfs_has_the_expected_free_bytes() {
    for cluster in ["512", "4096", "65536"] {
        let lab = Lab::new(32);
        if lab.run("mkntfs", &["-q", "-Q", "-F", "-c", cluster, "image"]).is_none() {
            skip("mkntfs does not run");
            return;
        }
        for number in 0..FILES {
            let (from, to) = (format!("files/f{number}"), format!("f{number}"));
            if lab.run("ntfscp", &["-q", "-f", "image", &from, &to]).is_none() {
                skip("ntfscp does not run");
                return;
            }
        }
        lab.check_files(&[]);
        let Some(said) = lab.run("ntfsinfo", &["-m", "-f", "image"]) else {
            skip("ntfsinfo does not run");
            return;
        };
        let line = said.lines().find(|line| line.contains("Free Clusters")).unwrap();
        let clusters = line.split(&[':', '(']).nth(1).unwrap().trim().parse::<u64>().unwrap();
        let cluster_bytes: u64 = cluster.parse().unwrap();
        let beyond = lab.find().bytes() - clusters * cluster_bytes;
        assert!(beyond < 2 * cluster_bytes, "{beyond} bytes more than ntfsinfo says");
    }
}

#[test]
fn exfat_has_the_expected_free_bytes() {
    let lab = Lab::new(32);
    if lab.run("mkfs.exfat", &["image"]).is_none() {
        skip("mkfs.exfat does not run");
        return;
    }
    let found = lab.find();
    assert_eq!(found.volumes[0].kind, "exFAT");
    // The bitmap, the up-case table and the root directory are allocated.
    let heap = number_at(&lab.image(), 88) * 512;
    assert!(!is_free(&found, heap, 512));
    assert!(found.bytes() > 24 << 20 && found.bytes() < (32 << 20) - heap);
}
