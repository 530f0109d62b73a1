//! Jobs: copies, launches and reads that run in order, and borrow their memory until they end.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::{Device, Kernel};
use crate::driver::{Raw, RawArgument, Step, Times};
use crate::error::{Error, Result};
use crate::memory::Buffer;
use crate::program::{Parameter, Signature};
use crate::shared::Shared;

/// A kernel's arguments, bound by name.
#[derive(Debug, Clone)]
pub struct Arguments<'b> {
    signature: Signature,
    values: Vec<Option<Value>>,
    buffers: PhantomData<&'b Buffer>,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Raw(RawArgument),
    /// The job's input.
    Input,
}

impl Kernel {
    /// Starts binding the kernel's arguments.
    pub fn bind<'b>(&self) -> Arguments<'b> {
        Arguments::of(self.signature)
    }
}

impl<'b> Arguments<'b> {
    fn of(signature: Signature) -> Self {
        let values = vec![None; signature.parameters.len()];
        Arguments { signature, values, buffers: PhantomData }
    }

    /// Binds a buffer to an array.
    ///
    /// # Errors
    /// [`Error::Arguments`] if the kernel has no array of this name.
    pub fn buffer(self, name: &str, buffer: &'b Buffer) -> Result<Self> {
        self.set(name, false, Value::Raw(RawArgument::Buffer(buffer.raw)))
    }

    /// Binds the [input](Job::input) of the job to an array that the kernel reads.
    ///
    /// # Errors
    /// Those of [`buffer`](Self::buffer).
    pub fn input(self, name: &str) -> Result<Self> {
        self.set(name, false, Value::Input)
    }

    /// Binds a number.
    ///
    /// # Errors
    /// [`Error::Arguments`] if the kernel has no number of this name.
    pub fn number(self, name: &str, number: u32) -> Result<Self> {
        self.set(name, true, Value::Raw(RawArgument::Number(number)))
    }

    fn set(mut self, name: &str, is_number: bool, value: Value) -> Result<Self> {
        let fits = |parameter: &Parameter| {
            parameter.name() == name && matches!(parameter, Parameter::Number(_)) == is_number
        };
        let Some(at) = self.signature.parameters.iter().position(fits) else {
            let what = if is_number { "number" } else { "array" };
            let kernel = self.signature.name;
            return Err(Error::Arguments(format!("kernel {kernel}: it takes no {what} '{name}'")));
        };
        self.values[at] = Some(value);
        Ok(self)
    }

    /// Returns all arguments in the form that drivers bind.
    fn resolve(&self, kernel: &Kernel, input: Option<Raw>) -> Result<Vec<RawArgument>> {
        if self.signature != kernel.signature {
            return Err(kernel.wrong("bound with the arguments of another"));
        }
        let parameters = self.signature.parameters.iter().zip(&self.values);
        parameters
            .map(|(parameter, value)| match (value, input) {
                (Some(Value::Raw(raw)), _) => Ok(*raw),
                (Some(Value::Input), Some(raw)) => Ok(RawArgument::Buffer(raw)),
                (Some(Value::Input), None) => Err(kernel.wrong("the job has no input")),
                (None, _) => Err(kernel.wrong(format!("'{}' is not bound", parameter.name()))),
            })
            .collect()
    }
}

/// A list of commands that a queue runs in order.
#[derive(Debug, Default)]
pub struct Job<'j> {
    input: Option<&'j [u8]>,
    parts: Vec<Part<'j>>,
}

#[derive(Debug)]
enum Part<'j> {
    Write(&'j Buffer, &'j [u8]),
    Read(&'j Buffer, &'j mut [u8]),
    Copy(&'j Buffer, &'j Buffer),
    Zero(&'j Buffer, usize),
    Launch { kernel: &'j Kernel, arguments: Arguments<'j>, groups: u32, items: u32 },
}

impl<'j> Job<'j> {
    /// Creates an empty job.
    pub fn new() -> Self {
        Job::default()
    }

    /// Sets the host bytes that kernels of this job read. The queue copies them to its own buffer,
    /// or uses them in place if the device works in host memory and they begin where a
    /// [`Pinned`](crate::Pinned) does.
    pub fn input(&mut self, bytes: &'j [u8]) {
        self.input = Some(bytes);
    }

    /// Copies `from` to the start of a buffer.
    pub fn write(&mut self, to: &'j Buffer, from: &'j [u8]) {
        self.parts.push(Part::Write(to, from));
    }

    /// Copies the start of a buffer to `to`.
    pub fn read(&mut self, from: &'j Buffer, to: &'j mut [u8]) {
        self.parts.push(Part::Read(from, to));
    }

    /// Copies from one buffer to another, as much as both hold. [`Queue::run`] refuses a job that copies a
    /// buffer to itself, since drivers leave that undefined.
    pub fn copy(&mut self, from: &'j Buffer, to: &'j Buffer) {
        self.parts.push(Part::Copy(from, to));
    }

    /// Clears the first `bytes` bytes of a buffer, in whole words.
    pub fn zero(&mut self, buffer: &'j Buffer, bytes: usize) {
        self.parts.push(Part::Zero(buffer, bytes));
    }

    /// Runs a kernel in `groups` groups of `items` work items.
    ///
    /// # Safety
    /// With these arguments the kernel reads at most 64 bytes past the end of its arrays, and writes
    /// nothing outside them.
    pub unsafe fn launch(
        &mut self,
        kernel: &'j Kernel,
        arguments: Arguments<'j>,
        groups: u32,
        items: u32,
    ) {
        self.parts.push(Part::Launch { kernel, arguments, groups, items });
    }
}

/// Runs jobs in order.
pub struct Queue {
    device: Device,
    shared: Arc<Shared>,
    raw: Raw,
    /// The buffer that inputs are copied to; it grows with them.
    stage: Option<Buffer>,
}

impl Device {
    /// Opens a queue of jobs. Jobs of different queues run concurrently if the device supports it.
    ///
    /// # Errors
    /// [`Error::Failed`] or [`Error::OutOfMemory`].
    pub fn queue(&self) -> Result<Queue> {
        let raw = self.shared().driver.open_queue()?;
        Ok(Queue::new(self.clone(), self.shared().clone(), raw))
    }

    /// Creates a buffer that holds `content`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and those of [`Queue::run`].
    pub fn buffer_with(&self, queue: &mut Queue, content: &[u8]) -> Result<Buffer> {
        let buffer = self.buffer(content.len())?;
        let mut job = Job::new();
        job.write(&buffer, content);
        queue.run(job)?;
        Ok(buffer)
    }
}

impl Queue {
    fn new(device: Device, shared: Arc<Shared>, raw: Raw) -> Self {
        Queue { device, shared, raw, stage: None }
    }

    /// Returns the device that the queue runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Allocates space for inputs of `bytes` bytes, so that later jobs need not.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.stage.as_ref().is_none_or(|stage| stage.bytes() < bytes) {
            // Free the old buffer first, so that both need not fit.
            self.stage = None;
            self.stage = Some(self.device.buffer(bytes)?);
        }
        Ok(())
    }

    /// Runs a job and waits for its end.
    ///
    /// # Errors
    /// [`Error::Arguments`] before anything runs; [`Error::Failed`] or [`Error::OutOfMemory`] from the
    /// driver, after which the outputs have undefined contents.
    pub fn run(&mut self, job: Job<'_>) -> Result<Times> {
        let (input, copied) = self.input(job.input)?;
        let arguments = job
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Launch { kernel, arguments, .. } => Some((kernel, arguments)),
                _ => None,
            })
            .map(|(kernel, arguments)| {
                if !kernel.device.is(&self.shared) {
                    return Err(kernel.wrong("compiled for another device"));
                }
                arguments.resolve(kernel, input)
            })
            .collect::<Result<Vec<_>>>()?;
        let mut steps = Vec::with_capacity(job.parts.len() + 2);
        match (copied, input) {
            (Some(bytes), Some(to)) => {
                steps.push(Step::Write { to, at: 0, from: bytes.as_ptr(), bytes: bytes.len() });
            }
            (None, Some(pinned)) => steps.push(Step::Show { pinned }),
            _ => {}
        }
        let mut arguments = arguments.iter();
        for part in job.parts {
            steps.push(self.step(part, &mut arguments)?);
        }
        if let (None, Some(pinned)) = (copied, input) {
            steps.push(Step::Hide { pinned });
        }
        // SAFETY: all handles are this driver's: the loop above checked the device of the kernels, `step`
        // checked the device of the buffers to copy, that the copies fit and that no buffer is copied to
        // itself, this queue owns `stage`, and `pinned_at` only knows pinned memory of this device. The
        // caller of `Job::launch` vouches for the buffers that it binds and that kernels stay within them.
        // The job borrows the buffers and the host memory, exclusively where the device writes, until
        // `collect` has returned. `&mut self` keeps other threads off the queue.
        let submitted = unsafe { self.shared.driver.submit(self.raw, &steps) };
        // SAFETY: this driver opened `self.raw`, and `&mut self` keeps other threads off the queue.
        // The call follows even if `submit` failed, since the steps that it started must end, too.
        let collected = unsafe { self.shared.driver.collect(self.raw) };
        submitted.and(collected)
    }

    /// Returns the handle under which kernels see the input, and its bytes if they must be copied.
    fn input<'i>(&mut self, input: Option<&'i [u8]>) -> Result<(Option<Raw>, Option<&'i [u8]>)> {
        let Some(bytes) = input else { return Ok((None, None)) };
        if self.device.facts().is_unified
            && let Some(pinned) = self.shared.pinned_at(bytes)
        {
            return Ok((Some(pinned), None));
        }
        self.reserve(bytes.len())?;
        Ok((self.stage.as_ref().map(|stage| stage.raw), Some(bytes)))
    }

    fn step<'s>(
        &self,
        part: Part<'_>,
        arguments: &mut std::slice::Iter<'s, Vec<RawArgument>>,
    ) -> Result<Step<'s>> {
        let own = |buffer: &Buffer, bytes: usize| {
            if !self.device.is(&buffer.device) {
                return Err(Error::Arguments("a buffer of another device".to_string()));
            }
            if bytes > buffer.bytes() {
                let size = buffer.bytes();
                let what = format!("{bytes} bytes do not fit into a buffer of {size}");
                return Err(Error::Arguments(what));
            }
            Ok(buffer.raw)
        };
        Ok(match part {
            Part::Write(to, from) => Step::Write {
                to: own(to, from.len())?,
                at: 0,
                from: from.as_ptr(),
                bytes: from.len(),
            },
            Part::Read(from, to) => Step::Read {
                from: own(from, to.len())?,
                at: 0,
                bytes: to.len(),
                to: to.as_mut_ptr(),
            },
            Part::Copy(from, to) if std::ptr::eq(from, to) => {
                return Err(Error::Arguments("a buffer cannot be copied to itself".to_string()));
            }
            Part::Copy(from, to) => {
                let bytes = from.bytes().min(to.bytes());
                Step::Copy { from: own(from, bytes)?, to: own(to, bytes)?, bytes }
            }
            Part::Zero(buffer, bytes) => {
                let whole = bytes.next_multiple_of(4);
                Step::Zero { buffer: own(buffer, whole)?, bytes: whole }
            }
            Part::Launch { kernel, groups, items, .. } => Step::Launch {
                kernel: kernel.raw,
                arguments: arguments.next().map_or(&[], Vec::as_slice),
                groups: groups.max(1),
                items: items.max(1),
            },
        })
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({})", self.device.facts())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: this driver opened the queue, and no job is running, since `run` always waits for
        // `collect`.
        unsafe { self.shared.driver.close_queue(self.raw) }
    }
}
