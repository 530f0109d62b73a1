//! `quarrier gauge network --listen`: the other end of a measurement of the network.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use quarrier_gauge::network::{Listener, SessionOutcome};
use quarrier_report::number;

use crate::commands::print;
use crate::{Outcome, complain};

/// Serves until Ctrl-C, which is a normal end.
pub(super) fn run(address: SocketAddr, quiet: bool, stop: &AtomicBool) -> Result<Outcome, String> {
    let listener = Listener::bind(address).map_err(|error| error.to_string())?;
    let address = listener.address().map_err(|error| error.to_string())?;
    let said = print(&format!("listening at {address}\n"));
    if said != Outcome::Found {
        // Without the first line, nobody knows the port.
        return Ok(said);
    }
    let heard = |from: SocketAddr, heard: SessionOutcome| match heard {
        _ if quiet => {}
        SessionOutcome::Served { bytes, messages } => {
            let bytes = number::bytes(bytes);
            let _ = writeln!(std::io::stderr(), "{from}: {messages} messages, {bytes}");
        }
        SessionOutcome::Ended(reason) => complain(&format!("{from}: {reason}")),
    };
    listener.serve(stop, &heard).map_err(|error| error.to_string())?;
    Ok(Outcome::Found)
}
