//! The machine profile: derived from reports, and read from a file that anybody may have written.

use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;
use quarrier_gauge::profile::{MachineKey, MachineProfile, MountPoint, STALE_AFTER_SECONDS, Stale};

use crate::made_up;

fn mount(path: &str) -> MountPoint {
    MountPoint {
        path: path.to_owned(),
        device: "/dev/vda1".to_owned(),
        file_system: "ext4".to_owned(),
    }
}

fn profile() -> MachineProfile {
    let report = made_up::report(1);
    let mut profile = MachineProfile::new(&report.machine);
    profile.update(&report, Some(mount("/")), true);
    profile
}

#[test]
fn a_profile_has_the_ceilings_of_its_report() {
    let profile = profile();
    let memory = profile.memory.as_ref().unwrap();
    let threads: Vec<u32> = memory.read.iter().map(|by| by.threads).collect();
    assert_eq!(threads, [1, 2, 4, 8]);
    assert!(memory.read[0].per_second > 20e9 && memory.read[0].per_second < 40e9);
    assert!(memory.latency_seconds.unwrap() > 100e-9);
    assert!(memory.cached_file_read.iter().any(|by| by.block_bytes == 1 << 16 && by.threads == 4));
    let cpu = profile.cpu.as_ref().unwrap();
    assert!((cpu.clock_hertz.unwrap() - 3.81e9).abs() < 0.1e9);
    assert!(cpu.flops[0].per_second > 200e9 && cpu.flops[0].per_second < 300e9);
    let disk = profile.disk(&mount("/")).unwrap();
    let deep = disk.random_read.iter().find(|by| by.depth == 32).unwrap();
    let single = disk.random_read.iter().find(|by| by.depth == 1).unwrap();
    assert!(deep.per_second > single.per_second);
    assert!((disk.latency_seconds.unwrap() - 63e-6).abs() < 5e-6);
    assert!(disk.sequential_read.iter().any(|by| by.depth == 32 && by.bytes_per_second > 1e9));
    let network = profile.network.as_ref().unwrap();
    assert!(network.tcp_bytes_per_second.unwrap() > 10e9);
    assert!(network.round_trip_seconds.unwrap() < 100e-6);
}

#[test]
fn a_report_leaves_other_parts_of_the_profile_unchanged() {
    let mut profile = profile();
    let before = profile.clone();
    let mut report = made_up::report(2);
    report.readings.retain(|reading| reading.area.name() == "disk");
    report.when += 100;
    profile.update(&report, Some(mount("/mnt")), true);
    assert_eq!((&profile.cpu, &profile.network), (&before.cpu, &before.network));
    assert_eq!(profile.memory.unwrap().read, before.memory.unwrap().read);
    let paths: Vec<_> = profile.disks.iter().map(|disk| disk.mount.path.as_str()).collect();
    assert_eq!(paths, ["/", "/mnt"]);
    assert_eq!(profile.disks[1].when, profile.disks[0].when + 100);
}

#[test]
fn a_disturbed_reading_does_not_replace_an_undisturbed_one() {
    let mut profile = profile();
    let quiet = profile.clone();
    assert!(!quiet.memory.as_ref().unwrap().disturbed);
    let mut report = made_up::report(2);
    report.readings.iter_mut().for_each(|reading| reading.disturbed = true);
    report.when += 100;
    profile.update(&report, Some(mount("/")), true);
    assert_eq!((&profile.cpu, &profile.disks), (&quiet.cpu, &quiet.disks));
    assert_eq!(profile.memory.as_ref().unwrap().when, quiet.memory.as_ref().unwrap().when);
    report.when += STALE_AFTER_SECONDS;
    profile.update(&report, Some(mount("/")), true);
    assert_eq!(profile.memory.as_ref().unwrap().when, report.when);
    assert!(profile.memory.unwrap().disturbed && profile.disks[0].disturbed);
    let mut first = MachineProfile::new(&report.machine);
    first.update(&report, None, true);
    assert!(first.cpu.unwrap().disturbed && first.network.unwrap().disturbed);
}

#[test]
fn a_mount_point_is_measured_again_in_its_place() {
    let mut profile = profile();
    let mut other = mount("/");
    other.device = "/dev/sdb1".to_owned();
    profile.update(&made_up::report(2), Some(other.clone()), false);
    assert_eq!(profile.disks.len(), 1);
    assert!(profile.disk(&mount("/")).is_none(), "another device is mounted there now");
    assert!(profile.disk(&other).is_some());
}

#[test]
fn a_profile_is_stale_when_old_of_another_machine_or_without_memory() {
    let profile = profile();
    let machine = MachineKey::of(&made_up::machine());
    let now = profile.memory.as_ref().unwrap().when;
    assert_eq!(profile.stale(&machine, now), None);
    assert_eq!(profile.stale(&machine, now + STALE_AFTER_SECONDS), None);
    assert_eq!(profile.stale(&machine, now + STALE_AFTER_SECONDS + 1), Some(Stale::Old));
    assert_eq!(profile.stale(&machine, now - 2 * 24 * 3600), Some(Stale::Old), "of the future");
    assert!(profile.disks[0].is_stale(now + STALE_AFTER_SECONDS + 1));
    let upgraded = MachineKey { kernel: "Linux 7.0".to_owned(), ..machine.clone() };
    assert_eq!(profile.stale(&upgraded, now), Some(Stale::OtherMachine));
    assert_eq!(upgraded.file_name(), machine.file_name(), "it replaces the old one");
    let without = MachineProfile { memory: None, ..profile };
    assert_eq!(without.stale(&machine, now), Some(Stale::Incomplete));
}

#[test]
fn a_profile_round_trips_through_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/machine.json");
    assert_eq!(MachineProfile::load(&path).unwrap(), None);
    let profile = profile();
    profile.save(&path).unwrap();
    profile.save(&path).unwrap();
    assert!(MachineProfile::load(&path).unwrap() == Some(profile));
    let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "no part is left");
}

#[test]
fn an_unwritable_profile_is_an_error_without_leftovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken");
    fs::create_dir(&path).unwrap();
    assert!(profile().save(&path).is_err());
    assert!(MachineProfile::load(&path).unwrap_err().to_string().contains("is not a file"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Returns the error of `load` for a file with these bytes.
fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.json");
    fs::write(&path, bytes).unwrap();
    MachineProfile::load(&path).unwrap_err().to_string()
}

#[test]
fn a_file_that_no_measurement_wrote_is_refused() {
    let text = serde_json::to_string(&profile()).unwrap();
    let refuse = |from: &str, to: &str, word: &str| {
        assert!(text.contains(from), "{from}");
        let said = refused(text.replacen(from, to, 1).as_bytes());
        assert!(said.contains(word) && said.contains("machine.json"), "{said}");
    };
    refuse("\"format\":1", "\"format\":2", "format 2");
    refuse("\"threads\":1", "\"threads\":0", "impossible number");
    refuse("\"threads\":1", "\"threads\":-1", "not a profile");
    refuse("\"latency_seconds\":", "\"latency_seconds\":-1,\"x\":", "not a profile");
    refuse("\"depth\":1", "\"depth\":4294967295", "impossible number");
    refuse("\"bytes_per_second\":", "\"bytes_per_second\":1e300,\"more\":", "not a profile");
    refuse("\"clock_hertz\":", "\"clock_hertz\":0.0,\"more\":", "not a profile");
    assert!(refused(b"").contains("not a profile"));
    assert!(refused(&text.as_bytes()[..text.len() / 2]).contains("not a profile"));
    assert!(refused(&vec![b' '; 2 << 20]).contains("larger"));
    assert!(refused("[".repeat(100_000).as_bytes()).contains("not a profile"));
}

/// A stored profile.
static KEPT: LazyLock<Vec<u8>> = LazyLock::new(|| serde_json::to_vec(&profile()).unwrap());

proptest! {
    #[test]
    fn any_bytes_are_a_profile_or_an_error(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = KEPT.clone();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.json");
        fs::write(&path, &bytes).unwrap();
        let _ = MachineProfile::load(&path);
    }
}
