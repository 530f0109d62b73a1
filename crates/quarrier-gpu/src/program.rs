//! Kernels as source text, and the tables of their parameters.

use std::fmt::Write;

use crate::driver::Dialect;

/// A kernel's parameters, in order. The kernel's signature is generated from them, and arguments
/// are bound by the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// An array that the kernel reads: name, type of an element.
    In(&'static str, &'static str),
    /// An array that the kernel writes.
    Out(&'static str, &'static str),
    /// A 32-bit number.
    Number(&'static str),
}

impl Parameter {
    /// The name of the parameter, in the text and for binding.
    pub fn name(&self) -> &'static str {
        match self {
            Parameter::In(name, _) | Parameter::Out(name, _) | Parameter::Number(name) => name,
        }
    }

    fn declaration(&self) -> String {
        match self {
            Parameter::In(name, kind) => format!("GLOBAL const {kind} *{name}"),
            Parameter::Out(name, kind) => format!("GLOBAL {kind} *{name}"),
            Parameter::Number(name) => format!("const u32 {name}"),
        }
    }
}

/// A kernel of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The name of the kernel. The text says `KERNEL(name)`.
    pub name: &'static str,
    /// The parameters.
    pub parameters: &'static [Parameter],
}

/// A named constant in the text, whose value is known before compilation.
pub type Constant = (&'static str, u32);

/// Kernels that are compiled together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// The name in error messages.
    pub name: &'static str,
    /// The text after the prelude.
    pub text: &'static str,
    /// The kernels in the text.
    pub kernels: &'static [Signature],
}

impl Program {
    /// Returns the complete source text for a compiler of `dialect`.
    pub fn source(&self, dialect: Dialect, constants: &[Constant]) -> String {
        let mut source = String::new();
        for (name, value) in constants {
            let _ = writeln!(source, "#define {name} {value}u");
        }
        source.push_str(match dialect {
            Dialect::OpenCl => include_str!("../kernels/prelude_opencl.h"),
            Dialect::Cuda => include_str!("../kernels/prelude_cuda.h"),
            Dialect::C => include_str!("../kernels/prelude_c.h"),
        });
        for kernel in self.kernels {
            let parameters: Vec<_> = kernel.parameters.iter().map(Parameter::declaration).collect();
            let _ =
                writeln!(source, "#define PARAMETERS_{} {}", kernel.name, parameters.join(", "));
        }
        source.push_str(self.text);
        source
    }
}
