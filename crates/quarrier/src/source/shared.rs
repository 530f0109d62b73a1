//! Openers that a process shares, for callers that open single sources.

use std::sync::{Arc, Mutex, Weak};

use quarrier_core::sync::lock;

use super::{OpenOptions, Opener};
use crate::Environment;

/// The state that separates openers. A forked child has none of its parent's threads.
#[derive(Clone, PartialEq)]
struct Settings {
    options: OpenOptions,
    environment: Environment,
    process: u32,
}

/// The openers in use, and the last one: loading the certificates again for each source would take longer
/// than opening it.
struct Openers {
    used: Vec<(Settings, Weak<Opener>)>,
    last: Option<(Settings, Arc<Opener>)>,
}

impl Opener {
    /// The opener of this process for these options: its sources share a thread, the limit of requests and
    /// the memory. Nothing stops it.
    pub fn shared(options: OpenOptions, environment: &Environment) -> Arc<Opener> {
        static OPENERS: Mutex<Openers> = Mutex::new(Openers { used: Vec::new(), last: None });
        let process = std::process::id();
        let settings = Settings { options, environment: environment.clone(), process };
        let mut openers = lock(&OPENERS);
        if let Some((known, opener)) = openers.last.take_if(|(known, _)| known.process != process) {
            // Its thread does not exist in this process, so dropping would wait forever.
            std::mem::forget((known, opener));
        }
        openers.used.retain(|(_, opener)| opener.strong_count() > 0);
        let known = openers.used.iter().find(|(known, _)| *known == settings);
        if let Some(opener) = known.and_then(|(_, opener)| opener.upgrade()) {
            return opener;
        }
        let opener = Arc::new(Opener::new(settings.options.clone(), environment, &Arc::default()));
        openers.used.push((settings.clone(), Arc::downgrade(&opener)));
        openers.last = Some((settings, Arc::clone(&opener)));
        opener
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_with_equal_options_share_an_opener() {
        let environment = Environment::default();
        let one = Opener::shared(OpenOptions::default(), &environment);
        let same = Opener::shared(OpenOptions::default(), &environment);
        let other = Opener::shared(OpenOptions::default().direct(true), &environment);
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
    }
}
