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

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
