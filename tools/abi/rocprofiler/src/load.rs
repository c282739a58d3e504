//! How the library comes into a program, and the tool that it loads.
//!
//! Linked, opened or preloaded, it prepares gputrail when it is loaded. As a tool of gputrail (`gputrail record --tool`) it
//! finds that prepared. Then it loads the tool that `ROCP_TOOL_LIB` names.

use crate::errors::{self, callee};
use crate::types::{Answer, Failure, Settings, Status};
use crate::{rocprofiler_version_major, settings};
use core::ffi::{CStr, c_void};
use gputrail_abi::UserLibrary;
use gputrail_tool::{Finaliser, Tool};
use std::error::Error;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Names the library of a tool.
const TOOL_VARIABLE: &str = "ROCP_TOOL_LIB";
/// Names a file with definitions of metrics.
const METRICS_VARIABLE: &str = "ROCP_METRICS";

gputrail_tool::tool!(c"librocprofiler64", initialise);

/// Whether gputrail is prepared, or why it is not.
static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();
/// The tool's `OnUnloadTool`, until it has been called.
static UNLOAD: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Called by the loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    gputrail_abi::contained(|| {
        if !gputrail_abi::is_initialised()
            && let Err(failure) = prepared()
            && std::env::var_os(TOOL_VARIABLE).is_some()
        {
            message(&failure.text);
        }
    });
}

/// Prepares gputrail, before the program's first call of OpenCL, and loads the tool.
pub fn prepared() -> Answer {
    let inside = rocprofiler_version_major as *const ();
    let prepared = PREPARED.get_or_init(|| {
        gputrail_abi::prepare(inside)?;
        // SAFETY: a function of this library, which is never unloaded.
        unsafe { libc::atexit(unload) };
        Ok(())
    });
    if let Err(text) = prepared {
        return Err(Failure::new(Status::NOT_INITIALIZED, text.clone()));
    }
    define();
    load_tool();
    Ok(())
}

/// Adds the definitions of `ROCP_METRICS`. Their `block` and `event` are ignored: devices count their own events only.
fn define() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if ONCE.swap(true, Ordering::Relaxed) {
        return;
    }
    let Some(file) = std::env::var_os(METRICS_VARIABLE).filter(|file| !file.is_empty()) else {
        return;
    };
    if let Err(error) = gputrail_tool::counting::add(&file.to_string_lossy()) {
        // As gputrail tells of a definition that it refuses: the file, and the reason.
        eprintln!("gputrail: {}", error.text);
        errors::note(Failure::state(format!(
            "{METRICS_VARIABLE}: {}",
            error.text
        )));
    }
}

/// gputrail has loaded the library as a tool.
fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
    let _ = PREPARED.set(Ok(()));
    define();
    if !load_tool() {
        return Err(format!("{TOOL_VARIABLE} names no tool that could be loaded").into());
    }
    Ok(Box::new(|| unload()))
}

/// Loads the tool, once in a process. `false` if there is none, when it is called first.
fn load_tool() -> bool {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if ONCE.swap(true, Ordering::Relaxed) {
        return true;
    }
    let Some(path) = std::env::var_os(TOOL_VARIABLE).filter(|path| !path.is_empty()) else {
        return false;
    };
    let tool = match UserLibrary::open(&path, rocprofiler_version_major as *const ()) {
        Ok(tool) => tool,
        Err(reason) => {
            message(&reason);
            return false;
        }
    };
    let find = |name: &CStr| {
        let function = tool.function(name);
        function.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    };
    UNLOAD.store(find(c"OnUnloadTool"), Ordering::Release);
    let (with_settings, without) = (find(c"OnLoadToolProp"), find(c"OnLoadTool"));
    if !with_settings.is_null() {
        // SAFETY: a tool's function of this name has this type.
        let load = unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(*mut Settings)>(
                with_settings,
            )
        };
        // Tools may be built with more properties than there are here.
        #[repr(C)]
        struct Room(Settings, [u64; 64]);
        let mut room = Room(settings::get(), [0; 64]);
        // SAFETY: the tool's function for this, with room for the properties.
        let call = || unsafe { load((&raw mut room).cast()) };
        callee("OnLoadToolProp", load as *const ()).call(call);
        settings::set(room.0);
    } else if !without.is_null() {
        // SAFETY: a tool's function of this name has this type.
        let load =
            unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn()>(without) };
        // SAFETY: the tool's function for this.
        callee("OnLoadTool", load as *const ()).call(|| unsafe { load() });
    } else {
        let text = format!(
            "{} has neither OnLoadTool nor OnLoadToolProp",
            path.display()
        );
        message(&text);
        return false;
    }
    true
}

/// Calls the tool's `OnUnloadTool`, once.
extern "C" fn unload() {
    let unload = UNLOAD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !unload.is_null() {
        // SAFETY: a tool's function of this name has this type.
        let unload =
            unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn()>(unload) };
        // SAFETY: the tool's function for this.
        callee("OnUnloadTool", unload as *const ()).call(|| unsafe { unload() });
    }
}

/// Tells the user that a tool is not loaded.
fn message(text: &str) {
    errors::message(Failure::state(format!("{TOOL_VARIABLE}: {text}")));
}

/// The priority by which an HSA runtime orders its tools, as that of ROCm's library.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static HSA_AMD_TOOL_PRIORITY: u32 = 25;

/// Called by an HSA runtime that the variable `HSA_TOOLS_LIB` has load the library. It answers whether the tool is loaded: `false`
/// tells the runtime that this tool has failed, and the program goes on. The functions of HSA, and the names of tools that have failed
/// before, are not used: kernels are those of OpenCL.
///
/// It is called within the program's first call of HSA. On a machine with ROCm that is within the first call of OpenCL, which is too
/// late, unless the library is preloaded or linked as well.
#[unsafe(no_mangle)]
pub extern "C" fn OnLoad(
    _table: *mut c_void,
    _runtime_version: u64,
    _failed_tool_count: u64,
    _failed_tool_names: *const *const core::ffi::c_char,
) -> bool {
    gputrail_abi::contained(|| match prepared() {
        Ok(()) => true,
        Err(failure) => {
            message(&failure.text);
            false
        }
    })
    .unwrap_or(false)
}

/// Called by an HSA runtime when it ends.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    gputrail_abi::contained(|| unload());
}
