//! Prints the verdicts of validators on files, each followed by noise: `validate FORMAT FILE…`.

use std::io::{self, Write};

use quarrier_carve::{Extent, Verdict, View, format};
use quarrier_core::source::Memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("usage: validate FORMAT FILE…")?;
    let mut out = io::stdout().lock();
    for path in words {
        let mut bytes = std::fs::read(&path)?;
        let own = bytes.len() as u64;
        let mut noise = 0x9E37_79B9_7F4A_7C15u64;
        for _ in 0..30_000 {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            bytes.extend_from_slice(&noise.to_le_bytes());
        }
        let length = bytes.len() as u64;
        let source = Memory::new("file", bytes);
        for format in format::ALL {
            if format.kinds()[0].name != name && name != "all" {
                continue;
            }
            let mut view = View::of(&source, &[Extent { offset: 0, length }]);
            match format.validate(&mut view) {
                Verdict::Not if name == "all" => {}
                Verdict::Whole { length, kind } if length == own => {
                    writeln!(out, "whole {} {path}", kind.name)?;
                }
                verdict => writeln!(out, "{verdict:?} of {own} {path}")?,
            }
        }
    }
    Ok(())
}
