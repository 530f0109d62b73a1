//! The hidden command that prints the help as Markdown, from which `docs/cli.md` is made.

use clap::Command;

use crate::Outcome;

/// Prints the help of every command.
pub(crate) fn print(mut root: Command) -> Outcome {
    let mut text = String::from(
        "# The command line\n\nMade by `cargo xtask docs` from the program's own help; \
         do not edit.\n",
    );
    root.build();
    let about = root.get_about().map(ToString::to_string).unwrap_or_default();
    text.push_str(&format!("\n{about}.\n"));
    if let Some(more) = root.get_after_help() {
        text.push_str(&format!("\n{more}\n"));
    }
    for command in root.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        let name = command.get_name().to_string();
        let help = command.clone().term_width(80).render_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        text.push_str(&format!(
            "\n## quarrier {name}\n\n```text\n{}\n```\n",
            lines.join("\n").trim_end()
        ));
    }
    super::print(&text)
}
