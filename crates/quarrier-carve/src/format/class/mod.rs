//! Java class files.
//!
//! *The Java Virtual Machine Specification*, chapter 4.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// A class. The validator reads all constants, fields, methods and attributes, and checks that
/// their names are string constants.
pub struct Class;

const CLASS: Kind = Kind::new("class");

const TEXT: u8 = 1;
const CLASS_NAME: u8 = 7;

impl Format for Class {
    fn kinds(&self) -> &[Kind] {
        &[CLASS]
    }

    fn signatures(&self) -> &[Signature] {
        // Versions 1.1 to 32. Apple's fat binaries have the same magic number, but fewer than 32
        // parts.
        &[
            Signature { hex: "CA FE BA BE 00 0? 00 2?", at: 0 },
            Signature { hex: "CA FE BA BE 00 0? 00 3?", at: 0 },
            Signature { hex: "CA FE BA BE 00 0? 00 4?", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut reader = Reader { view, at: 8, constants: Vec::new() };
        if reader.constants().is_none() {
            return Verdict::Not;
        }
        match reader.rest() {
            Some(()) => Verdict::Whole { length: reader.at, kind: CLASS },
            None => {
                let at = reader.at;
                Verdict::broken(view, CLASS, 0, at, "members")
            }
        }
    }
}

struct Reader<'r, 's> {
    view: &'r mut View<'s>,
    at: u64,
    /// The tag of each constant; 0 for unused entries.
    constants: Vec<u8>,
}

impl Reader<'_, '_> {
    fn u16(&mut self) -> Option<u16> {
        self.at += 2;
        self.view.u16_be(self.at - 2)
    }

    /// Reads the index of a constant, which must be of this kind.
    fn constant(&mut self, kind: u8) -> Option<()> {
        let number = self.u16()?;
        (self.constants.get(usize::from(number)) == Some(&kind)).then_some(())
    }

    fn constants(&mut self) -> Option<()> {
        let count = usize::from(self.u16()?);
        self.constants.push(0);
        while self.constants.len() < count {
            let kind = self.view.byte(self.at)?;
            self.at += 1;
            let bytes = match kind {
                TEXT => 2 + u64::from(self.view.u16_be(self.at)?),
                3 | 4 | 9..=12 | 17 | 18 => 4,
                5 | 6 => 8,
                CLASS_NAME | 8 | 16 | 19 | 20 => 2,
                15 => 3,
                _ => return None,
            };
            self.at += bytes;
            self.constants.push(kind);
            if matches!(kind, 5 | 6) {
                // These take two entries.
                self.constants.push(0);
            }
        }
        (count > 1 && self.at <= self.view.length()).then_some(())
    }

    fn rest(&mut self) -> Option<()> {
        self.u16()?;
        self.constant(CLASS_NAME)?;
        let above = self.u16()?;
        if above != 0 && self.constants.get(usize::from(above)) != Some(&CLASS_NAME) {
            return None;
        }
        for _ in 0..self.u16()? {
            self.constant(CLASS_NAME)?;
        }
        // The fields, then the methods.
        for _ in 0..2 {
            for _ in 0..self.u16()? {
                self.u16()?;
                self.constant(TEXT)?;
                self.constant(TEXT)?;
                self.attributes()?;
            }
        }
        self.attributes()
    }

    fn attributes(&mut self) -> Option<()> {
        for _ in 0..self.u16()? {
            self.constant(TEXT)?;
            let bytes = self.view.u32_be(self.at)?;
            let end = self.at + 4 + u64::from(bytes);
            if end > self.view.length() {
                return None;
            }
            self.at = end;
        }
        Some(())
    }
}
