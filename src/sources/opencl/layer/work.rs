//! The records of enqueued commands: [`Commands`] has one constructor for each kind of call, which fills in the fields
//! that come from the call's arguments. [`CommandRecord`] adds the queue, the ids and the times.

mod constructors;

pub(super) use constructors::{Commands, list, synchronization};

use super::below::next;
use super::call::ObservedCall;
use super::call_site;
use super::ffi::*;
use super::kernels;
use super::memory;
use super::queues::QueueIds;
use super::sampling;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::switchboard::{Buffers, Interest};
use gputrail_interface::operations::{
    kernel_dispatch, memory_copy, synchronization as synchronization_domain,
};
use gputrail_record::*;

/// The fields that all records of an enqueue share, and their buffers.
#[derive(Copy, Clone)]
pub(super) struct EnqueueInfo {
    pub work: WorkHeader,
    /// The buffers that get the records.
    pub buffers: Buffers,
    pub flags: u8,
}

impl ObservedCall {
    /// The enqueue info of a piece of work of this call, without buffers.
    #[inline(always)]
    pub(super) fn enqueue_info(
        &self,
        thread: ThreadId,
        queue: &QueueIds,
        work: WorkId,
        blocking: bool,
    ) -> EnqueueInfo {
        EnqueueInfo {
            work: WorkHeader {
                id: work,
                correlation: self.core.correlation,
                enqueued: self.core.start,
                agent: queue.agent,
                context: queue.context,
                queue: queue.id,
                thread,
                ..WorkHeader::default()
            },
            buffers: Buffers::NONE,
            flags: if blocking { 0 } else { flags::ASYNCHRONOUS },
        }
    }
}

/// The description of a piece of work for subscribers: the operations of its two ends, its record and its kernel.
pub(super) struct CommandDescription<'a> {
    pub enqueue: Operation,
    pub complete: Operation,
    pub record: RecordRef<'a>,
    pub kernel: KernelId,
}

/// The record of a command.
pub(super) trait CommandRecord: Record {
    fn set_enqueue(&mut self, info: &EnqueueInfo);

    /// The operations under which subscribers see the work's enqueue and completion.
    fn operations(&self) -> (Operation, Operation);

    /// The kernel that it dispatches, if any.
    #[inline(always)]
    fn kernel(&self) -> KernelId {
        KernelId::NONE
    }
}

/// Work that a call enqueues: one record or several.
pub(super) trait EnqueuedRecords: Copy {
    /// The queue of the work, if the call names none.
    fn own_queue(&self) -> cl_command_queue {
        cl_command_queue::NULL
    }

    /// Whether it is one kernel.
    #[inline(always)]
    fn is_kernel(&self) -> bool {
        false
    }

    /// The launch, if it is one that can be repeated.
    fn launch(&self) -> Option<KernelLaunch> {
        None
    }

    /// The buffers that want its records, of a call with this interest.
    fn wanted_by(&self, host: &HostThread, call: Interest, context: ContextId) -> Buffers;

    /// Writes the records.
    fn enqueue(&self, host: &mut HostThread, info: &EnqueueInfo);

    /// Describes the work for subscribers.
    fn describe(&self, info: &EnqueueInfo, notify: &mut dyn FnMut(CommandDescription<'_>));

    /// The runtime has taken the work, and its records are written.
    #[inline(always)]
    fn taken(&self, _: &mut ObservedCall) {}
}

impl<P: CommandRecord> EnqueuedRecords for P {
    #[inline(always)]
    fn is_kernel(&self) -> bool {
        self.kernel().is_some()
    }

    #[inline(always)]
    fn wanted_by(&self, host: &HostThread, call: Interest, context: ContextId) -> Buffers {
        let wanted = host.board().buffers_of(call, P::KIND, context);
        match self.kernel() {
            KernelId::NONE => wanted,
            kernel => wanted.without(host.board().left_out(kernel)),
        }
    }

    #[inline(always)]
    fn enqueue(&self, host: &mut HostThread, info: &EnqueueInfo) {
        // Copies owned by the closure, which can stay in registers.
        let (work, info) = (*self, *info);
        host.fill(info.buffers, move |record: &mut P| {
            *record = work;
            record.set_enqueue(&info);
        });
        if self.kernel().is_some() {
            sampling::enqueued(host, self.kernel(), &info.work, info.buffers);
        }
    }

    fn describe(&self, info: &EnqueueInfo, notify: &mut dyn FnMut(CommandDescription<'_>)) {
        let mut record = *self;
        record.set_enqueue(info);
        let (enqueue, complete) = self.operations();
        notify(CommandDescription {
            enqueue,
            complete,
            record: RecordRef::of(&record),
            kernel: self.kernel(),
        });
    }
}

/// A call's queue, or list of queues.
pub(super) trait OnQueue {
    /// The (first) queue; null if there is none.
    ///
    /// # Safety
    ///
    /// A list is null or leads to at least one queue.
    unsafe fn queue(self) -> cl_command_queue;
}

impl OnQueue for cl_command_queue {
    #[inline(always)]
    unsafe fn queue(self) -> cl_command_queue {
        self
    }
}

impl OnQueue for *mut cl_command_queue {
    unsafe fn queue(self) -> cl_command_queue {
        // SAFETY: the list is null or leads to at least one queue.
        unsafe { self.as_ref() }
            .copied()
            .unwrap_or(cl_command_queue::NULL)
    }
}

/// The queue that `work` goes to.
///
/// # Safety
///
/// As for [`OnQueue::queue`].
#[inline(always)]
pub(super) unsafe fn queue_of(
    queue: impl OnQueue,
    work: &impl EnqueuedRecords,
) -> cl_command_queue {
    // SAFETY: `queue` is a queue, or a list that is null or leads to one.
    let queue = unsafe { queue.queue() };
    if queue.is_null() {
        work.own_queue()
    } else {
        queue
    }
}

macro_rules! command_record {
    ($($record:ident $([$kernel:ident])? as $operations:expr $(, $more:expr)?;)*) => {$(
        impl CommandRecord for $record {
            #[inline(always)]
            fn set_enqueue(&mut self, info: &EnqueueInfo) {
                self.header = self.header.with(info.flags);
                self.work = info.work;
                $({
                    let more: fn(&mut $record, &EnqueueInfo) = $more;
                    more(self, info);
                })?
            }

            fn operations(&self) -> (Operation, Operation) {
                let operations: fn(&$record) -> (Operation, Operation) = $operations;
                operations(self)
            }

            $(
                #[inline(always)]
                fn kernel(&self) -> KernelId {
                    self.$kernel
                }
            )?
        }
    )*};
}
command_record! {
    KernelDispatch [kernel] as |_| (kernel_dispatch::ENQUEUE, kernel_dispatch::COMPLETE);
    MemorySet as |_| (memory_copy::FILL_ENQUEUE, memory_copy::FILL_COMPLETE);
    Synchronization as |record| (call_site::wait(record.what), synchronization_domain::COMPLETE);
    MemoryCopy as |_| (memory_copy::COPY_ENQUEUE, memory_copy::COPY_COMPLETE), |copy, info| {
        // The host is not an agent.
        let of = |memory| if on_host(memory) { AgentId::NONE } else { info.work.agent };
        copy.source_agent = of(copy.source_memory);
        copy.destination_agent = of(copy.destination_memory);
    };
}

fn on_host(memory: MemoryKind) -> bool {
    matches!(memory, MemoryKind::PAGEABLE | MemoryKind::UNKNOWN)
}

/// The record of a map, whose address is known when the call has returned.
pub(super) trait Mapped {
    fn mapped_at(self, address: *mut c_void) -> Self;
}

impl Mapped for MemoryCopy {
    fn mapped_at(mut self, address: *mut c_void) -> MemoryCopy {
        self.destination_address = address as u64;
        self.destination_memory = MemoryKind::PAGEABLE;
        self
    }
}

/// A launch of a kernel, with pointers to its sizes in the program: its record is written directly to the lane.
#[derive(Copy, Clone)]
pub(super) struct KernelLaunch {
    launch: kernels::LaunchState,
    pub kernel: cl_kernel,
    /// The length of those of the lists that are not null.
    dimensions: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
}

impl KernelLaunch {
    /// The record.
    pub fn record(&self) -> KernelDispatch {
        let mut dispatch = KernelDispatch::blank();
        self.fill(&mut dispatch);
        dispatch
    }

    /// Launches the kernel on `queue` with an event.
    ///
    /// # Safety
    ///
    /// The lists have as many values as there are dimensions, `event` is a place for an event.
    pub unsafe fn enqueue_on(&self, queue: cl_command_queue, event: *mut cl_event) -> cl_int {
        // SAFETY: the lists have as many values as there are dimensions, and `event` is a place for an event (`# Safety`).
        unsafe {
            next!(clEnqueueNDRangeKernel(
                queue,
                self.kernel,
                self.dimensions,
                self.offset,
                self.global,
                self.local,
                0,
                core::ptr::null(),
                event
            ))
        }
    }

    #[inline(always)]
    fn fill(&self, dispatch: &mut KernelDispatch) {
        self.launch.fill(dispatch);
        dispatch.dimensions = self.dimensions as u8;
        for dimension in 0..3 {
            let used = dimension < self.dimensions as usize;
            // SAFETY: as `Commands::kernel` was promised, they have as many values as there are dimensions.
            unsafe {
                dispatch.grid[dimension] = match used {
                    true if self.global.is_null() => 0,
                    true => *self.global.add(dimension) as u64,
                    false => 1,
                };
                dispatch.workgroup[dimension] = match used {
                    _ if self.local.is_null() => 0,
                    true => *self.local.add(dimension) as u32,
                    false => 1,
                };
            }
        }
    }
}

impl EnqueuedRecords for KernelLaunch {
    #[inline(always)]
    fn is_kernel(&self) -> bool {
        self.launch.id.is_some()
    }

    fn launch(&self) -> Option<KernelLaunch> {
        Some(*self)
    }

    #[inline(always)]
    fn wanted_by(&self, host: &HostThread, call: Interest, context: ContextId) -> Buffers {
        let wanted = host
            .board()
            .buffers_of(call, Kind::KERNEL_DISPATCH, context);
        wanted.without(host.board().left_out(self.launch.id))
    }

    #[inline(always)]
    fn enqueue(&self, host: &mut HostThread, info: &EnqueueInfo) {
        // Copies, as above.
        let (launch, info) = (*self, *info);
        host.fill(info.buffers, move |record: &mut KernelDispatch| {
            launch.fill(record);
            record.set_enqueue(&info);
        });
        if launch.launch.id.is_some() {
            sampling::enqueued(host, launch.launch.id, &info.work, info.buffers);
        }
    }

    fn describe(&self, info: &EnqueueInfo, notify: &mut dyn FnMut(CommandDescription<'_>)) {
        self.record().describe(info, notify);
    }
}

/// Shared memory that a queue is going to free.
#[derive(Copy, Clone)]
pub(super) struct SharedFree {
    copy: MemoryCopy,
    /// The pointers, which are valid only until the work has been enqueued.
    pointers: *const [*mut c_void],
}

impl EnqueuedRecords for SharedFree {
    fn wanted_by(&self, host: &HostThread, call: Interest, context: ContextId) -> Buffers {
        self.copy.wanted_by(host, call, context)
    }

    fn enqueue(&self, host: &mut HostThread, info: &EnqueueInfo) {
        if !self.pointers.is_empty() {
            // SAFETY: the program's list, which it keeps until the call has returned.
            for pointer in unsafe { &*self.pointers } {
                memory::forget_shared(*pointer);
            }
        }
        self.copy.enqueue(host, info);
    }

    fn describe(&self, info: &EnqueueInfo, notify: &mut dyn FnMut(CommandDescription<'_>)) {
        self.copy.describe(info, notify);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_are_not_used_have_one_work_item() {
        let none = core::ptr::null();
        // SAFETY: the sizes have as many values as there are dimensions.
        let dispatch = unsafe {
            Commands::kernel(
                cl_kernel::NULL,
                2,
                none,
                [640, 360].as_ptr(),
                [8, 4].as_ptr(),
            )
            .record()
        };
        assert_eq!(
            (dispatch.grid, dispatch.workgroup),
            ([640, 360, 1], [8, 4, 1])
        );
        // SAFETY: null is allowed for both.
        let dispatch = unsafe { Commands::kernel(cl_kernel::NULL, 1, none, none, none).record() };
        assert_eq!((dispatch.grid, dispatch.workgroup), ([0, 1, 1], [0, 0, 0]));
    }
}
