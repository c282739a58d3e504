//! PC sampling of devices whose kernels run on threads of the program: PoCL's processors. Says which they are, and what the
//! sampler has to know of their work. What goes wrong in here ends here: the rest of the layer goes on.

use super::device::Device;
use super::dispatch::contained;
use super::work::Place;
use crate::collect::process;
use crate::record::{AgentId, DeviceTime, KernelId, NoteKind, WorkId};
use crate::source::perf::{Enqueued, HostSampler, Note};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The sampler of this process. Never freed: a thread may be at it.
static SAMPLER: AtomicPtr<Arc<HostSampler>> = AtomicPtr::new(std::ptr::null_mut());

/// The process begins, perhaps as a forked child: what its parent sampled is none of its business.
pub(super) fn begin() {
    let new = Box::leak(Box::new(Arc::new(HostSampler::new())));
    SAMPLER.store(new, Ordering::Release);
}

fn sampler() -> Option<&'static Arc<HostSampler>> {
    // SAFETY: null or a leaked box.
    unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }
}

/// The same while something is sampled.
#[inline(always)]
fn sampling() -> Option<&'static Arc<HostSampler>> {
    match is_on() {
        true => sampler(),
        false => None,
    }
}

/// Whether anything is sampled.
#[inline(always)]
pub(super) fn is_on() -> bool {
    HostSampler::is_any_on()
}

/// A device has become an agent: it can be sampled if its kernels run here, and is if the recording asks for it.
pub(super) fn new_agent(agent: AgentId, device: &Device) {
    contained(|| offer(agent, device));
}

fn offer(agent: AgentId, device: &Device) {
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
        eprintln!("gputrail: {error}");
        if let Some(names) = process::names() {
            names.note(NoteKind::OTHER, &format!("PC sampling: {error}"));
        }
    }
}

/// A kernel was put into a queue.
#[inline(always)]
pub(super) fn enqueued(kernel: KernelId, place: &Place) {
    if let Some(sampler) = sampling() {
        // Put together here, so that the place itself need not be anywhere in memory.
        let enqueued = Enqueued {
            work: place.work,
            kernel,
            correlation: place.correlation,
            external: place.external,
            agent: place.agent,
            is_recorded: !place.buffers.is_none(),
        };
        put_down(sampler, enqueued);
    }
}

#[cold]
#[inline(never)]
fn put_down(sampler: &HostSampler, enqueued: Enqueued) {
    contained(|| sampler.note(Note::Enqueued(enqueued)));
}

/// Work has completed; times of 0 are not known.
#[inline(always)]
pub(super) fn completed(work: WorkId, start: DeviceTime, end: DeviceTime) {
    if let Some(sampler) = sampling() {
        let (start, end) = (start.0, end.0);
        contained(|| sampler.note(Note::Completed { work, start, end }));
    }
}

/// The program ends, and everything that will complete has.
pub(super) fn finish() {
    if let Some(sampler) = sampling() {
        contained(|| sampler.finish());
    }
}
