//! PC sampling of devices whose kernels run on threads of the program: PoCL's processors. Offers them to the sampling
//! service and reports their dispatches to the sampler. Panics are contained here and do not affect the layer.

use super::contained::contained;
use super::device::ClDevice;
use crate::perf::{DispatchEvent, EnqueuedKernel, HostSampler};
use gputrail_buffer::platform::inside::message;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::process;
use gputrail_collect::sampling::SamplingError;
use gputrail_collect::switchboard::Buffers;
use gputrail_record::{AgentId, DeviceTime, KernelId, NoteKind, WorkHeader, WorkId};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The sampler of this process. Never freed, since a thread may be using it.
static SAMPLER: AtomicPtr<Arc<HostSampler>> = AtomicPtr::new(std::ptr::null_mut());

/// Creates the sampler when the process begins, also in a forked child.
pub(super) fn begin() {
    let new = Box::leak(Box::new(Arc::new(HostSampler::new())));
    SAMPLER.store(new, Ordering::Release);
}

fn sampler() -> Option<&'static Arc<HostSampler>> {
    // SAFETY: null or a leaked box.
    unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }
}

/// The sampler, if any agent is sampled.
#[inline(always)]
fn sampling() -> Option<&'static Arc<HostSampler>> {
    if is_on() { sampler() } else { None }
}

/// Whether any agent is sampled.
#[inline(always)]
pub(super) fn is_on() -> bool {
    HostSampler::is_active()
}

/// Offers a new agent to the sampling service if its kernels run in this process, and starts sampling it if the
/// recording asks for that.
pub(super) fn new_agent(agent: AgentId, device: &ClDevice) {
    contained(|| offer(agent, device));
}

fn offer(agent: AgentId, device: &ClDevice) {
    let (Some(board), Some(sampler)) = (process::board(), sampler()) else {
        return;
    };
    if !device.sampling().is_empty() {
        let offered = sampler.agent(agent);
        board.sampling().offer(agent, &device.name, offered);
    }
    if let Some(recorder) = process::recorder()
        && let Err(error) = recorder.sample(agent, &device.name)
    {
        message(format_args!("{error}"));
        if let Some(names) = process::names() {
            // Agents that cannot be sampled may stand beside some that can.
            let kind = match error {
                SamplingError::NotSupported { .. } => NoteKind::OTHER,
                _ => NoteKind::MISSING,
            };
            names.note(kind, &format!("PC sampling: {error}"));
        }
    }
}

/// Reports a kernel that `host` enqueues, and whose records go to `buffers`.
#[inline(always)]
pub(super) fn enqueued(host: &HostThread, kernel: KernelId, work: &WorkHeader, buffers: Buffers) {
    if let Some(sampler) = sampling() {
        // Built here, so that `work` can stay in registers.
        let enqueued = EnqueuedKernel {
            work: work.id,
            kernel,
            correlation: work.correlation,
            external: host.external_of_samples(),
            agent: work.agent,
            is_recorded: !buffers.is_none(),
        };
        report_enqueued(sampler, enqueued);
    }
}

#[cold]
#[inline(never)]
fn report_enqueued(sampler: &HostSampler, enqueued: EnqueuedKernel) {
    contained(|| sampler.report(DispatchEvent::Enqueued(enqueued)));
}

/// Reports completed work. Unknown times are 0.
#[inline(always)]
pub(super) fn completed(work: WorkId, start: DeviceTime, end: DeviceTime) {
    if let Some(sampler) = sampling() {
        let (start, end) = (start.0, end.0);
        contained(|| sampler.report(DispatchEvent::Completed { work, start, end }));
    }
}

/// Ends sampling at process exit, after the last completion.
pub(super) fn finish() {
    if let Some(sampler) = sampling() {
        contained(|| sampler.finish());
    }
}
