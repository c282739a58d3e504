//! Calls that create contexts, and that retain and release objects of any kind.

use super::below::next;
use super::call::ObservedCall;
use super::contexts::{self, CONTEXTS, ContextInfo};
use super::devices;
use super::ffi::*;
use super::references::{ReferenceCounted, released};
use super::{kernel_arguments, kernels, memory, programs, queues, waits};
use gputrail_collect::process;
use gputrail_interface::operations::resource;
use gputrail_record::{Agent, AgentId, Context};

/// Forgets the objects of a parent process.
pub(super) fn forget_all() {
    CONTEXTS.clear();
    queues::QUEUES.clear();
    kernels::forget_all();
    programs::forget_all();
    memory::forget_all();
    devices::DEVICES.clear();
    kernel_arguments::forget_all();
    waits::forget_all();
}

/// Counts a reference that the program has added.
pub(super) fn retained<O: ReferenceCounted>(_: &mut ObservedCall, object: O) {
    O::known().update(object, |info| *O::references(info) += 1);
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
    let info = contexts::context(context);
    for agent in agents().filter(|agent| !known.contains(agent)) {
        call.notify_object::<Agent>(resource::AGENT_KNOWN, agent.0);
    }
    call.notify_object::<Context>(resource::CONTEXT_CREATED, info.id.0);
}
