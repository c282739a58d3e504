//! Kernels: their names, and the resources that a launch takes.

use super::below::{below, next};
use super::call::ObservedCall;
use super::counters;
use super::device::text;
use super::ffi::*;
use super::functions::ask;
use super::handles::ObjectTable;
use super::kernel_arguments;
use super::programs;
use super::references::{ReferenceCounted, object};
use bytemuck::{Pod, Zeroable};
use core::slice;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::process;
use gputrail_interface::operations::resource;
use gputrail_record::{ContextId, KernelDispatch, KernelId, KernelSymbol};
use std::collections::HashMap;
use std::ffi::CStr;

/// The state of a kernel that every launch needs: small enough for registers.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LaunchState {
    pub id: KernelId,
    private: u32,
    /// Local memory that the kernel declares, bytes.
    static_local: u32,
    /// Local memory that its arguments add, bytes. The two fields are in the same order as in the record.
    dynamic_local: u32,
}

impl LaunchState {
    /// Makes `dispatch` the record of a launch, without its geometry.
    #[inline(always)]
    pub fn fill(self, dispatch: &mut KernelDispatch) {
        *dispatch = KernelDispatch::blank();
        dispatch.kernel = self.id;
        dispatch.static_local_memory = self.static_local;
        dispatch.dynamic_local_memory = self.dynamic_local;
        dispatch.private_memory = self.private;
        dispatch.carveout = 255;
    }
}

/// The tracked state of a kernel.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KernelInfo {
    launch: LaunchState,
    references: u32,
    context: ContextId,
    unused: [u32; 8],
}
object!(cl_kernel, KernelInfo, KERNELS);

/// Host functions that were enqueued as native kernels.
static NATIVE: ObjectTable<KernelInfo> = ObjectTable::new();

/// Bytes of local memory by kernel and argument, for kernels that have such arguments.
static LOCAL: PerProcess<LocalArguments> = PerProcess::new();

/// Indices and sizes of the arguments of each kernel that are local memory.
type LocalArguments = HashMap<u64, Vec<(cl_uint, u32)>>;

pub(super) fn forget_all() {
    KERNELS.clear();
    NATIVE.clear();
}

/// A kernel was created from a program.
pub(super) fn created(call: &mut ObservedCall, kernel: cl_kernel, program: cl_program) {
    call.end();
    KERNELS.remove(kernel);
    let info = name(kernel, program);
    call.notify_object::<KernelSymbol>(resource::KERNEL_SYMBOL_REGISTERED, info.launch.id.0);
}

/// Reports that the program is going to release its last reference to a kernel.
pub(super) fn going(call: &ObservedCall, info: &KernelInfo) {
    call.notify_object::<KernelSymbol>(resource::KERNEL_SYMBOL_UNREGISTERED, info.launch.id.0);
}

/// All kernels of a program were created.
///
/// # Safety
///
/// The arguments are those of a call to clCreateKernelsInProgram that succeeded.
pub(super) unsafe fn created_all(
    call: &mut ObservedCall,
    program: cl_program,
    room: cl_uint,
    kernels: *mut cl_kernel,
    count: *mut cl_uint,
) {
    if kernels.is_null() {
        return;
    }
    // The runtime fills the list, or fails if it is too short.
    const CL_PROGRAM_NUM_KERNELS: cl_uint = 0x1167;
    let count = if count.is_null() {
        ask!(below(), clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS) -> usize).unwrap_or(0)
            as cl_uint
    } else {
        // SAFETY: the program's place for the number.
        unsafe { *count }
    };
    // SAFETY: the program's list, with room for `room`, of which `count` are filled.
    for kernel in unsafe { slice::from_raw_parts(kernels, count.min(room) as usize) } {
        created(call, *kernel, program);
    }
}

/// A kernel was cloned, with its arguments.
pub(super) fn cloned(call: &mut ObservedCall, kernel: cl_kernel, source: cl_kernel) {
    call.end();
    let mut info = lookup(source);
    info.references = 1;
    KERNELS.insert(kernel, info);
    kernel_arguments::kernel_cloned(kernel, source);
    let mut local = LOCAL.lock();
    if let Some(arguments) = local.get(&source.into()).cloned() {
        local.insert(kernel.into(), arguments);
    }
}

/// An argument was set: notes those without a value, which are local memory, and all of them for replay.
///
/// # Safety
///
/// The arguments are those of a call to clSetKernelArg that succeeded.
#[cold]
pub(super) unsafe fn argument_set(
    call: &mut ObservedCall,
    kernel: cl_kernel,
    index: cl_uint,
    bytes: usize,
    value: *const c_void,
) {
    if value.is_null() {
        local_argument(call, kernel, index, bytes);
    }
    if counters::have_passes() {
        // SAFETY: the arguments are those of a call to clSetKernelArg that succeeded (`# Safety`).
        unsafe { kernel_arguments::argument_set(kernel, index, bytes, value) };
    }
}

/// Notes an argument without a value: local memory of that size.
fn local_argument(_: &mut ObservedCall, kernel: cl_kernel, index: cl_uint, bytes: usize) {
    let bytes = bytes as u32;
    let mut local = LOCAL.lock();
    let arguments = local.entry(kernel.into()).or_default();
    match arguments.iter_mut().find(|(known, _)| *known == index) {
        Some((_, known)) if *known == bytes => return,
        Some((_, known)) => *known = bytes,
        None => arguments.push((index, bytes)),
    }
    let sum = arguments
        .iter()
        .fold(0u32, |sum, (_, bytes)| sum.saturating_add(*bytes));
    KERNELS.update(kernel, |info| info.launch.dynamic_local = sum);
}

/// The state of `kernel` that a launch needs.
#[inline(always)]
pub(super) fn launch(kernel: cl_kernel) -> LaunchState {
    let launch: LaunchState = bytemuck::cast(KERNELS.first_two(kernel));
    if launch.id.is_some() {
        launch
    } else {
        launch_of_unknown(kernel)
    }
}

/// The id of `kernel` in records, if it is tracked.
pub(super) fn id(kernel: cl_kernel) -> KernelId {
    KERNELS
        .get(kernel)
        .map_or(KernelId::NONE, |info| info.launch.id)
}

#[cold]
fn launch_of_unknown(kernel: cl_kernel) -> LaunchState {
    name_unknown(kernel).launch
}

fn lookup(kernel: cl_kernel) -> KernelInfo {
    KERNELS.get(kernel).unwrap_or_else(|| name_unknown(kernel))
}

/// Tracks a kernel whose creation was not observed.
fn name_unknown(kernel: cl_kernel) -> KernelInfo {
    if kernel.is_null() {
        return KernelInfo::zeroed();
    }
    let program = ask!(below(), clGetKernelInfo(kernel, CL_KERNEL_PROGRAM) -> cl_program);
    name(kernel, program.unwrap_or(cl_program::NULL))
}

fn name(kernel: cl_kernel, program: cl_program) -> KernelInfo {
    let mut info = KernelInfo::zeroed();
    info.references = 1;
    LOCAL.lock().remove(&kernel.into());
    kernel_arguments::kernel_created(kernel);
    let Some(names) = process::names() else {
        return info;
    };
    let device = programs::first_device(program);
    let size = |what| {
        ask!(below(), clGetKernelWorkGroupInfo(kernel, device, what) -> usize).unwrap_or(0) as u64
    };
    let bytes =
        |what| ask!(below(), clGetKernelWorkGroupInfo(kernel, device, what) -> u64).unwrap_or(0);
    // SAFETY: the kernel exists during the call that uses it; `text` passes room, and its size.
    let name = text(|bytes, to, size| unsafe {
        next!(clGetKernelInfo(
            kernel,
            CL_KERNEL_FUNCTION_NAME,
            bytes,
            to,
            size
        ))
    });
    let mut record = KernelSymbol::blank();
    record.module = programs::module(program);
    info.context = programs::context_of(program).unwrap_or_default();
    record.handle = kernel.into();
    record.local_memory = bytes(CL_KERNEL_LOCAL_MEM_SIZE);
    record.private_memory = bytes(CL_KERNEL_PRIVATE_MEM_SIZE);
    record.max_workgroup = size(CL_KERNEL_WORK_GROUP_SIZE) as u32;
    record.workgroup_multiple = size(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE) as u32;
    record.arguments =
        ask!(below(), clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS) -> u32).unwrap_or(0);
    info.launch.id = process::add_kernel(names, &name, record);
    info.launch.static_local = record.local_memory as u32;
    info.launch.private = record.private_memory as u32;
    KERNELS.insert(kernel, info);
    info
}

/// The context of a kernel that is known.
pub(super) fn context_of(kernel: cl_kernel) -> Option<ContextId> {
    KERNELS.get(kernel).map(|info| info.context)
}

/// The kernel of a host function.
pub(super) fn native(function: NativeKernel) -> KernelId {
    // A host function may wait for the program.
    counters::work_waits_for_program();
    let address = function.map_or(0, |function| function as usize as u64);
    named(address, || function_name(address))
}

/// A kernel without a kernel object.
fn named(key: u64, name: impl FnOnce() -> String) -> KernelId {
    if let Some(info) = NATIVE.get(key) {
        return info.launch.id;
    }
    let Some(names) = process::names() else {
        return KernelId::NONE;
    };
    let mut record = KernelSymbol::blank();
    record.handle = key;
    let mut info = KernelInfo::zeroed();
    info.launch.id = process::add_kernel(names, &name(), record);
    NATIVE.insert(key, info);
    info.launch.id
}

/// The kernel for command buffers whose commands were not observed.
pub(super) fn command_buffer() -> KernelId {
    const KEY: u64 = 1;
    named(KEY, || "command buffer".to_owned())
}

/// The name of a function of the process, if the dynamic linker knows it.
fn function_name(address: u64) -> String {
    // SAFETY: plain data that dladdr fills in.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let known = unsafe { libc::dladdr(address as *const c_void, &mut found) } != 0;
    if known && !found.dli_sname.is_null() && found.dli_saddr as u64 == address {
        // SAFETY: a string of the linker's, valid while the library is loaded.
        return unsafe { CStr::from_ptr(found.dli_sname) }
            .to_string_lossy()
            .into_owned();
    }
    format!("native kernel {address:#x}")
}
