//! LZNT1, the compression of NTFS: chunks of 4 KiB, each with a flag byte for every eight tokens.
//!
//! *MS-XCA*, 2.5.

const CHUNK_BYTES: usize = 4096;

/// Decompresses into `unit`, which has the length of the original bytes; missing bytes at the end
/// become zeros. False if the bytes are not valid LZNT1.
pub(crate) fn unpack(mut packed: &[u8], unit: &mut [u8]) -> bool {
    unit.fill(0);
    for out in unit.chunks_mut(CHUNK_BYTES) {
        let Some((head, rest)) = packed.split_first_chunk::<2>() else { return true };
        let head = u16::from_le_bytes(*head);
        if head == 0 {
            return true;
        }
        let length = usize::from(head & 0xFFF) + 1;
        let Some((chunk, rest)) = rest.split_at_checked(length) else { return false };
        packed = rest;
        if head & 0x8000 == 0 {
            let length = chunk.len().min(out.len());
            out[..length].copy_from_slice(&chunk[..length]);
        } else if !unpack_chunk(chunk, out) {
            return false;
        }
    }
    true
}

fn unpack_chunk(mut chunk: &[u8], out: &mut [u8]) -> bool {
    let mut at = 0;
    while let Some((&flags, rest)) = chunk.split_first() {
        chunk = rest;
        for bit in 0..8 {
            if chunk.is_empty() || at == out.len() {
                return true;
            }
            if flags >> bit & 1 == 0 {
                out[at] = chunk[0];
                at += 1;
                chunk = &chunk[1..];
                continue;
            }
            let Some((token, rest)) = chunk.split_first_chunk::<2>() else { return false };
            chunk = rest;
            let token = usize::from(u16::from_le_bytes(*token));
            // The offset takes more bits as the output of the chunk grows.
            let mut back_bits = 4;
            while back_bits < 12 && at > 1 << back_bits {
                back_bits += 1;
            }
            let length_bits = 16 - back_bits;
            let back = (token >> length_bits) + 1;
            let length = (token & ((1 << length_bits) - 1)) + 3;
            if back > at {
                return false;
            }
            for _ in 0..length.min(out.len() - at) {
                out[at] = out[at - back];
                at += 1;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn the_example_of_the_specification_is_unpacked() {
        // The example of MS-XCA, 3.3.
        let packed = [
            0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2,
            0x47, 0x01, 0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0,
            0x45, 0x20, 0x05, 0x24, 0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58,
            0x02, 0x8c, 0x09, 0x16, 0x01, 0x48, 0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01,
            0x18, 0x90, 0x00,
        ];
        let plain =
            b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D \
                      E F# G F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
        let mut unit = vec![7; 4096];
        assert!(unpack(&packed, &mut unit));
        assert_eq!(&unit[..plain.len()], plain);
        assert!(unit[plain.len()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_token_that_leads_before_the_start_is_refused() {
        assert!(!unpack(&[0x02, 0xb0, 0x01, 0x00, 0x00], &mut [0; 4096]));
    }
}
