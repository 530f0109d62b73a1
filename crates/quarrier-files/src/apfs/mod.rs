//! APFS: a container with volumes, and a tree of files in each.
//!
//! Apple's *Apple File System Reference*. The latest checkpoint is read; `remains` lists the files that
//! only earlier checkpoints have as deleted. Snapshots are not listed.

mod container;
mod inode;
mod node;
mod remains;

use std::collections::HashSet;

use quarrier_core::name;

pub(crate) use container::{Container, is_apfs, superblock};

use container::{Tree, earlier};
use inode::{Files, Inode, Name, inode, names};

use crate::entry::{Entry, Kind, State};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, u32_at, u64_at};
use crate::walk::{Walk, joined_bytes, push_name};

const VOLUME: &[u8] = b"APSB";
const ROOT: u64 = 2;
const UNENCRYPTED: u64 = 1;
const CASE_INSENSITIVE: u64 = 0x1;
const NORMALIZED: u64 = 0x8;
const SEALED: u64 = 0x20;
/// Flag of object maps and trees whose object numbers are block numbers.
const PHYSICAL: u32 = 0x4000_0000;

/// A volume.
struct Volume {
    name: String,
    is_encrypted: bool,
    files: Files,
}

/// A folder still to list.
struct Folder {
    path: String,
    number: u64,
}

struct Lister<'l, 'p, 's> {
    part: &'p Part<'s>,
    container: &'l mut Container<'p, 's>,
    files: Files,
    /// Folders already visited.
    seen: HashSet<u64>,
    folders: Vec<Folder>,
}

/// Lists the container in `part`. If it has several volumes, each becomes a folder with the volume's
/// name.
///
/// # Errors
/// Errors of the walk. Damage and encrypted volumes are recorded in the walk and are not errors.
pub(crate) fn list(part: &Part<'_>, boot: &[u8; BOOT_BYTES], walk: &mut Walk<'_>) -> Result<()> {
    let mut container = Container::new(part, superblock(part, boot)?);
    let numbers = container.superblock().volumes.clone();
    let map = container.map_root(container.superblock().map)?;
    let (mut taken, mut volumes) = (HashSet::new(), Vec::new());
    for number in &numbers {
        let found = volume(part, &mut container, map, *number, walk);
        let volume = match found {
            Ok(volume) => volume,
            Err(error) => {
                walk.tolerate(Err(error))?;
                continue;
            }
        };
        if volume.is_encrypted {
            let what = format!("an encrypted APFS volume: {}", volume.name);
            walk.damaged(part, 0, &what);
            continue;
        }
        let mut prefix = String::new();
        if numbers.len() > 1 {
            prefix.push('/');
            push_name(&mut prefix, &volume.name);
            if !taken.insert(prefix.clone()) {
                prefix = format!("{prefix}~{number}");
            }
        }
        volumes.push(remains::Latest {
            number: *number,
            files: volume.files,
            prefix: prefix.clone(),
        });
        let mut lister = Lister {
            part,
            container: &mut container,
            files: volume.files,
            seen: HashSet::new(),
            folders: Vec::new(),
        };
        let listed = lister.volume(prefix, walk);
        walk.tolerate(listed)?;
    }
    if walk.deleted {
        let earlier = earlier(part, boot, container.superblock())?;
        remains::list(part, &mut container, &volumes, earlier, walk)?;
    }
    Ok(())
}

fn volume(
    part: &Part<'_>,
    container: &mut Container<'_, '_>,
    map: u64,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<Volume> {
    let wrong = || part.refused(0, "an APFS volume with impossible values");
    let block = container.block_of(map, number, walk)?.ok_or_else(wrong)?;
    let bytes = container.object(block, 1, "an APFS volume")?;
    if bytes.get(32..36) != Some(VOLUME) {
        return Err(wrong());
    }
    let name = bytes.get(704..960).unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let forms = u64_at(&bytes, 56);
    let is_encrypted = u64_at(&bytes, 264) & UNENCRYPTED == 0;
    let is_physical = u32_at(&bytes, 116) & PHYSICAL != 0;
    let own_map = match is_physical || is_encrypted {
        true => None,
        false => Some(container.map_root(u64_at(&bytes, 128))?),
    };
    Ok(Volume {
        name: name::of_bytes(name),
        is_encrypted,
        files: Files {
            tree: Tree { root: u64_at(&bytes, 136), map: own_map, sizes: None },
            has_hashes: forms & (CASE_INSENSITIVE | NORMALIZED) != 0,
            is_sealed: forms & SEALED != 0,
        },
    })
}

impl Lister<'_, '_, '_> {
    /// Lists a volume under the path `prefix`.
    fn volume(&mut self, prefix: String, walk: &mut Walk<'_>) -> Result<()> {
        let root = inode(self.part, self.container, self.files, ROOT, walk)?;
        let missing = || self.part.refused(0, "an APFS volume without a root directory");
        let root = root.filter(|root| root.kind == Kind::Folder).ok_or_else(missing)?;
        self.emit(prefix, ROOT, root, walk)?;
        while let Some(folder) = self.folders.pop() {
            let at = self.folders.len();
            let listed = self.folder(&folder, walk);
            walk.tolerate(listed)?;
            // Depth first: the first subfolder is listed next.
            self.folders[at..].reverse();
        }
        Ok(())
    }

    /// Emits a file or folder, and queues folders for listing.
    fn emit(&mut self, path: String, number: u64, inode: Inode, walk: &mut Walk<'_>) -> Result<()> {
        if inode.kind == Kind::Folder {
            if !self.seen.insert(number) {
                return Ok(());
            }
            self.folders.push(Folder { path: path.clone(), number });
        }
        let path = if path.is_empty() { "/".to_string() } else { path };
        let stream = inode.resource.map(|(size, content)| Entry {
            path: format!("{path}:rsrc"),
            inode: number,
            kind: Kind::File,
            state: State::Allocated,
            size,
            times: inode.times,
            access: inode.access,
            content,
        });
        walk.emit(Entry {
            path,
            inode: number,
            kind: inode.kind,
            state: State::Allocated,
            size: inode.size,
            times: inode.times,
            access: inode.access,
            content: inode.content,
        })?;
        stream.map_or(Ok(()), |stream| walk.emit(stream))
    }

    fn folder(&mut self, folder: &Folder, walk: &mut Walk<'_>) -> Result<()> {
        let mut found = Vec::new();
        let read = names(self.container, self.files, folder.number, walk, &mut found);
        for name in found {
            let named = self.name(folder, &name, walk);
            walk.tolerate(named)?;
        }
        read
    }

    fn name(&mut self, folder: &Folder, name: &Name, walk: &mut Walk<'_>) -> Result<()> {
        walk.step(self.part)?;
        let Some(path) = joined_bytes(&folder.path, &name.name) else {
            walk.damaged(self.part, 0, "folders nested too deeply");
            return Ok(());
        };
        match inode(self.part, self.container, self.files, name.number, walk)? {
            Some(inode) => self.emit(path, name.number, inode, walk),
            None => {
                walk.damaged(self.part, 0, &format!("{path}: its inode is missing"));
                Ok(())
            }
        }
    }
}
