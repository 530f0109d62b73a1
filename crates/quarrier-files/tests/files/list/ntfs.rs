//! NTFS.

use quarrier_files::{Kind, State};

use super::lab::{Clock, Lab, Mounted, content, named, noise, skip};

/// A volume with all that is put there by hand.
fn volume(cluster: &str) -> Option<Lab> {
    let lab = Lab::new(48);
    if !lab.does("mkntfs", &["-q", "-Q", "-F", "-c", cluster, "image"]) {
        skip("mkntfs does not run");
        return None;
    }
    Some(lab)
}

#[test]
fn files_that_ntfscp_puts_there_are_as_sleuthkit_has_them() {
    for cluster in ["512", "4096", "65536"] {
        let Some(lab) = volume(cluster) else { return };
        for name in ["a.txt", "random.bin", "empty"] {
            let from = format!("files/{name}");
            if !lab.does("ntfscp", &["-q", "-f", "image", &from, name]) {
                return skip("ntfscp does not run");
            }
        }
        assert!(
            lab.does("ntfscp", &["-q", "-f", "-N", "second", "image", "files/gone.bin", "a.txt"])
        );
        let Some(entries) = lab.compare(Clock::Whole) else { return };
        let second = named(&entries, "/a.txt:second");
        assert!(content(&lab.source(), second) == noise("gone.bin", 30_000));
    }
}

#[test]
fn folders_deleted_packed_and_sparse_files_are_as_sleuthkit_has_them() {
    let Some(lab) = volume("4096") else { return };
    let Some(mounted) = Mounted::new(&lab, "ntfs-3g", "compression,streams_interface=windows")
    else {
        return skip("ntfs-3g does not mount here");
    };
    let script = "cp -r files/* mount/
        mkdir mount/packed && setfattr -h -v 0x00000800 -n system.ntfs_attrib_be mount/packed
        seq 1 60000 > mount/packed/numbers
        (head -c 200000 /dev/zero; seq 1 3000; cat files/random.bin) > mount/packed/mixed
        truncate -s 5M mount/sparse && printf x | dd of=mount/sparse bs=1 seek=3000000 conv=notrunc
        ln mount/a.txt mount/docs/hard && ln -s docs/hard mount/link
        for i in $(seq 1 300); do echo $i > \"mount/docs/number $i with a long name\"; done
        printf stream > mount/a.txt:ads
        rm -r mount/gone.bin 'mount/docs/gone too.bin' 'mount/lost folder'";
    assert!(lab.does("sh", &["-c", script]));
    mounted.end();
    let Some(entries) = lab.compare(Clock::Whole) else { return };
    let source = lab.source();
    let numbers: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    let packed = named(&entries, "/packed/numbers");
    let stored: u64 = packed.extents().iter().map(|extent| extent.length).sum();
    if packed.content.packed_unit.is_some() {
        assert!(stored < packed.size, "{stored} of {}", packed.size);
    } else {
        skip("setfattr does not run, so nothing is packed");
    }
    assert!(content(&source, packed) == numbers.into_bytes());
    let lost = named(&entries, "/lost folder/lost file with a name.dat");
    assert_eq!(lost.state, State::Deleted);
    assert!(content(&source, lost) == noise("lost folder/lost file with a name.dat", 3000));
    let link = named(&entries, "/link");
    assert_eq!(link.kind, Kind::Link);
    assert_eq!(content(&source, link), b"docs/hard");
    assert_eq!(content(&source, named(&entries, "/a.txt:ads")), b"stream");
}
