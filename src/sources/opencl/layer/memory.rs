//! Memory: buffers, images and pipes by handle, shared virtual and unified memory by address.

use super::below::{below, next};
use super::call::ObservedCall;
use super::contexts;
use super::ffi::*;
use super::functions::{ClFunction, ask};
use super::handles::ObjectTable;
use super::references::{self, ReferenceCounted, object};
use bytemuck::{Pod, Zeroable};
use gputrail_record::{AgentId, Allocation, AllocationOperation, ContextId, Kind, MemoryKind};

/// The tracked state of a memory object.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct MemoryInfo {
    references: u32,
    /// Bytes of a pixel; 0 if it is not an image.
    pub element_size: u32,
    agent: AgentId,
    context: ContextId,
    pub bytes: u64,
    flags: u64,
    pub kind: MemoryKind,
    /// 1 if it is a part of another object, without memory of its own.
    part: u8,
    /// 1 if its memory belongs to another API.
    foreign: u8,
    unused: [u8; 21],
}
object!(cl_mem, MemoryInfo, MEMORY);

/// Shared virtual memory, by its first address.
static SHARED: ObjectTable<MemoryInfo> = ObjectTable::new();

impl MemoryInfo {
    /// Whether its memory belongs to another API, such as OpenGL.
    pub fn is_foreign(&self) -> bool {
        self.foreign != 0
    }
}

/// The context of a memory object that is known.
pub(super) fn context_of(memory: cl_mem) -> Option<ContextId> {
    MEMORY.get(memory).map(|info| info.context)
}

/// Whether `is` holds for a tracked object that is `root`, or a part or view of it.
pub(super) fn any_part(root: cl_mem, is: impl Fn(cl_mem) -> bool) -> bool {
    let mut any = false;
    MEMORY.each(|handle, _| {
        let object = cl_mem(handle as *mut c_void);
        let parent = |of| {
            let none: cl_mem = of;
            if none.is_null() {
                return none;
            }
            let parent =
                ask!(below(), clGetMemObjectInfo(of, CL_MEM_ASSOCIATED_MEMOBJECT) -> cl_mem);
            parent.unwrap_or(cl_mem::NULL)
        };
        // An image of a sub-buffer is a part of a part.
        let is_part = || {
            let is_here = || [object, parent(object), parent(parent(object))].contains(&root);
            is(object) && is_here()
        };
        any |= is_part();
    });
    any
}

pub(super) fn forget_all() {
    MEMORY.clear();
    SHARED.clear();
}

/// The tracked state of `mem`, or `None` if it was created before recording began.
#[inline]
pub(super) fn known(mem: cl_mem) -> Option<MemoryInfo> {
    MEMORY.get(mem)
}

/// The tracked state of shared memory that begins at `address`.
#[inline]
pub(super) fn shared(address: *const c_void) -> Option<MemoryInfo> {
    SHARED.get(address as u64)
}

/// Stops tracking shared memory that a queue is going to free.
pub(super) fn forget_shared(address: *const c_void) -> Option<MemoryInfo> {
    SHARED.remove(address as u64)
}

/// The functions that make objects of another API's memory.
const OF_OTHER_APIS: [ClFunction; 6] = [
    ClFunction::clCreateFromGLBuffer,
    ClFunction::clCreateFromGLTexture,
    ClFunction::clCreateFromGLTexture2D,
    ClFunction::clCreateFromGLTexture3D,
    ClFunction::clCreateFromGLRenderbuffer,
    ClFunction::clCreateFromEGLImageKHR,
];

/// A memory object was created.
pub(super) fn created(
    call: &mut ObservedCall,
    mem: cl_mem,
    context: cl_context,
    flags: cl_bitfield,
) {
    call.end();
    let mut info = describe(mem, context, flags, false);
    info.foreign = u8::from(call.is_of(&OF_OTHER_APIS));
    MEMORY.insert(mem, info);
    write(call, AllocationOperation::ALLOCATE, mem.into(), &info);
}

/// A sub-buffer was created.
pub(super) fn sub_buffer_created(call: &mut ObservedCall, mem: cl_mem, _: cl_mem) {
    call.end();
    let info = describe(mem, context_in_runtime(mem), cl_bitfield(0), true);
    MEMORY.insert(mem, info);
}

/// The context of a memory object.
fn context_in_runtime(mem: cl_mem) -> cl_context {
    ask!(below(), clGetMemObjectInfo(mem, CL_MEM_CONTEXT) -> cl_context).unwrap_or(cl_context::NULL)
}

fn describe(mem: cl_mem, context: cl_context, flags: cl_bitfield, part: bool) -> MemoryInfo {
    let mut info = MemoryInfo::zeroed();
    let context = contexts::context(context);
    (info.references, info.agent, info.context) = (1, context.agent, context.id);
    (info.flags, info.part) = (flags.0, u8::from(part));
    info.bytes = ask!(below(), clGetMemObjectInfo(mem, CL_MEM_SIZE) -> usize).unwrap_or(0) as u64;
    let kind = ask!(below(), clGetMemObjectInfo(mem, CL_MEM_TYPE) -> cl_uint);
    info.kind = match kind {
        Some(kind) if kind != CL_MEM_OBJECT_BUFFER => MemoryKind::ARRAY,
        _ if flags.0 & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR) != 0 => MemoryKind::PINNED,
        _ => MemoryKind::DEVICE,
    };
    if info.kind == MemoryKind::ARRAY {
        let size = ask!(below(), clGetImageInfo(mem, CL_IMAGE_ELEMENT_SIZE) -> usize);
        info.element_size = size.unwrap_or(0) as u32;
    }
    info
}

pub(super) fn release(call: &mut ObservedCall, mem: cl_mem) -> cl_int {
    let going = |info: &MemoryInfo| {
        if info.part == 0 {
            notify_freeing(call, mem.into(), info);
        }
    };
    // SAFETY: the program's own arguments.
    let (result, gone) =
        references::released(mem, going, || unsafe { next!(clReleaseMemObject(mem)) });
    if let Some(info) = gone.filter(|info| info.part == 0) {
        write(call, AllocationOperation::FREE, mem.into(), &info);
    }
    result
}

/// Tracks allocated shared virtual memory, unless `address` is null.
pub(super) fn svm_allocated(
    call: &mut ObservedCall,
    address: *mut c_void,
    context: cl_context,
    flags: cl_bitfield,
    bytes: usize,
) {
    allocated(call, address, context, flags, bytes, MemoryKind::MANAGED);
}

/// Tracks allocated unified shared memory.
pub(super) fn usm_allocated(
    call: &mut ObservedCall,
    address: *mut c_void,
    context: cl_context,
    bytes: usize,
    kind: MemoryKind,
) {
    allocated(call, address, context, cl_bitfield(0), bytes, kind);
}

fn allocated(
    call: &mut ObservedCall,
    address: *mut c_void,
    context: cl_context,
    flags: cl_bitfield,
    bytes: usize,
    kind: MemoryKind,
) {
    call.end();
    if address.is_null() {
        return;
    }
    let mut info = MemoryInfo::zeroed();
    let context = contexts::context(context);
    (info.agent, info.context, info.kind) = (context.agent, context.id, kind);
    (info.flags, info.bytes) = (flags.0, bytes as u64);
    SHARED.insert(address as u64, info);
    write(call, AllocationOperation::ALLOCATE, address as u64, &info);
}

pub(super) unsafe fn svm_free(call: &mut ObservedCall, context: cl_context, address: *mut c_void) {
    // Before the call: after it, the address may belong to other memory.
    let info = forget_shared(address);
    if let Some(info) = &info {
        notify_freeing(call, address as u64, info);
    }
    // SAFETY: the program's own arguments.
    unsafe { next!(clSVMFree(context, address)) };
    if let Some(info) = info {
        write(call, AllocationOperation::FREE, address as u64, &info);
    }
}

/// Reports that unified shared memory has been freed.
pub(super) fn usm_freed(call: &mut ObservedCall, address: *mut c_void) {
    if let Some(info) = forget_shared(address) {
        write(call, AllocationOperation::FREE, address as u64, &info);
    }
}

/// Notifies subscribers that shared memory at `address` is going to be freed, if it is tracked.
pub(super) fn notify_free(call: &ObservedCall, address: u64) {
    if let Some(info) = SHARED.get(address) {
        notify_freeing(call, address, &info);
    }
}

fn notify_freeing(call: &ObservedCall, address: u64, info: &MemoryInfo) {
    if let Some(site) = call.inner_call_site() {
        call.notify_allocation(&site, record(AllocationOperation::FREE, address, info));
    }
}

fn record(operation: AllocationOperation, address: u64, info: &MemoryInfo) -> Allocation {
    let mut record = Allocation::blank();
    (record.address, record.bytes) = (address, info.bytes);
    (record.agent, record.context) = (info.agent, info.context);
    (record.operation, record.memory) = (operation, info.kind);
    record.runtime_flags = info.flags;
    record
}

fn write(call: &mut ObservedCall, operation: AllocationOperation, address: u64, info: &MemoryInfo) {
    let mut record = record(operation, address, info);
    record.correlation = call.correlation();
    (record.start, record.end) = (call.start(), call.end());
    let interest = call.interest();
    call.host(|host| {
        record.thread = host.thread();
        let buffers = host
            .board()
            .buffers_of(interest, Kind::MEMORY_ALLOCATION, record.context);
        host.write_to(buffers, record);
    });
    call.notify_allocated(&record);
}
