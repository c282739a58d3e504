//! How a recorded process ended, as the system says it.

use super::{End, Live};
use crate::session::memory;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{WaitId, WaitIdOptions};
use std::os::unix::process::ExitStatusExt;

/// Whether the process has ended.
pub(super) fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut files = [PollFd::new(pidfd, PollFlags::IN)];
    let now = rustix::event::Timespec::default();
    rustix::event::poll(&mut files, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// How a process ended. The system tells the parent of a process, and everybody as long as nobody has waited for it.
pub(super) fn how_it_ended(live: &Live) -> End {
    let status = live.pidfd.as_ref().and_then(|pidfd| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), options)
            .ok()
            .flatten()
    });
    match status {
        Some(status) => status
            .exit_status()
            .map_or(End::Died(status.terminating_signal()), End::Exited),
        None => zombie_status(live.capture.pid).unwrap_or(End::Died(None)),
    }
}

/// How a process ended that its parent has not waited for, from /proc/PID/stat.
fn zombie_status(pid: u32) -> Option<End> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the state follows it, and the status is the last field.
    let (_, fields) = stat.rsplit_once(") ")?;
    let status = fields.trim_end().rsplit(' ').next()?.parse().ok()?;
    let status = std::process::ExitStatus::from_raw(status);
    let end = status
        .code()
        .map_or(End::Died(status.signal()), End::Exited);
    fields.starts_with('Z').then_some(end)
}

/// Whether a process still has a pool of ours in its memory. One that cannot be looked at has, and so has one with no
/// memory at all: it has not become another program, it is ending.
pub(super) fn still_mapped(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/maps")).map_or(true, |maps| {
        let mut windows = maps.windows(memory::MAPS_NAME.len());
        maps.is_empty() || windows.any(|window| window == memory::MAPS_NAME)
    })
}
