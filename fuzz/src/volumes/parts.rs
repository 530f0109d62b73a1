//! Shared parts of the volumes: contents of files, also compressed. The tests of `quarrier-files` include
//! this file and the volumes by path.

/// The bytes of the file `name`, different for each name.
pub(crate) fn bytes(name: &str, length: usize) -> Vec<u8> {
    let seed = name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    (0..length as u32).map(|at| ((at ^ seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A zlib stream of one stored block.
pub(crate) fn zlib(plain: &[u8]) -> Vec<u8> {
    let length = plain.len() as u16;
    let mut packed = vec![0x78, 1, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(plain);
    let sums = plain.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    packed.extend((sums.1 << 16 | sums.0).to_be_bytes());
    packed
}

/// Bytes of the file `name` that compress well: each one repeated.
pub(crate) fn runs(name: &str, length: usize) -> Vec<u8> {
    let each = bytes(name, length.div_ceil(128));
    let repeated = each.into_iter().flat_map(|byte| std::iter::repeat_n(byte, 128));
    repeated.take(length).collect()
}

/// LZVN that packs only runs of equal bytes.
pub(crate) fn lzvn(plain: &[u8]) -> Vec<u8> {
    /// A match of three bytes at distance 1, and the minimum and maximum length of a match at the same
    /// distance.
    const FIRST: [u8; 2] = [0, 1];
    const MORE: std::ops::RangeInclusive<usize> = 16..=271;
    let run = |at: usize| match at {
        0 => 0,
        at => plain[at..].iter().take_while(|byte| **byte == plain[at - 1]).count(),
    };
    let (mut packed, mut at) = (Vec::new(), 0);
    while at < plain.len() {
        let length = run(at).saturating_sub(3).min(*MORE.end());
        if MORE.contains(&length) {
            packed.extend(FIRST);
            packed.extend([0xF0, (length - 16) as u8]);
            at += 3 + length;
            continue;
        }
        let end = plain.len().min(at + 15);
        let end = (at + 1..end).find(|at| run(*at) > 3 + *MORE.start()).unwrap_or(end);
        packed.push(0xE0 | (end - at) as u8);
        packed.extend(&plain[at..end]);
        at = end;
    }
    packed.extend([6, 0, 0, 0, 0, 0, 0, 0]);
    packed
}

/// An LZFSE stream of an LZVN block.
pub(crate) fn lzfse(plain: &[u8]) -> Vec<u8> {
    let block = lzvn(plain);
    let sizes = [plain.len() as u32, block.len() as u32];
    [b"bvxn", &sizes.map(u32::to_le_bytes).concat()[..], &block, b"bvx$"].concat()
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
