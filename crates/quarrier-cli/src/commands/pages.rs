//! Man pages, derived from the arguments: one for each command, one for all, one for `quarrier-sql`.

use std::fs;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::{Outcome, args};

/// Writes the pages into a folder.
///
/// # Errors
/// A message for the user, if the pages cannot be written.
pub(crate) fn write(folder: &Path) -> Result<Outcome, String> {
    let failed = |path: &Path, error: &std::io::Error| {
        format!("{}: cannot write the man pages: {error}", path.display())
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (name, page) in pages() {
        let path = folder.join(name);
        fs::write(&path, page).map_err(|error| failed(&path, &error))?;
    }
    Ok(Outcome::Found)
}

/// The names and contents of the files.
fn pages() -> Vec<(String, Vec<u8>)> {
    // 'quarrier help search' needs no page.
    let mut root = args::shown().disable_help_subcommand(true);
    root.build();
    let mut sql = args::sql_command();
    sql.build();
    let commands: Vec<Command> = root.get_subcommands().cloned().collect();
    commands.into_iter().chain([sql, root]).map(page).collect()
}

fn page(command: Command) -> (String, Vec<u8>) {
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let others = see_also(&command);
    let has_commands = command.has_subcommands();
    let man = Man::new(command)
        .date(args::day())
        .source(format!("quarrier {}", clap::crate_version!()))
        .manual("User Commands");
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = man
        .render_title(&mut text)
        .and_then(|()| man.render_name_section(&mut text))
        .and_then(|()| man.render_synopsis_section(&mut text))
        .and_then(|()| man.render_description_section(&mut text))
        .and_then(|()| man.render_options_section(&mut text))
        .and_then(|()| match has_commands {
            true => man.render_subcommands_section(&mut text),
            false => Ok(()),
        })
        .and_then(|()| render_notes(&notes).to_writer(&mut text))
        .and_then(|()| others.to_writer(&mut text));
    (man.get_filename(), text)
}

/// The paragraphs after the help; a paragraph that begins with a word and a colon gets a heading.
fn render_notes(notes: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_headed = false;
    for paragraph in notes.split("\n\n") {
        if let Some(lines) = paragraph.strip_prefix("Examples:\n") {
            roff.control("SH", ["EXAMPLES"]);
            roff.control("nf", []);
            lines.lines().for_each(|line| {
                roff.text([roman(line.trim_start())]);
            });
            roff.control("fi", []);
            is_headed = false;
        } else if let Some(words) = paragraph.strip_prefix("Exit status: ") {
            roff.control("SH", ["EXIT STATUS"]);
            words.lines().for_each(|line| {
                roff.text([roman(line)]);
            });
            is_headed = false;
        } else if !paragraph.trim().is_empty() {
            let (control, words): (&str, &[&str]) =
                if is_headed { ("PP", &[]) } else { ("SH", &["NOTES"]) };
            roff.control(control, words.iter().copied());
            paragraph.lines().for_each(|line| {
                roff.text([roman(line)]);
            });
            is_headed = true;
        }
    }
    roff
}

fn see_also(command: &Command) -> Roff {
    let mut roff = Roff::new();
    let name = command.get_display_name().unwrap_or(command.get_name());
    let other = if name == "quarrier" { "quarrier-search" } else { "quarrier" };
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold(other), roman("(1)")]);
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_all_its_options() {
        let pages = pages();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["quarrier.1", "quarrier-search.1", "quarrier-query.1", "quarrier-sql.1"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
        let mut root = args::shown();
        root.build();
        for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
            let name = format!("quarrier-{}.1", command.get_name());
            let (_, page) = pages.iter().find(|page| page.0 == name).expect(&name);
            let page = String::from_utf8_lossy(page).replace('\\', "");
            for long in command.get_arguments().filter_map(|argument| argument.get_long()) {
                assert!(page.contains(&format!("--{long}")), "{long} in {page}");
            }
        }
    }

    #[test]
    fn the_title_has_all_five_parts() {
        for (name, page) in pages() {
            let page = String::from_utf8_lossy(&page).into_owned();
            let title = page.lines().find(|line| line.starts_with(".TH ")).expect(&name);
            assert!(title.ends_with("\" \"User Commands\""), "{title}");
            assert_eq!(title.matches('"').count() % 2, 0, "{title}");
            assert!(title.contains(" 1 \" \" \"quarrier ") || title.contains(" 1 2"), "{title}");
        }
    }

    #[test]
    fn examples_keep_their_lines_and_paragraphs_their_headings() {
        let notes = "Examples:\n  a -b\n  c\n\nMore\nwords.\n\nStill more.\n\nExit status: 0 done.";
        let page = render_notes(notes).to_roff();
        let lines: Vec<&str> = page.lines().collect();
        let expected = [
            ".SH EXAMPLES",
            ".nf",
            "a \\-b",
            "c",
            ".fi",
            ".SH NOTES",
            "More",
            "words.",
            ".PP",
            "Still more.",
            ".SH \"EXIT STATUS\"",
            "0 done.",
        ];
        assert_eq!(lines, expected);
    }
}
