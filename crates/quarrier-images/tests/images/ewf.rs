//! Images written by `ewfacquire`, compared with their input.

use quarrier_images::Kind;
use quarrier_images::ewf::EwfSource;

use crate::lab::{Lab, check, media, open_at, skip};

/// Writes the disk `disk.raw` as an image of this form, in segments of a megabyte.
fn acquired(lab: &Lab, form: &str) -> bool {
    let options = "-u|-q|-c|fast|-S|1048576";
    lab.runs("ewfacquire", &format!("{options}|-f|{form}|-t|{form}|disk.raw"))
}

#[test]
fn every_form_of_the_first_version_has_the_bytes_of_the_disk() {
    let lab = Lab::new();
    let media = media(6 << 20);
    lab.put("disk.raw", &media);
    for form in
        ["smart", "ewf", "ftk", "encase2", "encase5", "encase6", "encase7", "linen7", "ewfx"]
    {
        if !acquired(&lab, form) {
            return skip(&format!("ewfacquire does not write {form}"));
        }
        let names = ["E01", "e01", "s01"].map(|ending| format!("{form}.{ending}"));
        let name = names.into_iter().find(|name| lab.path(name).exists()).unwrap();
        let (image, kind) = open_at(&lab.path(&name)).unwrap();
        assert_eq!(kind, Some(Kind::Ewf), "{form}");
        eprintln!("{name}");
        check(&*image, &media);
        let image = EwfSource::open(&lab.path(&name)).unwrap();
        assert!(image.segments() > 1, "{form}");
        assert!(image.verify(&mut |_| true).unwrap().unwrap().holds(), "{form}");
    }
    // The name does not matter.
    std::fs::rename(lab.path("smart.s01"), lab.path("image.bin")).unwrap();
    let (image, kind) = open_at(&lab.path("image.bin")).unwrap();
    assert_eq!((kind, image.length()), (Some(Kind::Ewf), media.len() as u64));
}
