//! The opened contexts, one of which is selected.

use crate::types::{Failure, Status};
use gputrail_abi::lock;
use gputrail_record::{AgentId, Queue};
use gputrail_tool::counting::{CounterSessions, SessionCounter, SessionOptions};
use gputrail_tool::{self as tool, describe};
use std::sync::{Arc, Mutex};

/// The counters of the device that a command queue belongs to.
#[derive(Debug)]
pub struct Opened {
    pub sessions: CounterSessions,
    pub counters: Vec<SessionCounter>,
    pub agent: AgentId,
}

#[derive(Default)]
struct Contexts {
    is_initialised: bool,
    /// By the handle that the program opened them with.
    opened: Vec<(usize, Arc<Opened>)>,
    selected: Option<Arc<Opened>>,
}

static CONTEXTS: Mutex<Contexts> = Mutex::new(Contexts {
    is_initialised: false,
    opened: Vec::new(),
    selected: None,
});

/// Allows contexts to be opened.
pub fn initialise() {
    lock(&CONTEXTS).is_initialised = true;
}

/// Closes all contexts, also those with a session in progress.
pub fn destroy() {
    let closed = std::mem::take(&mut *lock(&CONTEXTS));
    // Outside of the lock: it may wait for kernels.
    drop(closed);
}

/// Opens the counters of the queue with this handle, and selects them.
pub fn open(handle: usize) -> Result<(), Failure> {
    let unsupported = |text: &str| Failure::new(Status::HARDWARE_NOT_SUPPORTED, text);
    {
        let contexts = lock(&CONTEXTS);
        if contexts.opened.iter().any(|(known, _)| *known == handle) {
            let text = "the counters of this context are open";
            return Err(Failure::new(Status::COUNTERS_ALREADY_OPEN, text));
        }
        if !contexts.is_initialised {
            return Err(unsupported("GPA_Initialize has not been called"));
        }
    }
    let queue = tool::queue_of(handle as u64).ok_or_else(|| {
        unsupported(
            "this is no command queue that gputrail knows: give the cl_command_queue, or queue->id of ROCProfiler's \
             callbacks; it is known if GPA_Initialize was called before the first call of OpenCL",
        )
    })?;
    let agent = describe::<Queue>(queue)?.agent;
    let options = SessionOptions {
        queue: Some(queue),
        ..SessionOptions::default()
    };
    let sessions = CounterSessions::open(agent, options)?;
    let counters = sessions.counters()?;
    let opened = Arc::new(Opened {
        sessions,
        counters,
        agent,
    });
    let mut contexts = lock(&CONTEXTS);
    contexts.selected = Some(opened.clone());
    contexts.opened.push((handle, opened));
    Ok(())
}

/// Selects an opened context.
pub fn select(handle: usize) -> Result<(), Failure> {
    let mut contexts = lock(&CONTEXTS);
    let mut opened = contexts.opened.iter();
    let found = opened.find(|(known, _)| *known == handle);
    let found = found.map(|(_, opened)| opened.clone());
    contexts.selected = Some(found.ok_or_else(not_open)?);
    Ok(())
}

/// The selected context.
pub fn selected() -> Result<Arc<Opened>, Failure> {
    lock(&CONTEXTS).selected.clone().ok_or_else(not_open)
}

/// Closes the selected context. No other one is selected then.
pub fn close() -> Result<(), Failure> {
    let opened = selected()?;
    let closed = opened.sessions.close().map_err(Failure::from);
    closed.map_err(|failure| {
        failure.told_as(Status::SAMPLING_ALREADY_STARTED, Status::SAMPLING_NOT_ENDED)
    })?;
    let mut contexts = lock(&CONTEXTS);
    // The context is dropped with `opened`, outside of the lock.
    contexts.selected = None;
    contexts
        .opened
        .retain(|(_, one)| !Arc::ptr_eq(one, &opened));
    Ok(())
}

fn not_open() -> Failure {
    Failure::new(
        Status::COUNTERS_NOT_OPEN,
        "GPA_OpenContext has to be called first",
    )
}

impl Opened {
    /// The counter with this index.
    pub fn counter(&self, index: u32) -> Result<&SessionCounter, Failure> {
        self.counters.get(index as usize).ok_or_else(|| {
            let text = format!("no counter {index}: there are {}", self.counters.len());
            Failure::new(Status::INDEX_OUT_OF_RANGE, text)
        })
    }
}
