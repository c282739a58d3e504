//! How the library comes into a program, and the library that it loads.
//!
//! Linked, opened or preloaded, it prepares gputrail when it is loaded. As a tool of gputrail (`gputrail record --tool`) it
//! finds that prepared. Then it loads the library that `CUDA_INJECTION64_PATH` names, as CUDA does.

use crate::cuptiGetVersion;
use crate::result::{Answer, CUptiResult};
use core::ffi::{c_int, c_void};
use gputrail_abi::{Callee, UserLibrary};
use gputrail_tool::{Finaliser, Tool};
use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names a library, whose `InitializeInjection` is called.
const INJECTION_VARIABLE: &str = "CUDA_INJECTION64_PATH";

gputrail_tool::tool!(c"libcupti", initialise);

/// Tells gputrail's CUDA source that this library is not NVIDIA's.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static gputrail_cupti: u32 = 1;

/// Whether gputrail is prepared, or why it is not.
static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();

/// Called by the loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    gputrail_abi::contained(|| {
        if gputrail_abi::is_initialised() {
            return;
        }
        match prepare() {
            Ok(()) => {
                inject();
            }
            Err(text) if std::env::var_os(INJECTION_VARIABLE).is_some() => refuse(text),
            // Told when the program calls a function.
            Err(_) => {}
        }
    });
}

/// Prepares gputrail, before the program's first call of OpenCL.
fn prepare() -> &'static Result<(), String> {
    PREPARED.get_or_init(|| gputrail_abi::prepare(cuptiGetVersion as *const ()))
}

/// Prepares gputrail, and loads the injected library. The reason why it cannot be prepared is told once.
pub fn prepared() -> Answer {
    if let Err(text) = prepare() {
        refuse(text);
        return Err(CUptiResult::NOT_INITIALIZED);
    }
    inject();
    Ok(())
}

/// Tells the user, once, why gputrail is not prepared: no function answers with a text.
fn refuse(text: &str) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Ordering::Relaxed) {
        eprintln!("libcupti: {text}");
    }
}

/// gputrail has loaded the library as a tool.
fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
    let _ = PREPARED.set(Ok(()));
    if !inject() {
        return Err(format!("{INJECTION_VARIABLE} names no library that could be loaded").into());
    }
    Ok(Box::new(crate::activity::last_words))
}

/// Loads the injected library, once in a process. `false` if there is none, when it is called first.
fn inject() -> bool {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if ONCE.swap(true, Ordering::Relaxed) {
        return true;
    }
    let Some(path) = std::env::var_os(INJECTION_VARIABLE).filter(|path| !path.is_empty()) else {
        return false;
    };
    let library = match UserLibrary::open(&path, cuptiGetVersion as *const ()) {
        Ok(library) => library,
        Err(reason) => {
            message(&reason);
            return false;
        }
    };
    let Some(function) = library.function(c"InitializeInjection") else {
        message(&format!("{} has no InitializeInjection", path.display()));
        return false;
    };
    // SAFETY: a function of this name has this type.
    let function = unsafe {
        core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> c_int>(
            function.as_ptr(),
        )
    };
    // SAFETY: the library's function for this.
    let call = || unsafe { function() };
    if callee("InitializeInjection", function as *const ()).call(call) == 0 {
        message(&format!(
            "InitializeInjection of {} has failed",
            path.display()
        ));
        return false;
    }
    true
}

/// A function of the tool's, which it has given to the function `set_by`, or which is found by that name.
pub fn callee(set_by: &'static str, function: *const ()) -> Callee {
    Callee {
        library: "libcupti",
        set_by,
        function,
    }
}

/// Tells the user about the injected library.
fn message(text: &str) {
    eprintln!("libcupti: {INJECTION_VARIABLE}: {text}");
}
