//! The parent's side: a thread that gives each process its buffer and its capture, has a collector take to the capture
//! what comes into the buffer, and saves what is left there when the process is gone. The thread's work is in `thread`,
//! what it shares with others in `shared`, its processes in `processes`, and what the system says of their ends in `ending`.

mod ending;
mod options;
mod processes;
mod shared;
mod thread;

pub use ending::ProcessEnd;
pub use options::ServerOptions;
pub(super) use processes::Live;
pub use processes::{ProcessCapture, SessionResult};

use super::SOCKET;
use super::control::{Controls, Requests};
use super::handshake::SessionSocket;
use super::switch::Switch;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::lock_std;
use rustix::event::EventfdFlags;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use shared::{DUMP, FINISH, KILL, SessionShared, raise};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use thread::Session;

/// A session that could not be opened, or whose thread failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct ServerError {
    action: &'static str,
    source: std::io::Error,
}

/// A running session.
pub struct Server {
    shared: Arc<SessionShared>,
    result: Receiver<SessionResult>,
}

/// Why a session is off that has not been switched on yet.
const BEGAN_PAUSED: &str = "record --paused";

impl Server {
    /// Opens the session: makes the socket and starts the thread, which makes the first pool ahead.
    pub fn start(options: ServerOptions) -> Result<Server, ServerError> {
        let failed = |action| {
            move |errno: Errno| ServerError {
                action,
                source: errno.into(),
            }
        };
        let listener = SessionSocket::bind(&options.directory.join(SOCKET))
            .map_err(failed("make the session's socket"))?;
        let event = || {
            rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(failed("make the session's eventfd"))
        };
        let shared = Arc::new(SessionShared {
            wake: event()?,
            first_ended: event()?,
            command: AtomicU32::new(0),
            attached: Mutex::default(),
            requests: Requests::default(),
            is_off: AtomicBool::new(options.paused),
        });
        let switch = Switch::new(!options.paused).map_err(|source| ServerError {
            action: "make the session's switch",
            source,
        })?;
        let paused = options.paused.then_some(BEGAN_PAUSED);
        // Each capture's header needs its result.
        clock::measure_frequency();
        let session = Session::new(options, shared.clone(), listener, switch, paused);
        let (sender, result) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("session".into())
            .spawn(move || session.run(&sender))
            .map_err(|source| ServerError {
                action: "start the session's thread",
                source,
            })?;
        Ok(Server { shared, result })
    }

    /// Process ids of all that have attached so far.
    pub fn attached(&self) -> Vec<u32> {
        let attached = lock_std(&self.shared.attached);
        attached.iter().map(|(pid, _)| *pid).collect()
    }

    /// A handle for a thread that waits for a process to attach.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(self.shared.clone())
    }

    /// A handle by which other threads control the session.
    pub fn controls(&self) -> Controls {
        let shared = self.shared.clone();
        Controls::new(move |request| {
            let sent = shared.requests.push(request);
            raise(&shared.wake);
            sent
        })
    }

    /// Has what is kept written out, see [`ServerOptions::flight`].
    pub fn dump(&self) {
        self.shared.send(DUMP);
    }

    /// Kills all processes that are being recorded.
    pub fn kill(&self) {
        self.shared.send(KILL);
    }

    /// Ends the session. Processes that are still running are told to stop recording, and what they
    /// recorded is taken as it is.
    pub fn finish(self) -> SessionResult {
        self.shared.send(FINISH);
        self.result.recv().unwrap_or_default()
    }
}

/// The processes that have attached to a session so far.
#[derive(Clone)]
pub struct Arrivals(Arc<SessionShared>);

impl Arrivals {
    /// The capture of the first process that attached.
    pub fn first_capture(&self) -> Option<PathBuf> {
        let attached = lock_std(&self.0.attached);
        attached.first().map(|(_, path)| path.clone())
    }

    /// Can be read from when that process has ended its session: what it recorded by then is in its capture.
    pub fn first_ended(&self) -> BorrowedFd<'_> {
        self.0.first_ended.as_fd()
    }
}
