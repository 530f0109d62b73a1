//! Answers the requests of the kernel.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, Request,
};
use quarrier::mount::{Attributes, NodeKind, Tree};
use rustix::process::{getgid, getuid};

use crate::readers::{READ_BYTES_MAX, READERS, Readers, errno};

/// How long the kernel may cache names and attributes, which never change.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const BLOCK_BYTES: u32 = 4096;
const NAME_BYTES_MAX: u32 = 255;
/// `lseek` to the next data, and to the next hole.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// A tree and the threads that read from it.
pub(crate) struct Requests {
    pub(crate) tree: Arc<Tree>,
    pub(crate) readers: Readers,
}

impl Requests {
    fn reply_entry(reply: ReplyEntry, attributes: &Attributes) {
        reply.entry(&KEPT, &file_attr(attributes), Generation(0));
    }
}

impl Filesystem for Requests {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The larger of these two values limits a read. The kernel may have lower limits.
        let _ = config.set_max_write(READ_BYTES_MAX);
        if let Err(most) = config.set_max_readahead(READ_BYTES_MAX) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_background(READERS as u16);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.tree.lookup(parent.0, name) {
            Ok(attributes) => Self::reply_entry(reply, &attributes),
            Err(fault) => reply.error(errno(fault)),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree.attributes(inode.0) {
            Ok(attributes) => reply.attr(&KEPT, &file_attr(&attributes)),
            Err(fault) => reply.error(errno(fault)),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = match self.tree.is_fixed() {
            true => FopenFlags::FOPEN_KEEP_CACHE,
            false => FopenFlags::empty(),
        };
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.readers.read(inode.0, offset, size, reply);
    }

    fn lseek(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let Ok(from) = u64::try_from(offset) else { return reply.error(fuser::Errno::ENXIO) };
        let found = match whence {
            SEEK_DATA => self.tree.next_data(inode.0, from),
            SEEK_HOLE => self.tree.next_hole(inode.0, from),
            _ => return reply.error(fuser::Errno::EINVAL),
        };
        match found.map(i64::try_from) {
            Ok(Ok(offset)) => reply.offset(offset),
            Ok(Err(_)) => reply.error(fuser::Errno::EOVERFLOW),
            Err(fault) => reply.error(errno(fault)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let children = match self.tree.children(inode.0) {
            Ok(children) => children,
            Err(fault) => return reply.error(errno(fault)),
        };
        let parent = self.tree.parent(inode.0);
        let dots = [
            (inode.0, FileType::Directory, OsStr::new(".")),
            (parent, FileType::Directory, OsStr::new("..")),
        ];
        let children = children.map(|child| (child.inode, file_type(child.kind), child.name));
        let all = dots.into_iter().chain(children).zip(1..);
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        for ((inode, kind, name), next) in all.skip(skipped) {
            if reply.add(INodeNo(inode), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.tree.length().div_ceil(u64::from(BLOCK_BYTES));
        reply.statfs(blocks, 0, 0, 0, 0, BLOCK_BYTES, NAME_BYTES_MAX, BLOCK_BYTES);
    }
}

fn file_type(kind: NodeKind) -> FileType {
    match kind {
        NodeKind::Folder => FileType::Directory,
        NodeKind::File => FileType::RegularFile,
    }
}

fn file_attr(attributes: &Attributes) -> FileAttr {
    let Attributes { inode, kind, size, modified } = *attributes;
    let (perm, nlink) = match kind {
        NodeKind::Folder => (0o555, 2),
        NodeKind::File => (0o444, 1),
    };
    FileAttr {
        ino: INodeNo(inode),
        size,
        blocks: size.div_ceil(512),
        atime: modified,
        mtime: modified,
        ctime: modified,
        crtime: modified,
        kind: file_type(kind),
        perm,
        nlink,
        uid: getuid().as_raw(),
        gid: getgid().as_raw(),
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}
