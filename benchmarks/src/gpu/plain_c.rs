//! The kernel's own text compiled as C, on threads: what a device under OpenCL is compared with on
//! a machine whose only device is the CPU. It takes the place of a driver, so that everything
//! around the kernel is the same.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr::{NonNull, with_exposed_provenance};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use quarrier_core::region::AlignedBuffer;
use quarrier_gpu::{
    Dialect, Driver, DriverName, Error, Facts, Kind, Moment, Raw, RawArgument, Result, Step, Times,
};

/// The search kernel's parameters: arrays, then numbers.
const ARRAYS: usize = 9;
const NUMBERS: usize = 13;

/// The best first: clang makes vectors of the kernel's loop, which gcc 12 does not.
const COMPILERS: [&str; 2] = ["clang", "cc"];

type Search = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
);
type SetGroup = unsafe extern "C" fn(u32, u32);

/// A CPU without a driver.
pub(crate) struct PlainC {
    facts: Facts,
    folder: PathBuf,
    /// What `compile` has loaded.
    functions: Mutex<Option<(Search, SetGroup)>>,
    /// All that was allocated, by its first byte.
    memory: Mutex<Vec<AlignedBuffer>>,
    times: Mutex<Times>,
}

impl PlainC {
    pub(crate) fn new(folder: PathBuf, threads: u32) -> Self {
        let facts = Facts {
            name: "plain C".to_string(),
            driver: DriverName::Other,
            version: "C, -O3 -march=native".to_string(),
            kind: Kind::Cpu,
            units: threads,
            memory_bytes: 1 << 30,
            local_bytes: 1 << 20,
            items_max: 1,
            is_unified: true,
        };
        let (functions, memory, times) = Default::default();
        PlainC { facts, folder, functions, memory, times }
    }

    fn failed(&self, what: impl Into<String>) -> Error {
        Error::Failed { device: self.facts.name.clone(), what: what.into() }
    }

    fn load(&self, source: &str) -> Result<(Search, SetGroup)> {
        let text = format!(
            "{source}\nvoid quarrier_set(u32 group, u32 groups) {{ quarrier_group = group; \
             quarrier_groups = groups; }}\n"
        );
        let (file, library) = (self.folder.join("kernel.c"), self.folder.join("kernel.so"));
        std::fs::write(&file, text).map_err(|error| self.failed(error.to_string()))?;
        let compiles = |compiler: &str| {
            let mut compile = Command::new(compiler);
            compile.args(["-O3", "-march=native", "-shared", "-fPIC", "-o"]);
            compile.arg(&library).arg(&file).status().is_ok_and(|status| status.success())
        };
        if !COMPILERS.into_iter().any(compiles) {
            return Err(self.failed("no compiler of C takes the kernel"));
        }
        let path = CString::new(library.to_string_lossy().as_bytes()).unwrap_or_default();
        // SAFETY: a library of plain functions, without initialisers; it stays loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        let find = |name: *const c_char| {
            // SAFETY: the handle is open or null, which finds nothing of this name.
            let found = unsafe { libc::dlsym(handle, name) };
            if found.is_null() { Err(self.failed("the kernel is not in it")) } else { Ok(found) }
        };
        let (search, set) = (find(c"search".as_ptr())?, find(c"quarrier_set".as_ptr())?);
        // SAFETY: the text declares them with these parameters.
        Ok(unsafe {
            (
                std::mem::transmute::<*mut c_void, Search>(search),
                std::mem::transmute::<*mut c_void, SetGroup>(set),
            )
        })
    }

    fn take(&self, bytes: usize) -> (NonNull<u8>, Raw) {
        let mut buffer = AlignedBuffer::new(bytes);
        let start = NonNull::new(buffer.as_mut_ptr()).unwrap_or(NonNull::dangling());
        self.memory.lock().expect("no panic while locked").push(buffer);
        (start, start.as_ptr().expose_provenance() as Raw)
    }

    fn give_back(&self, raw: Raw) {
        let mut memory = self.memory.lock().expect("no panic while locked");
        memory.retain(|buffer| buffer.as_ptr().addr() as Raw != raw);
    }

    /// Runs the kernel on as many threads as there are units; one group each.
    fn launch(&self, arguments: &[RawArgument]) -> Result<()> {
        let (search, set) = self
            .functions
            .lock()
            .expect("no panic while locked")
            .ok_or_else(|| self.failed("nothing was compiled"))?;
        let mut arrays = [0; ARRAYS];
        let mut numbers = [0; NUMBERS];
        for (index, argument) in arguments.iter().enumerate() {
            match argument {
                RawArgument::Buffer(raw) if index < ARRAYS => arrays[index] = *raw,
                RawArgument::Number(number) if index < ARRAYS + NUMBERS => {
                    numbers[index - ARRAYS] = *number;
                }
                RawArgument::Buffer(_) | RawArgument::Number(_) => {
                    return Err(self.failed("other parameters than expected"));
                }
            }
        }
        let units = self.facts.units;
        std::thread::scope(|scope| {
            for group in 0..units {
                scope.spawn(move || {
                    let a = arrays.map(|raw| with_exposed_provenance::<c_void>(raw as usize));
                    let n = numbers;
                    // SAFETY: the same arguments that a device gets, in the same order; each
                    // thread has its own group.
                    unsafe {
                        set(group, units);
                        search(
                            a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], n[0], n[1], n[2],
                            n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],
                        );
                    }
                });
            }
        });
        Ok(())
    }
}

// SAFETY: `pin` gives memory of an allocation of its own, and `submit` has done all when it
// returns.
unsafe impl Driver for PlainC {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn dialect(&self) -> Dialect {
        Dialect::C
    }

    fn compile(&self, source: &str, kernels: &[&str]) -> Result<Vec<Raw>> {
        *self.functions.lock().expect("no panic while locked") = Some(self.load(source)?);
        Ok(vec![0; kernels.len()])
    }

    fn allocate(&self, bytes: usize) -> Result<Raw> {
        Ok(self.take(bytes).1)
    }

    unsafe fn free(&self, buffer: Raw) {
        self.give_back(buffer);
    }

    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        Ok(self.take(bytes))
    }

    unsafe fn unpin(&self, _start: NonNull<u8>, pinned: Raw) {
        self.give_back(pinned);
    }

    fn open_queue(&self) -> Result<Raw> {
        Ok(0)
    }

    unsafe fn close_queue(&self, _queue: Raw) {}

    unsafe fn submit(&self, _queue: Raw, steps: &[Step<'_>]) -> Result<()> {
        let begin = Instant::now();
        let mut kernel = Moment::default();
        for step in steps {
            // SAFETY: handles are addresses of memory that is alive, as large as the caller says.
            unsafe {
                match *step {
                    Step::Write { to, at, from, bytes } => {
                        let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize + at);
                        to.copy_from_nonoverlapping(from, bytes);
                    }
                    Step::Read { from, at, to, bytes } => {
                        let from = with_exposed_provenance::<u8>(from as usize + at);
                        to.copy_from_nonoverlapping(from, bytes);
                    }
                    Step::Copy { from, to, bytes } => {
                        let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
                        to.copy_from_nonoverlapping(with_exposed_provenance(from as usize), bytes);
                    }
                    Step::Zero { buffer, bytes } => {
                        let start = std::ptr::with_exposed_provenance_mut::<u8>(buffer as usize);
                        start.write_bytes(0, bytes);
                    }
                    Step::Show { .. } | Step::Hide { .. } => {}
                    Step::Launch { arguments, .. } => {
                        let start = begin.elapsed();
                        self.launch(arguments)?;
                        kernel.add(start, begin.elapsed());
                    }
                }
            }
        }
        let none = Moment { start: begin.elapsed(), end: begin.elapsed(), busy: Duration::ZERO };
        *self.times.lock().expect("no panic while locked") =
            Times { copy: Moment::default(), kernel, collect: none };
        Ok(())
    }

    unsafe fn collect(&self, _queue: Raw) -> Result<Times> {
        Ok(*self.times.lock().expect("no panic while locked"))
    }
}

/// For the signature above: a C function takes its numbers as this.
const _: () = assert!(size_of::<c_int>() == size_of::<u32>());
