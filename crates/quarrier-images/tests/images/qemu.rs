//! Images written by `qemu-img`, compared with the raw bytes it was given or reads from them.

use quarrier_images::Kind;

use crate::lab::{Lab, all_of, check, media, open_at, skip};

/// A lab with a disk as `raw`; `None` without the tools.
fn lab(length: usize) -> Option<(Lab, Vec<u8>)> {
    let lab = Lab::new();
    if !lab.runs("qemu-img", "--version") || !lab.runs("qemu-io", "--version") {
        skip("qemu-img and qemu-io do not run");
        return None;
    }
    let media = media(length);
    lab.put("raw", &media);
    Some((lab, media))
}

/// The contents of an image according to `qemu-img`.
fn expected(lab: &Lab, format: &str, name: &str) -> Vec<u8> {
    assert!(lab.runs("qemu-img", &format!("convert|-f|{format}|-O|raw|{name}|expected")), "{name}");
    lab.read("expected")
}

#[test]
fn every_container_has_the_bytes_of_the_disk() {
    let Some((lab, media)) = lab((9 << 20) + 3 * 512) else { return };
    let forms = [
        ("qcow2", "", Kind::Qcow2),
        ("qcow2", "-o|compat=0.10", Kind::Qcow2),
        ("qcow2", "-o|cluster_size=512", Kind::Qcow2),
        ("qcow2", "-o|cluster_size=2M,preallocation=metadata", Kind::Qcow2),
        ("qcow2", "-o|cluster_size=16k,extended_l2=on", Kind::Qcow2),
        ("qcow2", "-c", Kind::Qcow2),
        ("qcow2", "-c|-o|cluster_size=4k", Kind::Qcow2),
        ("qcow2", "-c|-o|compression_type=zstd", Kind::Qcow2),
        ("qcow2", "-c|-o|compression_type=zstd,extended_l2=on,cluster_size=128k", Kind::Qcow2),
        ("vmdk", "-o|subformat=monolithicSparse", Kind::Vmdk),
        ("vmdk", "-o|subformat=monolithicFlat", Kind::Vmdk),
        ("vmdk", "-o|subformat=twoGbMaxExtentSparse", Kind::Vmdk),
        ("vmdk", "-o|subformat=twoGbMaxExtentFlat", Kind::Vmdk),
        ("vmdk", "-o|subformat=streamOptimized", Kind::Vmdk),
        ("vpc", "-o|force_size=on", Kind::Vhd),
        ("vpc", "-o|force_size=on,subformat=fixed", Kind::Vhd),
        ("vhdx", "", Kind::Vhdx),
        ("vhdx", "-o|block_size=1M", Kind::Vhdx),
        ("vhdx", "-o|subformat=fixed", Kind::Vhdx),
        ("vdi", "", Kind::Vdi),
        ("vdi", "-o|static=on", Kind::Vdi),
        ("parallels", "", Kind::Parallels),
    ];
    for (format, options, kind) in forms {
        let form = format!("convert|-f|raw|-O|{format}|{options}|raw|image").replace("||", "|");
        assert!(lab.runs("qemu-img", &form), "{form}");
        let (image, found) = open_at(&lab.path("image")).unwrap();
        assert_eq!(found, Some(kind), "{form}");
        // Some formats round the size up.
        let mut media = media.clone();
        media.resize(image.length() as usize, 0);
        assert!(media.len() < (9 << 20) + (2 << 20), "{form}");
        eprintln!("{form}");
        check(&*image, &media);
    }
}

#[test]
fn chains_of_disks_that_change_others_have_the_bytes_of_all() {
    let Some((lab, media)) = lab(5 << 20) else { return };
    let write = |format: &str, name: &str, at: &str| {
        let zeros = if format == "qcow2" { "-c|write -z 1M 64k|" } else { "" };
        let write = format!("-f|{format}|-c|write -P 0x5a {at}|{zeros}{name}");
        assert!(lab.runs("qemu-io", &write), "{write}");
    };
    for (format, options) in [
        ("qcow2", ""),
        ("qcow2", "-o|cluster_size=512"),
        ("qcow2", "-o|extended_l2=on,cluster_size=64k"),
        ("vmdk", ""),
    ] {
        for name in ["base", "middle", "top"] {
            let _ = std::fs::remove_file(lab.path(name));
        }
        assert!(lab.runs("qemu-img", &format!("convert|-f|raw|-O|{format}|raw|base")));
        for (name, under, at) in [("middle", "base", "3000k 300k"), ("top", "middle", "3100k 4k")] {
            let options = if options.is_empty() { String::new() } else { format!("{options}|") };
            let create = format!("create|-f|{format}|{options}-b|{under}|-F|{format}|{name}");
            assert!(lab.runs("qemu-img", &create), "{create}");
            write(format, name, at);
        }
        let expected = expected(&lab, format, "top");
        assert!(expected != media);
        check(&*lab.open("top").unwrap(), &expected);
        // Remove the disk in the middle of the chain.
        std::fs::remove_file(lab.path("middle")).unwrap();
        let refusal = lab.refusal("top");
        assert!(refusal.contains("'middle'") && refusal.contains("top"), "{refusal}");
    }
}

#[test]
fn a_disk_over_a_shorter_or_raw_one_has_zeros_after_it() {
    let Some((lab, mut media)) = lab(1 << 20) else { return };
    assert!(lab.runs("qemu-img", "create|-f|qcow2|-b|raw|-F|raw|top|3M"));
    media.resize(3 << 20, 0);
    check(&*lab.open("top").unwrap(), &media);
    // A raw disk that looks like an image is not probed.
    assert!(lab.runs("qemu-img", "create|-f|qcow2|other|64k"));
    let mut inner = lab.read("other");
    inner.resize(inner.len().next_multiple_of(512), 0);
    assert!(lab.runs("qemu-img", "create|-f|qcow2|-b|other|-F|raw|top"));
    check(&*lab.open("top").unwrap(), &inner);
}

#[test]
fn snapshots_are_ignored() {
    let Some((lab, media)) = lab(2 << 20) else { return };
    assert!(lab.runs("qemu-img", "convert|-f|raw|-O|qcow2|raw|image"));
    assert!(lab.runs("qemu-img", "snapshot|-c|before|image"));
    assert!(lab.runs("qemu-io", "-f|qcow2|-c|write -P 7 100k 900k|image"));
    let expected = expected(&lab, "qcow2", "image");
    assert!(expected != media);
    check(&*lab.open("image").unwrap(), &expected);
}

#[test]
fn the_holes_of_a_huge_disk_cost_nothing() {
    let Some((lab, _)) = lab(512) else { return };
    for format in ["qcow2", "vmdk", "vhdx", "vdi", "vpc"] {
        let _ = std::fs::remove_file(lab.path("big"));
        assert!(lab.runs("qemu-img", &format!("create|-f|{format}|big|1T")), "{format}");
        let writes = "-c|write -P 1 4096 512|-c|write -P 2 700G 512|-c|write -P 3 1000G 64k";
        assert!(lab.runs("qemu-io", &format!("-f|{format}|{writes}|big")), "{format}");
        let image = lab.open("big").unwrap();
        assert!(image.length() >= 1 << 40, "{format}");
        let (mut at, mut data_bytes, mut found) = (0, 0, Vec::new());
        while let Some(data) = image.next_data(at).unwrap() {
            let mut bytes = vec![0; (data.end - data.start) as usize];
            assert_eq!(image.read_at(data.start, &mut bytes).unwrap(), bytes.len());
            found.extend(bytes.iter().position(|&byte| byte > 0).map(|at| data.start + at as u64));
            data_bytes += data.end - data.start;
            at = data.end;
        }
        assert_eq!(found, [4096, 700 << 30, 1000 << 30], "{format}");
        assert!(data_bytes < 256 << 20, "{format}: {data_bytes}");
        assert!(image.read_at(500 << 30, &mut [0; 100]).unwrap() == 100);
    }
}

#[test]
fn encrypted_disks_and_those_with_a_file_for_data_are_refused() {
    let Some((lab, _)) = lab(1 << 20) else { return };
    let key = "--object|secret,id=k,data=abc";
    assert!(lab.runs("qemu-img", &format!("create|{key}|-f|qcow2|-o|encrypt.format=luks,encrypt.key-secret=k,encrypt.iter-time=10|image|1M")));
    assert!(lab.refusal("image").contains("encrypted"), "{}", lab.refusal("image"));
    assert!(lab.runs("qemu-img", "create|-f|qcow2|-o|data_file=data|other|1M"));
    assert!(lab.refusal("other").contains("another file"), "{}", lab.refusal("other"));
}

#[test]
fn a_truncated_disk_yields_its_remaining_bytes() {
    let Some((lab, media)) = lab(6 << 20) else { return };
    for (format, options) in
        [("qcow2", "-c"), ("vmdk", "-o|subformat=monolithicSparse"), ("vhdx", "-o|block_size=1M")]
    {
        assert!(lab.runs("qemu-img", &format!("convert|-f|raw|-O|{format}|{options}|raw|image")));
        let bytes = lab.read("image");
        lab.put("image", &bytes[..bytes.len() * 2 / 3]);
        let Ok(image) = lab.open("image") else { continue };
        let mut failed = 0;
        for at in (0..media.len()).step_by(4096) {
            let mut read = [0; 4096];
            match image.read_at(at as u64, &mut read) {
                Ok(count) => assert!(read[..count] == media[at..at + count], "{format} at {at}"),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    failed += 1;
                }
            }
        }
        assert!(failed > 10, "{format}");
    }
}

#[test]
fn an_image_that_changes_itself_is_refused() {
    let Some((lab, _)) = lab(512) else { return };
    assert!(lab.runs("qemu-img", "create|-f|qcow2|a|1M"));
    assert!(lab.runs("qemu-img", "create|-f|qcow2|-b|a|-F|qcow2|b"));
    assert!(lab.runs("qemu-img", "rebase|-u|-f|qcow2|-b|b|-F|qcow2|a"));
    let refusal = lab.refusal("b");
    assert!(refusal.contains("based on this image again"), "{refusal}");
    assert!(all_of(&*lab.open("raw").unwrap()).len() == 512);
}
