//! The library in its process: initialisation, finalisation, version.

use super::library::{locked, state};
use super::objects::destroy;
use super::owner::Owner;
use super::status::FailedCall;
use super::{Answer, caller, done, logger};
use core::ffi::{CStr, c_char};
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::system;
use gputrail_collect::process;
use gputrail_interface::c::{GPUTRAIL_API_VERSION, Status};
use gputrail_record::{ProcessId, ThreadId};
use gputrail_sources::rocm;
use std::ffi::CString;

/// Prepares the library for the program that calls it. A tool finds it prepared. May be called again, which changes
/// nothing, and after `gputrail_finalise`. A forked child has to call it anew, also one that a callback has forked: it has
/// none of its parent's objects, and is in none of its parent's callbacks.
///
/// A program that calls this itself and wants to observe OpenCL calls `gputrail_observe_opencl` next. ROCm is observed from here on
/// if a runtime of it is in the process and librocprofiler-sdk has not been initialised; a message says why not.
///
/// Errors: `GPUTRAIL_NOT_AVAILABLE`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_initialise() -> Status {
    done(|| {
        prepare()?;
        if Owner::current() == Owner::PROGRAM {
            let was_initialised = std::mem::replace(&mut locked().program, true);
            if !was_initialised {
                observe_rocm();
            }
        }
        Ok(())
    })
}

/// Begins to observe ROCm, if the program has been using it before.
fn observe_rocm() {
    if rocm::is_rocm_loaded()
        && let Err(why) = rocm::start_late(crate::layer::rocprofiler_configure)
    {
        message(format_args!("ROCm is not observed: {why}"));
    }
}

/// Prepares the library for tools.
pub(super) fn initialise_for_tools() -> Answer {
    prepare()?;
    locked().tools_loaded = true;
    Ok(())
}

fn prepare() -> Answer {
    gputrail_buffer::clock::init();
    process::begin_for_tool().ok_or(Status::NOT_AVAILABLE)?;
    Ok(())
}

/// Stops the contexts that the caller has created, delivers the contents of its buffers, while everything still works,
/// and then destroys all that it has created. The program goes on; the library can be initialised again.
///
/// The users of the library in one process are independent: called by the program, this leaves the objects of tools
/// alone, and called in a callback of a tool or in its `finalise`, those of the program and of other tools. Objects
/// that a thread of a tool's own creates, outside of callbacks, are the program's.
///
/// Errors: `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_BUSY` from within a callback.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_finalise() -> Status {
    done(|| {
        let owner = Owner::current();
        if owner == Owner::PROGRAM && !locked().program {
            return Err(Status::NOT_INITIALISED.into());
        }
        caller::refuse_inside()?;
        finalise(Some(owner));
        Ok(())
    })
}

/// Ends what `owner` has created; for `None`, what everybody has.
pub(super) fn finalise(owner: Option<Owner>) {
    // Callbacks run meanwhile, and call the library: the lock is held briefly, and objects stay until all is delivered.
    let contexts = locked().contexts.of(owner);
    for context in contexts {
        // It may be stopped already.
        let _ = context.stop();
    }
    let subscribers = locked().subscribers.take(owner);
    subscribers.into_iter().for_each(destroy);
    let buffers = locked().buffers.of(owner);
    buffers.iter().for_each(|buffer| buffer.end());
    drop(buffers);
    let mut state = locked();
    let (contexts, buffers) = (state.contexts.take(owner), state.buffers.take(owner));
    let (timelines, flights) = (state.timelines.take(owner), state.flights.take(owner));
    let (groups, sets) = (state.groups.take(owner), state.counter_sets.take(owner));
    let (sessions, pools) = (
        state.counter_sessions.take(owner),
        state.counter_pools.take(owner),
    );
    let (threads, watches) = (state.threads.take(owner), state.watches.take(owner));
    state.program &= owner.is_some_and(|owner| owner != Owner::PROGRAM);
    state.tools_loaded &= owner.is_some();
    drop(state);
    logger::forget(owner);
    buffers.into_iter().for_each(destroy);
    contexts.into_iter().for_each(destroy);
    drop((timelines, flights, groups, sets, sessions, threads, watches));
    drop(pools);
}

/// Delivers what is in every buffer.
pub(super) fn flush_all() {
    let buffers = locked().buffers.of(None);
    for buffer in buffers {
        if buffer.is_left_delivering() {
            // The records that it cannot deliver are counted before its tool is finalised.
            buffer.end();
            continue;
        }
        // Within a callback it is refused, and comes later.
        let _ = buffer.flush();
    }
}

/// Whether the library is initialised in this process: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_is_initialised() -> i32 {
    let mut initialised = false;
    done(|| {
        initialised = locked().is_initialised();
        Ok(())
    });
    i32::from(initialised)
}

/// The version of this library, as text: `0.1.0`. The text is never freed.
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
    let system = gputrail_buffer::platform::system::thread_id();
    ThreadId(gputrail_collect::attributes::thread_id(system))
}

/// This process's id, as records have it.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_process() -> ProcessId {
    ProcessId(std::process::id())
}

/// Has the OpenCL loader put this library between the program and the runtimes, by adding its path to the variable
/// OPENCL_LAYERS. For programs that are linked with it; `gputrail record` and a library that is named there already
/// need none of it. To be called before the program's first OpenCL call, while no other thread reads the environment.
///
/// Errors: `GPUTRAIL_TOO_LATE` after the first OpenCL call; `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_NOT_AVAILABLE` if
/// this is no shared library, or its path contains a colon.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_observe_opencl() -> Status {
    done(|| {
        drop(state()?);
        let path = own_path().ok_or_else(|| {
            FailedCall::new(
                Status::NOT_AVAILABLE,
                "this copy of gputrail is not a shared library, so no loader can open it",
            )
        })?;
        let existing = std::env::var("OPENCL_LAYERS").unwrap_or_default();
        if path.contains(':') {
            let text = format!("OPENCL_LAYERS cannot name {path}, which contains a colon");
            return Err(FailedCall::new(Status::NOT_AVAILABLE, text));
        }
        if existing.split(':').any(|layer| layer == path) || process::is_observed() {
            return Ok(());
        }
        if let Some(runtime) = loaded_runtime() {
            let text = format!("the OpenCL loader has loaded {runtime} already");
            return Err(FailedCall::new(Status::TOO_LATE, text));
        }
        let value = if existing.is_empty() {
            path
        } else {
            format!("{existing}:{path}")
        };
        // SAFETY: no other thread uses the environment meanwhile: the documentation of this function asks that of the
        // program, though its type does not.
        unsafe { std::env::set_var("OPENCL_LAYERS", value) };
        Ok(())
    })
}

/// An OpenCL runtime that is loaded: the loader loads the runtimes that are installed at the first OpenCL call, and
/// reads then which layers it is to use.
fn loaded_runtime() -> Option<String> {
    let installed = std::env::var("OCL_ICD_VENDORS").unwrap_or("/etc/OpenCL/vendors".into());
    // A folder of files, or one file.
    let files = std::fs::read_dir(&installed).into_iter().flatten();
    let files = files.filter_map(|file| Some(file.ok()?.path()));
    let files = files.chain([installed.clone().into()]);
    let files = files.filter_map(|file| std::fs::read_to_string(file).ok());
    let named = std::env::var("OCL_ICD_FILENAMES").unwrap_or_default();
    let named = named.split(':').map(str::to_owned);
    named.chain(files).find_map(|runtime| {
        let runtime = runtime.trim().to_owned();
        let name = CString::new(runtime.as_str()).ok()?;
        // SAFETY: a text that ends with a 0; loads nothing.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if runtime.is_empty() || library.is_null() {
            return None;
        }
        // SAFETY: just opened.
        unsafe { libc::dlclose(library) };
        Some(runtime)
    })
}

/// Path of the shared library that this code is in.
fn own_path() -> Option<String> {
    let path = system::library_of(gputrail_observe_opencl as *const ())?;
    let path = std::fs::canonicalize(path).ok()?;
    let program = std::fs::read_link("/proc/self/exe").ok();
    (Some(&path) != program.as_ref())
        .then(|| path.to_str().map(str::to_owned))
        .flatten()
}
