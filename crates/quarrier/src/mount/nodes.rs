//! The names of a tree, and the location of the bytes of each.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::time::{Duration, SystemTime};

use quarrier_core::source::Source;
use quarrier_files::{Entry, FileContent, Kind, harmless};

use super::{FILE, ROOT};

/// Maximum number of names to try if one is taken.
const TRIES_MAX: u32 = 1000;
/// Maximum memory of the nodes.
const BYTES_MAX: usize = 2 << 30;
/// An upper bound for the memory of a node without its name and its runs.
const NODE_BYTES: usize = 512;
/// The memory of a run or a compressed piece of a file.
const RUN_BYTES: usize = 64;

/// The content of a node.
pub(super) enum Content {
    /// The inodes in a folder, by their names.
    Folder(Vec<u64>),
    /// The bytes of the source.
    Source,
    /// A file of a file system.
    File(FileContent),
    /// A file of this size whose bytes cannot be read, and the reason.
    Lost(u64, String),
}

pub(super) struct Node {
    pub(super) parent: u64,
    pub(super) name: OsString,
    pub(super) modified: SystemTime,
    pub(super) content: Content,
}

/// All nodes; the inode is the index plus one.
pub(super) struct Nodes(Vec<Node>);

impl Nodes {
    /// A root with the file of a source.
    pub(super) fn new(name: OsString, modified: SystemTime, mounted: SystemTime) -> Self {
        let root = Node {
            parent: ROOT,
            name: OsString::new(),
            modified: mounted,
            content: Content::Folder(vec![FILE]),
        };
        let file = Node { parent: ROOT, name, modified, content: Content::Source };
        Nodes(vec![root, file])
    }

    pub(super) fn get(&self, inode: u64) -> Option<&Node> {
        self.0.get(usize::try_from(inode.checked_sub(1)?).ok()?)
    }

    fn get_mut(&mut self, inode: u64) -> Option<&mut Node> {
        self.0.get_mut(usize::try_from(inode.checked_sub(1)?).ok()?)
    }

    /// The inodes in a folder; `None` for another node.
    pub(super) fn children(&self, inode: u64) -> Option<&[u64]> {
        match &self.get(inode)?.content {
            Content::Folder(children) => Some(children),
            _ => None,
        }
    }

    pub(super) fn name(&self, inode: u64) -> &OsStr {
        self.get(inode).map_or(OsStr::new(""), |node| &node.name)
    }

    /// The node with this name in a folder.
    pub(super) fn child(&self, folder: u64, name: &OsStr) -> Option<u64> {
        let children = self.children(folder)?;
        let found = children.binary_search_by(|&child| self.name(child).cmp(name)).ok()?;
        Some(children[found])
    }

    /// The path from the root, for messages.
    pub(super) fn path(&self, inode: u64) -> String {
        let (mut names, mut at) = (Vec::new(), inode);
        while at != ROOT
            && let Some(node) = self.get(at)
        {
            names.push(node.name.to_string_lossy());
            at = node.parent;
        }
        names.reverse();
        names.join("/")
    }
}

/// Adds the entries of file systems to nodes.
pub(super) struct Planter {
    nodes: Nodes,
    /// Inodes by folder and name.
    known: HashMap<(u64, OsString), u64>,
    bytes: usize,
    mounted: SystemTime,
}

impl Planter {
    pub(super) fn new(nodes: Nodes, mounted: SystemTime) -> Self {
        let known = HashMap::from([((ROOT, nodes.name(FILE).to_os_string()), FILE)]);
        Planter { nodes, known, bytes: 0, mounted }
    }

    /// Whether the nodes take more memory than they may.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX
    }

    /// Returns the subfolder with this name, and creates it if it is missing. If a file has the name, the
    /// subfolder gets another one.
    pub(super) fn folder(&mut self, parent: u64, name: &str) -> u64 {
        let mut tried = OsString::from(name);
        loop {
            match self.known.get(&(parent, tried.clone())) {
                Some(&inode) if self.nodes.children(inode).is_some() => return inode,
                Some(_) => tried.push("~folder"),
                None => return self.add(parent, tried, Content::Folder(Vec::new())),
            }
        }
    }

    /// Adds an entry of a file system whose root is `top`; leaves out devices and the like.
    pub(super) fn entry(&mut self, source: &dyn Source, top: u64, entry: Entry) {
        let mut names: Vec<String> =
            entry.path.split('/').filter(|name| !name.is_empty()).map(harmless).collect();
        let modified = entry.times.modified.and_then(time);
        let name = match entry.kind {
            Kind::Folder => None,
            Kind::File | Kind::Link => names.pop(),
            Kind::Other => return,
        };
        let folder = names.iter().fold(top, |folder, name| self.folder(folder, name));
        let inode = match name {
            None => folder,
            Some(name) => {
                let Some(name) = self.free_name(folder, name, entry.inode) else { return };
                let Entry { size, ref content, .. } = entry;
                self.bytes += RUN_BYTES * (content.runs.len() + content.pieces.len())
                    + content.inline.as_ref().map_or(0, |inline| inline.len());
                let content = FileContent::new(source, entry)
                    .map_or_else(|error| Content::Lost(size, error.to_string()), Content::File);
                self.add(folder, name, content)
            }
        };
        if let (Some(node), Some(modified)) = (self.nodes.get_mut(inode), modified) {
            node.modified = modified;
        }
    }

    /// Returns the name of a file, with its inode appended if the name is taken.
    fn free_name(&self, folder: u64, name: String, inode: u64) -> Option<OsString> {
        let mut tried = OsString::from(&name);
        for number in 0..TRIES_MAX {
            let key = (folder, tried);
            if !self.known.contains_key(&key) {
                return Some(key.1);
            }
            tried = match number {
                0 => format!("{name}~{inode}").into(),
                _ => format!("{name}~{inode}-{number}").into(),
            };
        }
        None
    }

    fn add(&mut self, parent: u64, name: OsString, content: Content) -> u64 {
        self.bytes += NODE_BYTES + 2 * name.len();
        let (all, modified) = (&mut self.nodes.0, self.mounted);
        all.push(Node { parent, name: name.clone(), modified, content });
        let inode = all.len() as u64;
        self.known.insert((parent, name), inode);
        if let Some(Content::Folder(children)) =
            self.nodes.get_mut(parent).map(|node| &mut node.content)
        {
            children.push(inode);
        }
        inode
    }

    /// The nodes, with the children of each folder in order.
    pub(super) fn finish(mut self) -> Nodes {
        for index in 0..self.nodes.0.len() {
            let Content::Folder(children) = &mut self.nodes.0[index].content else { continue };
            let mut children = std::mem::take(children);
            children.sort_by(|&one, &two| self.nodes.name(one).cmp(self.nodes.name(two)));
            self.nodes.0[index].content = Content::Folder(children);
        }
        self.nodes
    }
}

/// A time in nanoseconds since 1970; `None` if this system cannot represent it.
fn time(nanoseconds: i64) -> Option<SystemTime> {
    let length = Duration::from_nanos(nanoseconds.unsigned_abs());
    match nanoseconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(length),
        false => SystemTime::UNIX_EPOCH.checked_add(length),
    }
}

#[cfg(test)]
mod tests {
    use quarrier_core::source::Memory;
    use quarrier_files::{Content as FileBytes, State, Times};

    use super::*;

    fn entry(path: &str, kind: Kind, inode: u64) -> Entry {
        let times = Times { modified: Some(1_500_000_000), ..Times::default() };
        let content = FileBytes { inline: Some(b"abc".as_slice().into()), ..FileBytes::default() };
        let state = State::Allocated;
        let (path, access) = (path.to_string(), Default::default());
        Entry { path, inode, kind, state, size: 3, times, access, content }
    }

    /// The paths of all nodes below the root, after checking that each is found by its name.
    fn paths(entries: &[Entry]) -> Vec<String> {
        let mounted = SystemTime::UNIX_EPOCH;
        let mut planter = Planter::new(Nodes::new("files".into(), mounted, mounted), mounted);
        let (source, top) = (Memory::new("disk", vec![0; 4096]), planter.folder(ROOT, "files"));
        entries.iter().for_each(|one| planter.entry(&source, top, one.clone()));
        let nodes = planter.finish();
        let all = 2..=nodes.0.len() as u64;
        all.map(|inode| {
            let parent = nodes.get(inode).unwrap().parent;
            assert_eq!(nodes.child(parent, nodes.name(inode)), Some(inode));
            assert_eq!(nodes.child(inode, OsStr::new("no such name")), None);
            nodes.path(inode)
        })
        .collect()
    }

    #[test]
    fn every_entry_has_a_name_of_its_own_below_its_folder() {
        use Kind::{File, Folder, Link, Other};
        let entries = [
            ("/", Folder),
            ("/b", Folder),
            ("/b/x", File),
            ("/b/x", File),
            ("/b/x", Link),
            ("/b/x/in a file", File),
            ("/b/..", File),
            ("/a", File),
            ("/$OrphanFiles/lost", File),
            ("/pipe", Other),
            ("/b", Folder),
        ];
        let entries: Vec<Entry> =
            entries.iter().map(|(path, kind)| entry(path, *kind, 7)).collect();
        let expected = [
            "files",
            "files~folder",
            "files~folder/b",
            "files~folder/b/x",
            "files~folder/b/x~7",
            "files~folder/b/x~7-1",
            "files~folder/b/x~folder",
            "files~folder/b/x~folder/in a file",
            "files~folder/b/___",
            "files~folder/a",
            "files~folder/$OrphanFiles",
            "files~folder/$OrphanFiles/lost",
        ];
        assert_eq!(paths(&entries), expected);
    }

    #[test]
    fn times_before_1970_are_represented() {
        let seconds = Duration::from_secs(2);
        assert_eq!(time(-2_000_000_000), SystemTime::UNIX_EPOCH.checked_sub(seconds));
        assert_eq!(time(2_000_000_000), SystemTime::UNIX_EPOCH.checked_add(seconds));
    }

    #[test]
    fn the_memory_of_the_nodes_is_bounded() {
        let mounted = SystemTime::UNIX_EPOCH;
        let mut planter = Planter::new(Nodes::new("f".into(), mounted, mounted), mounted);
        let source = Memory::new("disk", vec![0; 4096]);
        let mut big = entry("/f", Kind::File, 1);
        big.content.inline = Some(vec![0; 1 << 20].into());
        let mut count = 0;
        while !planter.is_full() && count < 10_000 {
            big.path = format!("/{count}");
            // Its bytes count, even if it cannot be read.
            big.content.lost = Some("gone");
            planter.entry(&source, ROOT, big.clone());
            count += 1;
        }
        assert!((1000..3000).contains(&count), "{count}");
    }
}
