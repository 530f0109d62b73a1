//! Chooses the engine for each group of patterns, with a reason.

use std::fmt;
use std::ops::Range;

use quarrier_core::isa::Isa;

use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::multi::{GramEngine, Haystack, PackedEngine};
use crate::naive;
use crate::pattern::Needles;
use crate::sample::Sample;
use crate::wanted::Wanted;

/// An engine, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineName {
    /// The engine with the least expected cost.
    Auto,
    /// Every position, every pattern. The oracle.
    Naive,
    /// One literal, by the memchr crate (its rarest two bytes, vectorised).
    Memmem,
    /// Hashed windows; portable.
    Gram,
    /// The packed filter with AVX2.
    PackedAvx2,
    /// The packed filter with AVX-512.
    PackedAvx512,
    /// The packed filter with NEON.
    PackedNeon,
}

impl EngineName {
    /// All engines that can be requested.
    pub const ALL: [EngineName; 7] = [
        EngineName::Auto,
        EngineName::PackedAvx512,
        EngineName::PackedAvx2,
        EngineName::PackedNeon,
        EngineName::Gram,
        EngineName::Memmem,
        EngineName::Naive,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EngineName::Auto => "auto",
            EngineName::Naive => "naive",
            EngineName::Memmem => "memmem",
            EngineName::Gram => "gram",
            EngineName::PackedAvx2 => "packed-avx2",
            EngineName::PackedAvx512 => "packed-avx512",
            EngineName::PackedNeon => "packed-neon",
        }
    }

    /// Whether this machine supports it.
    pub fn is_available(self) -> bool {
        match self {
            EngineName::PackedAvx2 => Isa::Avx2.is_available(),
            EngineName::PackedAvx512 => Isa::Avx512.is_available(),
            EngineName::PackedNeon => Isa::Neon.is_available(),
            _ => true,
        }
    }
}

impl std::str::FromStr for EngineName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        EngineName::ALL.into_iter().find(|engine| engine.name() == text).ok_or_else(|| {
            let names: Vec<_> = EngineName::ALL.iter().map(|engine| engine.name()).collect();
            Error::Engine(format!("unknown engine '{text}'; the engines are: {}", names.join(", ")))
        })
    }
}

/// The engine for the needles of a set.
pub(crate) enum Literals {
    /// The set has none.
    None,
    Naive,
    Memmem(Box<memchr::memmem::Finder<'static>>),
    Gram(GramEngine),
    Packed(Box<PackedEngine>),
}

impl Literals {
    /// Returns the greatest distance from a finding's start that the engine examines.
    pub(crate) fn reach(&self) -> usize {
        match self {
            Literals::Packed(engine) => engine.anchor_offset_max(),
            Literals::Gram(engine) => engine.anchor_offset_max(),
            Literals::None | Literals::Naive | Literals::Memmem(_) => 0,
        }
    }

    /// Adds the needles with an anchor in `positions`.
    pub(crate) fn scan(
        &self,
        needles: &Needles,
        hay: &Haystack<'_>,
        positions: Range<usize>,
        found: &mut Vec<Finding>,
    ) {
        // Engines without anchors examine starts; those after `own` belong to other chunks.
        let starts = positions.start..positions.end.min(hay.own.end);
        match self {
            Literals::None => {}
            Literals::Packed(engine) => engine.scan(needles, hay, positions, found),
            Literals::Gram(engine) => engine.scan(needles, hay, positions, found),
            Literals::Naive => naive::search(needles, hay.text, starts, |finding| {
                found.push(Finding { offset: finding.offset + hay.offset, ..finding });
            }),
            Literals::Memmem(finder) => {
                let (mut from, length) = (starts.start, finder.needle().len());
                let end = hay.text.len().min(starts.end + length - 1);
                while let Some(at) = hay.text.get(from..end).and_then(|text| finder.find(text)) {
                    let pattern = needles.get(0).pattern;
                    found.push(hay.finding(from + at, pattern, length));
                    from += at + 1;
                }
            }
        }
    }
}

/// One line of the explanation: the number of patterns, their engine, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The number of patterns, or of forms of them: UTF-16 counts separately.
    pub patterns: usize,
    /// The engine's name.
    pub engine: &'static str,
    /// Why the engine was chosen.
    pub reason: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pattern(s): {}: {}", self.patterns, self.engine, self.reason)
    }
}

/// Chooses and builds the engine for `needles`.
pub(crate) fn choose(
    needles: &Needles,
    requested: EngineName,
    sample: &Sample,
    wanted: Wanted<'_>,
) -> Result<(Literals, Vec<Choice>)> {
    if needles.is_empty() {
        return Ok((Literals::None, Vec::new()));
    }
    let explain = |engine, reason: String| vec![Choice { patterns: needles.len(), engine, reason }];
    let packed = |isa: Isa| {
        PackedEngine::new(needles, isa, sample, wanted)?.ok_or_else(|| {
            Error::Engine(format!("this CPU cannot run the engine '{}'", requested.name()))
        })
    };
    Ok(match requested {
        EngineName::Naive => (Literals::Naive, explain("naive", "requested".to_string())),
        EngineName::Memmem => {
            let finder = memmem(needles).ok_or_else(|| {
                Error::Engine("the engine 'memmem' serves one literal without wildcards".into())
            })?;
            (finder, explain("memmem", "requested".to_string()))
        }
        EngineName::Gram => {
            let engine = GramEngine::new(needles, sample, wanted)?;
            let reason = format!("requested; {}", engine.describe());
            (Literals::Gram(engine), explain("gram", reason))
        }
        EngineName::PackedAvx2 => by_packed(packed(Isa::Avx2)?, "requested", needles),
        EngineName::PackedAvx512 => by_packed(packed(Isa::Avx512)?, "requested", needles),
        EngineName::PackedNeon => by_packed(packed(Isa::Neon)?, "requested", needles),
        EngineName::Auto => auto(needles, sample, wanted)?,
    })
}

fn by_packed(engine: PackedEngine, why: &str, needles: &Needles) -> (Literals, Vec<Choice>) {
    let name = match engine.isa {
        Isa::Avx512 => EngineName::PackedAvx512,
        Isa::Neon => EngineName::PackedNeon,
        _ => EngineName::PackedAvx2,
    };
    let reason = format!(
        "{why}; {} bytes of each anchor are filtered, {:.3} % of a sample's positions pass",
        engine.width,
        100.0 * engine.passing
    );
    let choice = Choice { patterns: needles.len(), engine: name.name(), reason };
    (Literals::Packed(Box::new(engine)), vec![choice])
}

/// Chooses the engine with the least expected cycles on the sample.
fn auto(needles: &Needles, sample: &Sample, wanted: Wanted<'_>) -> Result<(Literals, Vec<Choice>)> {
    if let Some(finder) = memmem(needles)
        && Isa::best() != Isa::Avx512
        && is_rare(&finder, sample)
    {
        let reason = "one literal, rare in a sample of the source".to_string();
        return Ok((finder, vec![Choice { patterns: 1, engine: "memmem", reason }]));
    }
    let Some(packed) = PackedEngine::new(needles, Isa::best(), sample, wanted)? else {
        if let Some(finder) = memmem(needles) {
            let reason = "one literal, and no packed filter on this CPU".to_string();
            return Ok((finder, vec![Choice { patterns: 1, engine: "memmem", reason }]));
        }
        let engine = GramEngine::new(needles, sample, wanted)?;
        let reason = format!("no packed filter on this CPU; {}", engine.describe());
        let choice = Choice { patterns: needles.len(), engine: "gram", reason };
        return Ok((Literals::Gram(engine), vec![choice]));
    };
    // No other engine beats a filter that passes almost nothing, and building one to compare costs
    // time.
    if packed.passing > 0.01 {
        let gram = GramEngine::new(needles, sample, wanted)?;
        let (by_gram, by_packed) = (gram.cycles(sample), packed.cycles());
        if by_gram < by_packed {
            let reason = format!(
                "{:.1} cycles for 64 bytes expected, where the packed filter would take {:.1}; {}",
                by_gram,
                by_packed,
                gram.describe()
            );
            let choice = Choice { patterns: needles.len(), engine: "gram", reason };
            return Ok((Literals::Gram(gram), vec![choice]));
        }
    }
    Ok(by_packed(packed, "least expected cost", needles))
}

/// Whether a literal occurs less than once in 16 KiB: `memmem` restarts after each finding. With AVX-512, which it
/// does not use, the packed filter is 1.5 times as fast (two cores of an Intel Xeon, 1 GiB in memory).
fn is_rare(finder: &Literals, sample: &Sample) -> bool {
    let Literals::Memmem(finder) = finder else { return false };
    let most = sample.bytes().len() / (16 << 10);
    finder.find_iter(sample.bytes()).nth(most).is_none()
}

fn memmem(needles: &Needles) -> Option<Literals> {
    let only = needles.get(0);
    (needles.len() == 1 && only.is_exact)
        .then(|| Literals::Memmem(Box::new(memchr::memmem::Finder::new(only.value).into_owned())))
}
