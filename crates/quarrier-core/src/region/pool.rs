//! A bounded pool of buffers; a thread that needs one waits until one is free.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex};

use super::AlignedBuffer;
use crate::sync::{lock, wait};

/// A fixed set of items to lend: buffers, or permits to hold a window.
#[derive(Debug)]
pub struct BufferPool<T = AlignedBuffer> {
    free: Mutex<(Vec<T>, bool)>,
    returned: Condvar,
}

impl<T> BufferPool<T> {
    /// Makes a pool of these items.
    pub fn new(things: Vec<T>) -> Self {
        BufferPool { free: Mutex::new((things, false)), returned: Condvar::new() }
    }

    /// Waits for a free item. Returns `None` after [`close`](BufferPool::close).
    pub fn lend(&self) -> Option<Lease<'_, T>> {
        let mut free = lock(&self.free);
        loop {
            if free.1 {
                return None;
            }
            if let Some(thing) = free.0.pop() {
                return Some(Lease { pool: self, thing: Some(thing) });
            }
            free = wait(&self.returned, free);
        }
    }

    /// Lends a free item without waiting.
    pub fn try_lend(&self) -> Option<Lease<'_, T>> {
        let mut free = lock(&self.free);
        if free.1 {
            return None;
        }
        free.0.pop().map(|thing| Lease { pool: self, thing: Some(thing) })
    }

    /// Wakes all waiting threads, which get `None`; from now on the pool lends nothing.
    pub fn close(&self) {
        lock(&self.free).1 = true;
        self.returned.notify_all();
    }
}

/// A borrowed item. Dropping it returns it to the pool.
#[derive(Debug)]
pub struct Lease<'a, T = AlignedBuffer> {
    pool: &'a BufferPool<T>,
    thing: Option<T>,
}

impl<T> Deref for Lease<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.thing.as_ref().expect("present until dropped")
    }
}

impl<T> DerefMut for Lease<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.thing.as_mut().expect("present until dropped")
    }
}

impl<T> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        if let Some(thing) = self.thing.take() {
            lock(&self.pool.free).0.push(thing);
            self.pool.returned.notify_one();
        }
    }
}
