//! NTFS.

use quarrier_files::{Kind, Reach, State};

use super::lab::{Clock, Lab, Mounted, content, entries, named, noise, skip};

/// A volume for files that tests add.
fn volume(cluster: &str) -> Option<Lab> {
    let lab = Lab::new(48);
    if !lab.does("mkntfs", &["-q", "-Q", "-F", "-c", cluster, "image"]) {
        skip("mkntfs does not run");
        return None;
    }
    Some(lab)
}

#[test]
fn files_copied_by_ntfscp_match_sleuthkit() {
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
fn folders_deleted_compressed_and_sparse_files_match_sleuthkit() {
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

#[test]
fn thousands_of_files_are_listed_in_the_order_of_their_records() {
    let Some(lab) = volume("4096") else { return };
    let Some(mounted) = Mounted::new(&lab, "ntfs-3g", "streams_interface=windows") else {
        return skip("ntfs-3g does not mount here");
    };
    let script = "mkdir mount/many mount/many/deep && cd mount/many
        seq -f 'number %g' 1 4000 | xargs -d '\\n' touch
        seq -f 'deep/number %g' 1 1500 | xargs -d '\\n' touch
        seq -f 'number %g' 7 7 2000 | xargs -d '\\n' rm
        for i in 8 800 1600 3000; do printf %2000d $i > \"number $i\"; printf x > \"number $i:ads\"; done";
    assert!(lab.does("sh", &["-c", script]));
    mounted.end();
    let Some(entries) = lab.compare(Clock::Whole) else { return };
    assert!(entries.len() > 5_500 && entries.is_sorted_by_key(|entry| entry.inode));
    let source = lab.source();
    let system = &quarrier_files::find(&source).unwrap().systems[0];
    for wanted in [0, 1, 1_000, 5_000] {
        let mut paths = Vec::new();
        let listed = system.list(&source, Reach::FreeClusters, &false.into(), &mut |entry| {
            if paths.len() == wanted {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            paths.push(entry.path);
            Ok(())
        });
        assert!(matches!(listed, Err(quarrier_files::Error::Taken(_))), "{listed:?}");
        assert!(paths.iter().eq(entries.iter().take(wanted).map(|entry| &entry.path)));
    }
}

const RECORD_BYTES: usize = 1024;
const CLUSTER_BYTES: usize = 4096;
/// Clusters of the master file table that stay in place: 16 records.
const KEPT_CLUSTERS: u64 = 4;
/// A reserved record in them.
const NEXT_RECORD: usize = 15;

/// The ends of a record's sectors, and the places of their fixups in the header.
fn sector_ends(record: &[u8]) -> [(usize, usize); 2] {
    let from = usize::from(u16::from_le_bytes([record[4], record[5]]));
    [(510, from + 2), (1022, from + 4)]
}

/// Builds a record from the head of another one and attributes.
fn record(head: &[u8], attributes: &[Vec<u8>]) -> Vec<u8> {
    let first = usize::from(u16::from_le_bytes([head[20], head[21]]));
    let mut record = [&head[..first], &attributes.concat(), &[0xFF; 4], &[0; 4]].concat();
    let used = record.len() as u32;
    record[24..28].copy_from_slice(&used.to_le_bytes());
    record.resize(RECORD_BYTES, 0);
    let from = sector_ends(&record)[0].1 - 2;
    let stamp = [record[from], record[from + 1]];
    for (end, kept) in sector_ends(&record) {
        record.copy_within(end..end + 2, kept);
        record[end..end + 2].copy_from_slice(&stamp);
    }
    record
}

/// The part of a stream from cluster `first` on: `clusters` clusters at `place`, as a copy of the
/// attribute `whole`.
fn part_of_stream(whole: &[u8], first: u64, clusters: u64, place: u64) -> Vec<u8> {
    let mut part = whole[..64].to_vec();
    part[16..24].copy_from_slice(&first.to_le_bytes());
    part[24..32].copy_from_slice(&(first + clusters - 1).to_le_bytes());
    part[32..34].copy_from_slice(&64u16.to_le_bytes());
    part.push(0x44);
    part.extend((clusters as u32).to_le_bytes());
    part.extend((place as u32).to_le_bytes());
    part.resize(80, 0);
    part[4..8].copy_from_slice(&80u32.to_le_bytes());
    part
}

/// Moves all but the first records of the table, and locates them by an attribute list in record 0.
fn split_table(image: &mut [u8], to: u64) {
    let number =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let table = number(image, 48) as usize * CLUSTER_BYTES;
    let mut first = image[table..table + RECORD_BYTES].to_vec();
    for (end, kept) in sector_ends(&first) {
        first.copy_within(kept..kept + 2, end);
    }
    let mut attributes = Vec::new();
    let mut at = usize::from(u16::from_le_bytes([first[20], first[21]]));
    while number(&first, at) != u32::MAX {
        let length = number(&first, at + 4) as usize;
        attributes.push(first[at..at + length].to_vec());
        at += length;
    }
    let stream = attributes.iter().position(|one| one[0] == 0x80).unwrap();
    let whole = attributes[stream].clone();
    let clusters = u64::from(number(&whole, 24)) + 1;
    let moved = clusters - KEPT_CLUSTERS;
    let kept = part_of_stream(&whole, 0, KEPT_CLUSTERS, (table / CLUSTER_BYTES) as u64);
    let rest = part_of_stream(&whole, KEPT_CLUSTERS, moved, to);
    attributes[stream] = kept;
    let entry = |attribute: &[u8], record: u64| {
        let mut entry = attribute[..4].to_vec();
        entry.extend([32, 0, 0, 26]);
        entry.extend(if attribute[8] == 0 { &[0; 8] } else { &attribute[16..24] });
        entry.extend((record | 1 << 48).to_le_bytes());
        entry.extend(&attribute[14..16]);
        entry.resize(32, 0);
        entry
    };
    let mut list: Vec<Vec<u8>> = attributes.iter().map(|one| entry(one, 0)).collect();
    list.insert(stream + 1, entry(&rest, NEXT_RECORD as u64));
    let list = list.concat();
    let mut of_list = vec![0; 24];
    of_list[0] = 0x20;
    of_list[4..8].copy_from_slice(&(24 + list.len() as u32).to_le_bytes());
    of_list[14] = 99;
    of_list[16..20].copy_from_slice(&(list.len() as u32).to_le_bytes());
    of_list[20] = 24;
    of_list.extend(list);
    attributes.insert(1, of_list);

    let from = table + KEPT_CLUSTERS as usize * CLUSTER_BYTES;
    let end = from + moved as usize * CLUSTER_BYTES;
    image.copy_within(from..end, to as usize * CLUSTER_BYTES);
    image[from..end].fill(0xEE);
    image[table..table + RECORD_BYTES].copy_from_slice(&record(&first, &attributes));
    let mut head = first;
    head[32..40].copy_from_slice(&(1u64 << 48).to_le_bytes());
    head[44..48].copy_from_slice(&(NEXT_RECORD as u32).to_le_bytes());
    head[18..20].fill(0);
    let next = table + NEXT_RECORD * RECORD_BYTES;
    image[next..next + RECORD_BYTES].copy_from_slice(&record(&head, &[rest]));
}

#[test]
fn a_table_in_pieces_is_read_to_its_end() {
    let Some(lab) = volume("4096") else { return };
    for number in 0..30 {
        let name = format!("number {number}");
        if !lab.does("ntfscp", &["-q", "-f", "image", "files/random.bin", &name]) {
            return skip("ntfscp does not run");
        }
    }
    let whole = entries(&lab.source());
    let mut image = std::fs::read(lab.path("image")).unwrap();
    split_table(&mut image, 40 << 8);
    lab.put("image", &image);
    let Some(all) = lab.compare(Clock::Whole) else { return };
    let is_other = |path: &str| !path.starts_with("/$MFT");
    let [before, after] = [&whole, &all]
        .map(|all| all.iter().filter(|entry| is_other(&entry.path)).cloned().collect::<Vec<_>>());
    assert!(before == after);
    let table = named(&all, "/$MFT");
    assert_eq!(table.extents().len(), 2);
    assert_eq!(table.size, named(&whole, "/$MFT").size);
}
