//! `quarrier completions`: derived from the arguments, like the help.

use clap_complete::Shell;

use crate::Outcome;
use crate::args;

/// Prints the script for a shell.
pub(crate) fn print(shell: Shell) -> Outcome {
    super::print(&script(shell))
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::shown(), "quarrier", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_is_completed() {
        let scripts = [Shell::Bash, Shell::Zsh, Shell::Fish].map(script);
        let mut root = args::shown();
        root.build();
        for command in root.get_subcommands() {
            let longs = command.get_arguments().filter_map(|argument| argument.get_long());
            for word in longs.chain([command.get_name()]) {
                for script in &scripts {
                    assert!(script.contains(word), "{word} in: {}", &script[..60]);
                }
            }
        }
        // Hidden options are not completed.
        assert!(scripts.iter().all(|script| !script.contains("help-m")));
    }
}
