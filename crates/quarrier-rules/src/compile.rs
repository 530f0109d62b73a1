//! Compiles rules with boreal.

use boreal::Scanner;
use boreal::compiler::{Compiler, CompilerBuilder};
use boreal::module::Console;

use crate::error::{Error, Result};
use crate::text::Statement;

/// The external variables of rules, as scanners of folders define them.
pub(crate) const NAMES: [&str; 3] = ["filename", "filepath", "extension"];

/// Compiles statements, in order.
///
/// # Errors
/// [`Error::Rule`] for the first invalid statement.
pub(crate) fn compile<'s>(
    statements: impl Iterator<Item = &'s Statement>,
    files: &[String],
) -> Result<Scanner> {
    // Discard the output of `console`, which would mix with the rows.
    let console = Console::with_callback(|_| {});
    let mut compiler: Compiler = CompilerBuilder::new().add_module(console).build();
    for name in NAMES {
        compiler.define_symbol(name, "");
    }
    for statement in statements {
        compiler.add_rules_str(&statement.text).map_err(|error| wrong(statement, files, &error))?;
    }
    Ok(compiler.finalize())
}

fn wrong(statement: &Statement, files: &[String], error: &boreal::compiler::AddRuleError) -> Error {
    let diagnostic = error.to_diagnostic();
    let mut reason = diagnostic.message.clone();
    for label in diagnostic.labels.iter().filter(|label| !label.message.is_empty()) {
        reason.push_str(", ");
        reason.push_str(&label.message);
    }
    if reason.contains("already declared") {
        reason.push_str("; files given together share their names: use them in several runs");
    } else if reason.starts_with("unknown import") {
        reason.push_str(
            "; there are pe, elf, macho, dotnet, dex, hash, math, string, time and console",
        );
    } else if reason.starts_with("unknown identifier") {
        reason.push_str(
            "; filename, filepath and extension are the only names defined outside rules",
        );
    }
    let at = diagnostic.labels.first().map_or(0, |label| label.range.start);
    statement.wrong(files, at, reason)
}
