//! Mends compound files in two or more fragments.

use std::ops::Range;

use super::checked;
use super::table::Header;
use crate::mend::Whole;
use crate::view::View;

impl Whole for Header {
    fn check(&self, view: &mut View<'_>) -> Result<u64, u64> {
        match checked(view, self) {
            Ok(compound) => Ok(compound.length),
            Err((_, trouble)) => Err(trouble.at),
        }
    }

    fn left_within(&self, view: &mut View<'_>, gap: u64, places: Range<u64>) -> Range<u64> {
        let mut range = places;
        for (index, (place, mark)) in self.marks().into_iter().enumerate() {
            match (view.is_at(place, &mark), view.is_at(place + gap, &mark)) {
                (true, false) => range.start = range.start.max(place + 1),
                (false, true) => range.end = range.end.min(place + 1),
                (false, false) if index == 0 => return 0..0,
                // Both match, one of them by chance; or neither does, since the mark is in a third
                // fragment.
                (true, true) | (false, false) => {}
            }
        }
        range
    }
}
