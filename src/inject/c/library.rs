//! The state of the library in its process: its users, and their objects by handle.

use super::Answer;
use super::objects::{Class, Objects};
use super::pool::ToolPool;
use super::tool_buffer::ToolBuffer;
use crate::timeline::Timeline;
use gputrail_buffer::platform::sync::QuietGuard;
use gputrail_collect::context::{
    CallbackThread, Context, CounterGroup, CounterPool, CounterSessions, FlightRecorder,
    InternalThreadWatch, PoolEntry, Subscriber,
};
use gputrail_collect::counting::CounterSet;
use gputrail_collect::process;
use gputrail_collect::switchboard::Switchboard;
use gputrail_interface::c::{
    BufferHandle, CallbackThreadHandle, ContextHandle, Status, SubscriberHandle,
};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A subscriber and the context that it belongs to.
pub(super) struct Subscribed {
    pub context: ContextHandle,
    pub subscriber: Subscriber,
    /// Whether the records in its callbacks have the format `GPUTRAIL_RECORD_FORMAT_RAW`.
    pub is_raw: Arc<AtomicBool>,
}

/// A set of counters that can be chosen for a kernel.
pub(super) struct ChosenSet {
    pub set: Arc<CounterSet>,
    /// The entry of a pool that the set is; `None` if the tool has created it.
    pub entry: Option<(Weak<CounterPool>, PoolEntry)>,
}

/// The state of the API in one process.
struct ApiState {
    pid: u32,
    state: Mutex<LibraryState>,
}

/// The users of the library in this process, and their objects.
pub(super) struct LibraryState {
    /// Whether the program has initialised the library.
    pub program: bool,
    /// Whether tools have been loaded.
    pub tools_loaded: bool,
    pub contexts: Objects<Context>,
    pub buffers: Objects<ToolBuffer>,
    pub subscribers: Objects<Subscribed>,
    pub tools: Objects<()>,
    pub timelines: Objects<Mutex<Timeline>>,
    pub flights: Objects<FlightRecorder>,
    pub groups: Objects<CounterGroup>,
    pub counter_sets: Objects<ChosenSet>,
    pub counter_pools: Objects<ToolPool>,
    pub counter_sessions: Objects<CounterSessions>,
    pub threads: Objects<CallbackThread>,
    pub watches: Objects<InternalThreadWatch>,
}

impl LibraryState {
    fn new() -> LibraryState {
        LibraryState {
            program: false,
            tools_loaded: false,
            contexts: Objects::new(Class::Context),
            buffers: Objects::new(Class::Buffer),
            subscribers: Objects::new(Class::Subscriber),
            tools: Objects::new(Class::Tool),
            timelines: Objects::new(Class::Timeline),
            flights: Objects::new(Class::Flight),
            groups: Objects::new(Class::CounterGroup),
            counter_sets: Objects::new(Class::CounterSet),
            counter_pools: Objects::new(Class::CounterPool),
            counter_sessions: Objects::new(Class::CounterSessions),
            threads: Objects::new(Class::CallbackThread),
            watches: Objects::new(Class::Watch),
        }
    }

    pub fn is_initialised(&self) -> bool {
        self.program || self.tools_loaded
    }
}

/// Of the process that used it last: a forked child finds its parent's, whose lock may be held by a thread that the
/// child does not have, and makes its own. Never freed.
static LIBRARY: AtomicPtr<ApiState> = AtomicPtr::new(std::ptr::null_mut());

fn library() -> &'static ApiState {
    let pid = std::process::id();
    loop {
        let there = LIBRARY.load(Ordering::Acquire);
        // SAFETY: null or a leaked box.
        if let Some(library) = unsafe { there.as_ref() }
            && library.pid == pid
        {
            return library;
        }
        let new = Box::into_raw(Box::new(ApiState {
            pid,
            state: Mutex::new(LibraryState::new()),
        }));
        let stored = LIBRARY.compare_exchange(there, new, Ordering::AcqRel, Ordering::Relaxed);
        if stored.is_err() {
            // SAFETY: made just above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// The objects, also of a library that is not initialised.
pub(super) fn locked() -> QuietGuard<'static, LibraryState> {
    gputrail_buffer::platform::sync::lock_std(&library().state)
}

/// The objects, if the library is initialised.
pub(super) fn state() -> Answer<QuietGuard<'static, LibraryState>> {
    let state = locked();
    if state.is_initialised() {
        Ok(state)
    } else {
        Err(Status::NOT_INITIALISED.into())
    }
}

/// The switchboard, if the library is initialised.
pub(super) fn board() -> Answer<&'static Arc<Switchboard>> {
    drop(state()?);
    process::board().ok_or_else(|| Status::NOT_AVAILABLE.into())
}

pub(super) fn context(id: ContextHandle) -> Answer<Arc<Context>> {
    state()?.contexts.get(id.handle)
}

pub(super) fn buffer(id: BufferHandle) -> Answer<Arc<ToolBuffer>> {
    state()?.buffers.get(id.handle)
}

pub(super) fn subscriber(id: SubscriberHandle) -> Answer<Arc<Subscribed>> {
    state()?.subscribers.get(id.handle)
}

pub(super) fn thread(id: CallbackThreadHandle) -> Answer<Arc<CallbackThread>> {
    state()?.threads.get(id.handle)
}
