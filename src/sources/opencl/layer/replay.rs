//! Kernel replay: a kernel whose counters need several passes runs once for each of them, and the program sees one run.
//!
//! Before the program's own enqueue, [`run`] saves what the kernel may write, runs it on a queue of the layer's for each
//! pass but the last, and restores the memory after each of these runs. The program's own enqueue is the last pass: its
//! event, its times and its status are those of a kernel that nobody counted, and whatever goes wrong before it leaves the
//! program with just that kernel.
//!
//! Saved copies are buffers of the same context, made for one kernel and released before the enqueue returns, as is the
//! queue: nothing of the layer's is referred to by an object of the program while the program could ask. All other work of
//! the context has ended before the first copy; other threads that enqueue work meanwhile wait, since a restored copy
//! would undo what they write.
//!
//! A kernel is refused, with its reason, if what it changes is not known or cannot be restored: see
//! [`WritableMemory::of`]. It runs once then, and its values are invalid.
//!
//! | reason | when |
//! |---|---|
//! | the kernel uses shared virtual memory, a pipe | as an argument, or by `clSetKernelExecInfo` |
//! | memory of the kernel is mapped | an argument, its parent or another part of it, at the enqueue |
//! | memory of the kernel lies in the program's own | `CL_MEM_USE_HOST_PTR` |
//! | the memory of the kernel is too large to save | more than 1 GiB |
//! | the kernel may print or change variables of its program | its source (else its binary) mentions `printf`, or the program has global variables; enqueues other than `clEnqueueNDRangeKernel` and `clEnqueueTask` |
//! | an argument of the kernel is not known | it was set before a tool configured several passes: set all again |
//! | memory of the kernel could not be saved | there is no room for copies; or objects of OpenGL or EGL, or with several samples or levels |
//! | a pass failed or lasted too long | an error, or more than 10 s |
//! | the dispatch could not be waited for | as for one pass; or another queue of the context took more than 1 s |

use super::below::{below, next};
use super::counters;
use super::ended;
use super::ffi::*;
use super::functions::ask;
use super::kernel_arguments::{self, KernelValue};
use super::memory::{self, MemoryInfo};
use super::queues::{self, QUEUES};
use super::work::KernelLaunch;
use super::{completion, programs};
use crate::perf::HostCounters;
use core::ptr;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_buffer::platform::system::thread_id;
use gputrail_record::{AgentId, CounterInvalid};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The most memory of a kernel that is saved, in bytes.
const MAX_SAVED: u64 = 1 << 30;
/// A kernel of which a pass takes longer is not replayed further.
const LONGEST_PASS: Duration = Duration::from_secs(10);
/// How long a thread waits for the replay of another one.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_micros(20);

/// The thread that replays a kernel; 0 if there is none.
static REPLAYING: AtomicU32 = AtomicU32::new(0);
/// Whether memory could not be restored, or a released queue still has work: no kernel is replayed any more.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Whether the source or the code of a program may print, by module.
static PRINTS: PerProcess<HashMap<u32, bool>> = PerProcess::new();

/// Forgets the programs of a parent process, and its replay.
pub(super) fn begin() {
    PRINTS.lock().clear();
    REPLAYING.store(0, Ordering::Relaxed);
    IS_OVER.store(false, Ordering::Relaxed);
}

/// The program is going to release its last reference to a queue, whose work may go on after that.
#[cold]
pub(super) fn queue_going(queue: cl_command_queue) {
    if !ended::soon(queue) {
        IS_OVER.store(true, Ordering::Relaxed);
    }
}

/// Waits until no other thread replays a kernel: the calling one is going to enqueue work.
#[inline(always)]
pub(super) fn wait_for_others() {
    if REPLAYING.load(Ordering::Relaxed) != 0 {
        wait();
    }
}

#[cold]
#[inline(never)]
fn wait() {
    let me = thread_id();
    let by = REPLAYING.load(Ordering::Acquire);
    // The replay may need a thread of the runtime, or this one, which is in a callback of the runtime's.
    if by == me || counters::is_of_runtime() {
        return;
    }
    let until = Instant::now() + LONGEST_WAIT;
    while REPLAYING.load(Ordering::Acquire) != 0 && Instant::now() < until {
        std::thread::sleep(STEP);
    }
}

/// While it lives, threads that enqueue work wait.
struct ReplayTurn;

impl ReplayTurn {
    fn take() -> ReplayTurn {
        REPLAYING.store(thread_id(), Ordering::Release);
        ReplayTurn
    }
}

impl Drop for ReplayTurn {
    fn drop(&mut self) {
        REPLAYING.store(0, Ordering::Release);
    }
}

/// Runs `kernel`, which the program is about to put into `queue`, in all of `passes` but the last, with readings of
/// `counters` around each, and begins to count the last. `told` is called after each pass with their number. The calling
/// thread owns the counters, and the work that the kernel waits for has ended.
pub(super) fn run(
    counters: &HostCounters,
    agent: AgentId,
    queue: cl_command_queue,
    kernel: Option<KernelLaunch>,
    passes: usize,
    mut told: impl FnMut(usize),
) -> Result<(), CounterInvalid> {
    let kernel = kernel.ok_or(CounterInvalid::SIDE_EFFECTS)?;
    if IS_OVER.load(Ordering::Relaxed) {
        return Err(CounterInvalid::NOT_SAVED);
    }
    let parts = WritableMemory::of(&kernel)?;
    let turn = ReplayTurn::take();
    if !others_have_ended(queue) {
        return Err(CounterInvalid::NOT_AWAITED);
    }
    let saved = Saved::new(queue, &parts)?;
    for pass in 0..passes - 1 {
        counters.begin(agent, pass);
        let ran = saved.run(&kernel);
        counters.end();
        if !saved.restore() {
            IS_OVER.store(true, Ordering::Relaxed);
            message(format_args!(
                "counters: memory of a kernel could not be restored after pass {} of {passes}: the program may have \
                 wrong results. No kernel runs in several passes from now on",
                pass + 1
            ));
            return Err(CounterInvalid::PASS_FAILED);
        }
        if !ran {
            return Err(CounterInvalid::PASS_FAILED);
        }
        told(pass + 1);
    }
    drop(saved);
    counters.begin(agent, passes - 1);
    drop(turn);
    Ok(())
}

/// Waits until the work in the other queues of the context of `queue` has ended. `false`: it did not soon.
fn others_have_ended(queue: cl_command_queue) -> bool {
    let context = queues::ids(queue).context;
    let mut others = Vec::new();
    QUEUES.each(|handle, info| {
        let other = cl_command_queue(handle as *mut c_void);
        if other != queue && info.ids.context == context && info.may_have_work() {
            // SAFETY: the program holds a reference: while the table is locked, no thread releases the last one.
            unsafe { next!(clRetainCommandQueue(other)) };
            others.push(other);
        }
    });
    let mut all_have_ended = true;
    for other in others {
        all_have_ended = all_have_ended && ended::soon(other);
        // SAFETY: the reference that was taken above.
        unsafe { next!(clReleaseCommandQueue(other)) };
    }
    all_have_ended
}

/// The memory that a kernel may write.
#[derive(Debug, Default)]
struct WritableMemory {
    /// Ranges of buffers that are no part of another one, as first byte and end.
    buffers: BTreeMap<u64, Vec<(usize, usize)>>,
    images: Vec<cl_mem>,
}

impl WritableMemory {
    /// The memory that `kernel` may write, with its arguments as they are now.
    ///
    /// Refused: arguments that are not known; shared virtual memory and pipes; memory that is mapped, or lies in the
    /// program's own, or is shared with another API; more than [`MAX_SAVED`]; kernels of programs that may print or have
    /// variables in global memory.
    fn of(launch: &KernelLaunch) -> Result<WritableMemory, CounterInvalid> {
        let kernel = launch.kernel;
        let program = ask!(below(), clGetKernelInfo(kernel, CL_KERNEL_PROGRAM) -> cl_program);
        if program.is_none_or(|program| prints(program) || has_variables(program)) {
            return Err(CounterInvalid::SIDE_EFFECTS);
        }
        let count = ask!(below(), clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS) -> cl_uint);
        let count = count.ok_or(CounterInvalid::UNKNOWN_ARGUMENT)?;
        let arguments = kernel_arguments::of(kernel);
        if arguments.has_shared {
            return Err(CounterInvalid::SHARED_MEMORY);
        }
        let mut parts = WritableMemory::default();
        for index in 0..count {
            match arguments.by_index.get(&index) {
                None => return Err(CounterInvalid::UNKNOWN_ARGUMENT),
                Some(KernelValue::Plain) | Some(KernelValue::Handle(0)) => {}
                Some(KernelValue::Shared) => return Err(CounterInvalid::SHARED_MEMORY),
                Some(KernelValue::Handle(handle)) => {
                    let argument = cl_mem(*handle as *mut c_void);
                    if may_write(kernel, index, argument) {
                        parts.add(argument)?;
                    }
                }
            }
        }
        parts.merge();
        if parts.bytes() > MAX_SAVED {
            Err(CounterInvalid::TOO_LARGE)
        } else {
            Ok(parts)
        }
    }

    /// Adds a memory object.
    fn add(&mut self, object: cl_mem) -> Result<(), CounterInvalid> {
        if flags(object) & CL_MEM_READ_ONLY != 0 {
            return Ok(());
        }
        if kind(object) == Some(CL_MEM_OBJECT_PIPE) {
            return Err(CounterInvalid::PIPE);
        }
        let (mut root, mut from) = (object, 0);
        let mut bytes = size(object)?;
        loop {
            check(root)?;
            let parent =
                ask!(below(), clGetMemObjectInfo(root, CL_MEM_ASSOCIATED_MEMOBJECT) -> cl_mem);
            let Some(parent) = parent.filter(|parent| !parent.is_null()) else {
                break;
            };
            if kind(root) == Some(CL_MEM_OBJECT_BUFFER) {
                let offset = ask!(below(), clGetMemObjectInfo(root, CL_MEM_OFFSET) -> usize);
                from += offset.ok_or(CounterInvalid::NOT_SAVED)?;
            } else {
                // An image of a buffer, or another view of an image.
                (from, bytes) = (0, size(parent)?);
            }
            root = parent;
        }
        // Other parts of the same memory may be mapped.
        if memory::any_part(root, is_mapped) {
            return Err(CounterInvalid::MAPPED);
        }
        match kind(root) {
            Some(CL_MEM_OBJECT_BUFFER) => {
                let ranges = self.buffers.entry(root.into()).or_default();
                ranges.push((from, from.saturating_add(bytes)));
            }
            _ if self.images.contains(&root) => {}
            _ => self.images.push(root),
        }
        Ok(())
    }

    /// Joins ranges that overlap.
    fn merge(&mut self) {
        for ranges in self.buffers.values_mut() {
            ranges.sort_unstable();
            let mut merged: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
            for (from, to) in ranges.drain(..) {
                match merged.last_mut() {
                    Some(last) if from <= last.1 => last.1 = last.1.max(to),
                    _ => merged.push((from, to)),
                }
            }
            *ranges = merged;
        }
    }

    fn bytes(&self) -> u64 {
        let ranges = self.buffers.values().flatten();
        let buffers: u64 = ranges.map(|(from, to)| (to - from) as u64).sum();
        let images = self.images.iter().map(|image| image_bytes(*image) as u64);
        images.fold(buffers, u64::saturating_add)
    }
}

/// Whether an argument is memory that its kernel may write.
fn may_write(kernel: cl_kernel, index: cl_uint, argument: cl_mem) -> bool {
    // What runtimes know of arguments may depend on how the program was built.
    let address = ask!(below(), clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER) -> cl_uint);
    let access =
        ask!(below(), clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER) -> cl_uint);
    let is_object =
        memory::known(argument).is_some() || address == Some(CL_KERNEL_ARG_ADDRESS_GLOBAL);
    is_object
        && address != Some(CL_KERNEL_ARG_ADDRESS_CONSTANT)
        && access != Some(CL_KERNEL_ARG_ACCESS_READ_ONLY)
}

fn kind(object: cl_mem) -> Option<cl_uint> {
    ask!(below(), clGetMemObjectInfo(object, CL_MEM_TYPE) -> cl_uint)
}

fn flags(object: cl_mem) -> u64 {
    ask!(below(), clGetMemObjectInfo(object, CL_MEM_FLAGS) -> u64).unwrap_or(0)
}

fn size(object: cl_mem) -> Result<usize, CounterInvalid> {
    let size = ask!(below(), clGetMemObjectInfo(object, CL_MEM_SIZE) -> usize);
    size.ok_or(CounterInvalid::UNKNOWN_ARGUMENT)
}

fn is_mapped(object: cl_mem) -> bool {
    ask!(below(), clGetMemObjectInfo(object, CL_MEM_MAP_COUNT) -> cl_uint)
        .is_none_or(|maps| maps > 0)
}

/// Checks whether `object` can be saved.
fn check(object: cl_mem) -> Result<(), CounterInvalid> {
    if flags(object) & CL_MEM_USE_HOST_PTR != 0 {
        return Err(CounterInvalid::HOST_POINTER);
    }
    if is_mapped(object) {
        return Err(CounterInvalid::MAPPED);
    }
    let is_foreign = |info: MemoryInfo| info.is_foreign();
    let several = |what| ask!(below(), clGetImageInfo(object, what) -> cl_uint).unwrap_or(0) > 1;
    let is_image = kind(object) != Some(CL_MEM_OBJECT_BUFFER);
    let is_layered =
        is_image && (several(CL_IMAGE_NUM_MIP_LEVELS) || several(CL_IMAGE_NUM_SAMPLES));
    if memory::known(object).is_some_and(is_foreign) || is_layered {
        Err(CounterInvalid::NOT_SAVED)
    } else {
        Ok(())
    }
}

/// Width, height and depth of an image, as copies take them.
fn region(image: cl_mem) -> [usize; 3] {
    let size = |what| ask!(below(), clGetImageInfo(image, what) -> usize).unwrap_or(0);
    let (width, height, depth) = (
        size(CL_IMAGE_WIDTH),
        size(CL_IMAGE_HEIGHT).max(1),
        size(CL_IMAGE_DEPTH).max(1),
    );
    match kind(image) {
        Some(CL_MEM_OBJECT_IMAGE1D_ARRAY) => [width, size(CL_IMAGE_ARRAY_SIZE).max(1), 1],
        Some(CL_MEM_OBJECT_IMAGE2D_ARRAY) => [width, height, size(CL_IMAGE_ARRAY_SIZE).max(1)],
        _ => [width, height, depth],
    }
}

fn image_bytes(image: cl_mem) -> usize {
    let pixel = ask!(below(), clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE) -> usize).unwrap_or(0);
    let pixels = region(image).into_iter().reduce(usize::saturating_mul);
    pixels.unwrap_or(0).saturating_mul(pixel)
}

/// Whether kernels of `program` may print: its source mentions printf, or its code does if there is no source.
fn prints(program: cl_program) -> bool {
    let module = programs::module(program);
    if let Some(known) = PRINTS.lock().get(&module.0) {
        return *known;
    }
    let prints = programs::mentions(program, b"printf");
    PRINTS.lock().insert(module.0, prints);
    prints
}

/// Whether `program` has variables in global memory, which outlive a kernel.
fn has_variables(program: cl_program) -> bool {
    let device = programs::first_device(program);
    let what = CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE;
    ask!(below(), clGetProgramBuildInfo(program, device, what) -> usize).unwrap_or(0) > 0
}

/// The saved memory of a kernel, and the queue that copies it.
struct Saved {
    queue: cl_command_queue,
    copies: Vec<Copied>,
}

/// A saved part.
struct Copied {
    of: cl_mem,
    copy: cl_mem,
    part: MemoryPart,
}

#[derive(Copy, Clone)]
enum MemoryPart {
    /// First byte and number of bytes.
    Buffer(usize, usize),
    /// The region.
    Image([usize; 3]),
}

impl Saved {
    /// Saves `parts` on a queue of the context and device of `of`.
    fn new(of: cl_command_queue, parts: &WritableMemory) -> Result<Saved, CounterInvalid> {
        const FAILED: CounterInvalid = CounterInvalid::NOT_SAVED;
        let context = ask!(below(), clGetCommandQueueInfo(of, CL_QUEUE_CONTEXT) -> cl_context);
        let device = ask!(below(), clGetCommandQueueInfo(of, CL_QUEUE_DEVICE) -> cl_device_id);
        let (context, device) = (context.ok_or(FAILED)?, device.ok_or(FAILED)?);
        let mut status = CL_SUCCESS;
        // SAFETY: the context and device of the program's queue; the runtime writes the status to a local.
        let queue = unsafe {
            next!(clCreateCommandQueue(
                context,
                device,
                cl_bitfield(0),
                &raw mut status
            ))
        };
        if queue.is_null() {
            return Err(FAILED);
        }
        let mut saved = Saved {
            queue,
            copies: Vec::new(),
        };
        let ranges = parts.buffers.iter().flat_map(|(buffer, ranges)| {
            let buffer = cl_mem(*buffer as *mut c_void);
            let part =
                move |(from, to): &(usize, usize)| (buffer, MemoryPart::Buffer(*from, to - from));
            ranges.iter().map(part)
        });
        let images = parts.images.iter();
        let images = images.map(|image| (*image, MemoryPart::Image(region(*image))));
        for (of, part) in ranges.chain(images) {
            let bytes = match part {
                MemoryPart::Buffer(_, bytes) => bytes,
                MemoryPart::Image(_) => image_bytes(of),
            };
            // SAFETY: the context of the program's queue; no memory is passed, and the runtime writes the status to a local.
            let copy = unsafe {
                next!(clCreateBuffer(
                    context,
                    cl_bitfield(0),
                    bytes.max(1),
                    ptr::null_mut(),
                    &raw mut status
                ))
            };
            if copy.is_null() {
                return Err(FAILED);
            }
            saved.copies.push(Copied { of, copy, part });
        }
        if saved.copy_all(Copied::save) {
            Ok(saved)
        } else {
            Err(FAILED)
        }
    }

    /// Copies everything back. `false`: that failed.
    fn restore(&self) -> bool {
        self.copy_all(Copied::restore)
    }

    fn copy_all(&self, copy: impl Fn(&Copied, cl_command_queue, *mut cl_event) -> cl_int) -> bool {
        let mut has_copied = true;
        for copied in &self.copies {
            has_copied &= self.done(|event| copy(copied, self.queue, event));
        }
        has_copied
    }

    /// Runs a pass. `false`: it failed, or lasted too long.
    fn run(&self, kernel: &KernelLaunch) -> bool {
        let since = Instant::now();
        // SAFETY: the program's call, which has not returned, has these arguments.
        let ran = self.done(|event| unsafe { kernel.enqueue_on(self.queue, event) });
        ran && since.elapsed() < LONGEST_PASS
    }

    /// Enqueues a command by `enqueue`, and waits for it. `false`: it failed. Nothing in this queue waits for the program.
    fn done(&self, enqueue: impl FnOnce(*mut cl_event) -> cl_int) -> bool {
        let mut event = cl_event::NULL;
        if enqueue(&raw mut event) != CL_SUCCESS {
            return false;
        }
        // SAFETY: the queue is ours until `self` is dropped.
        let finished = unsafe { next!(clFinish(self.queue)) };
        let status = completion::status_of(event);
        completion::release(event);
        finished == CL_SUCCESS && status == Some(CL_COMPLETE)
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        for copied in &self.copies {
            // SAFETY: the buffer is ours, and is used no more: each copy has been awaited.
            unsafe { next!(clReleaseMemObject(copied.copy)) };
        }
        // SAFETY: the queue is ours, and is used no more.
        unsafe { next!(clReleaseCommandQueue(self.queue)) };
    }
}

impl Copied {
    fn save(&self, queue: cl_command_queue, event: *mut cl_event) -> cl_int {
        let (of, copy, none) = (self.of, self.copy, ptr::null());
        match &self.part {
            MemoryPart::Buffer(from, bytes) => {
                // SAFETY: memory that a kernel uses whose launch has not returned, so that the program keeps it, and a copy
                // of ours; `event` is a place for an event.
                unsafe {
                    next!(clEnqueueCopyBuffer(
                        queue, of, copy, *from, 0, *bytes, 0, none, event
                    ))
                }
            }
            MemoryPart::Image(region) => {
                let (origin, region) = ([0usize; 3], region.as_ptr());
                // SAFETY: as above; `origin` and `region` have three numbers, which the runtime reads in the call.
                unsafe {
                    next!(clEnqueueCopyImageToBuffer(
                        queue,
                        of,
                        copy,
                        origin.as_ptr(),
                        region,
                        0,
                        0,
                        none,
                        event
                    ))
                }
            }
        }
    }

    fn restore(&self, queue: cl_command_queue, event: *mut cl_event) -> cl_int {
        let (of, copy, none) = (self.of, self.copy, ptr::null());
        match &self.part {
            MemoryPart::Buffer(from, bytes) => {
                // SAFETY: as in `save`.
                unsafe {
                    next!(clEnqueueCopyBuffer(
                        queue, copy, of, 0, *from, *bytes, 0, none, event
                    ))
                }
            }
            MemoryPart::Image(region) => {
                let (origin, region) = ([0usize; 3], region.as_ptr());
                // SAFETY: as in `save`.
                unsafe {
                    next!(clEnqueueCopyBufferToImage(
                        queue,
                        copy,
                        of,
                        0,
                        origin.as_ptr(),
                        region,
                        0,
                        none,
                        event
                    ))
                }
            }
        }
    }
}
