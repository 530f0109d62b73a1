//! Programs with wrong numbers in their headers: the fields of modules are those of `yara`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;
use quarrier_rules::{Judge, Rules, ScopeName};

use crate::compiled;
use crate::yara::yara_rows;

/// The offsets of numbers in the headers of [`program`].
const SECTIONS: usize = 0x86;
const OPTIONAL_BYTES: usize = 0x94;
const MAGIC: usize = 0x98;
const DIRECTORIES: usize = 0xF4;
const RESOURCES: usize = 0x108;
const DELAYED_IMPORTS: usize = 0x160;
const RUNTIME: usize = 0x168;
const SECTION: usize = 0x178;
const ATTRIBUTES: usize = 0x400;

/// Makes a program of 32 bits with two sections: the first has a resource and a header of the common language
/// runtime, the second delayed imports with absolute addresses.
fn program() -> Vec<u8> {
    let mut bytes = vec![0; 0x600];
    let mut put = |at: usize, new: &[u8]| bytes[at..at + new.len()].copy_from_slice(new);
    put(0, b"MZ");
    put(60, &[0x80]);
    put(0x80, b"PE\0\0\x4C\x01\x02\0");
    put(0x94, b"\xE0\0\x02\x01\x0B\x01");
    let mut words = |at: usize, new: &[u32]| {
        let new: Vec<u8> = new.iter().flat_map(|word| word.to_le_bytes()).collect();
        put(at, &new);
    };
    // The entry point, the image base, the alignments, and the number of directories.
    words(0xA8, &[0x1180]);
    words(0xB4, &[0x40_0000, 0x1000, 0x200]);
    // The sizes of the image and of the headers.
    words(0xD0, &[0x3000, 0x200]);
    words(DIRECTORIES, &[16]);
    words(RESOURCES, &[0x1000, 0x200]);
    words(DELAYED_IMPORTS, &[0x2000, 64]);
    words(RUNTIME, &[0x1100, 72]);
    words(SECTION + 8, &[0x200, 0x1000, 0x200, 0x200]);
    words(SECTION + 48, &[0x200, 0x2000, 0x200, 0x400]);
    // Directories of a type, a name and a language, then the resource.
    words(0x204, &[0x1234_5678, 0, 0x1_0000, 10, 0x8000_0018]);
    words(0x224, &[0x1_0000, 1, 0x8000_0030]);
    words(0x23C, &[0x1_0000, 0x409, 0x48]);
    words(0x248, &[0x1080, 4]);
    // The header of the runtime, and the metadata, whose table of streams is empty.
    words(0x300, &[72, 0, 0x1150, 0x20]);
    words(0x350, &[0x424A_5342, 0x1_0001, 0, 8]);
    // A library with two functions, one by its number.
    words(ATTRIBUTES, &[0, 0x40_2080, 0x40_2110, 0x40_2100, 0x40_20C0]);
    words(0x4C0, &[0x40_20E0, 0x8000_0011]);
    words(0x500, &[0x40_1000, 0x40_1000]);
    put(SECTION, b".text");
    put(SECTION + 40, b".idata");
    put(0x360, b"v4.0");
    // Every program for the runtime jumps there.
    put(0x380, &[0xFF, 0x25]);
    put(0x480, b"USER32.dll");
    put(0x4E2, b"CreateMenu");
    bytes
}

/// Rules with these conditions, `r0` and so on.
fn rules(conditions: &[&str]) -> (Rules, String) {
    let mut text = "import \"pe\" import \"dotnet\" import \"macho\"\n".to_string();
    for (place, condition) in conditions.iter().enumerate() {
        text.push_str(&format!("rule r{place} {{ condition: {condition} }}\n"));
    }
    (compiled(&text).unwrap_or_else(|error| panic!("{error}\n{text}")), text)
}

/// Returns the conditions that do not hold, given the rules that do.
fn missing<'c>(conditions: &[&'c str], held: &BTreeSet<usize>) -> Vec<&'c str> {
    let rules = conditions.iter().enumerate();
    rules.filter(|(rule, _)| !held.contains(rule)).map(|(_, condition)| *condition).collect()
}

/// Checks that all conditions hold here.
#[track_caller]
fn check_here(bytes: Vec<u8>, conditions: &[&str]) {
    let (rules, _) = rules(conditions);
    let judge = Judge::new(&rules, Duration::from_secs(600));
    let stop = AtomicBool::new(false);
    let judged = judge.judge_by_all(&Arc::new(bytes), &ScopeName::of("p.exe"), &stop).unwrap();
    let held = judged.held.iter().map(|held| held.rule).collect();
    assert_eq!(missing(conditions, &held), [""; 0]);
}

/// Checks that all conditions hold, here and in `yara`.
#[track_caller]
fn check(bytes: Vec<u8>, conditions: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.yar"), rules(conditions).1).unwrap();
    std::fs::write(folder.path().join("p.exe"), &bytes).unwrap();
    check_here(bytes, conditions);
    match yara_rows(folder.path(), "p.exe") {
        None => eprintln!("skipped: yara does not run"),
        Some(rows) => {
            let held = rows.iter().map(|row| row.0[1..].parse().unwrap()).collect();
            assert_eq!(missing(conditions, &held), [""; 0], "by yara");
        }
    }
}

/// Returns the program with other bytes at an offset.
fn with(at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = program();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

const DELAYED: &str = "pe.imports(pe.IMPORT_DELAYED, \"USER32.dll\", \"CreateMenu\")";
const RESOURCE: &str = "pe.number_of_resources == 1 and pe.resources[0].length == 4";
const DOTNET: &str = "dotnet.is_dotnet and dotnet.version == \"v4.0\"";

#[test]
fn delayed_imports_with_absolute_addresses_are_found() {
    let conditions = [
        DELAYED,
        RESOURCE,
        DOTNET,
        "pe.imports(pe.IMPORT_DELAYED, \"USER32.dll\", 17)",
        "pe.imports(pe.IMPORT_ANY, \"user32.dll\", \"createmenu\")",
        "pe.imports(pe.IMPORT_DELAYED, /user32/i, /.*Menu/) == 1",
        "pe.number_of_delayed_imports == 1 and pe.number_of_delayed_imported_functions == 2",
        "pe.number_of_imports == 0 and not pe.imports(\"USER32.dll\")",
        "pe.data_directories[13].virtual_address == 0x2000 and pe.sections[1].name == \".idata\"",
        "uint32(0x4C0) == 0x4020E0",
    ];
    check(program(), &conditions);
}

#[test]
fn relative_addresses_stay_as_they_are() {
    let mut bytes = with(ATTRIBUTES, &[1]);
    for at in [0x404, 0x408, 0x40C, 0x410, 0x4C0] {
        bytes[at + 2] = 0;
    }
    check(bytes, &[DELAYED, "pe.imports(pe.IMPORT_DELAYED, \"USER32.dll\", 17)"]);
}

#[test]
fn wrong_numbers_in_headers_do_not_hide_the_rest() {
    for magic in [[0, 0], [0x07, 0x01]] {
        let shown = format!("pe.opthdr_magic == {}", u16::from_le_bytes(magic));
        check(with(MAGIC, &magic), &[&shown, "pe.is_32bit()", DELAYED, RESOURCE, DOTNET]);
    }
    for count in [3_u32, 19, 0x7FFF_FFFF] {
        let shown = format!("pe.number_of_rva_and_sizes == {count}");
        let after = format!("not defined pe.data_directories[{}].size", count.min(16));
        let bytes = with(DIRECTORIES, &count.to_le_bytes());
        check(bytes, &[&shown, &after, "defined pe.data_directories[2].size", RESOURCE, DOTNET]);
    }
    check(with(DIRECTORIES, &[19]), &[DELAYED]);
    // YARA reads delayed imports only if the header counts them, YARA-X if it has room for them.
    check_here(with(DIRECTORIES, &[3]), &[DELAYED]);
    let conditions = ["pe.number_of_sections == 200", "pe.sections[1].name == \".idata\""];
    check(with(SECTIONS, &[200]), &conditions);
    let conditions = ["pe.is_pe", "pe.size_of_optional_header == 0xFFF0", "pe.machine == 0x14C"];
    check(with(OPTIONAL_BYTES, &[0xF0, 0xFF]), &conditions);
    let conditions =
        ["pe.number_of_sections == 0", "pe.overlay.offset == 0 and pe.overlay.size == 0"];
    check(with(SECTIONS, &[0]), &conditions);
    check(with(SECTION, &[0; 5]), &["pe.sections[0].name == \"\"", RESOURCE]);
}

#[test]
fn wrong_sizes_of_directories_do_not_hide_their_content() {
    for size in [0x20_u32, 0x1_0000] {
        let shown = format!("pe.data_directories[2].size == {size}");
        let conditions = [&*shown, RESOURCE, "pe.resource_timestamp == 0x12345678"];
        check(with(RESOURCES + 4, &size.to_le_bytes()), &conditions);
    }
    check(with(RUNTIME + 4, &[0]), &["pe.data_directories[14].size == 0", DOTNET]);
}

#[test]
fn load_commands_that_the_file_does_not_contain_do_not_hide_others() {
    for is_big in [false, true] {
        let word = |word: u32| if is_big { word.to_be_bytes() } else { word.to_le_bytes() };
        let head = [0xFEED_FACE, 7, 3, 2, 2, 0x1000, 0].map(word).concat();
        let name = b"__TEXT\0\0\0\0\0\0\0\0\0\0";
        let segment = [0x1000, 0x2000, 0, 0x2000, 7, 5, 0, 0].map(word).concat();
        let bytes = [&*head, &[word(1), word(56)].concat(), name, &segment].concat();
        check(
            bytes,
            &[
                "macho.sizeofcmds == 0x1000 and macho.ncmds == 2",
                "macho.number_of_segments == 1 and macho.segments[0].segname == \"__TEXT\"",
                "macho.segments[0].vmsize == 0x2000",
            ],
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_damage_leaves_an_answer(
        damage in prop::collection::vec((0..0x600_usize, prop::sample::select(vec![0_u8, 1, 0x7F, 0x80, 0xFF])), 1..8),
        length in 0..0x700_usize,
    ) {
        let (rules, _) = rules(&[DELAYED, RESOURCE, DOTNET, "pe.is_pe", "macho.ncmds > 0"]);
        let judge = Judge::new(&rules, Duration::from_secs(600));
        let mut bytes = program();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        bytes.truncate(length);
        let judged = judge.judge_by_all(&Arc::new(bytes), &ScopeName::default(), &AtomicBool::new(false));
        prop_assert!(judged.is_ok(), "{judged:?}");
    }
}
