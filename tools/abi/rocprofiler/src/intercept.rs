//! Kernels that are put into queues: the program's callback is called before, and returns the group that counts the kernel.
//!
//! # Callbacks
//!
//! `dispatch` is called before a kernel is enqueued, on the enqueuing thread. The group that it returns with `SUCCESS` counts the
//! kernel, and can be returned again when the kernel has ended. The first group that cannot be used is reported on standard
//! error. `create` is called after a queue is created, `destroy` before one is destroyed.
//!
//! | HSA | here |
//! |---|---|
//! | `hsa_queue_t` | `id` is the queue's handle (`cl_command_queue`); address, doorbell and size are 0. It is never freed |
//! | packet | valid during the callback: grid, workgroup (0 if the runtime chooses), dimensions, private and local memory, a number as `kernel_object`; address and signal are 0 |
//! | `kernel_name` | lasts as long as the process. A tool that also runs on ROCm's library copies it in the callback |
//!
//! # Which kernels are counted
//!
//! On every device, kernels run one after the other. On processors, an enqueue waits for the work before, and returns when a
//! counted kernel has ended. Kernels that cannot be waited for (`docs/counters.md`), and those that run when a further device
//! becomes known, have a record and no values. A device that is sampled when it becomes known is not counted, which is reported
//! on standard error.
//!
//! # Records
//!
//! The record of a dispatch has the time of the enqueuing call (`dispatch`), when the kernel began and ended, and when the host
//! learnt of its end (`complete`). All but the first are 0 until then, and always for kernels that kernels launch. The record
//! belongs to the tool, as with ROCm's library: it lasts until the tool frees it (`free`, or `delete` of C++), which it may when
//! `complete` is not 0.
//!
//! `kernel_code` leads to 256 zeros, the size of HSA's `amd_kernel_code_t`: no kernel has code for HSA.

use crate::agents::{self, Device};
use crate::context::{self, Context, Theirs};
use crate::errors::callee;
use crate::flight::{self, Flight};
use crate::types::{
    Answer, CallbackData, Failure, Group, Packet, Queue, QueueCallback, QueueCallbacks, Signal,
    Status,
};
use crate::{errors, settings, within};
use core::ffi::c_void;
use gputrail_abi::activity::local_memory;
use gputrail_abi::counting::{CounterSetHandle, Counts, Engine};
use gputrail_abi::{Watch, lock, names};
use gputrail_record::{self as record, AgentId, Completion, KernelDispatch, QueueId};
use gputrail_tool::events::{kernel_dispatch, resource};
use gputrail_tool::{self as tool, Callback, describe};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};

/// Sets the callbacks.
const SET_BY: &str = "rocprofiler_set_queue_callbacks";
/// `HSA_PACKET_TYPE_KERNEL_DISPATCH`
const KERNEL_DISPATCH: u16 = 2;
/// `HSA_QUEUE_FEATURE_KERNEL_DISPATCH`
const QUEUE_FEATURE: u32 = 1;

/// The machine code for HSA of each kernel (`amd_kernel_code_t`): none.
#[repr(C, align(64))]
struct KernelCode([u8; 256]);

static KERNEL_CODE: KernelCode = KernelCode([0; 256]);

/// The callbacks of the program, and what calls them.
struct Interception {
    callbacks: QueueCallbacks,
    data: Theirs<c_void>,
    /// Whether the callback on dispatches is not called for the time being.
    is_paused: AtomicBool,
    /// Told of devices, kernels and queues.
    watching: Mutex<Option<Watch>>,
    /// Counts, on the devices that are known.
    engine: Mutex<Engine<Counting>>,
}

/// The callbacks as those for which gputrail counts.
#[derive(Clone)]
struct Counting(Weak<Interception>);

impl Counts for Counting {
    const IS_RESERVED: bool = true;

    fn choose(&self, agent: AgentId, kernel: &KernelDispatch) -> Option<CounterSetHandle> {
        let this = self.0.upgrade()?;
        let device = agents::of_id(agent)?;
        Some(this.choose(&device, kernel)?.handle())
    }
}

static CURRENT: Mutex<Option<Arc<Interception>>> = Mutex::new(None);

/// Whether the properties have callbacks called. A tool may set these before it changes that.
fn is_on() -> bool {
    settings::get().intercept_mode != 0
}

/// Has the callbacks called, in the place of those that were set before.
pub fn set(callbacks: QueueCallbacks, data: *mut c_void) -> Answer {
    let QueueCallbacks {
        dispatch,
        create,
        destroy,
    } = callbacks;
    if dispatch.is_none() && create.is_none() && destroy.is_none() {
        return Err(Failure::null("each callback"));
    }
    remove();
    let new = Arc::new_cyclic(|new: &Weak<Interception>| Interception {
        callbacks,
        data: Theirs(data),
        is_paused: AtomicBool::new(false),
        watching: Mutex::default(),
        engine: Mutex::new(Engine::new(Counting(new.clone()))),
    });
    new.watch()?;
    new.count().map_err(context::refused)?;
    let before = lock(&CURRENT).replace(new);
    drop(before);
    Ok(())
}

/// The callbacks are not called any more. Kernels that have not ended get no values.
pub fn remove() {
    let current = lock(&CURRENT).take();
    if let Some(current) = current {
        let watching = lock(&current.watching).take();
        drop(watching);
        lock(&current.engine).stop();
        flight::abandon();
    }
}

/// Pauses the callback on dispatches, or has it called again. Kernels go on running one after the other meanwhile.
pub fn pause(is_paused: bool) {
    if let Some(current) = &*lock(&CURRENT) {
        current.is_paused.store(is_paused, Ordering::Relaxed);
    }
}

/// Whether the callbacks on dispatches have the kernels counted.
pub fn counts() -> bool {
    let current = lock(&CURRENT).clone();
    current.is_some_and(|current| lock(&current.engine).counts())
}

impl Interception {
    fn watch(self: &Arc<Self>) -> Answer {
        let of = Arc::downgrade(self);
        let operations = [
            resource::AGENT_KNOWN,
            resource::QUEUE_CREATED,
            resource::QUEUE_DESTROYED,
            kernel_dispatch::ENQUEUE,
            kernel_dispatch::COMPLETE,
        ];
        // A kernel whose device's clock is not known yet has its duration in the units of that clock.
        let watch = Watch::new(&operations, move |callback| {
            let Some(this) = of.upgrade() else {
                return;
            };
            match callback.operation() {
                kernel_dispatch::COMPLETE => {
                    if let Some(completion) = callback.record::<Completion>() {
                        flight::completed(completion);
                    }
                }
                kernel_dispatch::ENQUEUE => {
                    // Its work is known at the exit.
                    let kernel = callback.record::<KernelDispatch>();
                    if let Some(KernelDispatch { work, .. }) = kernel
                        && !callback.is_enter()
                        && work.id.is_some()
                    {
                        flight::enqueued(work.correlation, work.id);
                    }
                }
                resource::QUEUE_CREATED => this.tell_of(&callback, this.callbacks.create),
                resource::QUEUE_DESTROYED => this.tell_of(&callback, this.callbacks.destroy),
                _ => {
                    if let Err(error) = this.count() {
                        let failure = Failure::from(error);
                        let text = format!("dispatches are not intercepted: {}", failure.text);
                        errors::message(Failure::new(failure.status, text));
                    }
                }
            }
        })?;
        *lock(&self.watching) = Some(watch);
        Ok(())
    }

    /// Counts on all devices that are known now.
    fn count(&self) -> Result<(), tool::Error> {
        let mut engine = lock(&self.engine);
        if self.callbacks.dispatch.is_none() || !is_on() {
            engine.stop();
            return Ok(());
        }
        engine.count_kernels()
    }

    /// Calls the program's callback for a kernel, and returns where it is counted.
    fn choose(
        &self,
        device: &Device,
        dispatch: &KernelDispatch,
    ) -> Option<tool::counting::PoolEntry> {
        let call = self.callbacks.dispatch?;
        if self.is_paused.load(Ordering::Relaxed) {
            return None;
        }
        let work = &dispatch.work;
        let enqueued = work.enqueued.0;
        let kernel = Flight::new(enqueued, settings::get().timestamp_on != 0);
        let (queue, queue_index) = of_queue(work.queue, |known| {
            known.kernels += 1;
            known.kernels - 1
        });
        let packet = packet(dispatch);
        let data = CallbackData {
            agent: device.handle,
            agent_index: device.index,
            queue: queue.queue,
            queue_index,
            queue_id: queue.number,
            completion_signal: packet.completion_signal,
            packet: &raw const packet,
            kernel_name: names::kernel(dispatch.kernel).unwrap_or_default().as_ptr(),
            kernel_object: packet.kernel_object,
            kernel_code: (&raw const KERNEL_CODE).cast(),
            // SAFETY: a call of the system that has no conditions.
            thread_id: unsafe { libc::gettid() } as u32,
            record: kernel.record(),
        };
        let mut group = Group {
            index: 0,
            features: std::ptr::null_mut(),
            feature_count: 0,
            context: std::ptr::null_mut(),
        };
        let status = {
            let _within = within::enter();
            // SAFETY: the program's function for this, which has what its type says.
            let call_it = || unsafe { call(&raw const data, self.data.0, &raw mut group) };
            callee(SET_BY, call as *const ()).call(call_it)
        };
        kernel.await_times(work.correlation);
        if status != Status::SUCCESS || group.context.is_null() {
            return None;
        }
        let begun =
            Context::found(group.context).and_then(|context| context.begin(group.index, &kernel));
        match begun {
            Ok(entry) => entry,
            Err(failure) => {
                let text = format!(
                    "the group that the dispatch callback returned for the kernel {:?} does not count it: {}",
                    names::kernel(dispatch.kernel).unwrap_or_default(),
                    failure.text
                );
                errors::message_once(Failure::new(failure.status, text));
                None
            }
        }
    }

    /// Calls the program's callback for a queue that was created, or that is going to be destroyed.
    fn tell_of(&self, callback: &Callback<'_>, call: Option<QueueCallback>) {
        let (Some(call), Some(queue)) = (call, callback.record::<record::Queue>()) else {
            return;
        };
        if !is_on() {
            return;
        }
        let (known, ()) = of_queue(queue.id, |_| {});
        let _within = within::enter();
        // SAFETY: the program's function for this, and a queue that lasts for ever.
        let call_it = || unsafe { call(known.queue, self.data.0) };
        callee(SET_BY, call as *const ()).call(call_it);
    }
}

/// A queue of which the program has been told.
#[derive(Copy, Clone)]
struct Known {
    /// The queue as the program sees it.
    queue: *mut Queue,
    /// Its number, in the order in which the program was told of queues.
    number: u32,
    /// The number of kernels that were put into it.
    kernels: u64,
}

// SAFETY: queues that last for ever, which the library does not change.
unsafe impl Send for Known {}

/// A queue, and the result of `change`.
fn of_queue<T>(id: QueueId, change: impl FnOnce(&mut Known) -> T) -> (Known, T) {
    static QUEUES: LazyLock<Mutex<HashMap<QueueId, Known>>> = LazyLock::new(Mutex::default);
    let mut queues = lock(&QUEUES);
    let number = queues.len() as u32;
    let known = queues.entry(id).or_insert_with(|| {
        let handle = describe::<record::Queue>(id).map_or(0, |queue| queue.handle);
        let queue = Queue {
            queue_type: 0,
            features: QUEUE_FEATURE,
            base_address: std::ptr::null_mut(),
            doorbell_signal: Signal { handle: 0 },
            size: 0,
            reserved: 0,
            id: handle,
        };
        Known {
            queue: Box::into_raw(Box::new(queue)),
            number,
            kernels: 0,
        }
    });
    let result = change(known);
    (*known, result)
}

/// The packet that HSA would have for a kernel.
fn packet(dispatch: &KernelDispatch) -> Packet {
    Packet {
        header: KERNEL_DISPATCH,
        setup: match dispatch.dimensions {
            0 => 3,
            dimensions => dimensions.into(),
        },
        workgroup_size: dispatch
            .workgroup
            .map(|size| size.min(u16::MAX.into()) as u16),
        reserved0: 0,
        grid_size: dispatch.grid.map(|size| size.min(u32::MAX.into()) as u32),
        private_segment_size: dispatch.private_memory,
        group_segment_size: local_memory(dispatch),
        kernel_object: dispatch.kernel.0.into(),
        kernarg_address: std::ptr::null_mut(),
        reserved2: 0,
        completion_signal: Signal { handle: 0 },
    }
}
