//! A device under CUDA.

use std::ffi::CString;
use std::ffi::c_void;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Mutex;
use std::time::Duration;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use quarrier_core::sync::lock;

use super::compile;
use crate::cache::Cache;
use crate::driver::{
    Dialect, Driver, DriverName, Facts, Kind, Moment, Raw, RawArgument, Step, Times,
};
use crate::error::{Error, Result};

/// An opened device and its primary context.
pub(super) struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    facts: Facts,
    /// Compute capability, as in `compute_90`.
    architecture: u32,
    modules: Mutex<Vec<sys::CUmodule>>,
    /// The cache of PTX: the driver caches what it compiles from PTX, but NVRTC caches nothing.
    cache: Option<Cache>,
}

// SAFETY: the driver API is thread-safe, and its handles may be used from any thread on which the
// context is current: every method that uses one calls `enter` first. Locks guard the other state.
unsafe impl Send for Cuda {}
// SAFETY: the driver API allows concurrent calls from several threads. `modules` is behind a lock,
// and no other field changes after `open`.
unsafe impl Sync for Cuda {}

/// A stream, and the events that separate the parts of its current job.
struct Open {
    stream: sys::CUstream,
    marks: Mutex<Vec<(Part, sys::CUevent)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Begin,
    Copy,
    Kernel,
    Collect,
}

impl Cuda {
    pub(super) fn open(ordinal: i32, cache: Option<Cache>) -> Result<Self> {
        use sys::CUdevice_attribute_enum as Attribute;
        let failed = |what: &'static str| {
            move |error: DriverError| Error::Failed {
                device: format!("CUDA device {ordinal}"),
                what: format!("{what}: {error}"),
            }
        };
        let device = result::device::get(ordinal).map_err(failed("cannot be opened"))?;
        // SAFETY: `device` is a valid handle, since `cuDeviceGet` just returned it.
        let number = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        let number = |attribute| number(attribute).unwrap_or(0).max(0) as u32;
        let major = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        let minor = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        let facts = Facts {
            name: result::device::get_name(device).map_err(failed("has no name"))?,
            driver: DriverName::Cuda,
            version: format!("CUDA, compute capability {major}.{minor}"),
            kind: Kind::Gpu,
            units: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).max(1),
            // SAFETY: `device` is a valid handle, since `cuDeviceGet` just returned it.
            memory_bytes: unsafe { result::device::total_mem(device) }.unwrap_or(0) as u64,
            local_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK).into(),
            items_max: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK).max(1),
            is_unified: false,
        };
        // SAFETY: `device` is a valid handle, since `cuDeviceGet` just returned it. `drop` releases
        // the context once.
        let context = unsafe { result::primary_ctx::retain(device) }
            .map_err(failed("cannot open a context"))?;
        let architecture = 10 * major + minor;
        Ok(Cuda { device, context, facts, architecture, modules: Mutex::default(), cache })
    }

    /// Makes this device's context the calling thread's own.
    fn enter(&self) -> Result<()> {
        // SAFETY: `open` retained the context, and only `drop` releases it.
        unsafe { result::ctx::set_current(self.context) }.map_err(self.failed("cannot be used"))
    }

    fn failed(&self, what: &'static str) -> impl Fn(DriverError) -> Error + '_ {
        move |error| {
            let device = self.facts.name.clone();
            let what = format!("{what}: {error}");
            match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory { device, what },
                _ => Error::Failed { device, what },
            }
        }
    }

    fn functions(&self, module: sys::CUmodule, names: &[&str]) -> Result<Vec<Raw>> {
        names
            .iter()
            .map(|name| {
                let text = CString::new(*name).unwrap_or_default();
                // SAFETY: `compile`, the only caller, just loaded the module, and only `drop`
                // unloads it.
                let function = unsafe { result::module::get_function(module, text) };
                function.map(raw).map_err(self.failed("a kernel is missing"))
            })
            .collect()
    }

    /// # Safety
    /// Those of [`Driver::submit`].
    unsafe fn start(&self, stream: sys::CUstream, step: &Step<'_>) -> Result<()> {
        // SAFETY: the caller of `submit` vouches for the handles and for the ranges in the buffers.
        // `from` is valid for reading `bytes` bytes and `to` for writing them until `collect`
        // returns, and nobody else touches the bytes at `to` until then, because the job borrows
        // them exclusively.
        let (what, result) = unsafe {
            match *step {
                Step::Write { to, at, from, bytes } => {
                    let from = std::slice::from_raw_parts(from, bytes);
                    let to = to + at as u64;
                    ("cannot copy to the device", result::memcpy_htod_async(to, from, stream))
                }
                Step::Read { from, at, to, bytes } => {
                    let to = std::slice::from_raw_parts_mut(to, bytes);
                    let from = from + at as u64;
                    ("cannot copy from the device", result::memcpy_dtoh_async(to, from, stream))
                }
                Step::Copy { from, to, bytes } => (
                    "cannot copy within the device",
                    result::memcpy_dtod_async(to, from, bytes, stream),
                ),
                Step::Zero { buffer, bytes } => {
                    ("cannot clear a buffer", result::memset_d8_async(buffer, 0, bytes, stream))
                }
                // The device is never unified, so the host need not hand memory over.
                Step::Show { .. } | Step::Hide { .. } => return Ok(()),
                Step::Launch { kernel, arguments, groups, items } => {
                    ("cannot run a kernel", launch(stream, kernel, arguments, groups, items))
                }
            }
        };
        result.map_err(self.failed(what))
    }

    fn mark(&self, open: &Open, part: Part) -> Result<()> {
        let kind = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC;
        let event = result::event::create(kind).map_err(self.failed("cannot mark the time"))?;
        lock(&open.marks).push((part, event));
        // SAFETY: the event was just created and is destroyed only by `collect`. The stream lives
        // until `close_queue`.
        unsafe { result::event::record(event, open.stream) }
            .map_err(self.failed("cannot mark the time"))
    }
}

/// # Safety
/// Those of [`Driver::submit`].
unsafe fn launch(
    stream: sys::CUstream,
    kernel: Raw,
    arguments: &[RawArgument],
    groups: u32,
    items: u32,
) -> std::result::Result<(), DriverError> {
    let mut values: Vec<*mut c_void> = arguments
        .iter()
        .map(|argument| match argument {
            RawArgument::Buffer(raw) => (&raw const *raw).cast_mut().cast(),
            RawArgument::Number(number) => (&raw const *number).cast_mut().cast(),
        })
        .collect();
    let function = with_exposed_provenance_mut(kernel as usize);
    // SAFETY: `function` is a handle that `compile` returned, and `stream` is alive. Each pointer
    // in `values` points into `arguments`, to a device address or a `u32`, as the kernel's
    // signature has them in this order. The call copies the values before it returns.
    unsafe {
        result::launch_kernel(function, (groups, 1, 1), (items, 1, 1), 0, stream, &mut values)
    }
}

fn raw<T>(pointer: *mut T) -> Raw {
    pointer.expose_provenance() as Raw
}

fn part_of(step: &Step<'_>) -> Part {
    match step {
        Step::Write { .. } | Step::Show { .. } => Part::Copy,
        Step::Launch { .. } | Step::Copy { .. } | Step::Zero { .. } => Part::Kernel,
        Step::Read { .. } | Step::Hide { .. } => Part::Collect,
    }
}

/// Returns the times of the parts, from the events recorded after each.
fn times(marks: &[(Part, sys::CUevent)]) -> Times {
    let mut times = Times::default();
    let Some((_, first)) = marks.first() else { return times };
    // SAFETY: `mark` created both events and recorded them in the same stream. `collect` destroys
    // them only after this call.
    let since = |event| unsafe { result::event::elapsed(*first, event) };
    let since = |event| Duration::from_secs_f32(since(event).unwrap_or(0.0).max(0.0) / 1e3);
    let mut before = Duration::ZERO;
    for &(part, event) in marks {
        let after = since(event);
        let none: &mut Moment = &mut Moment::default();
        let moment = match part {
            Part::Begin => none,
            Part::Copy => &mut times.copy,
            Part::Kernel => &mut times.kernel,
            Part::Collect => &mut times.collect,
        };
        moment.add(before, after);
        before = after;
    }
    times
}

// SAFETY: `pin` returns a new allocation of `cuMemHostAlloc`, which nobody else has and only
// `unpin` frees. `collect` synchronises the stream, after which no step of the job is running.
unsafe impl Driver for Cuda {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn dialect(&self) -> Dialect {
        Dialect::Cuda
    }

    fn compile(&self, source: &str, kernels: &[&str]) -> Result<Vec<Raw>> {
        self.enter()?;
        let ptx = compile::ptx(source, self.architecture, &self.facts.name, self.cache.as_ref())?;
        let image = CString::new(ptx).map_err(|_| Error::Compile {
            device: self.facts.name.clone(),
            log: "NVRTC returned a text with a zero byte".to_string(),
        })?;
        // SAFETY: the image is a `CString`, and `cuModuleLoadData` takes PTX as a string that ends
        // in NUL. The call copies it.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }
            .map_err(self.failed("cannot load a program"))?;
        lock(&self.modules).push(module);
        self.functions(module, kernels)
    }

    fn allocate(&self, bytes: usize) -> Result<Raw> {
        self.enter()?;
        // SAFETY: the memory is not initialised; only kernels and copies on the device see it, and
        // for them any byte is a valid value.
        unsafe { result::malloc_sync(bytes) }.map_err(self.failed("cannot allocate a buffer"))
    }

    unsafe fn free(&self, buffer: Raw) {
        if self.enter().is_ok() {
            // SAFETY: the caller vouches that `allocate` returned the buffer and that no job uses
            // it.
            let _ = unsafe { result::free_sync(buffer) };
        }
    }

    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        self.enter()?;
        // Not write-combined, since CPU workers read this memory too, and reads of write-combined
        // memory are slow. SAFETY: the memory is not initialised; it is zeroed below before anybody
        // reads it.
        let start =
            unsafe { result::malloc_host(bytes, 0) }.map_err(self.failed("cannot pin memory"))?;
        let start: NonNull<u8> = NonNull::new(start.cast()).ok_or_else(|| Error::OutOfMemory {
            device: self.facts.name.clone(),
            what: "the driver returned no address for pinned memory".to_string(),
        })?;
        // SAFETY: `malloc_host` just allocated `bytes` bytes at `start`, which is not null, and
        // nobody else has the pointer.
        unsafe { start.write_bytes(0, bytes) };
        Ok((start, raw(start.as_ptr())))
    }

    unsafe fn unpin(&self, start: NonNull<u8>, _pinned: Raw) {
        if self.enter().is_ok() {
            // SAFETY: the caller vouches that `pin` returned `start` and that nobody uses the
            // memory.
            let _ = unsafe { result::free_host(start.as_ptr().cast()) };
        }
    }

    fn open_queue(&self) -> Result<Raw> {
        self.enter()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(self.failed("cannot make a stream"))?;
        Ok(raw(Box::into_raw(Box::new(Open { stream, marks: Mutex::default() }))))
    }

    unsafe fn close_queue(&self, queue: Raw) {
        // SAFETY: the caller vouches that `open_queue` made this handle from `Box::into_raw` and
        // exposed its provenance, that it is closed once, and that no job is running, so no
        // reference to it exists.
        let open = unsafe { Box::from_raw(with_exposed_provenance_mut::<Open>(queue as usize)) };
        if self.enter().is_ok() {
            // SAFETY: `open_queue` created the stream, and this is the only place that destroys it.
            let _ = unsafe { result::stream::destroy(open.stream) };
        }
    }

    unsafe fn submit(&self, queue: Raw, steps: &[Step<'_>]) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller vouches that `open_queue` made this handle from a `Box` and that it is
        // not closed, so the pointer is aligned and the value alive. Only shared references to it
        // exist.
        let open = unsafe { &*with_exposed_provenance_mut::<Open>(queue as usize) };
        self.mark(open, Part::Begin)?;
        for (index, step) in steps.iter().enumerate() {
            // SAFETY: the contract of `start` is that of `submit`, which the caller keeps.
            unsafe { self.start(open.stream, step) }?;
            let part = part_of(step);
            if steps.get(index + 1).is_none_or(|next| part_of(next) != part) {
                self.mark(open, part)?;
            }
        }
        Ok(())
    }

    unsafe fn collect(&self, queue: Raw) -> Result<Times> {
        // The steps must end before this returns even without the context: the caller frees the memory
        // that they write to. A stream knows its own context, so waiting for it needs no current one.
        let entered = self.enter();
        // SAFETY: the caller vouches that `open_queue` made this handle from a `Box` and that it is
        // not closed, so the pointer is aligned and the value alive. Only shared references to it
        // exist.
        let open = unsafe { &*with_exposed_provenance_mut::<Open>(queue as usize) };
        let marks = std::mem::take(&mut *lock(&open.marks));
        // The event was created to block, so this thread sleeps; synchronising the stream would
        // spin.
        let waited = match marks.last() {
            // SAFETY: `mark` created the event, and it is destroyed only below.
            Some((_, last)) => unsafe { result::event::synchronize(*last) },
            None => Ok(()),
        };
        // SAFETY: the stream lives until `close_queue`. This call also waits for the steps after
        // the last event, which exist when `submit` failed half-way, and after an event that could not be
        // waited for.
        let finished = unsafe { result::stream::synchronize(open.stream) };
        let times = times(&marks);
        for (_, event) in marks {
            // SAFETY: `mark` created the event, and taking it from `marks` means that it is
            // destroyed once.
            let _ = unsafe { result::event::destroy(event) };
        }
        // Either the stream has run its steps, or the driver reports that the context is lost, which ends
        // them: an error of `synchronize` comes from a step that failed or from a context that is gone.
        waited.and(finished).map_err(self.failed("a job failed")).and(entered).map(|()| times)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            for module in lock(&self.modules).drain(..) {
                // SAFETY: `compile` loaded the module, and draining the list unloads it once. Every
                // kernel, buffer and queue holds the driver, so none of them exists any more.
                let _ = unsafe { result::module::unload(module) };
            }
        }
        // SAFETY: `open` retained this device's primary context, and it is released once, here.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}
