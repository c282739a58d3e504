//! The library in its process: initialised, finalised, and what it says of itself.

use super::objects::{Class, Objects, Subscribed, destroy};
use super::status::{Failure, Status};
use super::{Answer, GPUTRAIL_API_VERSION, callback, done};
use crate::collect::context::{
    CallbackThread, Context, FlightRecorder, InternalThreadWatch, RecordBuffer,
};
use crate::collect::process;
use crate::collect::switchboard::Switchboard;
use crate::platform::sync::QuietGuard;
use crate::record::{ProcessId, ThreadId};
use crate::tool::timeline::Timeline;
use core::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

/// What the API keeps of one process.
struct Library {
    pid: u32,
    state: Mutex<State>,
}

/// The objects that C has made.
pub(super) struct State {
    initialised: bool,
    /// The last number of an id.
    last: u64,
    pub contexts: Objects<Context>,
    pub buffers: Objects<RecordBuffer>,
    pub subscribers: Objects<Subscribed>,
    pub timelines: Objects<Mutex<Timeline>>,
    pub flights: Objects<FlightRecorder>,
    pub threads: Objects<CallbackThread>,
    pub watches: Objects<InternalThreadWatch>,
}

impl State {
    fn new() -> State {
        State {
            initialised: false,
            last: 0,
            contexts: Objects::new(Class::Context),
            buffers: Objects::new(Class::Buffer),
            subscribers: Objects::new(Class::Subscriber),
            timelines: Objects::new(Class::Timeline),
            flights: Objects::new(Class::Flight),
            threads: Objects::new(Class::CallbackThread),
            watches: Objects::new(Class::Watch),
        }
    }

    /// An id for an object of `class` that nothing has had.
    pub fn new_id(&mut self, class: Class) -> u64 {
        self.last += 1;
        (class as u64) << 56 | self.last & ((1 << 56) - 1)
    }
}

/// Of the process that used it last: a forked child finds its parent's, whose lock may be held by a thread that the
/// child does not have, and makes its own. Never freed.
static LIBRARY: AtomicPtr<Library> = AtomicPtr::new(std::ptr::null_mut());

fn library() -> &'static Library {
    let pid = std::process::id();
    loop {
        let there = LIBRARY.load(Ordering::Acquire);
        // SAFETY: null or a leaked box.
        if let Some(library) = unsafe { there.as_ref() }
            && library.pid == pid
        {
            return library;
        }
        let new = Box::into_raw(Box::new(Library {
            pid,
            state: Mutex::new(State::new()),
        }));
        let stored = LIBRARY.compare_exchange(there, new, Ordering::AcqRel, Ordering::Relaxed);
        if stored.is_err() {
            // SAFETY: made just above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

fn locked() -> QuietGuard<'static, State> {
    crate::platform::sync::lock_std(&library().state)
}

/// The objects, if the library is initialised.
pub(super) fn state() -> Answer<QuietGuard<'static, State>> {
    let state = locked();
    if state.initialised {
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

/// Prepares the library for this process. A tool that gputrail has loaded finds it done. May be called again, which
/// changes nothing, and after `gputrail_finalise`. A forked child has to call it anew: it has none of its parent's
/// objects.
///
/// A program that calls this itself and wants to observe OpenCL calls `gputrail_observe_opencl` next.
///
/// Errors: `GPUTRAIL_NOT_AVAILABLE`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_initialise() -> Status {
    done(|| {
        crate::clock::init();
        process::begin_for_tool().ok_or(Status::NOT_AVAILABLE)?;
        locked().initialised = true;
        Ok(())
    })
}

/// Stops every context, delivers what is in every buffer, and destroys them and everything else that has an id. Ids from
/// before are invalid from then on. The program goes on; the library can be initialised again.
///
/// Errors: `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_BUSY` from within a callback.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_finalise() -> Status {
    done(|| {
        drop(state()?);
        callback::refuse_inside()?;
        finalise();
        Ok(())
    })
}

/// See [`gputrail_finalise`].
pub(crate) fn finalise() {
    let mut state = locked();
    state.initialised = false;
    let (contexts, subscribers) = (state.contexts.take_all(), state.subscribers.take_all());
    let flights = state.flights.take_all();
    let (buffers, timelines) = (state.buffers.take_all(), state.timelines.take_all());
    let (threads, watches) = (state.threads.take_all(), state.watches.take_all());
    // Callbacks may run meanwhile, and call us.
    drop(state);
    for context in &contexts {
        // It may be stopped already.
        let _ = context.stop();
    }
    subscribers.into_iter().for_each(destroy);
    buffers.into_iter().for_each(destroy);
    contexts.into_iter().for_each(destroy);
    drop((timelines, flights, threads, watches));
}

/// Delivers what is in every buffer.
pub(super) fn flush_all() {
    let buffers = locked().buffers.all();
    for buffer in buffers {
        // Within a callback it is refused, and comes later.
        let _ = buffer.flush();
    }
}

/// Whether the library is initialised in this process: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_is_initialised() -> i32 {
    let mut initialised = false;
    done(|| {
        initialised = locked().initialised;
        Ok(())
    });
    i32::from(initialised)
}

/// The version of this library, as text: `0.1.0`. It lasts for ever.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    const TEXT: &CStr = match CStr::from_bytes_with_nul(VERSION.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    };
    TEXT.as_ptr()
}

/// The version of the C API that this library has: tools built for this one work with it.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_api_version() -> u32 {
    GPUTRAIL_API_VERSION
}

/// The calling thread's id, as records of threads have it that make their first call now: that of the system (gettid),
/// or what `gputrail_attributes_set` has asked for.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_thread() -> ThreadId {
    let system = crate::platform::system::thread_id();
    ThreadId(crate::collect::context::thread_id(system))
}

/// This process's id, as records have it.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_process() -> ProcessId {
    ProcessId(std::process::id())
}

/// Has the OpenCL loader put this library between the program and the runtimes, by adding its path to the variable
/// OPENCL_LAYERS. For programs that are linked with it; `gputrail record` and a library that is
/// named there already need none of it. To be called before the program's first OpenCL call, while no other
/// thread reads the environment.
///
/// Errors: `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_NOT_AVAILABLE` if this is no shared library, or its path
/// contains a colon.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_observe_opencl() -> Status {
    done(|| {
        drop(state()?);
        let path = own_path().ok_or_else(|| {
            Failure::new(
                Status::NOT_AVAILABLE,
                "this copy of gputrail is no shared library that a loader could open",
            )
        })?;
        let existing = std::env::var("OPENCL_LAYERS").unwrap_or_default();
        if path.contains(':') {
            let text = format!("OPENCL_LAYERS cannot name {path}, which contains a colon");
            return Err(Failure::new(Status::NOT_AVAILABLE, text));
        }
        if existing.split(':').any(|layer| layer == path) {
            return Ok(());
        }
        let value = if existing.is_empty() {
            path
        } else {
            format!("{existing}:{path}")
        };
        // SAFETY: the caller's promise that no other thread uses the environment meanwhile.
        unsafe { std::env::set_var("OPENCL_LAYERS", value) };
        Ok(())
    })
}

/// Path of the shared library that this code is in.
fn own_path() -> Option<String> {
    let mut info: libc::Dl_info = {
        // SAFETY: null pointers and zeros are valid for it.
        unsafe { std::mem::zeroed() }
    };
    let here: extern "C" fn() -> Status = gputrail_observe_opencl;
    // SAFETY: an address of ours, and a place for the answer.
    let found = unsafe { libc::dladdr(here as *const core::ffi::c_void, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the system's text, which lasts as long as the library.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_str().ok()?;
    let path = std::fs::canonicalize(path).ok()?;
    let program = std::fs::read_link("/proc/self/exe").ok();
    (Some(&path) != program.as_ref())
        .then(|| path.to_str().map(str::to_owned))
        .flatten()
}
