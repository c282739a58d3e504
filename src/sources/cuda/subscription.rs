//! The subscription of this process to CUPTI: how it begins, and how it ends.
//!
//! Buffers are registered only after subscribing, so that another subscriber keeps its own.

use super::activity;
use super::callbacks;
use super::counting;
use super::counts;
use super::cupti;
use super::enabling;
use super::ffi::{self, Cupti, call};
use super::functions;
use super::inner;
use super::library::CUPTI_VARIABLE;
use super::notes::{note, why};
use super::records::Strides;
use super::rounds;
use super::sampling;
use super::session::{CuptiSession, SESSION, current_session, flush_with};
use crate::opencl;
use gputrail_buffer::platform::function_names;
use gputrail_buffer::platform::inside::message;
use gputrail_collect::process;
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::NoteKind;
use std::io;

/// Finds libcupti and subscribes.
pub(super) fn begin(board: &Switchboard) -> io::Result<()> {
    if let Some(session) = SESSION.get() {
        // A forked child cannot use CUDA if its parent has initialised it.
        if session.process == std::process::id() {
            watch(board, session);
        }
        return Ok(());
    }
    let session = subscribe().map_err(io::Error::other)?;
    let session = SESSION.get_or_init(|| session);
    watch(board, session);
    rounds::begin();
    Ok(())
}

/// Has CUPTI follow the changes of what is wanted.
fn watch(board: &Switchboard, session: &'static CuptiSession) {
    for number in ffi::NEEDED {
        session.enable_callback(true, ffi::RESOURCE, number);
    }
    for number in ffi::STATES {
        session.enable_callback(true, ffi::STATE, number);
    }
    board.on_change(enabling::enable);
    let names = board.names();
    names.note(NoteKind::OTHER, &describe(session));
}

fn describe(session: &CuptiSession) -> String {
    let version = session.cupti.version();
    let sizes = session.strides.describe();
    format!("CUPTI API version {version}; sizes of activity records by kind: {sizes}")
}

fn subscribe() -> Result<CuptiSession, String> {
    let found = cupti::open().map_err(|error| error.to_string())?;
    // The functions stay valid: the library is never closed.
    let cupti = Cupti::of(&found.library);
    if let Some(named) = &found.overruled {
        message(format_args!(
            "{CUPTI_VARIABLE}={} is not used: the process has loaded {} already, and two copies disturb each other",
            named.display(),
            found.path.display()
        ));
    }
    let path = found.path.display();
    let refused = |what: &str, status: Option<i32>| match status {
        Some(ffi::SUCCESS) => Ok(()),
        Some(status @ (ffi::NOT_COMPATIBLE | ffi::NOT_INITIALIZED | ffi::UNKNOWN)) => Err(format!(
            "{path}: {what}: {}; {}",
            why(status),
            found.describe(cupti.version())
        )),
        Some(status) => Err(format!("{path}: {what}: {}", why(status))),
        None => Err(format!("{path} is not a CUPTI library: it lacks {what}")),
    };
    let strides = Strides::learn(&cupti);
    let mut subscriber = core::ptr::null_mut();
    // First of all: buffers that are registered while somebody else subscribes would take that one's records.
    // SAFETY: CUPTI writes the handle to a local. `callback` takes what CUPTI calls it with, at any time until the process
    // ends, and does not use the pointer that is null here.
    let status = unsafe {
        call!(
            cupti,
            cuptiSubscribe(
                &raw mut subscriber,
                callbacks::callback,
                core::ptr::null_mut()
            )
        )
    };
    refused("cuptiSubscribe", status)?;
    activity::open().map_err(|error| error.to_string())?;
    // SAFETY: both functions take what CUPTI calls them with, from now on: the memory of the buffers is mapped
    // (`activity::open`) and stays.
    let status = unsafe {
        call!(
            cupti,
            cuptiActivityRegisterCallbacks(activity::requested, activity::completed)
        )
    };
    refused("cuptiActivityRegisterCallbacks", status)?;
    let latency = gputrail_collect::attributes::latency_times();
    // SAFETY: a flag alone.
    unsafe { call!(cupti, cuptiActivityEnableLatencyTimestamps(latency.into())) };
    functions::find(&cupti);
    function_names::find_demangler();
    Ok(CuptiSession::new(cupti, strides, subscriber))
}

/// Has CUPTI deliver all records, and notes what is missing from them.
pub(super) fn end() {
    let Some(session) = current_session() else {
        return;
    };
    rounds::end();
    sampling::end(session);
    counting::end(session);
    flush_with(ffi::FLUSH_FORCED);
    if let Some(thread) = process::current() {
        inner::give_up(thread);
    }
    activity::read_clocks();
    let Some(names) = process::names() else {
        return;
    };
    enabling::note_refusals(names);
    for (text, is_loss) in counts::describe() {
        note(names, &text, is_loss);
    }
    // NVIDIA's driver of OpenCL initialises CUDA.
    if let Some(loader) = opencl::loader_without_layers() {
        let loader = loader.display();
        let text = format!(
            "calls of OpenCL: {loader} does not support layers; ocl-icd does since version 2.3.0, Khronos' loader since 2021"
        );
        note(names, &text, true);
    }
}
