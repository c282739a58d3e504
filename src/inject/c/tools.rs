//! Tools that are libraries of their own: loaded into a program that knows nothing of them, when the OpenCL layer
//! begins, and told when the program ends (the model is rocprofiler-sdk's `rocprofiler_configure`).
//!
//! A tool says what it is when it is asked ([`gputrail_tool_configure`](ToolDescription)), is then initialised before
//! the program's first call has gone through, and is finalised when the program ends or when it asks for that. A
//! failure costs the tool, never the program.

use super::owner::{self, Owner};
use super::sized;
use super::status::{self, FailedCall};
use super::{Answer, caller, done, library, lifecycle, text};
use core::ffi::{CStr, c_char};
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_buffer::platform::system::loader_reason;
use gputrail_collect::exit;
use gputrail_interface::c::{
    GPUTRAIL_API_VERSION, SizedStruct, Status, ToolDescription, ToolHandle, ToolHost,
};
use libloading::os::unix::Library;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Names the libraries of tools to load, separated by colons.
pub const TOOLS_VARIABLE: &str = "GPUTRAIL_TOOLS";

type Configure = unsafe extern "C-unwind" fn(*const ToolHost) -> *const ToolDescription;

/// The function that a tool's library has.
const ENTRY: &CStr = c"gputrail_tool_configure";

/// A library that has the entry point of a tool.
struct ToolLibrary {
    path: CString,
    entry: Configure,
}

/// A tool that has said what it is.
struct DescribedTool {
    handle: ToolHandle,
    description: ToolDescription,
}

// SAFETY: functions of the tool's, and a pointer that is only handed back to them.
unsafe impl Send for DescribedTool {}

/// The tools of a process.
#[derive(Default)]
struct LoadedTools {
    /// The initialised tools, in the order of their initialisation.
    tools: Vec<DescribedTool>,
    /// Threads that finalise those which asked for it from within a callback.
    finishing: Vec<JoinHandle<()>>,
    /// Whether a tool has been finalised before the program ends. What it has made may be there.
    any_finished: bool,
}

static LOADED: PerProcess<LoadedTools> = PerProcess::new();

/// How long a program that ends waits for tools that are being finalised. One of them may never come to its end: what
/// it waits for may be the very callback in which the program ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Has the tools that the environment names loaded as soon as a source attaches to this process, and finalised when the
/// process ends.
pub fn serve_tools() {
    exit::set_tools(&exit::Tools {
        load: load_tools,
        finalise: finalise_tools,
    });
}

/// Loads and initialises the tools that the environment names, once in a process. A forked child has none.
fn load_tools() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    let Some(paths) = variable(TOOLS_VARIABLE) else {
        return;
    };
    if ONCE.swap(true, Ordering::AcqRel) {
        return;
    }
    let refused = done(|| {
        load(&paths);
        Ok(())
    });
    if refused != Status::OK {
        message(format_args!(
            "tools are not loaded: an internal error of gputrail"
        ));
    }
}

fn load(paths: &OsStr) {
    if lifecycle::initialise_for_tools().is_err() {
        return message(format_args!(
            "tools are not loaded: gputrail is not available in this process"
        ));
    }
    let paths: Vec<&[u8]> = paths
        .as_bytes()
        .split(|byte| *byte == b':')
        .filter(|path| !path.is_empty())
        .collect();
    let refused = |path: &[u8], why: &str| {
        let path = String::from_utf8_lossy(path);
        message(format_args!("tool {path}: not loaded: {why}"));
    };
    let mut libraries: Vec<ToolLibrary> = Vec::new();
    for path in paths {
        match open(path) {
            // Several paths may lead to one library, which has its variables once.
            Ok(library) if libraries.iter().any(|other| other.is_same(&library)) => {
                let path = String::from_utf8_lossy(path);
                message(format_args!(
                    "tool {path}: loaded once, though it is named again"
                ));
            }
            Ok(library) => libraries.push(library),
            Err(failure) => refused(path, &failure.text),
        }
    }
    let (count, mut tools) = (libraries.len(), Vec::new());
    for (place, library) in libraries.iter().enumerate() {
        match configure(library, place, count, false) {
            Ok(tool) => tools.extend(tool),
            Err(failure) => refused(library.path.to_bytes(), &failure.text),
        }
    }
    tools.sort_by_key(|tool| tool.description.priority);
    for tool in tools {
        if let Some(initialise) = tool.description.initialise {
            // SAFETY: the tool's function, which it gave for this.
            let call = || unsafe { initialise(tool.handle, tool.description.user_data) };
            let status = Owner::tool(tool.handle).run(call);
            if status != Status::OK {
                // SAFETY: the text lasts for ever.
                let status = unsafe { CStr::from_ptr(status::gputrail_status_name(status)) };
                message(format_args!(
                    "{}: discarded: its initialisation returned {}",
                    owner::label(tool.handle),
                    status.to_string_lossy()
                ));
                continue;
            }
        }
        LOADED.lock().tools.push(tool);
    }
}

impl ToolLibrary {
    fn is_same(&self, other: &ToolLibrary) -> bool {
        self.entry as usize == other.entry as usize
    }
}

/// Opens a library and looks for the entry point of a tool.
fn open(path: &[u8]) -> Answer<ToolLibrary> {
    let failure = |status, text: String| Err(FailedCall::new(status, text));
    let Ok(path) = CString::new(path) else {
        return failure(Status::INVALID_ARGUMENT, "its path contains a 0".into());
    };
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: opens a library, whose constructors run; the user requests it.
    let library = unsafe { Library::open(Some(OsStr::from_bytes(path.to_bytes())), flags) }
        .map_err(|error| FailedCall::new(Status::NOT_FOUND, loader_reason(&error)))?;
    // SAFETY: a function of this name has this type in every tool.
    let entry = unsafe { library.get::<Configure>(ENTRY) }.map(|found| *found);
    // Threads of the library may run, and the host structure names it: it is never closed.
    let _ = library.into_raw();
    let Ok(entry) = entry else {
        let text = format!(
            "it does not export {}, the entry point of a tool",
            ENTRY.to_string_lossy()
        );
        return failure(Status::NOT_FOUND, text);
    };
    Ok(ToolLibrary { path, entry })
}

/// Asks a library what it is. `None`: it is a tool that has nothing to do here.
fn configure(
    library: &ToolLibrary,
    place: usize,
    count: usize,
    probing: bool,
) -> Answer<Option<DescribedTool>> {
    let path = library.path.to_string_lossy();
    let handle = ToolHandle {
        handle: library::state()?.tools.new_handle(),
    };
    let host = ToolHost {
        api_version: GPUTRAIL_API_VERSION,
        probing: u32::from(probing),
        version: lifecycle::gputrail_version(),
        path: library.path.as_ptr(),
        tool: handle,
        place: place as u32,
        count: count as u32,
        ..ToolHost::blank()
    };
    owner::name(handle, format!("tool {path}"));
    // SAFETY: a tool's function of this name; the structure lives as long as the call.
    let said = Owner::tool(handle).run(|| unsafe { (library.entry)(&host) });
    if said.is_null() {
        return Ok(None);
    }
    // SAFETY: what a tool returns is such a structure.
    let description = unsafe { sized::read(said) }?;
    if description.api_version != GPUTRAIL_API_VERSION {
        let built = description.api_version;
        let text = format!(
            "it is built for version {built} of the tool API, and this is version {GPUTRAIL_API_VERSION}"
        );
        return Err(FailedCall::new(Status::NOT_AVAILABLE, text));
    }
    if !description.name.is_null() {
        // SAFETY: not null, and a tool's name ends with a 0.
        let own = unsafe { CStr::from_ptr(description.name) }.to_string_lossy();
        owner::name(handle, format!("tool {own} ({path})"));
    }
    Ok(Some(DescribedTool {
        handle,
        description,
    }))
}

/// Finalises the tools: the program ends.
fn finalise_tools() {
    done(|| {
        caller::leave();
        let mut loaded = LOADED.lock();
        let tools = std::mem::take(&mut loaded.tools);
        let finishing = std::mem::take(&mut loaded.finishing);
        let any_finished = loaded.any_finished;
        drop(loaded);
        wait_for(finishing);
        if tools.is_empty() && !any_finished {
            return Ok(());
        }
        tools.into_iter().rev().for_each(finalise);
        lifecycle::finalise(None);
        Ok(())
    });
}

/// Waits for threads that finalise tools, for a while.
fn wait_for(finishing: Vec<JoinHandle<()>>) {
    let until = Instant::now() + PATIENCE;
    let this = std::thread::current().id();
    for thread in finishing {
        while thread.thread().id() != this && !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn finalise(tool: DescribedTool) {
    lifecycle::flush_all();
    if let Some(finalise) = tool.description.finalise {
        // SAFETY: the tool's function, which it gave for this.
        let call = || unsafe { finalise(tool.description.user_data) };
        Owner::tool(tool.handle).run(call);
    }
}

/// Finalises a tool before the program ends: its `finalise` is called, on this thread, or, if this is in a callback, on
/// one of its own, for which a program that ends waits a few seconds. What the tool has made stays until it destroys
/// it, or the program ends.
///
/// Errors: `GPUTRAIL_NO_SUCH_TOOL`, also for one that has been finalised; `GPUTRAIL_NO_THREAD`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_tool_finish(tool: ToolHandle) -> Status {
    done(|| {
        let mut loaded = LOADED.lock();
        let place = loaded
            .tools
            .iter()
            .position(|of| of.handle == tool)
            .ok_or(Status::NO_SUCH_TOOL)?;
        let tool = loaded.tools.remove(place);
        loaded.any_finished = true;
        if !caller::is_inside() {
            drop(loaded);
            finalise(tool);
            return Ok(());
        }
        // Still locked: a program that ends now waits for the thread.
        let started = gputrail_buffer::platform::sync::with_signals_blocked(|| {
            std::thread::Builder::new()
                .name("gputrail".into())
                .spawn(move || finalise(tool))
        });
        loaded
            .finishing
            .push(started.map_err(|_| Status::NO_THREAD)?);
        Ok(())
    })
}

/// Looks whether a library is a tool, without initialising it: `gputrail record` asks this in a process of its own
/// before it runs a program. `gputrail_last_error` tells why it is none.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if it cannot be opened or lacks the entry point; `GPUTRAIL_NOT_AVAILABLE` if it is
/// built for another version; `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `path` is null or ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_tool_probe(path: *const c_char) -> Status {
    done(|| {
        // SAFETY: `path` is null or a text that ends with a 0 (the caller's promise).
        let path = unsafe { text::given(path, "path") }?;
        configure(&open(path.as_bytes())?, 0, 1, true).map(drop)
    })
}
