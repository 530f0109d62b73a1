//! Compiles rules with boreal.

use std::borrow::Cow;

use boreal::Scanner;
use boreal::compiler::{AddRuleError, Compiler, CompilerBuilder};
use boreal::module::Console;

use crate::error::{Error, Result};
use crate::programs::add_modules;
use crate::ranges::with_lower_bounds;
use crate::text::Statement;
use crate::windows::{FILESIZE, without_filesize};

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
    let mut compiler = compiler();
    for statement in statements {
        add(&mut compiler, &statement.text).map_err(|error| wrong(statement, files, &error))?;
    }
    Ok(compiler.finalize())
}

/// Compiles texts of statements for [`Windows`](crate::windows::Windows); `None` if they do not compile on
/// their own.
pub(crate) fn compile_for_windows<'s>(texts: impl Iterator<Item = &'s str>) -> Option<Scanner> {
    let mut compiler = compiler();
    compiler.define_symbol(FILESIZE, 0i64);
    for text in texts {
        add(&mut compiler, &without_filesize(text)).ok()?;
    }
    Some(compiler.finalize())
}

fn compiler() -> Compiler {
    // Discard the output of `console`, which would mix with the rows.
    let console = Console::with_callback(|_| {});
    let modules = add_modules(CompilerBuilder::new().add_module(console));
    let mut compiler: Compiler = modules.build();
    for name in NAMES {
        compiler.define_symbol(name, "");
    }
    compiler
}

fn add(compiler: &mut Compiler, text: &str) -> std::result::Result<(), AddRuleError> {
    match with_lower_bounds(text) {
        Cow::Borrowed(text) => compiler.add_rules_str(text).map(drop),
        // An error must name the place in the original text.
        Cow::Owned(changed) => compiler
            .add_rules_str(&changed)
            .map(drop)
            .map_err(|error| compiler.add_rules_str(text).err().unwrap_or(error)),
    }
}

fn wrong(statement: &Statement, files: &[String], error: &AddRuleError) -> Error {
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
