//! Maps the columns of rows to patterns.

use std::collections::HashMap;

use quarrier_search::Pattern;

/// Finds patterns by text and name, the columns of rows. Several patterns may share both.
pub struct Labels<'p> {
    patterns: &'p [Pattern],
    /// The first pattern with each text and name.
    first: HashMap<(&'p str, Option<&'p str>), u32>,
    /// The first of the patterns that share text and name.
    twins: HashMap<u32, u32>,
}

impl<'p> Labels<'p> {
    /// Creates the labels of a pattern set.
    #[must_use]
    pub fn of(patterns: &'p [Pattern]) -> Self {
        let (mut first, mut twins) = (HashMap::new(), HashMap::new());
        for (index, pattern) in patterns.iter().enumerate() {
            let index = index as u32;
            let known = *first.entry((&*pattern.text, pattern.name.as_deref())).or_insert(index);
            if known != index {
                twins.insert(known, known);
                twins.insert(index, known);
            }
        }
        Labels { patterns, first, twins }
    }

    /// The text and name of a pattern.
    pub(crate) fn label(&self, pattern: u32) -> Option<(&'p str, Option<&'p str>)> {
        let pattern = self.patterns.get(pattern as usize)?;
        Some((pattern.text.as_str(), pattern.name.as_deref()))
    }

    /// The number of patterns.
    pub(crate) fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether several patterns share the text and name of this one.
    pub(crate) fn has_twin(&self, pattern: u32) -> bool {
        self.twins.contains_key(&pattern)
    }

    /// The pattern with this text and name. If there are several, `next_twin` decides.
    pub(crate) fn find(
        &self,
        text: &str,
        name: Option<&str>,
        next_twin: impl FnOnce() -> Option<u32>,
    ) -> Option<u32> {
        let first = *self.first.get(&(text, name))?;
        if !self.has_twin(first) {
            return Some(first);
        }
        next_twin().filter(|twin| self.twins.get(twin) == Some(&first))
    }
}
