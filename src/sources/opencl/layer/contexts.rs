//! The contexts that are tracked.

use super::below::next;
use super::devices;
use super::ffi::*;
use super::handles::ObjectTable;
use super::references::{ReferenceCounted, object};
use bytemuck::{Pod, Zeroable};
use gputrail_collect::process;
use gputrail_record::{AgentId, Context, ContextId, Domain};

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
