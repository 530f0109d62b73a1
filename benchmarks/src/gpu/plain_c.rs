//! The kernel's own text compiled as C, on threads: the reference for OpenCL on a machine whose
//! only device is the CPU. It implements the driver's interface, so that everything around the
//! kernel is the same.

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

/// The best compiler first: clang vectorises the kernel's loop, gcc 12 does not.
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
    /// The functions that `compile` loaded.
    functions: Mutex<Option<(Search, SetGroup)>>,
    /// All allocated memory.
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
        // SAFETY: `path` is a C string. The library is the one just compiled, has no initialisers,
        // and stays loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        let find = |name: *const c_char| {
            // SAFETY: `name` is a C string. The handle is open, or null for the global scope, which
            // has no such symbols.
            let found = unsafe { libc::dlsym(handle, name) };
            if found.is_null() { Err(self.failed("the kernel is not in it")) } else { Ok(found) }
        };
        let (search, set) = (find(c"search".as_ptr())?, find(c"quarrier_set".as_ptr())?);
        // SAFETY: the generated text declares both functions with these parameters, and a function
        // pointer has the size of a data pointer here. The library is never unloaded.
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
                    // SAFETY: the functions have these parameters, in this order. The caller of
                    // `submit` vouches that the kernel stays within the arrays, which live until it
                    // returns. Groups are independent, as on a device, and `set` stores the
                    // thread's own group.
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

// SAFETY: `pin` returns a new allocation, which only `unpin` frees, and `submit` has finished all
// steps when it returns.
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
            // SAFETY: the caller vouches that handles are exposed addresses of live buffers, that
            // ranges lie within them, and that host memory is valid and does not overlap them.
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
