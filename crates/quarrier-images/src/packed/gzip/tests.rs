//! The decoder that stops at blocks, compared with zlib.

use std::io::{Read, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, read::DeflateDecoder};

use super::codes::Damage;
use super::inflate::{Inflate, Stop};
use super::{RING_BYTES, WINDOW_BYTES};

/// The bit offset of each block, and its output size.
type Blocks = Vec<(u64, usize)>;

/// Decompresses in input steps of up to `step` bytes; returns the output and the blocks.
fn decoded(packed: &[u8], step: usize) -> Result<(Vec<u8>, Blocks), Damage> {
    let (mut inflate, mut ring) = (Inflate::default(), Box::new([0; RING_BYTES]));
    let (mut out, mut blocks, mut at, mut ring_at) = (Vec::new(), Vec::new(), 0, 0);
    let mut idle = 0;
    loop {
        let input = &packed[at..packed.len().min(at + step)];
        let is_all = at + input.len() == packed.len();
        ring_at %= RING_BYTES;
        let (stop, used, written) = inflate.decode(input, is_all, &mut ring, (ring_at, RING_BYTES));
        if let Stop::Damage(why) = stop {
            return Err(why);
        }
        out.extend(&ring[ring_at..ring_at + written]);
        ring_at += written;
        at += used;
        idle = if used + written == 0 { idle + 1 } else { 0 };
        assert!(idle < 3, "it goes nowhere");
        if let Some((_, count)) = inflate.block_bits() {
            blocks.push((at as u64 * 8 - u64::from(count), out.len()));
        }
        if stop == Stop::Stream {
            assert_eq!(at, packed.len());
            return Ok((out, blocks));
        }
    }
}

fn samples() -> Vec<Vec<u8>> {
    let mut state = 3u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let noise: Vec<u8> = (0..150_000).map(|_| random()).collect();
    let words = [&b"blocks "[..], b"of deflate ", b"begin at any bit, ", b"\0\0\0\0\0"];
    let text: Vec<u8> =
        (0..60_000).flat_map(|_| words[usize::from(random()) % 4]).copied().collect();
    let mixed = [&text[..100_000], &noise, &vec![7; 100_000], &text, &[1]].concat();
    vec![Vec::new(), b"a".to_vec(), noise, text, mixed]
}

fn deflated(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn zlib_output_is_decompressed_with_any_input_chunking() {
    for bytes in samples() {
        for level in [0, 1, 2, 6, 9] {
            let packed = deflated(&bytes, level);
            for step in [1024, 1500, 40_000, usize::MAX / 2] {
                let (out, blocks) = decoded(&packed, step).unwrap();
                assert!(out == bytes, "level {level}, {step} bytes at a time");
                // At the other levels there may be a single block; a stored block has at most 65,535
                // bytes.
                assert!(level > 0 || blocks.len() >= bytes.len() / 65_536, "{blocks:?}");
            }
        }
    }
}

#[test]
fn decoding_can_begin_at_any_block() {
    let bytes = samples().pop().unwrap();
    for level in [0, 1, 9] {
        let packed = deflated(&bytes, level);
        let (_, blocks) = decoded(&packed, usize::MAX / 2).unwrap();
        for &(bit, start) in blocks.iter().filter(|(_, start)| *start < bytes.len()) {
            let (mut inflate, mut ring) = (Inflate::default(), Box::new([0; RING_BYTES]));
            let history = start.min(WINDOW_BYTES);
            ring[WINDOW_BYTES - history..WINDOW_BYTES]
                .copy_from_slice(&bytes[start - history..start]);
            let (byte, before) = ((bit / 8) as usize, (bit % 8) as u8);
            let rest = if before == 0 { byte } else { byte + 1 };
            let count = (8 - before) % 8;
            let bits = if count == 0 { 0 } else { packed[byte] >> before };
            inflate.begin(history, bits, count);
            let room = (WINDOW_BYTES, RING_BYTES);
            let (_, _, written) = inflate.decode(&packed[rest..], true, &mut ring, room);
            assert!(written > 0);
            assert!(ring[WINDOW_BYTES..][..written] == bytes[start..start + written], "at {start}");
        }
    }
}

#[test]
fn decoding_can_resume_from_a_snapshot_anywhere() {
    let mut state = 5u32;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for bytes in samples() {
        for level in [0, 1, 6, 9] {
            let packed = deflated(&bytes, level);
            let (mut inflate, mut ring) = (Inflate::default(), Box::new([0; RING_BYTES]));
            let (mut out, mut at, mut ring_at) = (Vec::new(), 0, 0);
            loop {
                ring_at %= RING_BYTES;
                // Often so little that a match ends beyond it.
                let room = [1, 300, 20_000, RING_BYTES][random(4)];
                let end = (ring_at + 1 + random(room)).min(RING_BYTES);
                let (stop, used, written) =
                    inflate.decode(&packed[at..], true, &mut ring, (ring_at, end));
                assert!(ring_at + written <= end);
                out.extend(&ring[ring_at..ring_at + written]);
                (ring_at, at) = (ring_at + written, at + used);
                match stop {
                    Stop::Stream => break,
                    Stop::Damage(why) => panic!("{why} at {at}"),
                    Stop::Input | Stop::Output | Stop::Block => {}
                }
                if random(2) == 0 {
                    continue;
                }
                // Another decoder, with only the last 32 KiB.
                let snapshot = inflate.snapshot();
                (inflate, ring) = (Inflate::default(), Box::new([0xEE; RING_BYTES]));
                inflate.resume(&snapshot).unwrap();
                let history = &out[out.len().saturating_sub(WINDOW_BYTES)..];
                ring[WINDOW_BYTES - history.len()..WINDOW_BYTES].copy_from_slice(history);
                ring_at = WINDOW_BYTES;
            }
            assert!(out == bytes, "level {level}");
        }
    }
}

#[test]
fn damage_is_an_error_or_the_bytes_that_zlib_gives() {
    let mut state = 11u32;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let text = samples().remove(3);
    let (mut right, mut wrong) = (0, 0);
    for level in [0, 1, 6] {
        let whole = deflated(&text[..20_000], level);
        for _ in 0..300 {
            let mut damaged = whole.clone();
            let at = random(damaged.len());
            damaged[at] ^= 1 << random(8);
            let mut zlib = Vec::new();
            let is_whole = DeflateDecoder::new(&damaged[..]).read_to_end(&mut zlib).is_ok();
            match ours(&damaged) {
                Some(out) if is_whole => {
                    assert!(out == zlib);
                    right += 1;
                }
                Some(_) => panic!("zlib refuses it, at {at} of level {level}"),
                None if is_whole => panic!("zlib takes it, at {at} of level {level}"),
                None => wrong += 1,
            }
        }
    }
    assert!(right > 20 && wrong > 20, "{right} and {wrong}");
}

/// Decodes bytes that may be damaged; `None` if they are, or if the output is too long.
fn ours(packed: &[u8]) -> Option<Vec<u8>> {
    let (mut inflate, mut ring) = (Inflate::default(), Box::new([0; RING_BYTES]));
    let (mut out, mut at, mut ring_at) = (Vec::new(), 0, 0);
    while out.len() < 20 << 20 {
        ring_at %= RING_BYTES;
        let (stop, used, written) =
            inflate.decode(&packed[at..], true, &mut ring, (ring_at, RING_BYTES));
        out.extend(&ring[ring_at..ring_at + written]);
        (ring_at, at) = (ring_at + written, at + used);
        match stop {
            Stop::Stream => return Some(out),
            Stop::Damage(_) => return None,
            Stop::Input | Stop::Output | Stop::Block => {}
        }
    }
    None
}
