//! A slot of a device: its own queue, and buffers for the findings.

use std::time::Instant;

use quarrier_core::pipeline::Chunk;
use quarrier_gpu::kernels::{BITMAP_BITS, FLOOD, SEARCH, SEARCH_CONSTANTS};
use quarrier_gpu::{Buffer, Device, Error, Job, Kernel, Kind, Queue, Result, Times};

use super::tables::Tables;

/// Initial capacity of a slot, in findings.
const CAPACITY: u32 = 1 << 16;
/// Findings to read along with their count, so that a few of them need no second transfer.
const AT_ONCE: usize = 1024;
/// Consecutive blocks of 16 bytes for a work item on a CPU: 64 KiB stay in its cache.
const CPU_TILE_BLOCKS: u32 = 4096;
const GPU_ITEMS: u32 = 256;
const BYTES_A_FINDING: usize = 8;

/// A device, with the tables in its memory.
pub(super) struct Site {
    pub(super) device: Device,
    kernel: Kernel,
    bitmap: Buffer,
    filter: Buffer,
    heads: Buffer,
    entries: Buffer,
    values: Buffer,
    masks: Buffer,
    items: u32,
    groups_max: u32,
    tile_blocks: u32,
}

impl Site {
    pub(super) fn new(device: &Device, tables: &Tables) -> Result<Self> {
        let facts = device.facts();
        let needed = 4 << BITMAP_BITS;
        if facts.local_bytes < needed {
            let what = format!("has {} bytes of local memory, not {needed}", facts.local_bytes);
            return Err(Error::Failed { device: facts.to_string(), what });
        }
        let (items, groups_max, tile_blocks) = match facts.kind {
            Kind::Cpu => (1, 4 * facts.units, CPU_TILE_BLOCKS),
            _ => {
                let items = GPU_ITEMS.min(facts.items_max);
                (items, 6 * facts.units, 4 * items)
            }
        };
        let kernel = device.compile(&SEARCH, SEARCH_CONSTANTS)?.into_iter().next();
        let kernel = kernel.ok_or_else(|| Error::Arguments("no search kernel".to_string()))?;
        let mut queue = device.queue()?;
        let mut words = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            device.buffer_with(&mut queue, &bytes)
        };
        let (bitmap, filter) = (words(&tables.bitmap)?, words(&tables.filter)?);
        let (heads, entries) = (words(&tables.heads)?, words(&tables.entries)?);
        let values = device.buffer_with(&mut queue, &tables.values)?;
        let masks = device.buffer_with(&mut queue, &tables.masks)?;
        let device = device.clone();
        Ok(Site {
            device,
            kernel,
            bitmap,
            filter,
            heads,
            entries,
            values,
            masks,
            items,
            groups_max,
            tile_blocks,
        })
    }
}

/// The buffers of one slot.
pub(super) struct Lane {
    queue: Queue,
    counter: Buffer,
    found: Buffer,
    capacity: u32,
    /// The findings' starts and needles, as read from the device.
    host: Vec<u8>,
}

/// A chunk's result from the device.
pub(super) struct Searched {
    /// The number of findings in [`Lane::findings`]; `None` if there are too many.
    pub(super) count: Option<usize>,
    /// When the last job was submitted, and when its parts ran.
    pub(super) started: Instant,
    pub(super) times: Times,
}

impl Lane {
    pub(super) fn new(site: &Site) -> Result<Self> {
        let found = site.device.buffer(CAPACITY as usize * BYTES_A_FINDING)?;
        Ok(Lane {
            queue: site.device.queue()?,
            counter: site.device.buffer(4)?,
            found,
            capacity: CAPACITY,
            host: vec![0; AT_ONCE * BYTES_A_FINDING],
        })
    }

    /// Searches the positions that a chunk owns.
    pub(super) fn search(
        &mut self,
        site: &Site,
        tables: &Tables,
        chunk: &Chunk<'_>,
    ) -> Result<Searched> {
        loop {
            let started = Instant::now();
            let (count, mut times) = self.scan(site, tables, chunk)?;
            if count >= FLOOD {
                return Ok(Searched { count: None, started, times });
            }
            if count > self.capacity {
                // The kernel only counted: run it again, with capacity for all findings.
                self.grow(site, count)?;
                continue;
            }
            let count = count as usize;
            if count > AT_ONCE {
                let bytes = count * BYTES_A_FINDING;
                if self.host.len() < bytes {
                    self.host.resize(bytes, 0);
                }
                let before = started.elapsed();
                let mut job = Job::new();
                job.read(&self.found, &mut self.host[..bytes]);
                let read = self.queue.run(job)?.collect;
                times.collect.add(before + read.start, before + read.end);
            }
            return Ok(Searched { count: Some(count), started, times });
        }
    }

    /// Returns the `count` findings of the last search: start within the chunk, and needle.
    pub(super) fn findings(&self, count: usize) -> impl Iterator<Item = (usize, usize)> {
        self.host.chunks_exact(BYTES_A_FINDING).take(count).map(|finding| {
            let word = |at: usize| {
                u32::from_ne_bytes([finding[at], finding[at + 1], finding[at + 2], finding[at + 3]])
            };
            (word(0) as usize, word(4) as usize)
        })
    }

    fn grow(&mut self, site: &Site, count: u32) -> Result<()> {
        let capacity = count.next_power_of_two();
        self.found = site.device.buffer(capacity as usize * BYTES_A_FINDING)?;
        self.capacity = capacity;
        Ok(())
    }

    /// Runs the kernel; returns the number of findings and the times, and reads the first findings.
    fn scan(&mut self, site: &Site, tables: &Tables, chunk: &Chunk<'_>) -> Result<(u32, Times)> {
        let (from, length) = (chunk.own.start, chunk.data.len());
        // Anchors may start after the last owned position.
        let to = (chunk.own.end + tables.reach).min(length);
        let blocks = (to.div_ceil(16) - from / 16) as u32;
        let groups = blocks.div_ceil(site.tile_blocks).clamp(1, site.groups_max);
        let mask = |class: usize| tables.class_masks.get(class).copied().unwrap_or(0);
        let arguments = site
            .kernel
            .bind()
            .input("text")?
            .buffer("bitmap", &site.bitmap)?
            .buffer("filter", &site.filter)?
            .buffer("heads", &site.heads)?
            .buffer("entries", &site.entries)?
            .buffer("values", &site.values)?
            .buffer("masks", &site.masks)?
            .buffer("counter", &self.counter)?
            .buffer("found", &self.found)?
            .number("text_bytes", length as u32)?
            .number("own_start", chunk.own.start as u32)?
            .number("own_end", chunk.own.end as u32)?
            .number("from", from as u32)?
            .number("to", to as u32)?
            .number("classes", tables.class_masks.len() as u32)?
            .number("mask0", mask(0))?
            .number("mask1", mask(1))?
            .number("mask2", mask(2))?
            .number("filter_bits", tables.filter_bits)?
            .number("table_shift", tables.table_shift)?
            .number("capacity", self.capacity)?
            .number("tile_blocks", site.tile_blocks)?;
        let mut counted = [0u8; 4];
        let mut job = Job::new();
        job.input(chunk.data);
        job.zero(&self.counter, 4);
        // SAFETY: the kernel reads at most 15 bytes past the text, within the padding. `Tables`
        // built the tables with the sizes passed here, so that lookups stay within them. The kernel
        // writes to `counter`, which has one word, and to `found` only below `capacity`, for which
        // `found` has room.
        unsafe { job.launch(&site.kernel, arguments, groups, site.items) };
        job.read(&self.counter, &mut counted);
        job.read(&self.found, &mut self.host[..AT_ONCE * BYTES_A_FINDING]);
        let times = self.queue.run(job)?;
        Ok((u32::from_ne_bytes(counted), times))
    }
}
