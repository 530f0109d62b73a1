//! Cuts sources into units.

use std::ffi::OsStr;
use std::ops::Range;

use quarrier::source::Version;
use quarrier::{Named, Opened, Opener, Place};

use crate::error::{Error, Result};
use crate::unit::Unit;

/// How the bytes of a source are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As [`Opener::open`] opens it: compressed files are unpacked.
    Bytes,
    /// As [`Opener::open_unparsed`] opens it, for readers of messages, which unpack them.
    Messages,
}

impl View {
    fn open(self, named: &Named, opener: &Opener) -> quarrier::Result<Opened> {
        match self {
            View::Bytes => opener.open(named),
            View::Messages => opener.open_unparsed(named),
        }
    }
}

/// An open source and its units, which depend only on its version, the range and the unit size.
pub struct SourceUnits {
    named: Named,
    opened: Opened,
    /// The whole source as one unit.
    whole: Unit,
    unit_bytes: u64,
}

impl SourceUnits {
    /// Opens a source to search the offsets in `range` in units of `unit_bytes`, which must be at least
    /// 1; units end at multiples of it.
    ///
    /// # Errors
    /// If the source cannot be opened, can only be read in order, or has no version: [`Version::of`].
    pub fn open(
        named: &Named,
        opener: &Opener,
        range: &Range<u64>,
        unit_bytes: u64,
    ) -> Result<Self> {
        Self::open_as(View::Bytes, named, opener, range, unit_bytes)
    }

    /// Like [`open`](Self::open), with another view of the source.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_as(
        view: View,
        named: &Named,
        opener: &Opener,
        range: &Range<u64>,
        unit_bytes: u64,
    ) -> Result<Self> {
        let mut opened = view.open(named, opener)?;
        let version = Version::of(named, &opened)?;
        let range = opened.place().range(range)?;
        let source = opened.name().to_string();
        let name = named.name().unwrap_or_else(|| source.clone().into());
        let whole = Unit { name, source, version, range };
        Ok(SourceUnits { named: named.clone(), opened, whole, unit_bytes: unit_bytes.max(1) })
    }

    /// Opens the source of a unit to search that unit alone.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and [`Error::Changed`] if the source has another version now.
    pub fn of_unit(unit: &Unit, opener: &Opener) -> Result<Self> {
        let source = Self::found(View::Bytes, unit, &unit.name, opener)?;
        match source.whole == *unit {
            true => Ok(source),
            false => Err(Error::Changed { name: unit.source.clone() }),
        }
    }

    /// Like [`of_unit`](Self::of_unit), where this process finds the source by another name: a process in
    /// another folder needs an absolute path. Rows have the name of the unit.
    ///
    /// # Errors
    /// Those of [`of_unit`](Self::of_unit).
    pub fn of_unit_at(view: View, unit: &Unit, name: &OsStr, opener: &Opener) -> Result<Self> {
        let mut source = Self::found(view, unit, name, opener)?;
        let Unit { version, range, .. } = &source.whole;
        if *version != unit.version || *range != unit.range {
            return Err(Error::Changed { name: unit.source.clone() });
        }
        source.whole = unit.clone();
        Ok(source)
    }

    /// Opens a source to search the range of a unit alone.
    fn found(view: View, unit: &Unit, name: &OsStr, opener: &Opener) -> Result<Self> {
        let named = opener.only(name.to_os_string())?;
        Self::open_as(view, &named, opener, &unit.range, u64::MAX)
    }

    /// The name of the source in rows.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.whole.source
    }

    /// A notice that people should read before they trust the source's bytes: a line that begins
    /// with its name.
    #[must_use]
    pub fn notice_line(&self) -> Option<String> {
        self.opened.notice_line()
    }

    /// The source, as this process opens it.
    #[must_use]
    pub fn named(&self) -> &Named {
        &self.named
    }

    /// The number of units; 0 for an empty source.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self.whole.range.is_empty() {
            true => 0,
            false => (self.whole.range.end - 1) / self.unit_bytes - self.first() + 1,
        }
    }

    /// Whether there are no units.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The total size of all units in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.whole.bytes()
    }

    /// The unit with this number.
    #[must_use]
    pub fn unit(&self, number: u64) -> Unit {
        let border =
            |number: u64| self.first().saturating_add(number).saturating_mul(self.unit_bytes);
        let within = |offset: u64| offset.clamp(self.whole.range.start, self.whole.range.end);
        let range = within(border(number))..within(border(number.saturating_add(1)));
        Unit { range, ..self.whole.clone() }
    }

    /// All units, in order.
    pub fn units(&self) -> impl Iterator<Item = Unit> + '_ {
        (0..self.len()).map(|number| self.unit(number))
    }

    /// The number of whole units before the start of the range.
    fn first(&self) -> u64 {
        self.whole.range.start / self.unit_bytes
    }

    /// Whether reads cost requests, and may fail temporarily.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.opened, Opened::Remote(_) | Opened::FarImage { .. })
    }

    /// The place for a request to work on.
    pub fn place(&mut self) -> Place<'_> {
        self.opened.place()
    }

    /// The open source.
    pub(crate) fn opened(&mut self) -> &mut Opened {
        &mut self.opened
    }

    /// Checks that the source still has the version of its units.
    ///
    /// # Errors
    /// [`Error::Changed`].
    pub fn check_version(&self) -> Result<()> {
        match Version::of(&self.named, &self.opened)? == self.whole.version {
            true => Ok(()),
            false => Err(Error::Changed { name: self.whole.source.clone() }),
        }
    }
}
