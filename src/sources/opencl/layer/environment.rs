//! The environment of devices that are processors of this machine, whichever runtime executes kernels on them.

use super::contained::contained;
use super::device::ClDevice;
use crate::processors::ProcessorMonitor;
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::{AgentId, AgentKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The monitor of this process. Never freed, since a thread may be using it.
static MONITOR: AtomicPtr<Arc<ProcessorMonitor>> = AtomicPtr::new(std::ptr::null_mut());

/// Creates the monitor when the process begins, also in a forked child.
pub(super) fn begin(board: &Switchboard) {
    let monitor = Arc::<ProcessorMonitor>::default();
    MONITOR.store(Box::leak(Box::new(monitor.clone())), Ordering::Release);
    board.on_change(move || contained(|| monitor.update()));
}

fn monitor() -> Option<&'static Arc<ProcessorMonitor>> {
    // SAFETY: null or a leaked box.
    unsafe { MONITOR.load(Ordering::Acquire).as_ref() }
}

/// Adds a new agent if it is a processor.
pub(super) fn new_agent(agent: AgentId, device: &ClDevice) {
    if device.kind == AgentKind::CPU
        && let Some(monitor) = monitor()
    {
        contained(|| monitor.add(agent));
    }
}

/// Ends reading at process exit.
pub(super) fn finish() {
    if let Some(monitor) = monitor() {
        contained(|| monitor.finish());
    }
}
