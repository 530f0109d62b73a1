//! `quarrier explain`.

use crate::args::Explain;
use crate::{Outcome, complain};

pub(crate) fn run(explain: &Explain) -> Outcome {
    complain(&format!("{explain:?}"));
    Outcome::Failed
}
