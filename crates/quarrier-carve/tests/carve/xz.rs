//! xz, with every check and filter.

use std::io::Write;
use std::num::NonZeroU64;

use lzma_rust2::{CheckType, FilterType, XzOptions, XzWriter};
use proptest::prelude::*;
use quarrier_carve::Verdict;
use quarrier_carve::format::xz::Xz;

use crate::sample::{check_starved, check_whole_file, fixed_cases, mixed, noise, validated};

const CHECKS: [CheckType; 4] =
    [CheckType::None, CheckType::Crc32, CheckType::Crc64, CheckType::Sha256];
pub(crate) const FILTERS: [FilterType; 9] = [
    FilterType::Delta,
    FilterType::BcjX86,
    FilterType::BcjPpc,
    FilterType::BcjIa64,
    FilterType::BcjArm,
    FilterType::BcjArmThumb,
    FilterType::BcjSparc,
    FilterType::BcjArm64,
    FilterType::BcjRiscv,
];

/// Compresses `content` by xz; with `blocks`, in blocks of 4 KiB.
pub(crate) fn xz(
    content: &[u8],
    check: CheckType,
    filters: &[FilterType],
    blocks: bool,
) -> Vec<u8> {
    let mut options = XzOptions::with_preset(1);
    options.lzma_options.dict_size = 4096;
    options.set_check_sum_type(check);
    options.set_block_size(NonZeroU64::new(4096).filter(|_| blocks));
    for filter in filters {
        options.prepend_pre_filter(*filter, if *filter == FilterType::Delta { 4 } else { 0 });
    }
    let mut writer = XzWriter::new(Vec::new(), options).expect("valid options");
    writer.write_all(content).expect("writing to memory succeeds");
    writer.finish().expect("writing to memory succeeds")
}

/// Makes text with x86 calls in it.
fn code(bytes: usize) -> Vec<u8> {
    let mut code = mixed(5, bytes);
    code.chunks_mut(40).filter(|part| part.len() > 8).for_each(|part| {
        part[..5].copy_from_slice(&[0xE8, 0x10, 0x20, 0, 0]);
    });
    code
}

/// Makes one file of each kind.
fn kinds() -> Vec<Vec<u8>> {
    let mut kinds: Vec<_> =
        CHECKS.iter().map(|check| xz(&code(2500), *check, &[], false)).collect();
    kinds.push(xz(&code(9000), CheckType::Crc64, &[], true));
    kinds.push(xz(&code(9000), CheckType::Sha256, &[FilterType::BcjX86], true));
    kinds.extend(FILTERS.iter().map(|filter| xz(&code(1500), CheckType::Crc32, &[*filter], false)));
    let two = [FilterType::BcjArm, FilterType::Delta];
    kinds.push(xz(&code(1500), CheckType::Crc64, &two, false));
    let first = xz(&code(1000), CheckType::Crc32, &[], false);
    kinds.push([first, xz(&code(1100), CheckType::Crc64, &[], false)].concat());
    kinds
}

fn is_whole(file: &[u8]) -> bool {
    let end = file.len() as u64;
    matches!(validated(&Xz, file, &[]), Verdict::Whole { length, .. } if length == end)
}

#[test]
fn an_xz_of_every_kind_is_read_to_its_end() {
    let kinds = kinds();
    assert!(kinds.iter().all(|file| is_whole(file)));
    // The last one has two streams; cut off, the first of them is whole.
    kinds[..kinds.len() - 1].iter().for_each(|file| check_whole_file(&Xz, "xz", file));
    check_whole_file(&Xz, "xz", &xz(&[], CheckType::Crc64, &[], false));
    check_whole_file(&Xz, "xz", &xz(&noise(3, 200_000), CheckType::Crc64, &[], false));
    check_starved(&Xz, &xz(&code(900), CheckType::Crc32, &[], false));
}

#[test]
fn an_xz_with_any_byte_flipped_is_not_valid() {
    for (kind, mut file) in kinds().into_iter().enumerate() {
        for at in 0..file.len() {
            file[at] ^= 0xFF;
            assert!(!is_whole(&file), "kind {kind}, byte {at} of {}", file.len());
            file[at] ^= 0xFF;
        }
    }
}

#[test]
fn an_xz_with_a_sector_of_zeros_is_not_valid() {
    for check in CHECKS {
        let file = xz(&code(20_000), check, &[FilterType::BcjX86], true);
        for sector in (0..file.len()).step_by(512) {
            let mut broken = file.clone();
            broken[sector..file.len().min(sector + 512)].fill(0);
            assert!(!is_whole(&broken), "{check:?}, sector at {sector}");
        }
    }
}

#[test]
fn an_xz_that_cannot_be_read_here_says_so() {
    let crc32 = crate::packed::crc32;
    let known = xz(&code(1500), CheckType::Crc32, &[FilterType::BcjX86], false);
    // A filter and a check of types that are not assigned yet.
    let mut filter = known.clone();
    let header = 12..12 + usize::from(known[12]) * 4;
    assert_eq!(filter[14], 4, "the filter is at this byte");
    filter[14] = 0x3F;
    let crc = crc32(&filter[header.clone()]);
    filter[header.end..header.end + 4].copy_from_slice(&crc);
    let mut check = known.clone();
    let end = check.len();
    for (flags, crc) in [(7, 8), (end - 3, end - 12)] {
        check[flags] = 2;
        let summed = if crc == 8 { 6..8 } else { end - 8..end - 2 };
        let sum = crc32(&check[summed]);
        check[crc..crc + 4].copy_from_slice(&sum);
    }
    for (file, word) in [(filter, "method"), (check, "checks")] {
        match validated(&Xz, &file, &[0; 99]) {
            Verdict::Unread { length, reason, .. } => {
                assert_eq!(length, file.len() as u64);
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{word}: {other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(fixed_cases(300))]

    #[test]
    fn an_xz_is_valid_only_as_it_was_written(
        check in 0usize..4,
        filter in 0usize..10,
        blocks in any::<bool>(),
        bytes in 1usize..12_000,
        seed in any::<u32>(),
        place in any::<prop::sample::Index>(),
        mask in 1u8..,
        zeros in 0usize..600,
    ) {
        let filter = FILTERS.get(filter).map_or(&[][..], std::slice::from_ref);
        let check = if seed % 2 == 0 { CheckType::Crc64 } else { CHECKS[check] };
        let content = if seed % 3 == 0 && check != CheckType::None { noise } else { mixed };
        let file = xz(&content(seed, bytes), check, filter, blocks);
        prop_assert!(is_whole(&file));
        let mut broken = file.clone();
        let at = place.index(broken.len());
        let end = broken.len().min(at + zeros);
        match zeros {
            0 => broken[at] ^= mask,
            _ => broken[at..end].fill(0),
        }
        prop_assert!(broken == file || !is_whole(&broken), "byte {at}");
    }
}
