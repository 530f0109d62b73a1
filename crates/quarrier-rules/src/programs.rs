//! The modules that read programs, also those with headers that boreal rejects.
//!
//! If a number in a header is wrong, such as the number of data directories, boreal leaves all fields
//! undefined that depend on it, but YARA and YARA-X read what is there. The modules here have boreal read
//! a copy of the scope in which such numbers are corrected, and then set the fields that show these numbers
//! to those of the scope. They make a copy only if there is something to correct.

mod delayed;
mod macho;
mod pe;
mod sections;

use std::collections::HashMap;

use boreal::compiler::CompilerBuilder;
use boreal::memory::Region;
use boreal::module::{
    Dotnet, MachO, Module, ModuleDataMap, Pe, ScanContext, StaticValue, Type, Value,
};

/// Adds the modules in place of those of boreal.
pub(crate) fn add_modules(compiler: CompilerBuilder) -> CompilerBuilder {
    compiler
        .add_module(Corrected { module: Pe, correct: pe::correct, show: pe::show })
        .add_module(Corrected { module: Dotnet, correct: pe::correct, show: |_, _| {} })
        .add_module(Corrected { module: MachO, correct: macho::correct, show: macho::show })
}

/// What replaces four bytes of a scope: their offset, and the new ones.
type Patch = (usize, [u8; 4]);

/// What fields show in place of a corrected number: their value in the scope.
type Fields = HashMap<&'static str, Value>;

/// A module of boreal that reads scopes with corrected headers.
struct Corrected<M> {
    module: M,
    /// Returns what to correct in a scope.
    correct: fn(&[u8]) -> Vec<Patch>,
    /// Sets the fields that show corrected numbers to those of the scope.
    show: fn(&[u8], &mut Fields),
}

impl<M: Module> Module for Corrected<M> {
    fn get_name(&self) -> &'static str {
        self.module.get_name()
    }

    fn get_static_values(&self) -> HashMap<&'static str, StaticValue> {
        self.module.get_static_values()
    }

    fn get_dynamic_types(&self) -> HashMap<&'static str, Type> {
        self.module.get_dynamic_types()
    }

    fn setup_new_scan(&self, data: &mut ModuleDataMap) {
        self.module.setup_new_scan(data);
    }

    fn get_dynamic_values(&self, scan: &mut ScanContext, fields: &mut Fields) {
        let bytes = scan.region.mem;
        let patches = (self.correct)(bytes);
        if patches.is_empty() {
            self.module.get_dynamic_values(scan, fields);
            return (self.show)(bytes, fields);
        }
        let mut copy = bytes.to_vec();
        for (at, new) in patches {
            if let Some(old) = copy.get_mut(at..at + new.len()) {
                old.copy_from_slice(&new);
            }
        }
        let mut corrected = ScanContext {
            region: &Region { start: scan.region.start, mem: &copy },
            module_data: &mut *scan.module_data,
            process_memory: scan.process_memory,
        };
        self.module.get_dynamic_values(&mut corrected, fields);
        (self.show)(bytes, fields);
    }
}

/// Reads a little-endian number of 16 bits.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads a little-endian number of 32 bits.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
