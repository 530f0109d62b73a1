//! The writer's thread, like `src/log/writer.rs`: writes, publishes, acknowledges, and releases the
//! space.

use std::ops::Range;

use crate::queue::Queue;
use crate::steps::Horizon;
use crate::sync::{Mutex, lock};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) marks: Range<u64>,
}

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) messages: Vec<u8>,
}

pub(crate) fn write(queue: &Queue, disk: &Mutex<Disk>) {
    while let Some(items) = queue.take() {
        let first = {
            let mut disk = lock(disk);
            let first = disk.messages.len() as u64 + 1;
            disk.messages.extend(items.iter().map(|item| item.sealed.header.message));
            first
        };
        let end = first + items.len() as u64;
        queue.publish(Some(Horizon { end: end - 1 }), end, true);
        for (item, mark) in items.iter().zip(first..) {
            item.reply.give(Ok(Committed { marks: mark..mark + 1 }));
        }
        queue.give_back(&items);
    }
}
