//! How a recorded process ended, as the system says it.

use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{WaitId, WaitIdOptions};
use std::os::unix::process::ExitStatusExt;

/// How the part of a process in the session ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The process flushed everything and ended its recording itself.
    Finished,
    /// The process is gone without having done so; with the signal that killed it, or `None` where its parent had
    /// waited for it before anybody could look.
    Died(Option<i32>),
    /// The process ended with this exit code and without exit handlers, by `_exit` or `quick_exit`.
    Exited(i32),
    /// The process became another program by exec.
    Replaced,
    /// The process was still running when the session ended.
    Running,
}

/// Whether the process has ended.
pub(super) fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut files = [PollFd::new(pidfd, PollFlags::IN)];
    let now = rustix::event::Timespec::default();
    rustix::event::poll(&mut files, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// How a process ended. The system tells the parent of a process, and everybody as long as nobody has waited for it.
pub(super) fn how_it_ended(pid: u32, pidfd: Option<&OwnedFd>) -> ProcessEnd {
    let status = pidfd.and_then(|pidfd| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), options)
            .ok()
            .flatten()
    });
    match status {
        Some(status) => status.exit_status().map_or(
            ProcessEnd::Died(status.terminating_signal()),
            ProcessEnd::Exited,
        ),
        None => zombie_status(pid).unwrap_or(ProcessEnd::Died(None)),
    }
}

/// How a process ended that its parent has not waited for, from /proc/PID/stat.
fn zombie_status(pid: u32) -> Option<ProcessEnd> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the state follows it, and the status is the last field.
    let (_, fields) = stat.rsplit_once(") ")?;
    let status = fields.trim_end().rsplit(' ').next()?.parse().ok()?;
    let status = std::process::ExitStatus::from_raw(status);
    let end = status
        .code()
        .map_or(ProcessEnd::Died(status.signal()), ProcessEnd::Exited);
    fields.starts_with('Z').then_some(end)
}
