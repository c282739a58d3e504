//! Control of a running session by other threads of `gputrail record`: on, off, flush, dump, and what has been recorded
//! so far.

use gputrail_buffer::platform::sync::lock_std;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// An action on a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing but the status.
    Look,
    /// Switches the session on. A scope that is over, after `--duration` say, begins again.
    Start,
    /// Switches the session off. Calls and work in progress are still recorded.
    Stop,
    /// Takes everything that is committed to the captures.
    Flush,
    /// Has a flight recorder dumped.
    Dump,
}

/// The state of a session.
#[derive(Clone, Debug)]
pub struct SessionStatus {
    /// Whether the session was switched on before the action.
    pub was_on: bool,
    /// Whether it is now.
    pub is_on: bool,
    /// When it was last switched on or off, or began.
    pub since: SystemTime,
    /// How often it was switched on or off.
    pub switches: u64,
    /// The processes that are being recorded.
    pub processes: Vec<ProcessStatus>,
    /// The number of processes that have ended.
    pub ended_processes: usize,
    /// The number of processes that asked to be recorded in vain.
    pub refused_processes: usize,
    /// The records of all processes that have ended.
    pub ended: ProcessStatus,
    /// The captures of all processes, also of those that have ended.
    pub captures: Vec<PathBuf>,
    /// The number of dumps so far; `None` without a flight recorder.
    pub dumps: Option<u32>,
}

/// The recording of one process so far.
#[derive(Clone, Debug, Default)]
pub struct ProcessStatus {
    /// Its process id.
    pub pid: u32,
    /// Its number in the session, from 1.
    pub process: u32,
    /// Whether it was forked by a recorded process.
    pub forked: bool,
    /// Its capture.
    pub capture: PathBuf,
    /// The number of records in the capture and in the memory of the process; with a flight recorder, of those that are
    /// kept.
    pub records: u64,
    /// The length of the capture, and of the records in the memory.
    pub bytes: u64,
    /// The number of lost records.
    pub dropped: u64,
    /// Whether the process has ended its recording, or begins to exit.
    pub has_ended: bool,
    /// Why the capture cannot grow any more, if it cannot.
    pub failed: Option<String>,
}

/// A handle by which a thread controls a session.
#[derive(Clone)]
pub struct Controls {
    send: Arc<dyn Fn(ActionRequest) -> bool + Send + Sync>,
}

impl Controls {
    pub(super) fn new(send: impl Fn(ActionRequest) -> bool + Send + Sync + 'static) -> Controls {
        Controls {
            send: Arc::new(send),
        }
    }

    /// Has the session do `action`. Returns its status afterwards, or `None` if the session is over.
    pub fn request(&self, action: Action) -> Option<SessionStatus> {
        let (reply, status) = channel();
        (self.send)(ActionRequest { action, reply })
            .then(|| status.recv().ok())
            .flatten()
    }
}

/// An action that was requested.
pub(super) struct ActionRequest {
    pub action: Action,
    reply: Sender<SessionStatus>,
}

impl ActionRequest {
    pub fn answer(self, status: SessionStatus) {
        // The requesting thread waits for it, unless it is gone.
        let _ = self.reply.send(status);
    }
}

/// The requests that the session's thread has not served; `None` after its end.
pub(super) struct Requests(Mutex<Option<Vec<ActionRequest>>>);

impl Default for Requests {
    fn default() -> Requests {
        Requests(Mutex::new(Some(Vec::new())))
    }
}

impl Requests {
    /// Adds a request. `false`: nobody serves it any more.
    pub fn push(&self, request: ActionRequest) -> bool {
        let mut requests = lock_std(&self.0);
        let waiting = requests.as_mut();
        waiting.map(|waiting| waiting.push(request)).is_some()
    }

    pub fn take(&self) -> Vec<ActionRequest> {
        let mut requests = lock_std(&self.0);
        requests.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends the service: those who wait for an answer get none.
    pub fn close(&self) {
        *lock_std(&self.0) = None;
    }
}
