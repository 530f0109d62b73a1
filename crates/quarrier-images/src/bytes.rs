//! Numbers and strings in structures. Reads past the end of a structure return zero.

/// Defines a function that reads a `$kind` at an offset.
macro_rules! number {
    ($name:ident, $kind:ty, $from:ident) => {
        pub(crate) fn $name(bytes: &[u8], at: usize) -> $kind {
            let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
            found.map_or(0, |found| <$kind>::$from(*found))
        }
    };
}

number!(u16_le, u16, from_le_bytes);
number!(u32_le, u32, from_le_bytes);
number!(u64_le, u64, from_le_bytes);
number!(u16_be, u16, from_be_bytes);
number!(u32_be, u32, from_be_bytes);
number!(u64_be, u64, from_be_bytes);

/// A UTF-16 string, up to a NUL.
pub(crate) fn utf16(bytes: &[u8], unit: fn(&[u8], usize) -> u16) -> String {
    let units: Vec<u16> =
        (0..bytes.len() / 2).map(|at| unit(bytes, at * 2)).take_while(|&unit| unit != 0).collect();
    String::from_utf16_lossy(&units)
}

/// Formats a GUID, which Microsoft's formats store mixed-endian.
pub(crate) fn guid(bytes: &[u8]) -> String {
    let tail = |from: usize, to: usize| -> String {
        bytes.get(from..to).unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let (first, second, third) = (u32_le(bytes, 0), u16_le(bytes, 4), u16_le(bytes, 6));
    format!("{first:08x}-{second:04x}-{third:04x}-{}-{}", tail(8, 10), tail(10, 16))
}
