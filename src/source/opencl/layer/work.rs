//! Pieces of work as the function table describes them: [`Work`] has one constructor a kind of call, which gives the
//! record with all that the call's arguments say. [`Put`] adds where, when and by whom.

mod constructors;

pub(super) use constructors::{Work, list, synchronization};

use super::ffi::*;
use super::kernels;
use super::memory;
use super::sampling;
use super::tell::{self, Described};
use crate::collect::correlation::HostThread;
use crate::collect::operations::{
    kernel_dispatch, memory_copy, synchronization as synchronization_domain,
};
use crate::collect::switchboard::Buffers;
use crate::record::*;

/// Where and by whom work was put.
#[derive(Copy, Clone)]
pub(super) struct Place {
    pub work: WorkHeader,
    /// The buffers that get the records.
    pub buffers: Buffers,
    pub flags: u8,
}

/// A record of work.
pub(super) trait Put: Record {
    fn put(&mut self, place: &Place);

    /// The operations under which subscribers see the work's enqueue and completion.
    fn told_as(&self) -> (Operation, Operation);

    /// The kernel that it dispatches, if that is what it is.
    #[inline(always)]
    fn kernel(&self) -> KernelId {
        KernelId::NONE
    }
}

/// Work that a call enqueues: one record, or several.
pub(super) trait Enqueue: Copy {
    /// The queue that it goes to where the call names none.
    fn own_queue(&self) -> cl_command_queue {
        cl_command_queue::NULL
    }

    /// The buffers that want its records.
    fn wanted_by(&self, host: &HostThread, context: ContextId) -> Buffers;

    /// Writes the records.
    fn enqueue(&self, host: &mut HostThread, place: &Place);

    /// Describes the work for subscribers.
    fn describe(&self, place: &Place, tell: &mut dyn FnMut(Described<'_>));
}

impl<P: Put> Enqueue for P {
    #[inline(always)]
    fn wanted_by(&self, host: &HostThread, context: ContextId) -> Buffers {
        let wanted = host.board().buffers_in(P::KIND, context);
        match self.kernel() {
            KernelId::NONE => wanted,
            kernel => wanted.without(host.board().left_out(kernel)),
        }
    }

    #[inline(always)]
    fn enqueue(&self, host: &mut HostThread, place: &Place) {
        // Values of the closure's own, which need not be anywhere in memory.
        let (work, place) = (*self, *place);
        host.fill(place.buffers, move |record: &mut P| {
            *record = work;
            record.put(&place);
        });
        if self.kernel().is_some() {
            sampling::enqueued(self.kernel(), &place);
        }
    }

    fn describe(&self, place: &Place, tell: &mut dyn FnMut(Described<'_>)) {
        let mut record = *self;
        record.put(place);
        let (enqueue, complete) = self.told_as();
        tell(Described {
            enqueue,
            complete,
            record: RecordRef::of(&record),
            kernel: self.kernel(),
        });
    }
}

/// A call's queue, or list of queues.
pub(super) trait OnQueue {
    /// The (first) queue, null if there is none.
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
        // SAFETY: the caller's promise.
        unsafe { self.as_ref() }
            .copied()
            .unwrap_or(cl_command_queue::NULL)
    }
}

macro_rules! put {
    ($($record:ident $([$kernel:ident])? as $told:expr $(, $more:expr)?;)*) => {$(
        impl Put for $record {
            #[inline(always)]
            fn put(&mut self, place: &Place) {
                self.header = self.header.with(place.flags);
                self.work = place.work;
                $({
                    let more: fn(&mut $record, &Place) = $more;
                    more(self, place);
                })?
            }

            fn told_as(&self) -> (Operation, Operation) {
                let told: fn(&$record) -> (Operation, Operation) = $told;
                told(self)
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
put! {
    KernelDispatch [kernel] as |_| (kernel_dispatch::ENQUEUE, kernel_dispatch::COMPLETE);
    MemorySet as |_| (memory_copy::FILL_ENQUEUE, memory_copy::FILL_COMPLETE);
    Synchronization as |record| (tell::wait(record.what), synchronization_domain::COMPLETE);
    MemoryCopy as |_| (memory_copy::COPY_ENQUEUE, memory_copy::COPY_COMPLETE), |copy, place| {
        // The host is no agent.
        let of = |memory| if on_host(memory) { AgentId::NONE } else { place.work.agent };
        copy.source_agent = of(copy.source_memory);
        copy.destination_agent = of(copy.destination_memory);
    };
}

fn on_host(memory: MemoryKind) -> bool {
    matches!(memory, MemoryKind::PAGEABLE | MemoryKind::UNKNOWN)
}

/// A map's address is known when the call has returned.
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

/// A launch of a kernel, with the sizes where the program has them: its record is written in its place.
#[derive(Copy, Clone)]
pub(super) struct KernelLaunch {
    launch: kernels::Launch,
    /// How many values both lists have that are not null.
    dimensions: cl_uint,
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

    #[inline(always)]
    fn fill(&self, dispatch: &mut KernelDispatch) {
        self.launch.fill(dispatch);
        dispatch.dimensions = self.dimensions as u8;
        for dimension in 0..3 {
            let used = dimension < self.dimensions as usize;
            // SAFETY: as `Work::kernel` was promised, they have as many values as there are dimensions.
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

impl Enqueue for KernelLaunch {
    #[inline(always)]
    fn wanted_by(&self, host: &HostThread, context: ContextId) -> Buffers {
        let wanted = host.board().buffers_in(Kind::KERNEL_DISPATCH, context);
        wanted.without(host.board().left_out(self.launch.id))
    }

    #[inline(always)]
    fn enqueue(&self, host: &mut HostThread, place: &Place) {
        // As above.
        let (launch, place) = (*self, *place);
        host.fill(place.buffers, move |record: &mut KernelDispatch| {
            launch.fill(record);
            record.put(&place);
        });
        if launch.launch.id.is_some() {
            sampling::enqueued(launch.launch.id, &place);
        }
    }

    fn describe(&self, place: &Place, tell: &mut dyn FnMut(Described<'_>)) {
        self.record().describe(place, tell);
    }
}

/// Shared memory that a queue frees.
#[derive(Copy, Clone)]
pub(super) struct SharedFree {
    copy: MemoryCopy,
    /// The part that is not available any more once the work has been enqueued.
    pointers: *const [*mut c_void],
}

impl Enqueue for SharedFree {
    fn wanted_by(&self, host: &HostThread, context: ContextId) -> Buffers {
        self.copy.wanted_by(host, context)
    }

    fn enqueue(&self, host: &mut HostThread, place: &Place) {
        if !self.pointers.is_empty() {
            // SAFETY: the program's list, which it keeps until the call has returned.
            for pointer in unsafe { &*self.pointers } {
                memory::forget_shared(*pointer);
            }
        }
        self.copy.enqueue(host, place);
    }

    fn describe(&self, place: &Place, tell: &mut dyn FnMut(Described<'_>)) {
        self.copy.describe(place, tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_are_not_used_have_one_work_item() {
        // SAFETY: the sizes have as many values as there are dimensions.
        let dispatch = unsafe {
            Work::kernel(cl_kernel::NULL, 2, [640, 360].as_ptr(), [8, 4].as_ptr()).record()
        };
        assert_eq!(
            (dispatch.grid, dispatch.workgroup),
            ([640, 360, 1], [8, 4, 1])
        );
        // SAFETY: null is allowed for both.
        let dispatch = unsafe {
            Work::kernel(cl_kernel::NULL, 1, core::ptr::null(), core::ptr::null()).record()
        };
        assert_eq!((dispatch.grid, dispatch.workgroup), ([0, 1, 1], [0, 0, 0]));
    }
}
