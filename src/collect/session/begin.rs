//! The recording of this process, as its environment asks for it.

use super::attach::{AttachError, attach, has_ended};
use super::environment::{CaptureOptions, EnvironmentError, RequestedStart};
use super::message::Reason;
use super::pattern::{PatternError, PatternValues, numbered};
use super::progress::{self, AttachProgress};
use crate::recorder::{Recorder, RecorderError, RecorderOptions};
use crate::scope::{self, Scope};
use crate::session_switch;
use crate::switchboard::Switchboard;
use gputrail_buffer::Buffer;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_capture::Writer;
use gputrail_capture::queue::QueueWriter;
use gputrail_record::ProcessId;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Why a process is not recorded although its environment asks for it.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// A variable is malformed.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// There is no place in the session.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The capture's name cannot be made.
    #[error("GPUTRAIL_CAPTURE: {0}")]
    Name(#[from] PatternError),
    /// The capture cannot be written.
    #[error("cannot write the capture {0}: {1}")]
    Capture(PathBuf, std::io::Error),
    /// The recording could not begin.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
}

/// The recording that the environment asked for at first. A program may change its environment; its forked children are
/// still part of the recording.
static START: OnceBox<RequestedStart> = OnceBox::new();
/// The process that began last: a child made by fork finds its parent's id.
static BEGAN: AtomicU32 = AtomicU32::new(0);

/// Begins the recording by `board` that the environment asks for: in the session of a parent, or alone. `None` if
/// nothing asks for one, or the session is over.
pub fn begin(board: &Arc<Switchboard>) -> Result<Option<Recorder>, BeginError> {
    let pid = std::process::id();
    let reason = match BEGAN.swap(pid, Ordering::AcqRel) {
        0 => Reason::Loaded,
        earlier if earlier == pid => Reason::Loaded,
        _ => Reason::Forked,
    };
    let start = match START.get() {
        Some(start) => start,
        None => {
            let asked = RequestedStart::from_environment()?;
            START.get_or_init(|| asked)
        }
    };
    if !matches!(start, RequestedStart::Nothing) {
        // The measurement goes on until the capture's header needs its result.
        clock::measure_frequency();
    }
    match start {
        RequestedStart::Nothing => Ok(None),
        RequestedStart::Session(directory, scope) => in_session(board, directory, reason, scope),
        RequestedStart::Capture(options) => alone(board, options).map(Some),
    }
}

fn in_session(
    board: &Arc<Switchboard>,
    directory: &Path,
    reason: Reason,
    scope: &Scope,
) -> Result<Option<Recorder>, BeginError> {
    let attached = match attach(directory, reason) {
        Err(AttachError::Over(_)) => return Ok(None),
        attached => {
            attached.inspect_err(|_| progress::note_in(directory, AttachProgress::Failed))?
        }
    };
    progress::forget_in(directory, AttachProgress::Offered);
    let (ticks, policy) = (clock::init(), attached.config.policy);
    let buffer = Buffer::new(attached.mapping, policy);
    let session = directory.to_owned();
    buffer.collector_ends_when(move || has_ended(&session));
    let writer = Writer::to_queue(QueueWriter::new(attached.metadata, buffer.clone()));
    let slow_call = match attached.config.slow_nanos {
        0 => None,
        nanos => Some(Duration::from_nanos(nanos)),
    };
    if let Some(word) = attached.switch.filter(|_| !session_switch::is_there()) {
        session_switch::follow(word);
    }
    let position = session_switch::value();
    let is_on = session_switch::is_on(position);
    let recorder = Recorder::in_session(board, buffer, ticks, writer, scope, is_on)?;
    session_switch::followed(position);
    let recorder = recorder.dumped_after_calls_of(slow_call);
    // Open until the process ends or becomes another program: its end tells the parent.
    let _ = attached.connection.into_raw_fd();
    recorder.describe_process(&scope::configuration("session", policy, scope));
    Ok(Some(recorder))
}

fn alone(board: &Arc<Switchboard>, asked: &CaptureOptions) -> Result<Recorder, BeginError> {
    let options = RecorderOptions {
        pool_bytes: asked.layout.blocks() as usize * asked.layout.block_bytes(),
        block_bytes: asked.layout.block_bytes(),
        policy: asked.policy,
        scope: asked.scope.clone(),
        ..RecorderOptions::default()
    };
    let system = rustix::system::uname();
    let path = asked.path.expand(&PatternValues {
        pid: std::process::id(),
        host: OsStr::from_bytes(system.nodename().to_bytes()),
        variable: &|name| std::env::var_os(name),
    })?;
    // A name may be taken: by this process before an exec, by its parent when %p is missing.
    let mut names = numbered(&path);
    let writer = loop {
        let name = names.next().expect("names do not end");
        let process = ProcessId(std::process::id());
        let header = Recorder::file_header(options.ticks, process);
        match Writer::create(&name, &header) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => break result.map_err(|error| BeginError::Capture(name, error))?,
        }
    };
    let recorder = Recorder::start_on(board, &options, None, writer)?;
    recorder.describe_process(&scope::configuration(
        "alone",
        options.policy,
        &options.scope,
    ));
    Ok(recorder)
}
