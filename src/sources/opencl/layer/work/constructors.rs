//! The constructors of the records of commands, one for each kind of call.

use super::{KernelLaunch, SharedFree, on_host};
use crate::opencl::layer::ffi::*;
use crate::opencl::layer::kernels;
use crate::opencl::layer::memory::{self, MemoryInfo};
use crate::opencl::layer::rect;
use core::{ptr, slice};
use gputrail_record::*;

/// One end of a transfer.
#[derive(Copy, Clone)]
struct TransferEnd {
    address: u64,
    offset: u64,
    memory: MemoryKind,
}

impl TransferEnd {
    #[inline]
    fn object(mem: cl_mem, offset: usize) -> TransferEnd {
        let info = memory::known(mem);
        TransferEnd {
            address: mem.into(),
            offset: offset as u64,
            memory: info.map_or(MemoryKind::DEVICE, |info| info.kind),
        }
    }

    fn image(mem: cl_mem) -> TransferEnd {
        TransferEnd {
            address: mem.into(),
            offset: 0,
            memory: MemoryKind::ARRAY,
        }
    }

    fn host(address: *const c_void) -> TransferEnd {
        TransferEnd {
            address: address as u64,
            offset: 0,
            memory: MemoryKind::PAGEABLE,
        }
    }

    fn shared(address: *const c_void) -> TransferEnd {
        memory::shared(address).map_or(TransferEnd::host(address), |info: MemoryInfo| TransferEnd {
            address: address as u64,
            offset: 0,
            memory: info.kind,
        })
    }

    const NONE: TransferEnd = TransferEnd {
        address: 0,
        offset: 0,
        memory: MemoryKind::UNKNOWN,
    };
}

#[inline]
fn transfer(transfer: TransferKind, from: TransferEnd, to: TransferEnd, bytes: u64) -> MemoryCopy {
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

/// The constructors of records. The pointers that the unsafe ones get are null, or valid for the reads that OpenCL does
/// through them in the call whose arguments they are: a region is three numbers, a list has as many elements as its count
/// says.
pub struct Commands;

impl Commands {
    pub fn read(from: cl_mem, offset: usize, bytes: usize, to: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::DEVICE_TO_HOST,
            TransferEnd::object(from, offset),
            TransferEnd::host(to),
            bytes as u64,
        )
    }

    pub fn write(to: cl_mem, offset: usize, bytes: usize, from: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::HOST_TO_DEVICE,
            TransferEnd::host(from),
            TransferEnd::object(to, offset),
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
        let (from, to) = (
            TransferEnd::object(from, from_offset),
            TransferEnd::object(to, to_offset),
        );
        transfer(TransferKind::DEVICE_TO_DEVICE, from, to, bytes as u64)
    }

    pub unsafe fn read_image(from: cl_mem, region: *const usize, to: *const c_void) -> MemoryCopy {
        // SAFETY: `region` is null or leads to three numbers, as OpenCL reads them.
        let bytes = unsafe { image_bytes(from, region) };
        transfer(
            TransferKind::ARRAY_TO_HOST,
            TransferEnd::image(from),
            TransferEnd::host(to),
            bytes,
        )
    }

    pub unsafe fn write_image(to: cl_mem, region: *const usize, from: *const c_void) -> MemoryCopy {
        // SAFETY: `region` is null or leads to three numbers, as OpenCL reads them.
        let bytes = unsafe { image_bytes(to, region) };
        transfer(
            TransferKind::HOST_TO_ARRAY,
            TransferEnd::host(from),
            TransferEnd::image(to),
            bytes,
        )
    }

    pub unsafe fn copy_image(from: cl_mem, to: cl_mem, region: *const usize) -> MemoryCopy {
        // SAFETY: `region` is null or leads to three numbers, as OpenCL reads them.
        let bytes = unsafe { image_bytes(from, region) };
        transfer(
            TransferKind::ARRAY_TO_ARRAY,
            TransferEnd::image(from),
            TransferEnd::image(to),
            bytes,
        )
    }

    pub unsafe fn image_to_buffer(
        from: cl_mem,
        region: *const usize,
        to: cl_mem,
        offset: usize,
    ) -> MemoryCopy {
        // SAFETY: `region` is null or leads to three numbers, as OpenCL reads them.
        let bytes = unsafe { image_bytes(from, region) };
        transfer(
            TransferKind::ARRAY_TO_DEVICE,
            TransferEnd::image(from),
            TransferEnd::object(to, offset),
            bytes,
        )
    }

    pub unsafe fn buffer_to_image(
        from: cl_mem,
        offset: usize,
        to: cl_mem,
        region: *const usize,
    ) -> MemoryCopy {
        // SAFETY: `region` is null or leads to three numbers, as OpenCL reads them.
        let bytes = unsafe { image_bytes(to, region) };
        transfer(
            TransferKind::DEVICE_TO_ARRAY,
            TransferEnd::object(from, offset),
            TransferEnd::image(to),
            bytes,
        )
    }

    pub fn map(mem: cl_mem, offset: usize, bytes: usize) -> MemoryCopy {
        transfer(
            TransferKind::MAP,
            TransferEnd::object(mem, offset),
            TransferEnd::NONE,
            bytes as u64,
        )
    }

    pub unsafe fn map_image(image: cl_mem, region: *const usize) -> MemoryCopy {
        // SAFETY: `region` is null or leads to three numbers, as OpenCL reads them.
        let bytes = unsafe { image_bytes(image, region) };
        transfer(
            TransferKind::MAP,
            TransferEnd::image(image),
            TransferEnd::NONE,
            bytes,
        )
    }

    pub fn unmap(mem: cl_mem, mapped: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::UNMAP,
            TransferEnd::host(mapped),
            TransferEnd::object(mem, 0),
            0,
        )
    }

    pub unsafe fn migrate(
        count: cl_uint,
        objects: *const cl_mem,
        flags: cl_bitfield,
    ) -> MemoryCopy {
        // SAFETY: `objects` is null or leads to `count` memory objects; the list is not kept.
        let objects = unsafe { list(objects, count) };
        let bytes = objects
            .iter()
            .filter_map(|mem| memory::known(*mem))
            .map(|info| info.bytes)
            .sum();
        let first = objects
            .first()
            .map_or(TransferEnd::NONE, |mem| TransferEnd::object(*mem, 0));
        let to_host = flags.0 & CL_MIGRATE_MEM_OBJECT_HOST != 0;
        let (from, to) = if to_host {
            (first, TransferEnd::NONE)
        } else {
            (TransferEnd::NONE, first)
        };
        transfer(TransferKind::MIGRATE, from, to, bytes)
    }

    pub unsafe fn svm_free(
        count: cl_uint,
        pointers: *mut *mut c_void,
        callback: SvmFreeCallback,
    ) -> SharedFree {
        // SAFETY: `pointers` is null or leads to `count` pointers, which are not followed; the program keeps the list until
        // the call has returned.
        let list = unsafe { list(pointers.cast_const(), count) };
        let first = list
            .first()
            .map_or(TransferEnd::NONE, |first| TransferEnd::shared(*first));
        let known = list.iter().filter_map(|pointer| memory::shared(*pointer));
        let bytes = known.map(|info| info.bytes).sum();
        SharedFree {
            copy: transfer(TransferKind::FREE, first, TransferEnd::NONE, bytes),
            pointers: match callback {
                // A callback of the program frees the memory itself, by a call that is observed.
                Some(_) => ptr::slice_from_raw_parts(ptr::null(), 0),
                None => list,
            },
        }
    }

    pub fn svm_copy(to: *const c_void, from: *const c_void, bytes: usize) -> MemoryCopy {
        let (from, to) = (TransferEnd::shared(from), TransferEnd::shared(to));
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
            TransferEnd::shared(address),
            TransferEnd::host(address),
            bytes as u64,
        )
    }

    pub fn svm_unmap(address: *const c_void) -> MemoryCopy {
        transfer(
            TransferKind::UNMAP,
            TransferEnd::host(address),
            TransferEnd::shared(address),
            0,
        )
    }

    pub unsafe fn svm_migrate(
        count: cl_uint,
        pointers: *mut *const c_void,
        sizes: *const usize,
        flags: cl_bitfield,
    ) -> MemoryCopy {
        // SAFETY: `pointers` leads to `count` pointers, which are not followed, and `sizes` is null or leads to as many
        // sizes; the lists are not kept.
        let (pointers, sizes) = unsafe { (list(pointers.cast_const(), count), list(sizes, count)) };
        let whole = |(index, pointer): (usize, &*const c_void)| match sizes.get(index) {
            Some(&size) if size != 0 => size as u64,
            _ => memory::shared(*pointer).map_or(0, |info| info.bytes),
        };
        let bytes = pointers.iter().enumerate().map(whole).sum();
        let first = pointers
            .first()
            .map_or(TransferEnd::NONE, |first| TransferEnd::shared(*first));
        let to_host = flags.0 & CL_MIGRATE_MEM_OBJECT_HOST != 0;
        let (from, to) = if to_host {
            (first, TransferEnd::NONE)
        } else {
            (TransferEnd::NONE, first)
        };
        transfer(TransferKind::MIGRATE, from, to, bytes)
    }

    pub fn usm_migrate(address: *const c_void, bytes: usize) -> MemoryCopy {
        transfer(
            TransferKind::MIGRATE,
            TransferEnd::NONE,
            TransferEnd::shared(address),
            bytes as u64,
        )
    }

    pub fn usm_set(address: *const c_void, value: cl_int, bytes: usize) -> MemorySet {
        let pattern = (value as u8).to_le_bytes();
        // SAFETY: one byte.
        unsafe {
            set(
                TransferEnd::shared(address),
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
        let end = TransferEnd::object(mem, offset);
        // SAFETY: `pattern` is null or leads to `length` bytes.
        unsafe { set(end, bytes as u64, pattern, length) }
    }

    pub unsafe fn fill_image(
        image: cl_mem,
        region: *const usize,
        color: *const c_void,
    ) -> MemorySet {
        // SAFETY: `region` is null or leads to three numbers. `color` leads to four components of 4 bytes, or to one for a
        // depth image: the first 4 bytes are read.
        unsafe {
            set(
                TransferEnd::image(image),
                image_bytes(image, region),
                color,
                16,
            )
        }
    }

    pub unsafe fn svm_fill(
        address: *const c_void,
        bytes: usize,
        pattern: *const c_void,
        length: usize,
    ) -> MemorySet {
        // SAFETY: `pattern` is null or leads to `length` bytes.
        unsafe { set(TransferEnd::shared(address), bytes as u64, pattern, length) }
    }

    #[inline(always)]
    pub unsafe fn kernel(
        kernel: cl_kernel,
        dimensions: cl_uint,
        offset: *const usize,
        global: *const usize,
        local: *const usize,
    ) -> KernelLaunch {
        KernelLaunch {
            launch: kernels::launch(kernel),
            kernel,
            dimensions,
            offset,
            global,
            local,
        }
    }

    pub fn task(kernel: cl_kernel) -> KernelLaunch {
        static ONE: usize = 1;
        // SAFETY: one dimension, and a size that is never freed.
        unsafe { Commands::kernel(kernel, 1, ptr::null(), &raw const ONE, &raw const ONE) }
    }

    pub fn native(function: NativeKernel) -> KernelDispatch {
        let mut dispatch = KernelDispatch::blank();
        dispatch.kernel = kernels::native(function);
        (dispatch.grid, dispatch.workgroup) = ([1; 3], [1; 3]);
        (dispatch.launch, dispatch.carveout) = (LaunchType::NATIVE, 255);
        dispatch
    }

    pub unsafe fn marker(count: cl_uint, events: *const cl_event) -> Synchronization {
        // SAFETY: `events` is null or leads to `count` events.
        unsafe { synchronization(SynchronizationType::MARKER, count, events) }
    }

    pub unsafe fn barrier(count: cl_uint, events: *const cl_event) -> Synchronization {
        // SAFETY: `events` is null or leads to `count` events.
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
/// `events` is null or leads to `count` events.
pub unsafe fn synchronization(
    what: SynchronizationType,
    count: cl_uint,
    events: *const cl_event,
) -> Synchronization {
    let mut record = Synchronization::blank();
    (record.what, record.events) = (what, count);
    // SAFETY: `events` is null or leads to `count` events; the first is copied.
    let first = unsafe { list(events, count) }.first();
    record.event_handle = first.map_or(0, |event| u64::from(*event));
    record
}

/// # Safety
///
/// `pattern` is null or leads to `length` bytes, or to the first 4 of them: no more are read.
unsafe fn set(to: TransferEnd, bytes: u64, pattern: *const c_void, length: usize) -> MemorySet {
    let mut record = MemorySet::blank();
    record.bytes = bytes;
    record.address = to.address;
    record.memory = to.memory;
    record.pattern_bytes = length as u16;
    let mut value = [0; 4];
    // SAFETY: `pattern` is null or leads to as many bytes, which are at most 4; they are copied.
    let pattern = unsafe { list(pattern.cast::<u8>(), length.min(4) as u32) };
    value[..pattern.len()].copy_from_slice(pattern);
    record.value = u32::from_le_bytes(value);
    record
}

/// # Safety
///
/// `region` is null or leads to three numbers.
unsafe fn image_bytes(image: cl_mem, region: *const usize) -> u64 {
    // SAFETY: `region` is null or leads to three numbers.
    let pixels = unsafe { rect::bytes(region) } as u64;
    pixels * memory::known(image).map_or(0, |info| u64::from(info.element_size))
}

/// # Safety
///
/// `first` is null, or leads to `count` values, which live and stay as they are for `'a`.
pub unsafe fn list<'a, T>(first: *const T, count: cl_uint) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: `first` is not null, so that it leads to `count` values, which stay as they are for `'a`.
    unsafe { slice::from_raw_parts(first, count as usize) }
}
