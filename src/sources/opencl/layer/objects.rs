//! Tracking of the program's objects for as long as the program holds references, and contexts in particular.
//!
//! The program's own references are counted, so that the last release is known without a query. An object that is not
//! tracked (it was created before the recording, or by a function that is not observed) is looked up in the runtime
//! when it is first used.

use super::call::ObservedCall;
use super::devices;
use super::dispatch::{below, next};
use super::ffi::*;
use super::functions::ask;
use super::handles::Handles;
use super::{kernels, memory, programs, queues, waits};
use bytemuck::{Pod, Zeroable};
use gputrail_collect::process;
use gputrail_interface::operations::resource;
use gputrail_record::{Agent, AgentId, Context, ContextId, Domain};

/// A kind of object that is reference-counted.
pub(super) trait Object: Copy + Into<u64> + 'static {
    type Info: Pod;

    /// The tracked objects.
    fn known() -> &'static Handles<Self::Info>;

    /// The number of the program's references.
    fn references(info: &mut Self::Info) -> &mut u32;
}

/// Declares an [`Object`].
macro_rules! object {
    ($handle:ident, $info:ident, $table:ident) => {
        pub(super) static $table: Handles<$info> = Handles::new();

        impl Object for $handle {
            type Info = $info;

            fn known() -> &'static Handles<$info> {
                &$table
            }

            fn references(info: &mut $info) -> &mut u32 {
                &mut info.references
            }
        }
    };
}
pub(super) use object;

/// The tracked state of a context.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ContextInfo {
    references: u32,
    pub id: ContextId,
    /// Its only agent, or none.
    pub agent: AgentId,
    unused: [u32; 11],
}
object!(cl_context, ContextInfo, CONTEXTS);

/// Forgets the objects of a parent process.
pub(super) fn forget_all() {
    CONTEXTS.clear();
    queues::QUEUES.clear();
    kernels::forget_all();
    programs::forget_all();
    memory::forget_all();
    devices::DEVICES.clear();
    waits::forget_all();
}

/// Counts a reference that the program has added.
pub(super) fn retained<O: Object>(_: &mut ObservedCall, object: O) {
    O::known().update(object, |info| *O::references(info) += 1);
}

/// Counts a reference that the program releases by `call`. For the last one, `going` is called, and the tracked state
/// is returned.
///
/// The count is decremented before the call: after it, the handle may belong to another object.
pub(super) fn released<O: Object>(
    object: O,
    going: impl FnOnce(&O::Info),
    call: impl FnOnce() -> cl_int,
) -> (cl_int, Option<O::Info>) {
    let last = O::known().update(object, |info| {
        let references = O::references(info);
        *references = references.saturating_sub(1);
        *references == 0
    });
    let gone = if last == Some(true) {
        O::known().remove(object)
    } else {
        None
    };
    if let Some(info) = &gone {
        going(info);
    }
    let result = call();
    if result != CL_SUCCESS {
        match gone {
            Some(mut info) => {
                *O::references(&mut info) += 1;
                O::known().insert(object, info);
            }
            None => drop(O::known().update(object, |info| *O::references(info) += 1)),
        }
        return (result, None);
    }
    (result, gone)
}

pub(super) unsafe fn release_context(call: &mut ObservedCall, context: cl_context) -> cl_int {
    let going = |info: &ContextInfo| {
        call.notify_object::<Context>(resource::CONTEXT_DESTROYED, info.id.0);
    };
    // SAFETY: the program's own arguments.
    released(context, going, || unsafe {
        next!(clReleaseContext(context))
    })
    .0
}

pub(super) unsafe fn release_program(call: &mut ObservedCall, program: cl_program) -> cl_int {
    let going = |info: &programs::ProgramInfo| programs::going(call, info);
    // SAFETY: the program's own arguments.
    released(program, going, || unsafe {
        next!(clReleaseProgram(program))
    })
    .0
}

pub(super) unsafe fn release_kernel(call: &mut ObservedCall, kernel: cl_kernel) -> cl_int {
    let going = |info: &kernels::KernelInfo| kernels::going(call, info);
    // SAFETY: the program's own arguments.
    released(kernel, going, || unsafe { next!(clReleaseKernel(kernel)) }).0
}

pub(super) unsafe fn release_memory(call: &mut ObservedCall, mem: cl_mem) -> cl_int {
    memory::release(call, mem)
}

/// A context was created.
pub(super) fn context_created(call: &mut ObservedCall, context: cl_context) {
    call.end();
    CONTEXTS.remove(context);
    let agents = || {
        let all: Vec<Agent> = process::names().map_or_else(Vec::new, |names| names.all());
        all.into_iter().map(|agent| agent.id)
    };
    let known: Vec<AgentId> = agents().collect();
    let info = self::context(context);
    for agent in agents().filter(|agent| !known.contains(agent)) {
        call.notify_object::<Agent>(resource::AGENT_KNOWN, agent.0);
    }
    call.notify_object::<Context>(resource::CONTEXT_CREATED, info.id.0);
}

/// The tracked state of `context`.
pub(super) fn context(context: cl_context) -> ContextInfo {
    CONTEXTS
        .get(context)
        .unwrap_or_else(|| name_context(context))
}

#[cold]
fn name_context(context: cl_context) -> ContextInfo {
    let mut info = ContextInfo::zeroed();
    let Some(names) = process::names().filter(|_| !context.is_null()) else {
        return info;
    };
    let mut devices = [cl_device_id::NULL; 64];
    let mut bytes = 0;
    let to = devices.as_mut_ptr().cast();
    // SAFETY: the context exists during the call that uses it; `devices` has as many bytes as stated.
    unsafe {
        next!(clGetContextInfo(
            context,
            CL_CONTEXT_DEVICES,
            size_of_val(&devices),
            to,
            &raw mut bytes
        ))
    };
    let count = (bytes / size_of::<cl_device_id>()).min(devices.len());
    let agents: Vec<_> = devices[..count]
        .iter()
        .map(|device| devices::agent(*device))
        .collect();
    let mut record = Context::blank();
    record.agent = agents.first().copied().unwrap_or_default();
    record.agents = count as u32;
    record.handle = context.into();
    record.domain = Domain::OPENCL;
    info.id = names.context(record);
    info.agent = if count == 1 {
        record.agent
    } else {
        AgentId::NONE
    };
    info.references = 1;
    CONTEXTS.insert(context, info);
    info
}

/// The context of a memory object.
pub(super) fn context_of_memory(mem: cl_mem) -> cl_context {
    ask!(below(), clGetMemObjectInfo(mem, CL_MEM_CONTEXT) -> cl_context).unwrap_or(cl_context::NULL)
}
