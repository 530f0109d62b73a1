//! Finds the storage of each directory entry.
//!
//! MS-CFB 2.6.4: the entries of a storage form a tree of siblings, and the storage refers to its
//! root as its child. Documents embedded in others are storages with streams of the same names as
//! those of the outer document.

/// No entry.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The entries to which an entry refers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    /// Its left and right sibling in the tree of its storage.
    pub(super) siblings: [u32; 2],
    /// For a storage: the root of the tree of its entries.
    pub(super) child: u32,
}

/// Returns the storage of each entry, by index; [`NOWHERE`] for the root, and for entries without a
/// storage. An entry in several storages belongs to the first one.
pub(super) fn of(links: &[Links]) -> Vec<u32> {
    let mut storages = vec![NOWHERE; links.len()];
    let mut is_seen = vec![false; links.len()];
    if let Some(root) = is_seen.first_mut() {
        *root = true;
    }
    let mut waiting: Vec<(u32, u32)> =
        links.first().map(|root| (root.child, 0)).into_iter().collect();
    while let Some((entry, storage)) = waiting.pop() {
        let Some(one) = links.get(entry as usize) else { continue };
        if std::mem::replace(&mut is_seen[entry as usize], true) {
            continue;
        }
        storages[entry as usize] = storage;
        waiting.push((one.child, entry));
        waiting.extend(one.siblings.map(|sibling| (sibling, storage)));
    }
    storages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_belong_to_the_storage_whose_tree_they_are_in() {
        let links = |left, right, child| Links { siblings: [left, right], child };
        let none = NOWHERE;
        let all = [
            links(none, none, 2),
            links(none, none, none),
            links(1, 3, none),
            links(none, none, 4),
            links(none, none, none),
            links(none, none, none),
        ];
        assert_eq!(of(&all), [none, 0, 0, 0, 3, none]);
    }

    #[test]
    fn circles_and_links_to_nowhere_come_to_an_end() {
        let links = |left, right, child| Links { siblings: [left, right], child };
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[links(0, 0, 0)]), [NOWHERE]);
        assert_eq!(of(&[links(1, 1, 1), links(1, 0, 1), links(9, 2, 2)]), [NOWHERE, 0, NOWHERE]);
    }
}
