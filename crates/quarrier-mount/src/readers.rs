//! Threads that read bytes, so that requests about names need not wait for a slow source.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use fuser::{Errno, ReplyData};
use quarrier::mount::{Fault, Tree};
use quarrier_core::sync::lock;
use quarrier_core::threads;

/// Maximum number of bytes that the kernel may request at once.
pub(crate) const READ_BYTES_MAX: u32 = 1 << 20;
/// The number of threads: more than the concurrent requests of a remote source, since some reads only
/// wait for bytes that other reads requested.
pub(crate) const READERS: usize = 16;
/// Maximum number of reads that wait for a thread. Each belongs to a thread of another program, or to a
/// read-ahead of the kernel; if there are more, other requests wait, too.
const WAITING_MAX: usize = 1024;

/// A read that the kernel waits for.
struct Job {
    inode: u64,
    offset: u64,
    size: u32,
    reply: ReplyData,
}

/// Sends reads to the threads, which end when it is dropped.
pub(crate) struct Readers {
    jobs: SyncSender<Job>,
}

impl Readers {
    /// Starts the threads, as many as the system allows.
    ///
    /// # Errors
    /// The system's error if it allows none.
    pub(crate) fn start(tree: &Arc<Tree>) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..READERS {
            let (tree, waiting) = (Arc::clone(tree), Arc::clone(&waiting));
            match threads::alone(&format!("mount {number}"), move || work(&tree, &waiting)) {
                Ok(_) => {}
                Err(error) if number == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(Readers { jobs })
    }

    /// Queues a read for the threads, one of which replies.
    pub(crate) fn read(&self, inode: u64, offset: u64, size: u32, reply: ReplyData) {
        // If all threads have ended, the reply is an error.
        if let Err(refused) = self.jobs.send(Job { inode, offset, size, reply }) {
            refused.0.reply.error(Errno::EIO);
        }
    }
}

/// Reads until no more jobs can come.
fn work(tree: &Tree, waiting: &Mutex<Receiver<Job>>) {
    let mut buffer = Vec::new();
    loop {
        // This thread waits for a job while it holds the lock; the other threads wait for the lock.
        let job = lock(waiting).recv();
        let Ok(Job { inode, offset, size, reply }) = job else { return };
        if size > READ_BYTES_MAX {
            // The kernel agreed to smaller reads, and would show a short answer as zeros.
            reply.error(Errno::EIO);
            continue;
        }
        let size = size as usize;
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        match tree.read(inode, offset, &mut buffer[..size]) {
            Ok(bytes) => reply.data(&buffer[..bytes]),
            Err(fault) => reply.error(errno(fault)),
        }
    }
}

pub(crate) fn errno(fault: Fault) -> Errno {
    Errno::from_i32(fault.errno())
}
