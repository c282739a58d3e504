//! How the library comes into a program, and the library that it loads.
//!
//! Linked, opened or preloaded, it prepares gputrail when it is loaded. As a tool of gputrail (`gputrail record --tool`) it
//! finds that prepared. Then it loads the library that `CUDA_INJECTION64_PATH` names, as CUDA does.

use crate::cuptiGetVersion;
use crate::result::{Answer, CUptiResult};
use core::ffi::{CStr, c_int, c_void};
use gputrail::tool::{Finaliser, Tool};
use std::error::Error;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names a library, whose `InitializeInjection` is called.
const INJECTION_VARIABLE: &str = "CUDA_INJECTION64_PATH";
const GPUTRAIL: &CStr = c"libgputrail.so.0";

gputrail::tool!(c"libcupti", initialise);

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
        // SAFETY: asks for a library that is loaded already.
        let found = unsafe { libc::dlopen(GPUTRAIL.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        // Where gputrail is in the process, it is loading this library as a tool, or the program's first call prepares it.
        if found.is_null()
            && prepared().is_err()
            && std::env::var_os(INJECTION_VARIABLE).is_some()
            && let Some(Err(text)) = PREPARED.get()
        {
            message(text);
        }
    });
}

/// Prepares gputrail, before the program's first call of OpenCL, and loads the injected library.
pub fn prepared() -> Answer {
    let inside = cuptiGetVersion as *const ();
    let prepared = PREPARED.get_or_init(|| gputrail_abi::prepare(inside));
    if prepared.is_err() {
        return Err(CUptiResult::NOT_INITIALIZED);
    }
    inject();
    Ok(())
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
    let Ok(name) = CString::new(path.as_bytes()) else {
        return false;
    };
    make_global();
    // SAFETY: opens a library, whose constructors run; the user requests it.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: the text of the latest failure of this thread, or null.
        let reason = unsafe { libc::dlerror().as_ref() };
        // SAFETY: it ends with a 0, and is copied before another call of the loader.
        let reason = reason.map(|reason| unsafe { CStr::from_ptr(reason) }.to_string_lossy());
        message(&reason.unwrap_or_default());
        return false;
    }
    // SAFETY: an open library, and a name that ends with a 0.
    let function = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
    if function.is_null() {
        message(&format!("{} has no InitializeInjection", path.display()));
        return false;
    }
    // SAFETY: a function of this name has this type.
    let function =
        unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(function) };
    // SAFETY: the library's function for this.
    if unsafe { function() } == 0 {
        message(&format!(
            "InitializeInjection of {} has failed",
            path.display()
        ));
        return false;
    }
    true
}

/// Has the injected library find the functions of this one, also if it is not linked with it.
fn make_global() {
    // SAFETY: zeros are a valid value of this structure of pointers.
    let mut own: libc::Dl_info = unsafe { std::mem::zeroed() };
    let inside = cuptiGetVersion as *const c_void;
    // SAFETY: any address may be asked about, and there is a place for the answer; the name is the loader's, which lasts.
    unsafe {
        if libc::dladdr(inside, &mut own) != 0 && !own.dli_fname.is_null() {
            let how = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_GLOBAL;
            libc::dlopen(own.dli_fname, how);
        }
    }
}

/// Tells the user about the injected library.
fn message(text: &str) {
    eprintln!("libcupti: {INJECTION_VARIABLE}: {text}");
}
