//! `quarrier verify`.

use quarrier::case::verify;
use quarrier::{Opener, Sources};
use quarrier_report::{number, visible};

use super::{failed, print};
use crate::args::Verify;
use crate::{Outcome, complain, host, interrupt};

/// Runs the command.
pub(crate) fn run(asked: &Verify) -> Outcome {
    let stop = interrupt::watch();
    let opener = Opener::new(asked.open.clone(), host::environment(), &stop);
    let mut open = |name: &str| {
        let name = asked.source.clone().unwrap_or_else(|| name.into());
        opener.open(&Sources::only(name)?)?.at_offsets()
    };
    let found = match verify(&asked.folder, &mut open, &stop) {
        Ok(found) => found,
        Err(error) => return failed(&error.to_string(), &stop),
    };
    let mut lines: String =
        found.lines.iter().map(|line| visible(line).into_owned() + "\n").collect();
    let more = found.count - found.lines.len() as u64;
    if more > 0 {
        lines.push_str(&format!("{more} more differences\n"));
    }
    let mut outcome = if found.count > 0 { Outcome::Nothing } else { Outcome::Found };
    for line in &found.left_out {
        complain(line);
        outcome = outcome.worse(Outcome::Incomplete);
    }
    if found.stopped {
        complain("interrupted; the differences found before are listed");
        outcome = outcome.worse(Outcome::Interrupted);
    }
    if found.count == 0 && !found.stopped && !asked.quiet {
        lines.push_str(&format!("{}: unchanged\n", number::counted(found.files, "file")));
    }
    outcome.worse(print(&lines))
}
