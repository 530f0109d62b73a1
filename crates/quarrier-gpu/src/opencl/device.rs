//! A device under OpenCL.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr::{NonNull, null, null_mut, with_exposed_provenance_mut};
use std::sync::Mutex;

use cl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_copy_buffer, enqueue_fill_buffer,
    enqueue_map_buffer, enqueue_nd_range_kernel, enqueue_read_buffer, enqueue_unmap_mem_object,
    enqueue_write_buffer, finish, flush, release_command_queue,
};
use cl3::context::{create_context, release_context};
use cl3::kernel::{create_kernel, release_kernel, set_kernel_arg};
use cl3::memory::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR,
    create_buffer, release_mem_object,
};
use cl3::program::{
    CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_data,
    release_program,
};
use cl3::types::{
    CL_BLOCKING, CL_NON_BLOCKING, cl_command_queue, cl_context, cl_device_id, cl_event, cl_kernel,
    cl_mem, cl_program,
};
use quarrier_core::region::PAGE_BYTES;
use quarrier_core::sync::lock;

use super::events::{self, Part};
use super::facts;
use super::names::failure;
use crate::driver::{Dialect, Driver, Facts, Raw, RawArgument, Step, Times};
use crate::error::{Error, Result};

/// An opened device: a context of its own.
pub(super) struct OpenCl {
    id: cl_device_id,
    context: cl_context,
    facts: Facts,
    /// For commands outside of jobs: mapping pinned memory for the first time.
    queue: cl_command_queue,
    programs: Mutex<Vec<(cl_program, Vec<cl_kernel>)>>,
    /// Arguments are a kernel's state, so they are set and the kernel enqueued in one go.
    binding: Mutex<()>,
    pinned: Mutex<HashMap<Raw, PinnedMemory>>,
}

#[derive(Clone, Copy)]
struct PinnedMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// Where the memory is ours and the device works on it.
    layout: Option<Layout>,
}

// SAFETY: OpenCL's objects may be used from any thread; what may not be used by two at once, a
// kernel's arguments, is behind a lock.
unsafe impl Send for OpenCl {}
// SAFETY: as above.
unsafe impl Sync for OpenCl {}

/// A queue, and the events in flight in it.
struct Open {
    queue: cl_command_queue,
    under_way: Mutex<Vec<(Part, cl_event)>>,
}

fn raw<T>(pointer: *mut T) -> Raw {
    pointer.expose_provenance() as Raw
}

fn pointer<T>(raw: Raw) -> *mut T {
    with_exposed_provenance_mut(raw as usize)
}

impl OpenCl {
    pub(super) fn open(id: cl_device_id) -> Result<Self> {
        let facts = facts::of(id);
        let failed = |what| move |code| failure(&facts::of(id).name, what, code);
        let context = create_context(&[id], null(), None, null_mut())
            .map_err(failed("cannot make a context"))?;
        // SAFETY: context and device were just given to us.
        let queue = match unsafe { create_command_queue(context, id, 0) } {
            Ok(queue) => queue,
            Err(code) => {
                // SAFETY: nothing uses the context.
                let _ = unsafe { release_context(context) };
                return Err(failed("cannot make a queue")(code));
            }
        };
        let (programs, binding, pinned) = Default::default();
        Ok(OpenCl { id, context, facts, queue, programs, binding, pinned })
    }

    fn failed(&self, what: &'static str) -> impl Fn(i32) -> Error + '_ {
        move |code| failure(&self.facts.name, what, code)
    }

    fn build(&self, program: cl_program) -> Result<()> {
        match build_program(program, &[self.id], c"-cl-std=CL1.2", None, null_mut()) {
            Ok(()) => Ok(()),
            Err(code) => {
                let log = get_program_build_data(program, self.id, CL_PROGRAM_BUILD_LOG);
                let log = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
                let log = if log.trim().is_empty() { format!("error {code}") } else { log };
                Err(Error::Compile { device: self.facts.name.clone(), log })
            }
        }
    }

    fn kernels(&self, program: cl_program, names: &[&str]) -> Result<Vec<cl_kernel>> {
        let mut kernels = Vec::with_capacity(names.len());
        for name in names {
            let text = CString::new(*name).unwrap_or_default();
            match create_kernel(program, &text) {
                Ok(kernel) => kernels.push(kernel),
                Err(code) => {
                    release_kernels(&kernels);
                    let log = format!("no kernel '{name}' (error {code})");
                    return Err(Error::Compile { device: self.facts.name.clone(), log });
                }
            }
        }
        Ok(kernels)
    }

    /// Maps pinned memory for the host; it stays there unless a job shows it to the device.
    fn map(&self, memory: cl_mem, bytes: usize) -> Result<NonNull<u8>> {
        let mut mapped = null_mut();
        let flags = CL_MAP_READ | CL_MAP_WRITE;
        // SAFETY: the memory has so many bytes and is not mapped yet.
        let event = unsafe {
            let wait = CL_BLOCKING;
            enqueue_map_buffer(self.queue, memory, wait, flags, 0, bytes, &mut mapped, 0, null())
        }
        .map_err(self.failed("cannot map pinned memory"))?;
        events::release(event);
        NonNull::new(mapped.cast()).ok_or_else(|| Error::OutOfMemory {
            device: self.facts.name.clone(),
            what: "pinned memory was mapped nowhere".to_string(),
        })
    }

    /// The host's own memory, which the device works on.
    fn pin_shared(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        let out = || Error::OutOfMemory {
            device: self.facts.name.clone(),
            what: format!("cannot allocate {bytes} bytes"),
        };
        let size = bytes.next_multiple_of(PAGE_BYTES);
        let layout = Layout::from_size_align(size, PAGE_BYTES).map_err(|_| out())?;
        // SAFETY: the layout has a size: one page at least, since kernels may read further.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(out)?;
        let flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
        let free = |error| {
            // SAFETY: allocated above, and nobody knows of it.
            unsafe { dealloc(start.as_ptr(), layout) };
            error
        };
        // SAFETY: the memory lives until `unpin` has released the buffer.
        let memory = unsafe { create_buffer(self.context, flags, size, start.as_ptr().cast()) }
            .map_err(self.failed("cannot share memory"))
            .map_err(free)?;
        let mapped = self.map(memory, size);
        if mapped.as_ref().ok() != Some(&start) {
            // SAFETY: nothing uses it.
            let _ = unsafe { release_mem_object(memory) };
            let moved = || Error::Failed {
                device: self.facts.name.clone(),
                what: "shared memory was mapped elsewhere".to_string(),
            };
            return Err(free(mapped.err().unwrap_or_else(moved)));
        }
        let pinned = PinnedMemory { start, bytes: size, layout: Some(layout) };
        lock(&self.pinned).insert(raw(memory), pinned);
        Ok((start, raw(memory)))
    }

    /// Memory of the driver's that its copies need no detour for.
    fn pin_for_copies(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: the context is alive; no memory of ours is given.
        let memory = unsafe { create_buffer(self.context, flags, bytes, null_mut()) }
            .map_err(self.failed("cannot pin memory"))?;
        match self.map(memory, bytes) {
            Ok(start) => {
                // SAFETY: mapped for writing, with so many bytes.
                unsafe { start.write_bytes(0, bytes) };
                let pinned = PinnedMemory { start, bytes, layout: None };
                lock(&self.pinned).insert(raw(memory), pinned);
                Ok((start, raw(memory)))
            }
            Err(error) => {
                // SAFETY: nothing uses it.
                let _ = unsafe { release_mem_object(memory) };
                Err(error)
            }
        }
    }

    /// Starts one step.
    ///
    /// # Safety
    /// As [`Driver::submit`].
    unsafe fn enqueue(&self, queue: cl_command_queue, step: &Step<'_>) -> Result<cl_event> {
        let later = CL_NON_BLOCKING;
        // SAFETY: the caller answers for handles, host memory and the kernel's reach.
        let (what, event) = unsafe {
            match *step {
                Step::Write { to, at, from, bytes } => (
                    "cannot copy to the device",
                    enqueue_write_buffer(
                        queue,
                        pointer(to),
                        later,
                        at,
                        bytes,
                        from.cast(),
                        0,
                        null(),
                    ),
                ),
                Step::Read { from, at, to, bytes } => (
                    "cannot copy from the device",
                    enqueue_read_buffer(
                        queue,
                        pointer(from),
                        later,
                        at,
                        bytes,
                        to.cast(),
                        0,
                        null(),
                    ),
                ),
                Step::Copy { from, to, bytes } => (
                    "cannot copy within the device",
                    enqueue_copy_buffer(queue, pointer(from), pointer(to), 0, 0, bytes, 0, null()),
                ),
                Step::Zero { buffer, bytes } => {
                    let zero = (&raw const ZERO).cast();
                    (
                        "cannot clear a buffer",
                        enqueue_fill_buffer(queue, pointer(buffer), zero, 4, 0, bytes, 0, null()),
                    )
                }
                Step::Show { pinned } => {
                    let start = self.pinned_start(pinned)?.start.as_ptr().cast();
                    (
                        "cannot show memory to the device",
                        enqueue_unmap_mem_object(queue, pointer(pinned), start, 0, null()),
                    )
                }
                Step::Hide { pinned } => {
                    let bytes = self.pinned_start(pinned)?.bytes;
                    let flags = CL_MAP_READ | CL_MAP_WRITE;
                    let memory = pointer(pinned);
                    // The address was found when the memory was pinned, and does not change.
                    let mut same = null_mut();
                    let event = enqueue_map_buffer(
                        queue,
                        memory,
                        later,
                        flags,
                        0,
                        bytes,
                        &mut same,
                        0,
                        null(),
                    );
                    ("cannot take memory back from the device", event)
                }
                Step::Launch { kernel, arguments, groups, items } => {
                    ("cannot run a kernel", self.launch(queue, kernel, arguments, groups, items))
                }
            }
        };
        event.map_err(self.failed(what))
    }

    fn pinned_start(&self, pinned: Raw) -> Result<PinnedMemory> {
        lock(&self.pinned).get(&pinned).copied().ok_or_else(|| Error::Failed {
            device: self.facts.name.clone(),
            what: "memory is shown that was not pinned".to_string(),
        })
    }

    /// # Safety
    /// As [`Driver::submit`].
    unsafe fn launch(
        &self,
        queue: cl_command_queue,
        kernel: Raw,
        arguments: &[RawArgument],
        groups: u32,
        items: u32,
    ) -> std::result::Result<cl_event, i32> {
        let kernel = pointer(kernel);
        let local = items as usize;
        let global = local * groups as usize;
        let _alone = lock(&self.binding);
        for (index, argument) in arguments.iter().enumerate() {
            let index = index as u32;
            // SAFETY: the kernel is alive, and sizes are those of the values.
            unsafe {
                match argument {
                    RawArgument::Buffer(raw) => {
                        let memory: cl_mem = pointer(*raw);
                        let value = (&raw const memory).cast();
                        set_kernel_arg(kernel, index, size_of::<cl_mem>(), value)?;
                    }
                    RawArgument::Number(number) => {
                        set_kernel_arg(kernel, index, 4, (&raw const *number).cast())?;
                    }
                }
            }
        }
        // SAFETY: all arguments are set; the caller answers for what the kernel does.
        unsafe { enqueue_nd_range_kernel(queue, kernel, 1, null(), &global, &local, 0, null()) }
    }
}

static ZERO: u32 = 0;

fn release_kernels(kernels: &[cl_kernel]) {
    for &kernel in kernels {
        // SAFETY: made by `create_kernel`, and released once.
        let _ = unsafe { release_kernel(kernel) };
    }
}

// SAFETY: `pin` gives memory of an allocation or mapping of its own; `collect` finishes the queue.
unsafe impl Driver for OpenCl {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn dialect(&self) -> Dialect {
        Dialect::OpenCl
    }

    fn compile(&self, source: &str, kernels: &[&str]) -> Result<Vec<Raw>> {
        let program = create_program_with_source(self.context, &[source])
            .map_err(self.failed("cannot make a program"))?;
        let made = self.build(program).and_then(|()| self.kernels(program, kernels));
        match made {
            Ok(made) => {
                let handles = made.iter().map(|&kernel| raw(kernel)).collect();
                lock(&self.programs).push((program, made));
                Ok(handles)
            }
            Err(error) => {
                // SAFETY: nothing uses the program.
                let _ = unsafe { release_program(program) };
                Err(error)
            }
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Raw> {
        // SAFETY: the context is alive; no memory of ours is given.
        unsafe { create_buffer(self.context, CL_MEM_READ_WRITE, bytes, null_mut()) }
            .map(raw)
            .map_err(|code| failure(&self.facts.name, &format!("a buffer of {bytes} bytes"), code))
    }

    unsafe fn free(&self, buffer: Raw) {
        // SAFETY: the caller says that it is ours and unused. What fails was no buffer any more.
        let _ = unsafe { release_mem_object(pointer(buffer)) };
    }

    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        if self.facts.is_unified { self.pin_shared(bytes) } else { self.pin_for_copies(bytes) }
    }

    unsafe fn unpin(&self, start: NonNull<u8>, pinned: Raw) {
        let memory: cl_mem = pointer(pinned);
        let known = lock(&self.pinned).remove(&pinned);
        // SAFETY: it is mapped since it was pinned; the caller says that nobody uses it.
        unsafe {
            let host: *mut c_void = start.as_ptr().cast();
            if let Ok(event) = enqueue_unmap_mem_object(self.queue, memory, host, 0, null()) {
                events::release(event);
            }
            let _ = finish(self.queue);
            let _ = release_mem_object(memory);
            if let Some(layout) = known.and_then(|pinned| pinned.layout) {
                dealloc(start.as_ptr(), layout);
            }
        }
    }

    fn open_queue(&self) -> Result<Raw> {
        // SAFETY: context and device are alive.
        let queue =
            unsafe { create_command_queue(self.context, self.id, CL_QUEUE_PROFILING_ENABLE) }
                .map_err(self.failed("cannot make a queue"))?;
        let open = Open { queue, under_way: Mutex::new(Vec::new()) };
        Ok(raw(Box::into_raw(Box::new(open))))
    }

    unsafe fn close_queue(&self, queue: Raw) {
        // SAFETY: the caller says that `open_queue` made it and that nothing is under way.
        let open = unsafe { Box::from_raw(pointer::<Open>(queue)) };
        // SAFETY: as above.
        let _ = unsafe { release_command_queue(open.queue) };
    }

    unsafe fn submit(&self, queue: Raw, steps: &[Step<'_>]) -> Result<()> {
        // SAFETY: the caller says that `open_queue` made it.
        let open = unsafe { &*pointer::<Open>(queue) };
        let mut under_way = lock(&open.under_way);
        for step in steps {
            // SAFETY: the caller answers for the steps.
            let event = unsafe { self.enqueue(open.queue, step) }?;
            under_way.push((Part::of(step), event));
        }
        flush(open.queue).map_err(self.failed("cannot start a job"))
    }

    unsafe fn collect(&self, queue: Raw) -> Result<Times> {
        // SAFETY: the caller says that `open_queue` made it.
        let open = unsafe { &*pointer::<Open>(queue) };
        let finished = finish(open.queue).map_err(self.failed("cannot finish a job"));
        let done = std::mem::take(&mut *lock(&open.under_way));
        let times = events::times(&done).map_err(self.failed("a job failed"));
        done.iter().for_each(|(_, event)| events::release(*event));
        finished.and(times)
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        for (program, kernels) in lock(&self.programs).drain(..) {
            release_kernels(&kernels);
            // SAFETY: made by `create_program_with_source`, and released once.
            let _ = unsafe { release_program(program) };
        }
        // SAFETY: all that was made in the context is gone: buffers and queues hold the device.
        unsafe {
            let _ = release_command_queue(self.queue);
            let _ = release_context(self.context);
        }
    }
}
