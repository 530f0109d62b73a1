//! A disk in memory that injects faults and crashes on request. As on a real disk, each sector that was not
//! synced may survive a crash or be lost.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

use super::{Access, Disk, DiskFile};

/// The unit of atomic writes: a sector is written completely or not at all.
const SECTOR_BYTES: usize = 512;

/// A fault to inject into a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full. A write may have written a part.
    Full,
    /// The device fails. After a failed sync, the data that it covered may or may not be durable, and later
    /// syncs do not change that.
    Io,
    /// A read or write transfers fewer bytes than requested. Other calls succeed.
    Short,
    /// The machine stops: this call may have an effect, and later calls have none.
    Crash,
}

/// The disk. Clones share its state; [`FaultyDisk::after_crash`] makes another disk.
#[derive(Clone)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
    history: Arc<Mutex<Option<History>>>,
}

/// The states of the disk, one after each call that changed it.
struct History {
    /// Recorded with each state.
    note: Arc<AtomicU64>,
    moments: Vec<Moment>,
}

/// The state of the disk at one moment.
pub struct Moment {
    /// The number given to [`FaultyDisk::keep_history`], as it was at that moment.
    pub note: u64,
    /// An independent copy of the disk.
    pub disk: FaultyDisk,
}

#[derive(Clone)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Renames since the folder was last synced.
    renames: Vec<NameChange>,
    calls: u64,
    /// Sorted by the number of the call.
    faults: VecDeque<(u64, Fault)>,
    is_crashed: bool,
    room_bytes: u64,
    clock_us: i64,
    random: Random,
}

#[derive(Clone, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the file was last synced.
    changes: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone)]
struct NameChange {
    removed: Option<String>,
    set: Option<(String, usize)>,
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

impl FaultyDisk {
    /// Makes an empty disk without faults. `seed` determines all its random choices.
    pub fn new(seed: u64) -> Self {
        FaultyDisk::of(State {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            renames: Vec::new(),
            calls: 0,
            faults: VecDeque::new(),
            is_crashed: false,
            room_bytes: u64::MAX,
            clock_us: 1_700_000_000_000_000,
            random: Random(seed),
        })
    }

    fn of(state: State) -> Self {
        FaultyDisk { state: Arc::new(Mutex::new(state)), history: Arc::default() }
    }

    /// From now on, records the state of the disk after each call that changes it, with the value of `note`.
    pub fn keep_history(&self, note: Arc<AtomicU64>) {
        *lock(&self.history) = Some(History { note, moments: Vec::new() });
    }

    /// Returns all states since [`FaultyDisk::keep_history`].
    pub fn history(&self) -> Vec<Moment> {
        lock(&self.history).take().map(|history| history.moments).unwrap_or_default()
    }

    /// Records the current state of the disk.
    fn remember(&self, state: &State) {
        if let Some(history) = lock(&self.history).as_mut() {
            let note = history.note.load(Ordering::SeqCst);
            history.moments.push(Moment { note, disk: FaultyDisk::of(state.healed()) });
        }
    }

    /// Makes calls with these numbers, counted from 0, fail.
    pub fn fail(&self, faults: impl IntoIterator<Item = (u64, Fault)>) {
        let mut state = lock(&self.state);
        state.faults.extend(faults);
        state.faults.make_contiguous().sort_by_key(|fault| fault.0);
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        lock(&self.state).calls
    }

    /// Limits the total length of all files, in bytes.
    pub fn set_room(&self, bytes: u64) {
        lock(&self.state).room_bytes = bytes;
    }

    /// Sets the clock, which advances by a microsecond at each reading.
    pub fn set_clock_us(&self, now_us: i64) {
        lock(&self.state).clock_us = now_us;
    }

    /// Returns the disk after a power cut now: some of the unsynced data survives, in pieces that `seed`
    /// determines.
    #[must_use]
    pub fn after_crash(&self, seed: u64) -> FaultyDisk {
        let state = lock(&self.state);
        let mut random = Random(seed);
        let mut names = state.durable_names.clone();
        for change in &state.renames {
            if random.below(2) == 0 {
                change.apply(&mut names);
            }
        }
        let inodes = state.inodes.iter().map(|inode| inode.after_crash(&mut random)).collect();
        FaultyDisk::of(State {
            inodes,
            durable_names: names.clone(),
            names,
            renames: Vec::new(),
            calls: 0,
            faults: VecDeque::new(),
            is_crashed: false,
            room_bytes: state.room_bytes,
            clock_us: state.clock_us,
            random,
        })
    }

    /// Returns the disk after the process was killed: all written data remains, and is no more durable than
    /// before. The new disk has no faults.
    #[must_use]
    pub fn after_kill(&self) -> FaultyDisk {
        let state = lock(&self.state);
        FaultyDisk::of(state.healed())
    }

    /// Returns the bytes of a file as a read returns them; None if the file does not exist.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = lock(&self.state);
        state.names.get(name).map(|&at| state.inodes[at].now.clone())
    }

    /// Adds a durable file.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut state = lock(&self.state);
        let inode = state.inodes.len();
        state.inodes.push(Inode { now: bytes.clone(), durable: bytes, changes: Vec::new() });
        state.names.insert(name.to_string(), inode);
        state.durable_names.insert(name.to_string(), inode);
    }

    /// Counts a call and returns the fault to inject into it.
    fn call(&self) -> io::Result<(std::sync::MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = lock(&self.state);
        if state.is_crashed {
            return Err(io::Error::other("the machine has stopped"));
        }
        let number = state.calls;
        state.calls += 1;
        while state.faults.front().is_some_and(|fault| fault.0 < number) {
            state.faults.pop_front();
        }
        let fault = state.faults.front().filter(|fault| fault.0 == number).map(|fault| fault.1);
        state.is_crashed = fault == Some(Fault::Crash);
        Ok((state, fault))
    }
}

/// Returns the error of a fault, if it causes one.
fn answer(fault: Option<Fault>) -> io::Result<()> {
    match fault {
        Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
        Some(Fault::Io) => Err(io::Error::other("input/output error")),
        Some(Fault::Crash) => Err(io::Error::other("the machine has stopped")),
        Some(Fault::Short) | None => Ok(()),
    }
}

impl State {
    /// Copies the state without its faults.
    fn healed(&self) -> State {
        State { calls: 0, faults: VecDeque::new(), is_crashed: false, ..self.clone() }
    }

    fn used_bytes(&self) -> u64 {
        let used: std::collections::BTreeSet<usize> = self.names.values().copied().collect();
        used.iter().map(|&at| self.inodes[at].now.len() as u64).sum()
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.renames.push(change);
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        if let Some(removed) = &self.removed {
            names.remove(removed);
        }
        if let Some((name, inode)) = &self.set {
            names.insert(name.clone(), *inode);
        }
    }
}

impl Inode {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.now, |_| true);
        self.changes.push(change);
    }

    /// Returns the file after a power cut.
    fn after_crash(&self, random: &mut Random) -> Inode {
        let mut bytes = self.durable.clone();
        for change in &self.changes {
            change.apply_in_pieces(&mut bytes, random);
        }
        Inode { now: bytes.clone(), durable: bytes, changes: Vec::new() }
    }

    /// Syncs the file. If the sync fails, chance decides once which changes become durable.
    fn sync(&mut self, is_good: bool, random: &mut Random) {
        let changes = std::mem::take(&mut self.changes);
        for change in changes {
            if is_good {
                change.apply(&mut self.durable, |_| true);
            } else {
                change.apply_in_pieces(&mut self.durable, random);
            }
        }
    }
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>, mut keeps: impl FnMut(usize) -> bool) {
        match self {
            Change::Length(bytes) => file.resize(*bytes, 0),
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                let mut at = *offset;
                while at < end {
                    let stop = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
                    if keeps(at / SECTOR_BYTES) {
                        file[at..stop].copy_from_slice(&bytes[at - offset..stop - offset]);
                    }
                    at = stop;
                }
            }
        }
    }

    /// Applies all of the change, nothing, a prefix, or some sectors.
    fn apply_in_pieces(&self, file: &mut Vec<u8>, random: &mut Random) {
        match random.below(4) {
            0 => {}
            1 => self.apply(file, |_| true),
            2 => {
                let mut left = random.below(8);
                self.apply(file, |_| {
                    left = left.saturating_sub(1);
                    left > 0
                });
            }
            _ => {
                if let Change::Write { .. } = self {
                    self.apply(file, |_| random.below(2) == 0);
                }
            }
        }
    }
}

impl Disk for FaultyDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let (state, fault) = self.call()?;
        answer(fault)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Box<dyn DiskFile>> {
        let (mut state, fault) = self.call()?;
        if fault == Some(Fault::Crash) || fault.is_none() || fault == Some(Fault::Short) {
            if state.used_bytes().saturating_add(bytes) > state.room_bytes {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let inode = state.inodes.len();
            let mut file = Inode::default();
            file.change(Change::Length(bytes as usize));
            state.inodes.push(file);
            state.change_names(NameChange { removed: None, set: Some((name.to_string(), inode)) });
        }
        self.remember(&state);
        answer(fault)?;
        let inode = state.inodes.len() - 1;
        drop(state);
        Ok(Box::new(FaultyFile { disk: self.clone(), inode }))
    }

    fn open(&self, name: &str, _access: Access) -> io::Result<Box<dyn DiskFile>> {
        let (state, fault) = self.call()?;
        answer(fault)?;
        let inode = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        drop(state);
        Ok(Box::new(FaultyFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (mut state, fault) = self.call()?;
        if !matches!(fault, Some(Fault::Full | Fault::Io)) {
            let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
            let set = Some((to.to_string(), inode));
            state.change_names(NameChange { removed: Some(from.to_string()), set });
            self.remember(&state);
        }
        answer(fault)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (mut state, fault) = self.call()?;
        if !matches!(fault, Some(Fault::Full | Fault::Io)) {
            if !state.names.contains_key(name) {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.change_names(NameChange { removed: Some(name.to_string()), set: None });
            self.remember(&state);
        }
        answer(fault)
    }

    fn sync_folder(&self) -> io::Result<()> {
        let (mut state, fault) = self.call()?;
        if !matches!(fault, Some(Fault::Full | Fault::Io | Fault::Crash)) {
            state.renames.clear();
            state.durable_names = state.names.clone();
            self.remember(&state);
        }
        answer(fault)
    }

    fn path(&self, name: &str) -> String {
        format!("memory/{name}")
    }

    fn now_us(&self) -> i64 {
        let mut state = lock(&self.state);
        state.clock_us += 1;
        state.clock_us
    }

    fn random(&self) -> io::Result<u64> {
        Ok(lock(&self.state).random.next())
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    inode: usize,
}

impl DiskFile for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        let (state, fault) = self.disk.call()?;
        answer(fault)?;
        Ok(state.inodes[self.inode].now.len() as u64)
    }

    fn block_bytes(&self) -> u64 {
        SECTOR_BYTES as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut state, fault) = self.disk.call()?;
        answer(fault)?;
        let wanted = buffer.len();
        let most =
            if fault == Some(Fault::Short) { state.random.below(wanted) + 1 } else { wanted };
        let bytes = &state.inodes[self.inode].now;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = most.min(wanted).min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let (mut state, fault) = self.disk.call()?;
        let count = match fault {
            None | Some(Fault::Crash) => bytes.len(),
            Some(Fault::Short) => state.random.below(bytes.len()) + 1,
            Some(Fault::Full | Fault::Io) => state.random.below(bytes.len() + 1),
        };
        let count = count.min(bytes.len());
        let (offset, bytes) = (offset as usize, bytes[..count].to_vec());
        state.inodes[self.inode].change(Change::Write { offset, bytes });
        self.disk.remember(&state);
        answer(fault)?;
        Ok(count)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let (mut state, fault) = self.disk.call()?;
        if !matches!(fault, Some(Fault::Full | Fault::Io)) {
            let more = bytes.saturating_sub(state.inodes[self.inode].now.len() as u64);
            if state.used_bytes().saturating_add(more) > state.room_bytes {
                return Err(io::ErrorKind::StorageFull.into());
            }
            if more > 0 {
                state.inodes[self.inode].change(Change::Length(bytes as usize));
                self.disk.remember(&state);
            }
        }
        answer(fault)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let (mut state, fault) = self.disk.call()?;
        if !matches!(fault, Some(Fault::Full | Fault::Io)) {
            state.inodes[self.inode].change(Change::Length(bytes as usize));
            self.disk.remember(&state);
        }
        answer(fault)
    }

    fn sync(&self) -> io::Result<()> {
        let (mut guard, fault) = self.disk.call()?;
        let state = &mut *guard;
        match fault {
            // A crash during the sync makes no more data durable in this model.
            Some(Fault::Crash) => {}
            Some(Fault::Full | Fault::Io) => {
                state.inodes[self.inode].sync(false, &mut state.random);
            }
            Some(Fault::Short) | None => state.inodes[self.inode].sync(true, &mut state.random),
        }
        self.disk.remember(&guard);
        answer(fault)
    }
}
