//! FAT and exFAT.

use quarrier_files::State;

use super::lab::{Clock, Lab, content, entries, named, noise, skip};

fn fat(bits: &str, mebibytes: u64) -> Option<Lab> {
    let lab = Lab::new(mebibytes);
    if !lab.does("mkfs.vfat", &["-F", bits, "image"]) {
        skip("mkfs.vfat does not run");
        return None;
    }
    let files = ["a.txt", "empty", "random.bin", "gone.bin", "docs", "lost folder"];
    for name in files {
        if !lab.does("mcopy", &["-s", "-m", "-i", "image", &format!("files/{name}"), "::"]) {
            skip("mcopy does not run");
            return None;
        }
    }
    for name in ["::gone.bin", "::docs/gone too.bin"] {
        assert!(lab.does("mdel", &["-i", "image", name]));
    }
    assert!(lab.does("mdeltree", &["-i", "image", "::lost folder"]));
    Some(lab)
}

#[test]
fn fat_of_every_width_is_as_sleuthkit_has_it() {
    for (bits, mebibytes) in [("12", 2), ("16", 16), ("32", 48)] {
        let Some(lab) = fat(bits, mebibytes) else { return };
        let Some(entries) = lab.compare(Clock::NotChanged) else { return };
        let lost = named(&entries, "/lost folder/lost file with a name.dat");
        assert_eq!(lost.state, State::Deleted);
        assert!(
            content(&lab.source(), lost) == noise("lost folder/lost file with a name.dat", 3000)
        );
    }
}

#[test]
fn a_file_in_pieces_is_put_together() {
    let Some(lab) = fat("16", 16) else { return };
    for number in 0..20 {
        lab.put("piece", &noise(&number.to_string(), 4096));
        assert!(lab.does("mcopy", &["-i", "image", "piece", &format!("::p{number}")]));
    }
    for number in (0..20).step_by(2) {
        assert!(lab.does("mdel", &["-i", "image", &format!("::p{number}")]));
    }
    // Fill the last free clusters, so that the holes are used next.
    let all = noise("large", 30_000);
    lab.put("large", &all);
    assert!(lab.does("mcopy", &["-i", "image", "large", "::large"]));
    let Some(entries) = lab.compare(Clock::NotChanged) else { return };
    assert!(content(&lab.source(), named(&entries, "/large")) == all);
}

#[test]
fn exfat_is_as_sleuthkit_has_it() {
    let lab = Lab::new(32);
    if !lab.does("mkfs.exfat", &["image"]) {
        return skip("mkfs.exfat does not run");
    }
    // No tool writes to exFAT without mounting it, which only root may do.
    let Some(device) = lab.run("losetup", &["-f", "--show", "image"]) else {
        return skip("losetup does not run");
    };
    let device = String::from_utf8(device).unwrap().trim().to_string();
    std::fs::create_dir(lab.path("mount")).unwrap();
    let mounts = lab.does("mount.exfat-fuse", &[&device, "mount"]);
    if mounts {
        assert!(lab.does("sh", &["-c", "cp -r files/* mount/"]));
        for number in 0..12 {
            let name = format!("mount/piece{}", number % 2);
            let bytes = noise(&number.to_string(), 30_000);
            let mut file = std::fs::File::options().append(true).create(true).open(lab.path(&name));
            std::io::Write::write_all(file.as_mut().unwrap(), &bytes).unwrap();
        }
        std::fs::remove_file(lab.path("mount/gone.bin")).unwrap();
        std::fs::remove_file(lab.path("mount/docs/gone too.bin")).unwrap();
        std::fs::remove_dir_all(lab.path("mount/lost folder")).unwrap();
        assert!(lab.does("umount", &["mount"]));
    }
    assert!(lab.does("losetup", &["-d", &device]));
    if !mounts {
        return skip("mount.exfat-fuse does not run");
    }
    let Some(all) = lab.compare(Clock::NotChanged) else { return };
    let expected: Vec<u8> =
        (0..12).step_by(2).flat_map(|number: u32| noise(&number.to_string(), 30_000)).collect();
    assert!(content(&lab.source(), named(&all, "/piece0")) == expected);
    let lost = named(&all, "/lost folder/lost file with a name.dat");
    assert!(content(&lab.source(), lost) == noise("lost folder/lost file with a name.dat", 3000));
}

#[test]
fn a_chain_that_leads_in_circles_ends() {
    let Some(lab) = fat("16", 16) else { return };
    let mut image = std::fs::read(lab.path("image")).unwrap();
    let whole = entries(&lab.source());
    let random = named(&whole, "/random.bin");
    let folder = named(&whole, "/docs");
    let cluster = |entry: &quarrier_files::Entry| {
        let offset = entry.extents()[0].offset;
        let root = named(&whole, "/").extents()[0];
        2 + (offset - root.offset - root.length) / 2048
    };
    for entry in [random, folder] {
        let first = cluster(entry);
        let at = 4 * 512 + first as usize * 2;
        image[at..at + 2].copy_from_slice(&(first as u16).to_le_bytes());
    }
    std::fs::write(lab.path("image"), image).unwrap();
    let all = entries(&lab.source());
    assert_eq!(named(&all, "/random.bin").size, 100_000);
    assert_eq!(named(&all, "/docs/deep/deeper/leaf.txt").size, 700);
}
