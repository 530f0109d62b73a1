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

/// An opened device, in its own context.
pub(super) struct OpenCl {
    id: cl_device_id,
    context: cl_context,
    facts: Facts,
    /// For commands outside jobs: mapping and unmapping pinned memory.
    queue: cl_command_queue,
    programs: Mutex<Vec<(cl_program, Vec<cl_kernel>)>>,
    /// Serialises setting a kernel's arguments and enqueuing it, since arguments are state of the
    /// kernel.
    binding: Mutex<()>,
    pinned: Mutex<HashMap<Raw, PinnedMemory>>,
}

#[derive(Clone, Copy)]
struct PinnedMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// The layout of the allocation, if this crate allocated the memory and the device works in it.
    layout: Option<Layout>,
}

// SAFETY: OpenCL 1.2 makes every call thread-safe except `clSetKernelArg` on the same kernel, and
// `binding` serialises that. Locks guard the maps, and `start` in them is only an address.
unsafe impl Send for OpenCl {}
// SAFETY: OpenCL 1.2 makes every call thread-safe except `clSetKernelArg` on the same kernel, and
// `binding` serialises that. The fields outside locks do not change after `open`.
unsafe impl Sync for OpenCl {}

/// A queue, and the events of its running commands.
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
        // SAFETY: the loader just returned `id`, and `create_context` just returned `context` for
        // it.
        let queue = match unsafe { create_command_queue(context, id, 0) } {
            Ok(queue) => queue,
            Err(code) => {
                // SAFETY: `create_context` returned the context, nothing uses it, and it is
                // released once.
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

    /// Maps pinned memory for the host; it stays mapped unless a job shows it to the device.
    fn map(&self, memory: cl_mem, bytes: usize) -> Result<NonNull<u8>> {
        let mut mapped = null_mut();
        let flags = CL_MAP_READ | CL_MAP_WRITE;
        // SAFETY: `memory` is a live buffer of this context with at least `bytes` bytes, and it is
        // not mapped yet. `mapped` is valid for writing a pointer, and the blocking call has
        // written it on return. The wait list is empty: 0 events, null.
        let event = unsafe {
            let wait = CL_BLOCKING;
            enqueue_map_buffer(self.queue, memory, wait, flags, 0, bytes, &mut mapped, 0, null())
        }
        .map_err(self.failed("cannot map pinned memory"))?;
        events::release(event);
        NonNull::new(mapped.cast()).ok_or_else(|| Error::OutOfMemory {
            device: self.facts.name.clone(),
            what: "the driver mapped pinned memory to no address".to_string(),
        })
    }

    /// Allocates host memory that the device works in.
    fn pin_shared(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        let out = || Error::OutOfMemory {
            device: self.facts.name.clone(),
            what: format!("cannot allocate {bytes} bytes"),
        };
        let size = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let layout = Layout::from_size_align(size, PAGE_BYTES).map_err(|_| out())?;
        // SAFETY: the layout's size is not 0: it is at least a page.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(out)?;
        let flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
        let free = |error| {
            // SAFETY: `alloc_zeroed` returned `start` for this layout. The callers of `free` have
            // no buffer over it any more, and nobody else has the pointer.
            unsafe { dealloc(start.as_ptr(), layout) };
            error
        };
        // SAFETY: the context is alive. `start` points to `size` bytes, which stay allocated until
        // `unpin` has released the buffer.
        let memory = unsafe { create_buffer(self.context, flags, size, start.as_ptr().cast()) }
            .map_err(self.failed("cannot share memory"))
            .map_err(free)?;
        let mapped = self.map(memory, size);
        if mapped.as_ref().ok() != Some(&start) {
            // SAFETY: `create_buffer` returned the handle, nothing uses it, and it is released
            // once.
            let _ = unsafe { release_mem_object(memory) };
            let moved = || Error::Failed {
                device: self.facts.name.clone(),
                what: "the driver mapped shared memory to another address".to_string(),
            };
            return Err(free(mapped.err().unwrap_or_else(moved)));
        }
        let pinned = PinnedMemory { start, bytes: size, layout: Some(layout) };
        lock(&self.pinned).insert(raw(memory), pinned);
        Ok((start, raw(memory)))
    }

    /// Allocates pinned memory of the driver, which it copies from and to directly.
    fn pin_for_copies(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: the context is alive, and a null host pointer is allowed without
        // `CL_MEM_USE_HOST_PTR`.
        let memory = unsafe { create_buffer(self.context, flags, bytes, null_mut()) }
            .map_err(self.failed("cannot pin memory"))?;
        match self.map(memory, bytes) {
            Ok(start) => {
                // SAFETY: `map` returned `start`, a mapping of `bytes` bytes for reading and
                // writing, and nobody else has the pointer yet.
                unsafe { start.write_bytes(0, bytes) };
                let pinned = PinnedMemory { start, bytes, layout: None };
                lock(&self.pinned).insert(raw(memory), pinned);
                Ok((start, raw(memory)))
            }
            Err(error) => {
                // SAFETY: `create_buffer` returned the handle, nothing uses it, and it is released
                // once.
                let _ = unsafe { release_mem_object(memory) };
                Err(error)
            }
        }
    }

    /// Starts one step.
    ///
    /// # Safety
    /// Those of [`Driver::submit`].
    unsafe fn enqueue(&self, queue: cl_command_queue, step: &Step<'_>) -> Result<cl_event> {
        let later = CL_NON_BLOCKING;
        // SAFETY: the caller of `submit` vouches for the handles and for the ranges in the buffers.
        // `from` stays valid for reading `bytes` bytes, and `to` for exclusive writing, until
        // `collect` returns. `ZERO` is static and its 4 bytes are the pattern's size. The start of
        // a pinned buffer is the address at which `pin` mapped it. Wait lists are empty: 0 events,
        // null.
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
                    // `pin` checked or stored the address; mapping again returns the same one.
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
            what: "a job shows memory that was not pinned".to_string(),
        })
    }

    /// # Safety
    /// Those of [`Driver::submit`].
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
            // SAFETY: the kernel is a handle that `compile` returned, alive as long as this value,
            // and `binding` keeps other threads from setting its arguments. `value` points to a
            // live local or element of the size given, which the call copies.
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
        // SAFETY: the loop set every argument and the lock still protects them. `global` and
        // `local` are one-dimensional, as `1` says. The caller of `submit` vouches that the kernel
        // stays within its buffers.
        unsafe { enqueue_nd_range_kernel(queue, kernel, 1, null(), &global, &local, 0, null()) }
    }
}

static ZERO: u32 = 0;

fn release_kernels(kernels: &[cl_kernel]) {
    for &kernel in kernels {
        // SAFETY: `create_kernel` returned the handle, and its owner releases it once.
        let _ = unsafe { release_kernel(kernel) };
    }
}

// SAFETY: `pin` returns a new allocation or mapping, which nobody else has and which stays valid
// until `unpin`. `collect` waits for the end of every command of the queue, by `finish` and by the
// command's event; if neither wait succeeds, the driver has lost the device.
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
                // SAFETY: `create_program_with_source` returned the handle, its kernels are
                // released, and it is released once.
                let _ = unsafe { release_program(program) };
                Err(error)
            }
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Raw> {
        // SAFETY: the context is alive, and a null host pointer is allowed without
        // `CL_MEM_USE_HOST_PTR`.
        unsafe { create_buffer(self.context, CL_MEM_READ_WRITE, bytes, null_mut()) }
            .map(raw)
            .map_err(|code| failure(&self.facts.name, &format!("a buffer of {bytes} bytes"), code))
    }

    unsafe fn free(&self, buffer: Raw) {
        // SAFETY: the caller vouches that `allocate` returned the handle, and that no job uses the
        // buffer.
        let _ = unsafe { release_mem_object(pointer(buffer)) };
    }

    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)> {
        if self.facts.is_unified { self.pin_shared(bytes) } else { self.pin_for_copies(bytes) }
    }

    unsafe fn unpin(&self, start: NonNull<u8>, pinned: Raw) {
        let memory: cl_mem = pointer(pinned);
        let known = lock(&self.pinned).remove(&pinned);
        // SAFETY: `pin` mapped the memory at `start`, jobs map it again at their end, and the
        // caller vouches that nobody uses it. `finish` waits for the unmapping, so the buffer is
        // released before its memory; where it fails, the device may still use the memory, which
        // then stays allocated. `known.layout` is the layout with which `pin_shared`
        // allocated `start`.
        unsafe {
            let host: *mut c_void = start.as_ptr().cast();
            if let Ok(event) = enqueue_unmap_mem_object(self.queue, memory, host, 0, null()) {
                events::release(event);
            }
            let finished = finish(self.queue);
            let _ = release_mem_object(memory);
            let layout = known.and_then(|pinned| pinned.layout);
            if let (Ok(()), Some(layout)) = (finished, layout) {
                dealloc(start.as_ptr(), layout);
            }
        }
    }

    fn open_queue(&self) -> Result<Raw> {
        // SAFETY: `open` created the context for this device, and only `drop` releases it.
        let queue =
            unsafe { create_command_queue(self.context, self.id, CL_QUEUE_PROFILING_ENABLE) }
                .map_err(self.failed("cannot make a queue"))?;
        let open = Open { queue, under_way: Mutex::new(Vec::new()) };
        Ok(raw(Box::into_raw(Box::new(open))))
    }

    unsafe fn close_queue(&self, queue: Raw) {
        // SAFETY: the caller vouches that `open_queue` made this handle from `Box::into_raw` and
        // exposed its provenance, that it is closed once, and that no job is running, so no
        // reference to it exists.
        let open = unsafe { Box::from_raw(pointer::<Open>(queue)) };
        // SAFETY: `open_queue` created the queue, and this is the only place that releases it.
        let _ = unsafe { release_command_queue(open.queue) };
    }

    unsafe fn submit(&self, queue: Raw, steps: &[Step<'_>]) -> Result<()> {
        // SAFETY: the caller vouches that `open_queue` made this handle from a `Box` and that it is
        // not closed, so the pointer is aligned and the value alive. Only shared references to it
        // exist.
        let open = unsafe { &*pointer::<Open>(queue) };
        let mut under_way = lock(&open.under_way);
        for step in steps {
            // SAFETY: the contract of `enqueue` is that of `submit`, which the caller keeps.
            let event = unsafe { self.enqueue(open.queue, step) }?;
            under_way.push((Part::of(step), event));
        }
        flush(open.queue).map_err(self.failed("cannot start a job"))
    }

    unsafe fn collect(&self, queue: Raw) -> Result<Times> {
        // SAFETY: the caller vouches that `open_queue` made this handle from a `Box` and that it is
        // not closed, so the pointer is aligned and the value alive. Only shared references to it
        // exist.
        let open = unsafe { &*pointer::<Open>(queue) };
        let finished = finish(open.queue).map_err(self.failed("cannot finish a job"));
        let done = std::mem::take(&mut *lock(&open.under_way));
        // `clFinish` does not report failed commands, and if it fails itself, some may still be running.
        let ended = events::wait(&done);
        let times = events::times(&done);
        done.iter().for_each(|(_, event)| events::release(*event));
        ended
            .map_err(|(part, code)| failure(&self.facts.name, part.failure(), code))
            .and(finished)
            .map(|()| times)
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        for (program, kernels) in lock(&self.programs).drain(..) {
            release_kernels(&kernels);
            // SAFETY: `create_program_with_source` returned the handle, its kernels are released
            // above, and draining the list releases it once.
            let _ = unsafe { release_program(program) };
        }
        // SAFETY: `open` created the queue and the context, and they are released once, here.
        // Buffers, pinned memory and queues hold this driver, so none of them exists any more.
        unsafe {
            let _ = release_command_queue(self.queue);
            let _ = release_context(self.context);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use cl3::error_codes::CL_OUT_OF_RESOURCES;
    use cl3::event::{CL_COMPLETE, create_user_event, retain_event, set_user_event_status};
    use quarrier_core::threads;

    use super::*;

    /// Opens a queue with a command that the test ends, and for which `clFinish` does not wait.
    fn under_way(driver: &OpenCl, part: Part) -> (Raw, cl_event) {
        let queue = driver.open_queue().unwrap();
        let event = create_user_event(driver.context).unwrap();
        // SAFETY: `create_user_event` returned the event. The test keeps this reference, and `collect`
        // releases the other.
        unsafe { retain_event(event) }.unwrap();
        // SAFETY: `open_queue` just made this handle from a `Box`, and only the end of the test closes it.
        let open = unsafe { &*pointer::<Open>(queue) };
        lock(&open.under_way).push((part, event));
        (queue, event)
    }

    fn collect_and_close(driver: &OpenCl, queue: Raw, event: cl_event) -> Result<Times> {
        // SAFETY: `under_way` opened the queue, and only this thread uses it. Afterwards no job is running,
        // and it is not used again.
        let collected = unsafe {
            let collected = driver.collect(queue);
            driver.close_queue(queue);
            collected
        };
        events::release(event);
        collected
    }

    #[test]
    fn a_job_is_collected_when_its_last_command_has_ended() {
        let Some(driver) = crate::opencl::open_all().into_iter().next() else { return };
        let (queue, event) = under_way(&driver, Part::Collect);
        let (has_ended, handle) = (AtomicBool::new(false), raw(event));
        std::thread::scope(|scope| {
            let end = || {
                std::thread::sleep(Duration::from_millis(20));
                has_ended.store(true, Ordering::SeqCst);
                set_user_event_status(pointer(handle), CL_COMPLETE).unwrap();
            };
            threads::in_scope(scope, "", end).unwrap();
            collect_and_close(&driver, queue, event).unwrap();
            assert!(has_ended.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn a_command_that_failed_fails_its_job() {
        let Some(driver) = crate::opencl::open_all().into_iter().next() else { return };
        for (part, said) in [
            (Part::Copy, "a copy to the device failed"),
            (Part::Kernel, "a kernel failed"),
            (Part::Collect, "a copy from the device failed"),
        ] {
            let (queue, event) = under_way(&driver, part);
            set_user_event_status(event, CL_OUT_OF_RESOURCES).unwrap();
            let error = collect_and_close(&driver, queue, event).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
