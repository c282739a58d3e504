//! Pieces of work as the function table describes them: one constructor a kind of call, which gives the
//! record with all that the call's arguments say. [`Put`] adds where, when and by whom.

use super::ffi::*;
use super::kernels;
use super::memory::{self, MemoryInfo};
use super::sampling;
use super::tell::{self, Described};
use crate::correlation::HostThread;
use crate::operations::{kernel_dispatch, memory_copy, synchronization as synchronization_domain};
use crate::record::*;
use crate::switchboard::Buffers;
use core::{ptr, slice};

/// Where and by whom work was put.
#[derive(Copy, Clone)]
pub(super) struct Place {
    pub correlation: CorrelationId,
    pub external: ExternalId,
    pub work: WorkId,
    pub enqueued: Ticks,
    pub agent: AgentId,
    pub context: ContextId,
    pub queue: QueueId,
    pub thread: ThreadId,
    /// Who gets the records.
    pub buffers: Buffers,
    pub flags: u8,
}

/// A record of work.
pub(super) trait Put: Record {
    fn put(&mut self, place: &Place);

    /// As what its enqueue and its completion are told.
    fn told_as(&self) -> (Operation, Operation);

    /// The kernel that it dispatches, if that is what it is.
    #[inline(always)]
    fn kernel(&self) -> KernelId {
        KernelId::NONE
    }
}

/// What a call enqueues: a record of work, or several.
pub(super) trait Enqueue: Copy {
    /// The queue that it goes to where the call names none.
    fn own_queue(&self) -> cl_command_queue {
        cl_command_queue::NULL
    }

    /// The buffers that want its records.
    fn wanted_by(&self, host: &HostThread, context: ContextId) -> Buffers;

    /// Writes the records.
    fn enqueue(&self, host: &mut HostThread, place: &Place);

    /// Says what subscribers are told of it.
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
    ($($record:ident.$when:ident $([$kernel:ident])? as $told:expr $(, $more:expr)?;)*) => {$(
        impl Put for $record {
            #[inline(always)]
            fn put(&mut self, place: &Place) {
                self.header = self.header.with(place.flags);
                self.correlation = place.correlation;
                self.external = place.external;
                self.work = place.work;
                self.$when = place.enqueued;
                self.agent = place.agent;
                self.context = place.context;
                self.queue = place.queue;
                self.thread = place.thread;
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
    KernelDispatch.enqueued [kernel] as |_| (kernel_dispatch::ENQUEUE, kernel_dispatch::COMPLETE);
    MemorySet.enqueued as |_| (memory_copy::FILL_ENQUEUE, memory_copy::FILL_COMPLETE);
    Synchronization.start as |record| (tell::wait(record.what), synchronization_domain::COMPLETE);
    MemoryCopy.enqueued as |_| (memory_copy::COPY_ENQUEUE, memory_copy::COPY_COMPLETE), |copy, place| {
        // The host is no agent.
        let of = |memory| if on_host(memory) { AgentId::NONE } else { place.agent };
        copy.source_agent = of(copy.source_memory);
        copy.destination_agent = of(copy.destination_memory);
    };
}

fn on_host(memory: MemoryKind) -> bool {
    matches!(memory, MemoryKind::PAGEABLE | MemoryKind::UNKNOWN)
}

/// One end of a transfer.
#[derive(Copy, Clone)]
struct End {
    address: u64,
    offset: u64,
    memory: MemoryKind,
}

impl End {
    #[inline]
    fn object(mem: cl_mem, offset: usize) -> End {
        let info = memory::known(mem);
        End {
            address: mem.into(),
            offset: offset as u64,
            memory: info.map_or(MemoryKind::DEVICE, |info| info.kind),
        }
    }

    fn image(mem: cl_mem) -> End {
        End {
            address: mem.into(),
            offset: 0,
            memory: MemoryKind::ARRAY,
        }
    }

    fn host(address: *const c_void) -> End {
        End {
            address: address as u64,
            offset: 0,
            memory: MemoryKind::PAGEABLE,
        }
    }

    fn shared(address: *const c_void) -> End {
        memory::shared(address).map_or(End::host(address), |info: MemoryInfo| End {
            address: address as u64,
            offset: 0,
            memory: info.kind,
        })
    }

    const NONE: End = End {
        address: 0,
        offset: 0,
        memory: MemoryKind::UNKNOWN,
    };
}

#[inline]
fn transfer(transfer: TransferKind, from: End, to: End, bytes: u64) -> MemoryCopy {
    let mut copy = MemoryCopy::blank();
    copy.transfer = transfer;
    copy.bytes = bytes;
    (copy.source_address, copy.source_offset, copy.source_memory) =
        (from.address, from.offset, from.memory);
    (
        copy.destination_address,
        copy.destination_offset,
        copy.destination_memory,
    ) = (to.address, to.offset, to.memory);
    copy
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

/// A launch of a kernel, with the sizes where the program has them: its record is put together where it goes.
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
    /// What is known no more once it has been enqueued.
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

/// The constructors. Where they are unsafe, pointers must be valid for what OpenCL reads through them.
pub(super) struct Work;

impl Work {
    pub fn read(from: cl_mem, offset: usize, bytes: usize, to: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::DEVICE_TO_HOST,
            End::object(from, offset),
            End::host(to),
            bytes as u64,
        )
    }

    pub fn write(to: cl_mem, offset: usize, bytes: usize, from: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::HOST_TO_DEVICE,
            End::host(from),
            End::object(to, offset),
            bytes as u64,
        )
    }

    pub fn copy(
        from: cl_mem,
        from_offset: usize,
        to: cl_mem,
        to_offset: usize,
        bytes: usize,
    ) -> MemoryCopy {
        let (from, to) = (End::object(from, from_offset), End::object(to, to_offset));
        transfer(TransferKind::DEVICE_TO_DEVICE, from, to, bytes as u64)
    }

    pub unsafe fn read_image(from: cl_mem, region: *const usize, to: *const c_void) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let bytes = unsafe { image_bytes(from, region) };
        transfer(
            TransferKind::ARRAY_TO_HOST,
            End::image(from),
            End::host(to),
            bytes,
        )
    }

    pub unsafe fn write_image(to: cl_mem, region: *const usize, from: *const c_void) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let bytes = unsafe { image_bytes(to, region) };
        transfer(
            TransferKind::HOST_TO_ARRAY,
            End::host(from),
            End::image(to),
            bytes,
        )
    }

    pub unsafe fn copy_image(from: cl_mem, to: cl_mem, region: *const usize) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let bytes = unsafe { image_bytes(from, region) };
        transfer(
            TransferKind::ARRAY_TO_ARRAY,
            End::image(from),
            End::image(to),
            bytes,
        )
    }

    pub unsafe fn image_to_buffer(
        from: cl_mem,
        region: *const usize,
        to: cl_mem,
        offset: usize,
    ) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let bytes = unsafe { image_bytes(from, region) };
        transfer(
            TransferKind::ARRAY_TO_DEVICE,
            End::image(from),
            End::object(to, offset),
            bytes,
        )
    }

    pub unsafe fn buffer_to_image(
        from: cl_mem,
        offset: usize,
        to: cl_mem,
        region: *const usize,
    ) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let bytes = unsafe { image_bytes(to, region) };
        transfer(
            TransferKind::DEVICE_TO_ARRAY,
            End::object(from, offset),
            End::image(to),
            bytes,
        )
    }

    pub fn map(mem: cl_mem, offset: usize, bytes: usize) -> MemoryCopy {
        transfer(
            TransferKind::MAP,
            End::object(mem, offset),
            End::NONE,
            bytes as u64,
        )
    }

    pub unsafe fn map_image(image: cl_mem, region: *const usize) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let bytes = unsafe { image_bytes(image, region) };
        transfer(TransferKind::MAP, End::image(image), End::NONE, bytes)
    }

    pub fn unmap(mem: cl_mem, mapped: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::UNMAP,
            End::host(mapped),
            End::object(mem, 0),
            0,
        )
    }

    pub unsafe fn migrate(
        count: cl_uint,
        objects: *const cl_mem,
        flags: cl_bitfield,
    ) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let objects = unsafe { list(objects, count) };
        let bytes = objects
            .iter()
            .filter_map(|mem| memory::known(*mem))
            .map(|info| info.bytes)
            .sum();
        let first = objects
            .first()
            .map_or(End::NONE, |mem| End::object(*mem, 0));
        let to_host = flags.0 & CL_MIGRATE_MEM_OBJECT_HOST != 0;
        let (from, to) = if to_host {
            (first, End::NONE)
        } else {
            (End::NONE, first)
        };
        transfer(TransferKind::MIGRATE, from, to, bytes)
    }

    pub unsafe fn svm_free(
        count: cl_uint,
        pointers: *mut *mut c_void,
        callback: SvmFreeCallback,
    ) -> SharedFree {
        // SAFETY: the caller's promise; the list is the program's until the runtime has freed it.
        let list = unsafe { list(pointers.cast_const(), count) };
        let first = list.first().map_or(End::NONE, |first| End::shared(*first));
        let known = list.iter().filter_map(|pointer| memory::shared(*pointer));
        let bytes = known.map(|info| info.bytes).sum();
        SharedFree {
            copy: transfer(TransferKind::FREE, first, End::NONE, bytes),
            pointers: match callback {
                // A callback of the program's frees the memory itself, as a call that is seen.
                Some(_) => ptr::slice_from_raw_parts(ptr::null(), 0),
                None => list,
            },
        }
    }

    pub fn svm_copy(to: *const c_void, from: *const c_void, bytes: usize) -> MemoryCopy {
        let (from, to) = (End::shared(from), End::shared(to));
        let kind = match (on_host(from.memory), on_host(to.memory)) {
            (true, true) => TransferKind::HOST_TO_HOST,
            (true, false) => TransferKind::HOST_TO_DEVICE,
            (false, true) => TransferKind::DEVICE_TO_HOST,
            (false, false) => TransferKind::DEVICE_TO_DEVICE,
        };
        transfer(kind, from, to, bytes as u64)
    }

    pub fn svm_map(address: *const c_void, bytes: usize) -> MemoryCopy {
        transfer(
            TransferKind::MAP,
            End::shared(address),
            End::host(address),
            bytes as u64,
        )
    }

    pub fn svm_unmap(address: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::UNMAP,
            End::host(address),
            End::shared(address),
            0,
        )
    }

    pub unsafe fn svm_migrate(
        count: cl_uint,
        pointers: *mut *const c_void,
        sizes: *const usize,
        flags: cl_bitfield,
    ) -> MemoryCopy {
        // SAFETY: the caller's promise.
        let (pointers, sizes) = unsafe { (list(pointers.cast_const(), count), list(sizes, count)) };
        let whole = |(index, pointer): (usize, &*const c_void)| match sizes.get(index) {
            Some(&size) if size != 0 => size as u64,
            _ => memory::shared(*pointer).map_or(0, |info| info.bytes),
        };
        let bytes = pointers.iter().enumerate().map(whole).sum();
        let first = pointers
            .first()
            .map_or(End::NONE, |first| End::shared(*first));
        let to_host = flags.0 & CL_MIGRATE_MEM_OBJECT_HOST != 0;
        let (from, to) = if to_host {
            (first, End::NONE)
        } else {
            (End::NONE, first)
        };
        transfer(TransferKind::MIGRATE, from, to, bytes)
    }

    pub fn usm_migrate(address: *const c_void, bytes: usize) -> MemoryCopy {
        transfer(
            TransferKind::MIGRATE,
            End::NONE,
            End::shared(address),
            bytes as u64,
        )
    }

    pub fn usm_set(address: *const c_void, value: cl_int, bytes: usize) -> MemorySet {
        let pattern = (value as u8).to_le_bytes();
        // SAFETY: one byte.
        unsafe {
            set(
                End::shared(address),
                bytes as u64,
                pattern.as_ptr().cast(),
                1,
            )
        }
    }

    pub unsafe fn fill(
        mem: cl_mem,
        offset: usize,
        bytes: usize,
        pattern: *const c_void,
        length: usize,
    ) -> MemorySet {
        let end = End::object(mem, offset);
        // SAFETY: the caller's promise.
        unsafe { set(end, bytes as u64, pattern, length) }
    }

    pub unsafe fn fill_image(
        image: cl_mem,
        region: *const usize,
        color: *const c_void,
    ) -> MemorySet {
        // SAFETY: the caller's promise; a colour has four components of 4 bytes.
        unsafe { set(End::image(image), image_bytes(image, region), color, 16) }
    }

    pub unsafe fn svm_fill(
        address: *const c_void,
        bytes: usize,
        pattern: *const c_void,
        length: usize,
    ) -> MemorySet {
        // SAFETY: the caller's promise.
        unsafe { set(End::shared(address), bytes as u64, pattern, length) }
    }

    #[inline(always)]
    pub unsafe fn kernel(
        kernel: cl_kernel,
        dimensions: cl_uint,
        global: *const usize,
        local: *const usize,
    ) -> KernelLaunch {
        KernelLaunch {
            launch: kernels::launch(kernel),
            dimensions,
            global,
            local,
        }
    }

    pub fn task(kernel: cl_kernel) -> KernelDispatch {
        let mut dispatch = KernelDispatch::blank();
        kernels::launch(kernel).fill(&mut dispatch);
        (dispatch.grid, dispatch.workgroup, dispatch.dimensions) = ([1; 3], [1; 3], 1);
        dispatch
    }

    pub fn native(function: NativeKernel) -> KernelDispatch {
        let mut dispatch = KernelDispatch::blank();
        dispatch.kernel = kernels::native(function);
        (dispatch.grid, dispatch.workgroup) = ([1; 3], [1; 3]);
        (dispatch.launch, dispatch.carveout) = (LaunchType::NATIVE, 255);
        dispatch
    }

    pub unsafe fn marker(count: cl_uint, events: *const cl_event) -> Synchronization {
        // SAFETY: the caller's promise.
        unsafe { synchronization(SynchronizationType::MARKER, count, events) }
    }

    pub unsafe fn barrier(count: cl_uint, events: *const cl_event) -> Synchronization {
        // SAFETY: the caller's promise.
        unsafe { synchronization(SynchronizationType::BARRIER, count, events) }
    }

    pub fn semaphore(count: cl_uint) -> Synchronization {
        let mut record = Synchronization::blank();
        (record.what, record.events) = (SynchronizationType::SEMAPHORE, count);
        record
    }
}

/// A synchronization that waits for a list of events.
///
/// # Safety
///
/// `events` leads to `count` events.
pub(super) unsafe fn synchronization(
    what: SynchronizationType,
    count: cl_uint,
    events: *const cl_event,
) -> Synchronization {
    let mut record = Synchronization::blank();
    (record.what, record.events) = (what, count);
    // SAFETY: the caller's promise.
    let first = unsafe { list(events, count) }.first();
    record.event_handle = first.map_or(0, |event| u64::from(*event));
    record
}

/// # Safety
///
/// `pattern` leads to `length` bytes.
unsafe fn set(to: End, bytes: u64, pattern: *const c_void, length: usize) -> MemorySet {
    let mut record = MemorySet::blank();
    record.bytes = bytes;
    record.address = to.address;
    record.memory = to.memory;
    record.pattern_bytes = length as u16;
    let mut value = [0; 4];
    // SAFETY: the caller's promise.
    let pattern = unsafe { list(pattern.cast::<u8>(), length.min(4) as u32) };
    value[..pattern.len()].copy_from_slice(pattern);
    record.value = u32::from_le_bytes(value);
    record
}

/// # Safety
///
/// `region` leads to three numbers.
unsafe fn image_bytes(image: cl_mem, region: *const usize) -> u64 {
    // SAFETY: the caller's promise.
    let pixels = unsafe { rect::bytes(region) } as u64;
    pixels * memory::known(image).map_or(0, |info| u64::from(info.element_size))
}

/// # Safety
///
/// `first` is null, or leads to `count` values.
pub(super) unsafe fn list<'a, T>(first: *const T, count: cl_uint) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(first, count as usize) }
}

/// Rectangular regions: width in bytes, rows, slices.
pub(super) mod rect {
    /// Bytes of a region; or pixels, for an image's.
    ///
    /// # Safety
    ///
    /// `region` is null or leads to three numbers.
    pub unsafe fn bytes(region: *const usize) -> usize {
        if region.is_null() {
            return 0;
        }
        // SAFETY: the caller's promise.
        let [width, rows, slices] = unsafe { region.cast::<[usize; 3]>().read() };
        width.wrapping_mul(rows).wrapping_mul(slices)
    }

    /// Offset of a region's first byte; pitches of 0 mean that rows and slices follow one another.
    ///
    /// # Safety
    ///
    /// `origin` and `region` are null or lead to three numbers each.
    pub unsafe fn offset(
        origin: *const usize,
        region: *const usize,
        row: usize,
        slice: usize,
    ) -> usize {
        if origin.is_null() || region.is_null() {
            return 0;
        }
        // SAFETY: the caller's promise.
        let ([x, y, z], [width, rows, _]) = unsafe {
            let (origin, region) = (origin.cast::<[usize; 3]>(), region.cast::<[usize; 3]>());
            (origin.read(), region.read())
        };
        let row = if row == 0 { width } else { row };
        let slice = if slice == 0 {
            row.wrapping_mul(rows)
        } else {
            slice
        };
        x.wrapping_add(y.wrapping_mul(row))
            .wrapping_add(z.wrapping_mul(slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rectangles_offset_follows_its_pitches() {
        let (origin, region) = ([4, 2, 1], [16, 8, 2]);
        // SAFETY: three numbers each.
        unsafe {
            assert_eq!(rect::bytes(region.as_ptr()), 256);
            assert_eq!(
                rect::offset(origin.as_ptr(), region.as_ptr(), 0, 0),
                4 + 2 * 16 + 16 * 8
            );
            assert_eq!(
                rect::offset(origin.as_ptr(), region.as_ptr(), 100, 1000),
                4 + 200 + 1000
            );
        }
    }

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
