//! The arguments of kernels that were set while replay was configured, from which it finds the memory that a kernel may write.

use super::ffi::*;
use gputrail_buffer::platform::sync::PerProcess;
use std::collections::{BTreeMap, HashMap};

/// The most arguments of a kernel that are tracked.
const MAX_ARGUMENTS: cl_uint = 4096;

/// The arguments of kernels that were set while replay was configured.
static ARGUMENTS: PerProcess<HashMap<u64, KernelArguments>> = PerProcess::new();

pub(super) fn forget_all() {
    ARGUMENTS.lock().clear();
}

/// The arguments of `kernel` that are known.
pub(super) fn of(kernel: cl_kernel) -> KernelArguments {
    let arguments = ARGUMENTS.lock().get(&kernel.into()).cloned();
    arguments.unwrap_or_default()
}

/// The arguments of a kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelArguments {
    pub by_index: BTreeMap<cl_uint, KernelValue>,
    /// Whether the kernel may use shared memory that no argument leads to (clSetKernelExecInfo).
    pub has_shared: bool,
}

/// The value of an argument.
#[derive(Copy, Clone, Debug)]
pub(super) enum KernelValue {
    /// No memory that the kernel could write.
    Plain,
    /// 8 bytes, which may be the handle of a memory object.
    Handle(u64),
    /// A pointer to shared memory.
    Shared,
}

/// An argument was set.
///
/// # Safety
///
/// The arguments are those of a call to clSetKernelArg that succeeded.
#[cold]
pub(super) unsafe fn argument_set(
    kernel: cl_kernel,
    index: cl_uint,
    bytes: usize,
    value: *const c_void,
) {
    let value = match bytes == size_of::<cl_mem>() && !value.is_null() {
        // SAFETY: `value` is not null and the runtime has taken it: it leads to `bytes` bytes, which are 8.
        true => KernelValue::Handle(unsafe { value.cast::<u64>().read_unaligned() }),
        false => KernelValue::Plain,
    };
    set(kernel, index, value);
}

/// An argument was set to a pointer to shared memory.
#[cold]
pub(super) fn pointer_set(kernel: cl_kernel, index: cl_uint, address: *const c_void) {
    let value = if address.is_null() {
        KernelValue::Plain
    } else {
        KernelValue::Shared
    };
    set(kernel, index, value);
}

fn set(kernel: cl_kernel, index: cl_uint, value: KernelValue) {
    if index < MAX_ARGUMENTS {
        let mut all = ARGUMENTS.lock();
        let arguments = all.entry(kernel.into()).or_default();
        arguments.by_index.insert(index, value);
    }
}

/// The kernel was told what it may use besides its arguments.
#[cold]
pub(super) fn exec_info_set(kernel: cl_kernel) {
    let mut all = ARGUMENTS.lock();
    all.entry(kernel.into()).or_default().has_shared = true;
}

/// A kernel was created, maybe with the handle of an earlier one.
pub(super) fn kernel_created(kernel: cl_kernel) {
    ARGUMENTS.lock().remove(&kernel.into());
}

/// A kernel was cloned.
pub(super) fn kernel_cloned(kernel: cl_kernel, source: cl_kernel) {
    let mut all = ARGUMENTS.lock();
    match all.get(&source.into()).cloned() {
        Some(arguments) => drop(all.insert(kernel.into(), arguments)),
        None => drop(all.remove(&kernel.into())),
    }
}
