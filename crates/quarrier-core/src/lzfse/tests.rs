//! Tests against the crate `lzfse_rust`, which can also compress.

use super::{unpack, unpack_lzvn};

/// Data that compresses well and badly, short and long.
fn samples() -> Vec<Vec<u8>> {
    let mut state = 7u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let noise: Vec<u8> = (0..70_000).map(|_| random()).collect();
    let words = [&b"the disk "[..], b"image of ", b"macOS ", b"\0\0\0\0", b"in blocks\n"];
    let text: Vec<u8> =
        (0..90_000).flat_map(|_| words[usize::from(random()) % 5]).copied().collect();
    let few: Vec<u8> = noise.iter().map(|byte| byte & 3).collect();
    let mixed = [&text[..5000], &noise[..9000], &[0; 50_000], &text[..200_000], &few].concat();
    let ends = [0, 1, 4, 7, 20, 100, 1000, 4095, 4096, 4097, 9000].map(|end| text[..end].to_vec());
    let others = [noise, text[..400_000].to_vec(), few, mixed, vec![0; 300_000]];
    ends.into_iter().chain(others).collect()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    lzfse_rust::encode_bytes(bytes, &mut packed).unwrap();
    packed
}

#[test]
fn compressed_data_round_trips() {
    let mut kinds = std::collections::BTreeSet::new();
    for bytes in samples() {
        let packed = packed(&bytes);
        kinds.insert(packed[3]);
        let mut block = vec![0xAA; bytes.len()];
        unpack(&packed, &mut block).unwrap();
        assert!(block == bytes, "{} bytes", bytes.len());
        for wrong in [bytes.len() + 1, bytes.len().wrapping_sub(1)] {
            if wrong <= bytes.len() + 1 {
                assert!(unpack(&packed, &mut vec![0; wrong]).is_err());
            }
        }
    }
    // LZVN blocks, blocks with compressed tables, and stored ones.
    assert!(kinds.contains(&b'n') && kinds.contains(&b'2') && kinds.contains(&b'-'), "{kinds:?}");
}

#[test]
fn bare_lzvn_ends_with_the_block_or_its_marker() {
    let mut blocks = 0;
    for bytes in samples() {
        let packed = packed(&bytes);
        if &packed[..4] != b"bvxn" {
            continue;
        }
        let bare = &packed[12..][..super::u32_le(&packed, 8) as usize];
        let whole = bare.strip_suffix(&[6, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        for bare in [bare, whole] {
            let mut block = vec![0xAA; bytes.len()];
            unpack_lzvn(bare, &mut block).unwrap();
            assert!(block == bytes, "{} bytes", bytes.len());
        }
        assert!(unpack_lzvn(bare, &mut vec![0; bytes.len() + 1]).is_err());
        assert!(unpack_lzvn(whole, &mut vec![0; bytes.len() + 1]).is_err());
        assert!(unpack_lzvn(bare, &mut vec![0; bytes.len() - 1]).is_err());
        blocks += 1;
    }
    assert!(blocks >= 4, "{blocks}");
}

#[test]
fn damage_has_the_same_outcome_as_in_the_other_decoder() {
    let mut state = 1u32;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let (mut right, mut wrong) = (0, 0);
    for bytes in samples().into_iter().filter(|bytes| (1..10_000).contains(&bytes.len())) {
        let whole = packed(&bytes);
        for _ in 0..200 {
            let mut damaged = whole.clone();
            let at = random(damaged.len());
            damaged[at] ^= 1 << random(8);
            if random(10) == 0 {
                damaged.truncate(random(whole.len()));
            }
            let mut block = vec![0; bytes.len()];
            let ours = unpack(&damaged, &mut block);
            let mut theirs = Vec::new();
            let decoded = lzfse_rust::decode_bytes(&damaged, &mut theirs).is_ok();
            match ours {
                Ok(()) => {
                    right += 1;
                    assert!(!decoded || theirs == block);
                }
                Err(_) => {
                    wrong += 1;
                    assert!(!decoded || theirs.len() != bytes.len(), "it is not damaged");
                }
            }
        }
    }
    assert!(right > 50 && wrong > 50, "{right} and {wrong}");
}

#[test]
fn a_block_with_plain_tables_is_read_as_one_with_packed_ones() {
    let bytes = &samples()[10];
    let packed = packed(bytes);
    assert_eq!(&packed[..4], b"bvx2");
    let header = super::Header::packed(&packed).unwrap();
    let mut plain = b"bvx1".to_vec();
    let payload = header.literal_bytes + header.match_bytes;
    let sizes = [bytes.len(), payload, header.literal_count, header.match_count];
    for size in sizes.into_iter().chain([header.literal_bytes, header.match_bytes]) {
        plain.extend((size as u32).to_le_bytes());
    }
    plain.extend(0u32.wrapping_sub(header.literal_lack).to_le_bytes());
    header.literal_states.iter().for_each(|state| plain.extend(state.to_le_bytes()));
    plain.extend(0u32.wrapping_sub(header.match_lack).to_le_bytes());
    header.states.iter().for_each(|state| plain.extend(state.to_le_bytes()));
    header.frequencies.iter().for_each(|frequency| plain.extend(frequency.to_le_bytes()));
    plain.extend(&packed[header.bytes..]);
    let mut block = vec![0; bytes.len()];
    unpack(&plain, &mut block).unwrap();
    assert!(block == *bytes);
}
