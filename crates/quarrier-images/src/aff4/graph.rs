//! The RDF description of an AFF4 image: its objects, with types and properties.

use std::collections::BTreeMap;

use quarrier_core::Result;
use quarrier_core::source::Source;

use super::container::Container;
use super::turtle::{self, Term};
use crate::fault::{damaged, refused};

/// The namespace of the standard.
pub(super) const SCHEMA: &str = "http://aff4.org/Schema#";
/// The namespace used before the standard.
const SCHEMA_BEFORE: &str = "http://afflib.org/2009/aff4#";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
/// The properties needed to read a disk; others, about the case and the acquisition, are dropped.
const PROPERTIES: [&str; 8] = [
    "chunkSize",
    "chunksInSegment",
    "compressionMethod",
    "dataStream",
    "hash",
    "mapGapDefaultStream",
    "size",
    "stored",
];
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of statements. A disk needs a few dozen; a logical image of eight thousand files
/// reaches the limit.
const STATEMENTS_MAX: usize = 1 << 16;

/// The objects of an image, by URN.
pub(super) struct Graph {
    things: BTreeMap<String, Thing>,
}

/// The properties of a subject.
#[derive(Default)]
pub(super) struct Thing {
    types: Vec<String>,
    /// Keyed by their names in the standard's namespace.
    properties: Vec<(&'static str, Term)>,
}

impl Graph {
    /// Reads the description of the image in `file`.
    pub(super) fn read(file: &dyn Source, container: &Container) -> Result<Graph> {
        let name = "information.turtle";
        let at = container.needed(file, name, name)?.header_at;
        let text = container.small(file, name, name, TEXT_BYTES_MAX)?;
        let text = String::from_utf8_lossy(&text);
        let text = text.trim_start_matches('\u{FEFF}');
        let mut graph = Graph { things: BTreeMap::new() };
        let (mut statements, mut is_too_long) = (0, false);
        let read = turtle::read(text, &mut |subject, predicate, object| {
            statements += usize::from(graph.add(subject, predicate, object));
            is_too_long = statements > STATEMENTS_MAX;
            if is_too_long { Err(String::new()) } else { Ok(()) }
        });
        match read {
            _ if is_too_long => Err(refused(
                file,
                "describes more things than a disk image has, as a logical AFF4 image of many \
                 files does; export the files from it",
            )),
            Ok(()) => Ok(graph),
            Err((byte, reason)) => {
                let reason = format!("{name} cannot be read at its byte {byte}: {reason}");
                Err(damaged(file, at, reason))
            }
        }
    }

    /// Adds a statement if it is needed.
    fn add(&mut self, subject: &str, predicate: &str, object: Term) -> bool {
        if predicate == TYPE {
            let Term::Iri(kind) = object else { return false };
            self.thing(subject).types.push(kind);
            return true;
        }
        let Some(property) = predicate.strip_prefix(SCHEMA) else { return false };
        let Some(known) = PROPERTIES.into_iter().find(|known| *known == property) else {
            return false;
        };
        self.thing(subject).properties.push((known, object));
        true
    }

    fn thing(&mut self, urn: &str) -> &mut Thing {
        self.things.entry(urn.to_string()).or_default()
    }

    /// The object with this URN, if it has any statements.
    pub(super) fn get(&self, urn: &str) -> Option<&Thing> {
        self.things.get(urn)
    }

    /// The objects of a standard type, with their URNs, sorted by URN.
    pub(super) fn of_type<'g>(&'g self, kind: &str) -> impl Iterator<Item = (&'g str, &'g Thing)> {
        let things = self.things.iter().filter(move |(_, thing)| thing.is(kind));
        things.map(|(urn, thing)| (urn.as_str(), thing))
    }

    /// Whether any object predates the standard: the earlier namespace of AFF4's authors, or pmem's
    /// lower-case type names.
    pub(super) fn is_before_standard(&self) -> bool {
        let is_before = |kind: &String| {
            kind.starts_with(SCHEMA_BEFORE)
                || matches!(kind.strip_prefix(SCHEMA), Some("map" | "image" | "stream"))
        };
        self.things.values().any(|thing| thing.types.iter().any(is_before))
    }
}

impl Thing {
    /// Whether it has this standard type.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.types.iter().any(|found| found.strip_prefix(SCHEMA) == Some(kind))
    }

    /// All values of a property.
    pub(super) fn all<'t>(&'t self, property: &str) -> impl Iterator<Item = &'t Term> {
        let found = self.properties.iter().filter(move |(name, _)| *name == property);
        found.map(|(_, value)| value)
    }

    /// The first value of a property that is an IRI.
    pub(super) fn iri(&self, property: &str) -> Option<&str> {
        self.all(property).find_map(|value| match value {
            Term::Iri(iri) => Some(iri.as_str()),
            _ => None,
        })
    }

    /// The first value of a property, as a number; the inner option is `None` if it is not a number.
    pub(super) fn number(&self, property: &str) -> Option<Option<u64>> {
        self.all(property).next().map(|value| match value {
            Term::Literal { text, .. } => text.trim().parse().ok(),
            _ => None,
        })
    }
}
